// SPDX-License-Identifier: GPL-2.0-only
//! The class by its calls, for states that a run of a workload would not reach.

use super::levels::LLC;
use super::*;
use crate::model;
use scx_roost::native::World;
use scx_roost::policy::config::Config;
use scx_roost::policy::settings::Settings;

const MS: u64 = 1_000_000;
/// The machine has been up for this long, ns.
const NOW: u64 = 1_000 * MS;

fn fair() -> Fair {
    let model = model("tr-3970x").expect("it is known");
    let facts = model.hardware().expect("it is one").facts;
    let settings = Settings::of_preset("mainline").expect("it is one");
    let arm = settings.arm(facts.machine.nr_online);
    let tunables = Config::default().tunables(&model.listens(), None, true, false);
    let kernel = Kernel::new(World::new(facts, arm, tunables, 1), 4);
    let mut fair = Fair::new(kernel, 4, Ends::Wakeup, &model.params);
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

/// sched_balance_rq(): failures count in a row. Where all waiting tasks are pinned, there is
/// nothing to fail at.
#[test]
fn failures_in_a_row_end_where_no_task_could_move() {
    let mut fair = fair();
    for task in 0..2 {
        comes(&mut fair, task, 0, Wake::fork(0));
    }
    let runs = fair.pick(0, &mut Vec::new()).expect("somebody waits");
    let waits = 1 - runs;
    // CPU 1 is on another core: between threads of a core no task is hot.
    let [free, pinned] = [0b11, 0b01].map(|mask| fair.kernel.mask(&[mask]));
    let mut ticks = |mask: usize| {
        fair.set_now(fair.now + 8 * MS);
        fair.set_affinity(waits, mask, &mut Vec::new());
        fair.entities[waits].ran_at = fair.now;
        fair.call_idle(0, &mut Vec::new());
        fair.balance.domains.failed(1, LLC)
    };
    assert_eq!([free, pinned, free].map(&mut ticks), [1, 0, 1]);
}

/// Two tasks take turns on CPU 0, which CPU 1 may help, and two pinned ones on CPU 2 of the same
/// cache. Whichever ticks, CPU 1 finds a hot task: it fails once in 8 ms. It is the first idle CPU
/// of its core; its sibling does not look.
#[test]
fn failures_do_not_end_at_a_queue_of_pinned_tasks() {
    let mut fair = fair();
    for task in 0..4 {
        comes(&mut fair, task, task / 2 * 2, Wake::fork(0));
    }
    let masks = [0b11, 1 << 2].map(|mask| fair.kernel.mask(&[mask]));
    for task in 0..4 {
        fair.set_affinity(task, masks[task / 2], &mut Vec::new());
    }
    for cpu in [0, 2] {
        fair.pick(cpu, &mut Vec::new()).expect("somebody waits");
    }
    for failed in 1..3 {
        fair.set_now(fair.now + 8 * MS);
        let now = fair.now;
        fair.entities.iter_mut().for_each(|e| e.ran_at = now);
        for cpu in [0, 2, 0, 2] {
            fair.call_idle(cpu, &mut Vec::new());
        }
        let of = |cpu| fair.balance.domains.failed(cpu, LLC);
        assert_eq!([1, 33].map(of), [failed, 0]);
    }
}

/// A fork wakes nothing, though a hotplug may have ended the class that sent it. Without
/// Huang's patch the CPU's idle period goes on in the mean (kernel: ttwu_do_activate()).
#[test]
fn wakeups_alone_end_an_idle_period() {
    for (wake, goes_on) in [(Wake::by(1), false), (Wake::fork(1), true)] {
        let mut fair = fair();
        comes(&mut fair, 0, 0, wake);
        assert_eq!(fair.queues[0].idle.since() > 0, goes_on, "{wake:?}");
    }
}

/// A CPU that runs only SCHED_IDLE, however many, is not free for a SCHED_IDLE task
/// (choose_idle_cpu()).
#[test]
fn a_sched_idle_task_takes_no_cpu_of_others() {
    let idle = Attr {
        policy: SchedPolicy::Idle,
        ..Attr::default()
    };
    let mut fair = fair();
    for task in 0..2 {
        fair.begin(task, 0, 0);
        fair.set_attr(task, &idle);
        fair.arrive(Wake::fork(0), task, &mut Vec::new());
    }
    fair.pick(0, &mut Vec::new()).expect("somebody waits");
    fair.begin(2, 0, 0);
    fair.set_attr(2, &idle);
    assert_ne!(fair.place(Wake::by(0), 2, &mut Vec::new()), 0);
}

/// The set of this CPU alone.
fn fair_mask(fair: &mut Fair, cpu: u32) -> usize {
    fair.kernel.mask(&[1 << cpu])
}

/// Two tasks on CPU 0, and an idle CPU 1 that has idled for 100 us at a time. It pulls, because
/// that pays for the look.
#[test]
fn a_cpu_looks_after_short_idles() {
    let mut fair = fair();
    for task in 0..2 {
        comes(&mut fair, task, 0, Wake::fork(0));
    }
    fair.pick(0, &mut Vec::new()).expect("somebody waits");
    // Cold.
    fair.set_now(NOW + MS);
    for _ in 0..40 {
        fair.queues[1].idle.begins(fair.now);
        fair.queues[1].idle.comes(true, fair.now + MS / 10);
    }
    assert!(fair.pull(1, &mut Vec::new()).is_some());
}

/// Two tasks on CPU 0 and two on CPU 2 of the same cache, of which one is cold and may use CPU 1.
/// CPU 0, whose tasks are pinned, ticks: CPU 1 takes the cold one, and has not failed.
#[test]
fn a_cold_task_of_another_queue_is_taken() {
    let mut fair = fair();
    for task in 0..4 {
        comes(&mut fair, task, task / 2 * 2, Wake::fork(0));
    }
    for cpu in [0, 2] {
        fair.pick(cpu, &mut Vec::new()).expect("somebody waits");
    }
    let masks = [0b1, 0b110].map(|mask| fair.kernel.mask(&[mask]));
    for task in 0..4 {
        fair.set_affinity(task, masks[task / 2], &mut Vec::new());
        fair.entities[task].ran_at = 0;
    }
    fair.set_now(fair.now + 8 * MS);
    fair.call_idle(0, &mut Vec::new());
    assert_eq!(fair.cpus.nr_running[1], 1);
    assert_eq!(fair.balance.domains.failed(1, LLC), 0);
}

/// CPU 1 has failed once. Then an earlier CPU of its group is idle, which looks from then on.
#[test]
fn another_cpu_that_looks_ends_a_row_of_failures() {
    let mut fair = fair();
    fair.balance.domains.looked(33, LLC, NOW, true);
    assert_eq!(fair.balance.domains.failed(33, LLC), 1);
    for task in 0..2 {
        comes(&mut fair, task, 0, Wake::fork(0));
        let mask = fair_mask(&mut fair, 0);
        fair.set_affinity(task, mask, &mut Vec::new());
    }
    fair.pick(0, &mut Vec::new()).expect("somebody waits");
    fair.set_now(NOW + 8 * MS);
    fair.call_idle(0, &mut Vec::new());
    assert_eq!(fair.balance.domains.failed(33, LLC), 0);
}

/// Of the LLC of CPU 0, whose other thread is busy, a CPU of the next core looks.
#[test]
fn idle_cpus_look_from_idle_cores() {
    let mut fair = fair();
    comes(&mut fair, 0, 32, Wake::fork(32));
    assert_eq!(fair.pick(32, &mut Vec::new()), Some(0));
    assert_eq!(fair.looks_for(2, LLC + 1), 1);
}
