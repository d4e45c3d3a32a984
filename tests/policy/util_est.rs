// SPDX-License-Identifier: GPL-2.0-only
//! A task's estimated utilisation, against values computed by hand, and its sums, which must not
//! drift.

use crate::queue::{MSEC, task, world};
use crate::rng::Rng;
use crate::topology::Tables;
use scx_roost::native::{Task, World, sys};
use scx_roost::placement::topology::NICE0;
use scx_roost::placement::topology::Topology;

/// The task sleeps after a fold that left these averages.
fn sleep(world: &mut World, t: &mut Task, util: u32, runnable: u32) -> u32 {
    t.state.util_avg = util;
    t.state.runnable_avg = runnable;
    t.state.folded_at += MSEC;
    world.util_est_sleep(0, t);
    t.state.util_est
}

#[test]
fn up_at_once_and_down_by_a_quarter() {
    let mut world = world(1);
    let mut t = task(&world, 1, NICE0);
    for (util, est) in [
        (100, 100),
        (600, 600), // up at once
        (595, 600), // closer than UTIL_EST_MARGIN is the same
        (591, 600),
        (590, 597), // (4 * 600 - 10) / 4
        (397, 547),
        (0, 410),
        (1024, 1024),
    ] {
        assert_eq!(sleep(&mut world, &mut t, util, util), est, "at {util}");
    }
}

#[test]
fn waiting_does_not_lower_the_estimate() {
    let mut world = world(1);
    let mut t = task(&world, 1, NICE0);
    sleep(&mut world, &mut t, 600, 600);
    assert_eq!(sleep(&mut world, &mut t, 400, 411), 600);
    assert_eq!(sleep(&mut world, &mut t, 400, 410), 550);
    // It still rises.
    assert_eq!(sleep(&mut world, &mut t, 700, 1024), 700);
}

#[test]
fn what_was_not_folded_says_nothing_new() {
    let mut world = world(1);
    let mut t = task(&world, 1, NICE0);
    sleep(&mut world, &mut t, 600, 600);
    t.state.util_avg = 200;
    world.util_est_sleep(0, &mut t);
    assert_eq!(t.state.util_est, 600);
}

/// On a CPU smaller than the task's utilisation the measured value says nothing.
#[test]
fn a_small_cpu_does_not_estimate_down() {
    let mut topology = Topology::regular(1, 1, 1, 1, false);
    topology.cpus[0].capacity = 300;
    let mut world = topology.world();
    let mut t = task(&world, 1, NICE0);
    sleep(&mut world, &mut t, 600, 600);
    assert_eq!(sleep(&mut world, &mut t, 301, 301), 600);
    assert_eq!(sleep(&mut world, &mut t, 300, 300), 525);
}

#[test]
fn a_task_counts_with_the_larger_of_estimate_and_utilisation() {
    let mut world = world(1);
    let mut t = task(&world, 1, NICE0);
    for (util, est, expected) in [(0, 0, 0), (200, 0, 200), (200, 300, 300), (1024, 1, 1024)] {
        (t.state.util_avg, t.state.util_est) = (util, est);
        assert_eq!(world.task_util_est(&t), expected);
        world.join(0, &mut t, 0);
        assert_eq!(world.cpu(0).util_est, expected);
        // Leaving takes away what was added, even if the estimate has changed.
        t.state.util_est += 7;
        world.leave(&mut t, 0);
        assert_eq!(world.cpu(0).util_est, 0);
    }
}

#[test]
fn the_sums_do_not_drift() {
    const CPUS: usize = 3;
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut world = world(CPUS);
        let mut tasks: Vec<Task> = (0..20).map(|pid| task(&world, pid, NICE0)).collect();
        let mut now = 1_000_000_000;
        for step in 0..2000 {
            now += rng.below(3_000_000) as u64;
            let cpu = rng.below(CPUS);
            let t = &mut tasks[rng.below(20)];
            t.state.util_avg = rng.below(1025) as u32;
            t.state.util_est = rng.below(1025) as u32;
            match (rng.below(5), t.state.on_rq) {
                (_, 0) => world.join(cpu, t, now),
                (0, _) => world.leave(t, now),
                (1, _) => world.move_to(cpu, t, now),
                (2, _) => world.reweigh(t, rng.within(16, 1 << 21) as u32, now),
                // A second leave changes nothing.
                (_, _) => (0..2).for_each(|_| world.leave(t, now)),
            }
            for cpu in 0..CPUS {
                let on_cpu = tasks.iter().filter(|t| t.state.on_rq == cpu as i32 + 1);
                let sum: u64 = on_cpu.map(|t| u64::from(t.state.on_rq_util)).sum();
                let counted = world.cpu(cpu).util_est;
                assert_eq!(counted, sum, "seed {seed} step {step} CPU {cpu}");
            }
        }
        tasks.iter_mut().for_each(|t| world.leave(t, now));
        assert!((0..CPUS).all(|c| world.cpu(c).util_est == 0));
    }
}

/// The larger of utilisation and estimates, at most the CPU's capacity.
#[test]
fn a_cpus_demand() {
    let mut topology = Topology::regular(1, 2, 1, 1, false);
    topology.cpus[1].capacity = 512;
    let mut world = Topology::new(topology.cpus).world();
    for (cpu, util, est, demand) in [
        (0, 300, 200, 300),
        (0, 300, 400, 400),
        (0, 300, 3000, 1024),
        (0, 1024, 0, 1024),
        (1, 300, 200, 200), // of 512
        (1, 800, 200, 400),
        (1, 300, 511, 511),
        (1, 300, 513, 512),
    ] {
        world.cpu_mut(cpu).util_avg = util;
        world.cpu_mut(cpu).util_est = est;
        assert_eq!(world.cpu_demand(cpu), demand, "CPU {cpu}: {util}, {est}");
    }
}

/// A higher frequency is asked for at once, or a busy CPU would stay slow; a lower one only when
/// the demand fell by a sixteenth.
#[test]
fn when_another_frequency_is_asked_for() {
    for (asked, want, changes) in [
        (0, 0, false),
        (0, 1, true),
        (400, 400, false),
        (400, 401, true),
        (400, 337, false),
        (400, 336, true),
        (1024, 0, true),
    ] {
        // SAFETY: it reads its arguments alone.
        let does = unsafe { sys::roost_perf_changes(asked, want) };
        assert_eq!(does, changes, "{asked} to {want}");
    }
}
