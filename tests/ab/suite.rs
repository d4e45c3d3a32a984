// SPDX-License-Identifier: GPL-2.0-only
//! The built-in workloads: each ends on any machine, and switches tasks often or seldom as its
//! description says.

use crate::child::{alone, runs, workload};
use clap::{Parser, ValueEnum};
use scx_roost::ab::args::AbArgs;
use scx_roost::ab::child::Workload;
use scx_roost::ab::metric::Measured;
use scx_roost::ab::suite::{COMMAND, Pattern, part_31};
use std::collections::BTreeMap;
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_scx_roost");

/// A command with a long timeout.
fn long(command: &[&str]) -> Workload {
    Workload {
        command: command.iter().map(Into::into).collect(),
        timeout: Duration::from_secs(60),
        ..workload("")
    }
}

#[test]
fn each_ends_on_one_cpu_and_on_many() {
    // One of them forks, and another test would reap its children.
    let _alone = alone();
    for pattern in Pattern::value_variants() {
        for cpus in [1, 3, 8] {
            pattern.perform(cpus, 0.005, 100_000).unwrap();
        }
    }
}

/// By its name, as a comparison runs it.
#[test]
fn a_workload_without_wakeups_switches_rarely() {
    let switches = |pattern: Pattern| {
        let name = pattern.name();
        let sample = runs(&long(&[PROGRAM, COMMAND, &name, "400000"])).unwrap();
        sample.values[&Measured::ContextSwitches] / sample.values[&Measured::Wall]
    };
    let (flat, ball) = (switches(Pattern::Flat), switches(Pattern::PingPong));
    assert!(ball > 5.0 * flat, "{ball} and {flat} a second");
}

/// A group of ten senders and ten receivers uses twenty descriptors and no more. The soft limit
/// does not stop it.
#[test]
fn pipes_are_no_more_than_they_have_to_be() {
    let pattern = Pattern::Messages.name();
    let script = format!("ulimit -Hn 40; ulimit -Sn 12; exec {PROGRAM} {COMMAND} {pattern} 1");
    // One CPU, one group.
    runs(&long(&["taskset", "-c", "0", "sh", "-c", &script])).unwrap();
}

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: AbArgs,
}

/// All runs of all workloads use the same number of steps, which the file records.
#[test]
fn the_amount_of_work_is_fixed_before_any_run() {
    let words = "ab --suite placement --variant mainline --variant roost";
    let typed = Typed::parse_from(words.split(' '));
    let tasks = typed.args.tasks("roost".into(), BTreeMap::new()).unwrap();
    assert_eq!(tasks.len(), Pattern::value_variants().len());
    let steps = tasks[0].header.command.last().unwrap();
    assert!(steps.parse::<u64>().unwrap() > 100, "{steps}");
    for (task, pattern) in tasks.iter().zip(Pattern::value_variants()) {
        assert_eq!(
            task.header.command,
            ["roost", COMMAND, &pattern.name(), steps]
        );
        assert_eq!(task.command.last().unwrap(), &steps[..]);
    }
}

#[test]
fn chunks_31_are_31_percent() {
    assert_eq!(Pattern::Chunks31.name(), "chunks-31");
    let all = [1, 2, 3, 4, 8, 16, 24, 64, 128].map(part_31);
    assert_eq!(all, [1, 1, 1, 2, 3, 5, 8, 20, 40]);
}
