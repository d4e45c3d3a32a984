// SPDX-License-Identifier: GPL-2.0-only
//! Random machines, workloads, features, tunables and faults, checked at every event.

use scx_roost::native::sys::{STAT_dispatch_own, STAT_timer_fire};
use scx_roost::sim::load::Load;
use scx_roost::sim::{Policy, Scenario, model, swarm};

const CASES: u64 = 600;

/// Seconds. Deeper: scx_roost sim --swarm 1 --swarm-count 100000
#[test]
fn nothing_is_wrong_in_any_case() {
    let done = swarm(&(1..CASES + 1)).unwrap_or_else(|e| panic!("{e:#}"));
    println!("{}", done.text());
    assert!(done.events > 4_000_000, "{done:?}");
}

/// How often it is counted while two tasks share a CPU.
fn counted(what: u32, faults: &str) -> u64 {
    let hogs = "task hog x 2, cpus 0:\n    forever\n        run 10ms\n";
    let load = Load::parse(
        &format!("duration 600ms\n{faults}{hogs}"),
        &Default::default(),
    );
    let scenario = Scenario {
        model: &model("ryzen-3400g").expect("it is there"),
        load: load.expect("it is a load"),
        policy: &Policy::parse("roost").expect("it is a preset"),
        seed: 1,
    };
    scenario.run().expect("it runs").counters[what as usize]
}

#[test]
fn what_goes_wrong_is_missed() {
    let lost = "fault timers lost 1000\n";
    assert!(counted(STAT_timer_fire, "") > 100);
    assert_eq!(counted(STAT_timer_fire, lost), 0);
    let ticks = counted(STAT_dispatch_own, lost);
    let fewer = counted(STAT_dispatch_own, &format!("{lost}fault ticks stop 50ms\n"));
    assert!(fewer * 10 < ticks * 8, "{fewer} of {ticks}");
    let late = counted(STAT_timer_fire, "fault timers late 9ms\n");
    assert!(late * 10 < counted(STAT_timer_fire, "") * 9, "{late}");
}
