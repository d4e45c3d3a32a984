// SPDX-License-Identifier: GPL-2.0-only
//! The class by its calls, where a run of a workload would not come to that point.

use super::balance::NICE_TRIES;
use super::*;
use crate::arms::Settings;
use crate::config::Config;
use crate::native::World;
use crate::sim::model;

const MS: u64 = 1_000_000;
/// The machine has been there for so long. ns
const NOW: u64 = 1_000 * MS;

fn fair() -> Fair {
    let model = model("tr-3970x").expect("it is known");
    let facts = model.hardware().expect("it is one").facts;
    let settings = Settings::of_preset("mainline").expect("it is one");
    let arm = settings.arm(facts.machine.nr_online);
    let tunables = Config::default().tunables(&model.listens(), true);
    let kernel = Kernel::new(World::new(facts, arm, tunables, 1), 4);
    let mut fair = Fair::new(kernel, 4, Rules::Eevdf, &model.params);
    fair.set_now(NOW);
    for cpu in 0..fair.queues.len() {
        assert_eq!(fair.pick(cpu, &mut Vec::new()), None);
    }
    fair
}

/// The new task comes to the CPU.
fn comes(fair: &mut Fair, task: TaskId, cpu: usize, wake: Wake) {
    fair.begin(task, 0, cpu);
    fair.arrive(wake, task, &mut Vec::new());
}

/// sched_balance_rq(): failures count in a row, and where all who wait are pinned, or nobody idles, there is nothing to fail at.
#[test]
fn a_row_of_failures_ends_where_nobody_could_go() {
    let mut fair = fair();
    for task in 0..2 {
        comes(&mut fair, task, 0, Wake::fork(0));
    }
    let runs = fair.pick(0, &mut Vec::new()).expect("somebody waits");
    let waits = 1 - runs;
    // CPU 1 is of another core: to a thread of its own nobody is hot.
    let [free, pinned] = [0b11, 0b01].map(|mask| fair.kernel.mask(&[mask]));
    let mut ticks = |mask: usize| {
        fair.set_affinity(waits, mask, &mut Vec::new());
        fair.entities[waits].ran_at = fair.now;
        fair.call_idle(0, &mut Vec::new());
        fair.queues[0].failed
    };
    assert_eq!(
        [free, pinned, free].map(&mut ticks),
        [NICE_TRIES, 0, NICE_TRIES]
    );
}

/// On its way after an exec a task was neither woken nor forked, though the class that sent it may have been ended by a hotplug: the
/// CPU's idle period is no part of the mean.
#[test]
fn who_execs_is_not_woken() {
    for (wake, goes_on) in [
        (Wake::exec(1), true),
        (Wake::by(1), false),
        (Wake::fork(1), false),
    ] {
        let mut fair = fair();
        comes(&mut fair, 0, 0, wake);
        assert_eq!(fair.queues[0].idle.since() > 0, goes_on, "{wake:?}");
    }
}
