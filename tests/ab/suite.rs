// SPDX-License-Identifier: GPL-2.0-only
//! Workloads that come along: each ends, whatever the machine has, and wakes others or does not as it says.

use crate::child::runs;
use clap::ValueEnum;
use scx_roost::ab::child::Workload;
use scx_roost::ab::metric::Measured;
use scx_roost::ab::suite::{COMMAND, Pattern};
use std::time::Duration;

#[test]
fn each_ends_on_one_cpu_and_on_many() {
    for pattern in Pattern::value_variants() {
        for cpus in [1, 3, 8] {
            pattern.perform(cpus, 0.005).unwrap();
        }
    }
}

/// As it is compared, by its name.
#[test]
fn who_wakes_nobody_switches_seldom() {
    let switches = |pattern: Pattern| {
        let sample = runs(&Workload {
            command: [env!("CARGO_BIN_EXE_scx_roost"), COMMAND, &pattern.name()]
                .map(Into::into)
                .to_vec(),
            timeout: Duration::from_secs(60),
            powercap: "/nowhere".into(),
        });
        let sample = sample.unwrap();
        sample.values[&Measured::ContextSwitches] / sample.values[&Measured::Wall]
    };
    let (flat, ball) = (switches(Pattern::Flat), switches(Pattern::PingPong));
    assert!(ball > 5.0 * flat, "{ball} and {flat} a second");
}
