// SPDX-License-Identifier: GPL-2.0-only
//! Runs every kept input of the target `workloads`, each on its own, so that a failing one hides no
//! other. scripts/fuzz looks for more (docs/explanation/testing.md).

mod loads;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

#[test]
fn workloads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus/workloads");
    let entries = fs::read_dir(folder).expect("the corpus");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("a file").path()).collect();
    files.sort();
    assert!(!files.is_empty());
    let is_bad = |file: &&PathBuf| {
        let input = fs::read(file).expect("a file can be read");
        catch_unwind(|| loads::workloads(&input)).is_err()
    };
    let bad: Vec<&PathBuf> = files.iter().filter(is_bad).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}
