// SPDX-License-Identifier: GPL-2.0-only
//! Runs every kept input of every target: inputs that once failed, and inputs that reach far into
//! the code. scripts/fuzz looks for more (docs/explanation/testing.md). `hostile` attacks both
//! sockets.

mod corpus;
#[path = "../monitoring/fake.rs"]
#[allow(dead_code)]
mod fake;
mod hostile;
mod targets;

use std::path::Path;
use targets::TARGETS;

fn run(target: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let run = TARGETS.iter().find(|t| t.name == target).expect("a target");
    corpus::run_all(&folder.join(format!("{target}.json")), run.run);
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
