// SPDX-License-Identifier: GPL-2.0-only
//! The matrix of short runs with one seed, kept in matrix.txt: any change shows, whether for better
//! or worse. After an intended one, `ROOST_DRAW=1 cargo test --release --test sim matrix` rewrites
//! it: review the diff.

use crate::shown::{effort, is_kept};
use scx_roost::sim::table::{MatrixPlan, matrix};
use std::path::Path;

#[test]
fn the_matrix_is_the_kept_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sim/matrix.txt");
    let plan = MatrixPlan {
        effort: effort(),
        beside: false,
    };
    is_kept(&path, &matrix(&plan).unwrap().text());
}
