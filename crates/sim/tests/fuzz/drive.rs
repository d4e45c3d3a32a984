// SPDX-License-Identifier: GPL-2.0-only
//! The target `workloads` under libFuzzer, for scripts/fuzz.

#[path = "../../../../tests/fuzz/libfuzzer.rs"]
mod libfuzzer;
mod loads;

fn main() {
    libfuzzer::drive(&[("workloads", loads::workloads)]);
}
