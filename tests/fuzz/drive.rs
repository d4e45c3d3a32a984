// SPDX-License-Identifier: GPL-2.0-only
//! Runs the targets under libFuzzer, for scripts/fuzz.
//!
//!     fuzz --list
//!     fuzz TARGET [arguments of libFuzzer: -max_total_time=60, folders of inputs, an input ...]

mod libfuzzer;
mod targets;

use libfuzzer::{Target, drive};

fn main() {
    let targets: Vec<Target> = targets::TARGETS.iter().map(|t| (t.name, t.run)).collect();
    drive(&targets);
}
