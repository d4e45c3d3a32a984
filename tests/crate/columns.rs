// SPDX-License-Identifier: GPL-2.0-only
//! Lines have at most 100 columns: C, comments of Rust and of scripts, and prose. A line may be
//! longer for a text that cannot be broken: a string, a link, a row of a table, a code block.

use std::path::{Path, PathBuf};

const COLUMNS: usize = 100;
const TAB: usize = 8;
/// Generated, or read by others as they are.
const LEFT_OUT: [&str; 3] = ["tests/fuzz/corpus/", "tests/cases/", "/target/"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        match entry.file_type().unwrap().is_dir() {
            true if !hidden => files(&path, found),
            false => found.push(path),
            true => {}
        }
    }
}

fn columns(line: &str) -> usize {
    let line = line.trim_end_matches('\\').trim_end();
    line.chars().fold(0, |at, c| match c {
        '\t' => at / TAB * TAB + TAB,
        _ => at + 1,
    })
}

/// Whether a line of that kind of file counts.
fn counts(kind: &str, line: &str, in_block: bool) -> bool {
    let text = line.trim_start();
    match kind {
        "rs" => text.starts_with("//") && !text.contains("http"),
        "c" | "h" => !text.contains('"') && !text.contains("http"),
        "sh" | "py" | "script" => text.starts_with("# ") && !text.contains("http"),
        "md" => {
            let item = text.starts_with("- ") || text.starts_with("* ");
            let indented = line.starts_with("    ") && !item;
            let row = text.starts_with('|') || text.starts_with('[');
            !in_block && !indented && !row && !text.contains("](")
        }
        _ => false,
    }
}

fn kind(path: &Path) -> &str {
    match path.extension().and_then(|e| e.to_str()) {
        Some(kind) => kind,
        None if path.components().any(|c| c.as_os_str() == "scripts") => "script",
        None => "",
    }
}

#[test]
fn lines_have_at_most_a_hundred_columns() {
    let top = crate::top();
    let mut all: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "build.rs",
    ]
    .map(|name| top.join(name))
    .into();
    for folder in [
        "src", "crates", "tests", "scripts", "benches", "build", "docs", "contrib",
    ] {
        files(&top.join(folder), &mut all);
    }
    let mut long = Vec::new();
    let mut checked = 0;
    for path in all {
        let name = path.strip_prefix(top).unwrap().display().to_string();
        if LEFT_OUT
            .iter()
            .any(|part| format!("/{name}").contains(part))
        {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        checked += 1;
        let mut in_block = false;
        for (number, line) in text.lines().enumerate() {
            in_block ^= kind(&path) == "md" && line.trim_start().starts_with("```");
            if columns(line) > COLUMNS && counts(kind(&path), line, in_block) {
                long.push(format!("{name}:{}: {} columns", number + 1, columns(line)));
            }
        }
    }
    assert!(checked > 400, "only {checked} files were found");
    assert!(
        long.is_empty(),
        "{} lines:\n{}",
        long.len(),
        long.join("\n")
    );
}
