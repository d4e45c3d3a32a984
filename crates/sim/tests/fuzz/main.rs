// SPDX-License-Identifier: GPL-2.0-only
//! Runs every kept input of the target `workloads`. scripts/fuzz looks for more
//! (docs/explanation/testing.md).

#[path = "../../../../tests/fuzz/corpus.rs"]
mod corpus;
mod loads;

use std::path::Path;

#[test]
fn workloads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    corpus::run_all(&folder.join("workloads.json"), loads::workloads);
}
