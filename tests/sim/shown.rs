// SPDX-License-Identifier: GPL-2.0-only
//! The tables of short runs with one seed, kept in the files of `shown/`: any change shows, whether
//! for better or worse. After an intended one, `ROOST_DRAW=1 cargo test --release --test sim shown`
//! rewrites them: review the diff.

use scx_roost::sim::table::{Effort, TablePlan, tables};
use std::fs;
use std::path::{Path, PathBuf};

fn file(source: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim/shown");
    folder.join(format!("{source}.txt"))
}

/// A short run with one seed.
pub fn effort() -> Effort {
    Effort {
        seeds: 1..2,
        most_seeds: None,
        short: true,
        params: Vec::new(),
    }
}

/// Without the hash of the parameters and their changes: only the outcome counts.
fn shown(source: &str) -> String {
    let plan = TablePlan {
        source: source.to_string(),
        effort: effort(),
        beside: false,
        changes: false,
        predicted: false,
    };
    let tables = tables(&plan).unwrap();
    let lines = tables.iter().flat_map(|t| {
        let text = t.text();
        let lines = text.lines().map(str::to_string);
        lines.collect::<Vec<_>>()
    });
    let lines = lines.filter(|line| !line.contains("Parameters "));
    lines.map(|line| line + "\n").collect()
}

fn compare(source: &str) {
    is_kept(&file(source), &shown(source));
}

/// `now` is the text of the file, or becomes it if files are drawn.
pub fn is_kept(path: &Path, now: &str) {
    if std::env::var_os("ROOST_DRAW").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, now).unwrap();
    }
    let before = fs::read_to_string(path).unwrap_or_default();
    let name = path.display();
    for (now, before) in now.lines().zip(before.lines()) {
        assert_eq!(now, before, "{name}");
    }
    assert_eq!(now.lines().count(), before.lines().count(), "{name}");
}

#[test]
fn table_000() {
    compare("000");
}

#[test]
fn table_001() {
    compare("001");
}

#[test]
fn table_002() {
    compare("002");
}

#[test]
fn table_003() {
    compare("003");
}

#[test]
fn table_004() {
    compare("004");
}
