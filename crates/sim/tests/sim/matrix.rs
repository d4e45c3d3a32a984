// SPDX-License-Identifier: GPL-2.0-only
//! The matrix of short runs with one seed, kept in matrix.txt: any change shows, whether for better
//! or worse. After an intended one, `ROOST_DRAW=1 cargo test --release -p roost-sim --test sim
//! matrix` rewrites it: review the diff.

use roost_sim::matrix::{Effort, matrix};
use std::fs;
use std::path::Path;

#[test]
fn the_matrix_is_the_kept_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim/matrix.txt");
    let effort = Effort {
        seeds: 1..2,
        short: true,
        params: Vec::new(),
    };
    let now = matrix(&effort).unwrap().text();
    if std::env::var_os("ROOST_DRAW").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let before = fs::read_to_string(&path).unwrap_or_default();
    for (now, before) in now.lines().zip(before.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(now.lines().count(), before.lines().count());
}
