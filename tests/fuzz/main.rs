// SPDX-License-Identifier: GPL-2.0-only
//! Runs every kept input of every target: inputs that once failed, and inputs that reach far into
//! the code. scripts/fuzz looks for more (docs/explanation/testing.md). `hostile` attacks both
//! sockets.

#[path = "../monitoring/fake.rs"]
#[allow(dead_code)]
mod fake;
mod hostile;
mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use targets::TARGETS;

fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let entries = fs::read_dir(folder.join(target)).expect("each target has a folder");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("a file").path()).collect();
    files.sort();
    files
}

/// Runs all inputs, each on its own, so that a failing one hides no other.
fn run(target: &str) {
    let run = TARGETS.iter().find(|t| t.name == target).expect("a target");
    let files = corpus(target);
    assert!(!files.is_empty(), "{target} has no corpus");
    let bad = files.iter().filter(|file| {
        let input = fs::read(file).expect("a file can be read");
        catch_unwind(|| (run.run)(&input)).is_err()
    });
    let bad: Vec<&PathBuf> = bad.collect();
    assert!(bad.is_empty(), "{target}: {bad:#?}");
}

macro_rules! corpora {
    ($($target:ident)*) => {
        $(#[test] fn $target() { run(stringify!($target)); })*

        #[test]
        fn no_target_is_left_out() {
            let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
            assert_eq!(names, [$(stringify!($target)),*]);
        }
    };
}

corpora! { lists sysfs control statistics answers configuration rules results policy }
