// SPDX-License-Identifier: GPL-2.0-only
//! The command lines of `roost-sim` in the pages.

use roost_sim::parse;
use std::fs;
use std::path::{Path, PathBuf};

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

/// Blocks are indented by four spaces. A line may go on after a backslash, or end with a comment.
fn command_lines(text: &str) -> Vec<String> {
    let whole = text.replace("\\\n", " ");
    let lines = whole
        .lines()
        .filter_map(|l| l.strip_prefix("    roost-sim"));
    let without_comment = |line: &str| line.split(" #").next().unwrap_or_default().to_string();
    lines.map(without_comment).collect()
}

#[test]
fn command_lines_parse() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![top.join("README.md"), top.join("CONTRIBUTING.md")];
    pages(&top.join("docs"), &mut all);
    let mut tried = 0;
    for page in all {
        let text = fs::read_to_string(&page).expect("a page");
        for line in command_lines(&text) {
            tried += 1;
            let words = ["roost-sim"].into_iter().chain(line.split_whitespace());
            let Err(e) = parse(words.map(String::from)) else {
                continue;
            };
            // Files of the reader.
            let error = format!("{e:#}");
            assert!(
                error.contains("cannot read"),
                "{}: {line}: {error}",
                page.display()
            );
        }
    }
    assert!(tried > 10, "only {tried} were found");
}
