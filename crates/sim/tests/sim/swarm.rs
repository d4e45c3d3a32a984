// SPDX-License-Identifier: GPL-2.0-only
//! Random machines, workloads, features, tunables and faults, checked at every event.

use crate::runs::near;
use roost_sim::load::Load;
use roost_sim::{Measured, Policy, Scenario, model, swarm};
use scx_roost::native::sys::{STAT_dispatch_own, STAT_timer_fire};

const CASES: u64 = 600;

/// Takes seconds. For more cases: roost-sim --swarm 1 --swarm-count 100000
#[test]
fn nothing_is_wrong_in_any_case() {
    let done = swarm(&(1..CASES + 1)).unwrap_or_else(|e| panic!("{e:#}"));
    println!("{}", done.text());
    assert!(done.events > 4_000_000, "{done:?}");
}

/// The value of a counter after a run in which two tasks share a CPU.
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

/// Two cores of one cache at the highest frequency; the run is checked.
fn two_cpus(policy: &str, text: &str) -> Measured {
    let mut model = model("ryzen-3400g").expect("it is there");
    let governor = model.params.set("governor", 0.0);
    governor.expect("it can be off");
    let machine = &mut model.machine;
    machine.cpus.retain(|cpu| cpu.id < 2);
    machine.llcs[0].cpus.retain(|&cpu| cpu < 2);
    machine.cpus.iter_mut().for_each(|c| c.siblings.clear());
    machine.offline = (2..machine.nr_cpu_ids).collect();
    let scenario = Scenario {
        model: &model,
        load: Load::parse(text, &Default::default()).expect("it is a load"),
        policy: &Policy::parse(policy).expect("it is a policy"),
        seed: 1,
    };
    scenario
        .checked()
        .unwrap_or_else(|e| panic!("{policy}: {e:#}"))
}

/// One of the two CPUs is offline half of the time. A task that may use only that one then gets
/// half of the other CPU: three quarters of a CPU on the whole.
#[test]
fn a_cpu_that_is_away_does_nothing() {
    let hogs = "task a, cpus 0:\n    forever\n        run 1ms\n        count turns\n\
                task b, cpus 1:\n    forever\n        run 1ms\n";
    for policy in ["mainline", "roost", "eevdf"] {
        let of = |fault: &str| {
            let text = format!("duration 8s\nmeasure rate turns\n{fault}{hogs}");
            let m = two_cpus(policy, &text);
            (m.busy_ns as f64 / 8e9, m.result())
        };
        let ((all, alone), (busy, turns)) = (of(""), of("fault hotplug 200ms\n"));
        near(all, 2.0, 0.1);
        near(busy, 1.5, 0.1);
        near(turns, 0.75 * alone, 3.0);
    }
}

/// Every 10 ms it is given CPU 0 or CPU 1 at random, so every other time it moves.
#[test]
fn a_new_affinity_moves_the_task() {
    let text = |fault: &str| {
        format!(
            "duration 2s\n{fault}task a, cpus 0:\n    forever\n        run 1ms\n\
             task b from a, cpus 1:\n    exit\n"
        )
    };
    for policy in ["mainline", "roost", "eevdf"] {
        let moves = two_cpus(policy, &text("fault affinity 10ms\n")).migrations;
        assert!((80..120).contains(&moves), "{policy}: {moves}");
        assert_eq!(two_cpus(policy, &text("")).migrations, 0);
    }
}
