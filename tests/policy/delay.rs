// SPDX-License-Identifier: GPL-2.0-only
//! The life of a delayed migration after the placement, which tests/cases/delay.txt covers: when
//! the delay ends, where the task goes, what ends it early, and which tasks thieves may take. "B2"
//! and the like are rows of the source's table.

use crate::setup::{MAINLINE, NOW, STALE_MS, THRESHOLD};
use crate::topology::Tables;
use scx_roost::native::sys::{
    CAPACITY_SCALE, STAT_claim_release, STAT_delay_cancel, STAT_delay_dropped, STAT_delay_overdue,
    STAT_delay_stolen, STAT_delay_unknown, STAT_delay_wake, cursor, port_task,
};
use scx_roost::native::{Queues, Task, Wakeup, World};
use scx_roost::placement::Features;
use scx_roost::placement::topology::Topology;
use std::ptr::NonNull;

const DELAY: u64 = 50_000;
/// DELAY_SLACK_NS in delay_wait.h, ns.
const SLACK: u64 = 2_000;

const SMOVE: Features = Features {
    delay_migration: true,
    ..MAINLINE
};

/// Four CPUs of one LLC. CPU 1 is idle and slow, the others run a task.
fn machine() -> World {
    let mut world = Topology::regular(1, 4, 1, 1, false).world();
    world.policy_mut().threshold[0].fill(THRESHOLD);
    world.policy_mut().freq_stale_ms = STALE_MS;
    for cpu in 0..4 {
        world.set_busy(cpu);
        world.set_freq(cpu, THRESHOLD, 0);
    }
    world.set_idle(1);
    world
}

/// A task whose previous CPU is the waker's, 0, wakes at `now`.
fn wake(world: &mut World, features: Features, now: u64) -> Task {
    let mut task = Task::new(7, world);
    let bits = features.bits();
    task.state.pol.features = bits;
    let facts = world.facts().clone();
    let mut wakeup = Wakeup::new(&mut task, 0, 0, &facts);
    wakeup.now = now;
    wakeup.features = bits;
    world.place(wakeup);
    task
}

fn delayed(features: Features) -> (World, Task) {
    let mut world = machine();
    let task = wake(&mut world, features, NOW);
    assert_eq!(world.count(STAT_delay_wake), 1);
    assert_eq!(task.state.delay_cpu, 2, "1 + the CPU");
    (world, task)
}

/// B2
#[test]
fn a_task_that_has_not_run_moves_when_its_delay_ends() {
    let (mut world, mut task) = delayed(SMOVE);
    for early in [NOW, NOW + 1, NOW + DELAY - SLACK - 1] {
        assert!(!world.delay_due(&task, early), "at {}", early - NOW);
    }
    for due in [NOW + DELAY - SLACK, NOW + DELAY, NOW + 100 * DELAY] {
        assert!(world.delay_due(&task, due), "at {}", due - NOW);
    }
    assert_eq!(world.delay_take(&mut task), Some(NOW));
    assert!(!world.delay_due(&task, NOW + DELAY), "once");
    assert_eq!(world.delay_take(&mut task), None);
}

/// B1: it ran on its waker's CPU; B16: on another CPU. The timer finds nothing to move.
#[test]
fn a_running_task_does_not_move() {
    for (cpu, after, stat) in [
        (0, 1, STAT_delay_cancel),
        (0, DELAY, STAT_delay_cancel),
        (2, DELAY - 1, STAT_delay_stolen),
        (2, DELAY, STAT_delay_overdue),
    ] {
        let (mut world, mut task) = delayed(SMOVE);
        world.join(0, &mut task, NOW);
        assert_eq!(
            world.delay_runs(&mut task, Some(cpu), NOW + after),
            Some(NOW)
        );
        assert_eq!(world.count(stat), 1);
        assert!(!world.delay_due(&task, NOW + DELAY));
        assert_eq!(
            world.delay_runs(&mut task, Some(cpu), NOW + after),
            None,
            "once"
        );
        assert_eq!(world.count(stat), 1);
    }
}

/// B9: a change of affinity queues the task anew.
#[test]
fn a_requeued_task_does_not_move() {
    let (mut world, mut task) = delayed(SMOVE);
    assert_eq!(world.delay_runs(&mut task, None, NOW + 1), Some(NOW));
    assert_eq!(world.count(STAT_delay_dropped), 1);
    assert!(!world.delay_due(&task, NOW + DELAY));
}

/// B12
#[test]
fn each_has_its_own_time() {
    let mut world = machine();
    let begun = [0, 10_000, 20_000].map(|at| NOW + at);
    let tasks = begun.map(|at| wake(&mut world, SMOVE, at));
    for (task, at) in tasks.iter().zip(begun) {
        assert!(!world.delay_due(task, at + DELAY - SLACK - 1));
        assert!(world.delay_due(task, at + DELAY));
    }
    let due = |now| tasks.each_ref().map(|t| world.delay_due(t, now));
    assert_eq!(due(NOW + DELAY), [true, false, false]);
    assert_eq!(due(NOW + DELAY + 10_000), [true, true, false]);
}

/// One task waits on CPU 0 for its move.
struct OneDelayed {
    task: Task,
    port: port_task,
    taken: bool,
}

impl Queues for OneDelayed {
    fn take(&mut self, cpu: usize) -> bool {
        let taken = cpu == 0 && !self.taken;
        self.taken |= taken;
        taken
    }

    fn length(&self, cpu: usize) -> usize {
        usize::from(cpu == 0 && !self.taken)
    }

    fn next(&mut self, cpu: usize, at: &mut cursor) -> Option<NonNull<port_task>> {
        at.seq += 1;
        self.port = self.task.port();
        self.port.state = &raw mut self.task.state;
        (at.seq == 1 && self.length(cpu) > 0).then_some(NonNull::from(&mut self.port))
    }

    fn move_to(&mut self, _: NonNull<port_task>, cpu: Option<usize>) -> bool {
        assert_eq!(cpu, None, "it is taken here");
        self.take(0)
    }
}

/// B16: load balancing may have moved the task before the source's timer fires, as its comment
/// there says.
#[test]
fn a_delayed_task_may_be_stolen() {
    let (mut world, task) = delayed(SMOVE);
    world.mark_waiting(0);
    let mut queues = OneDelayed {
        port: task.port(),
        task,
        taken: false,
    };
    assert!(world.steal(1, &mut queues, NOW + 1, true));
}

/// C10: the claim of the destination is released at once.
#[test]
fn the_claim_of_the_destination() {
    let claiming = Features {
        claim: true,
        ..SMOVE
    };
    let (world, _) = delayed(claiming);
    assert_eq!(world.cpu(1).claim, 0);
    assert_eq!(world.count(STAT_claim_release), 1);
}

/// With freq_stale_ms 0, the frequencies that ticks see (of CAPACITY_SCALE) count, and those that
/// userspace read do not.
#[test]
fn the_frequency_that_ticks_see() {
    for (slow, threshold, low) in [
        (0, CAPACITY_SCALE - 1, false),
        (0, CAPACITY_SCALE, true),
        (624, 400, true),
        (623, 400, false),
    ] {
        let mut world = machine();
        world.policy_mut().freq_stale_ms = 0;
        world.policy_mut().threshold[0].fill(threshold);
        (world.cpu_mut(1).slow, world.cpu_mut(1).ticked) = (slow, 1);
        let task = wake(&mut world, SMOVE, NOW);
        assert_eq!(task.state.delay_at > 0, low, "{slow} {threshold}");
        assert_eq!(world.count(STAT_delay_unknown), 0);
    }
}

/// The source's rq->freq is 0 until the first tick, which is below every threshold.
#[test]
fn a_cpu_that_has_not_ticked_is_slow() {
    for (ticked, threshold, low) in [(0, 400, true), (1, 400, false), (0, 0, false)] {
        let mut world = machine();
        world.policy_mut().freq_stale_ms = 0;
        world.policy_mut().threshold[0].fill(threshold);
        world.cpu_mut(1).ticked = ticked;
        let task = wake(&mut world, SMOVE, NOW);
        assert_eq!(task.state.delay_at > 0, low, "{ticked} {threshold}");
    }
}

/// Each arm has its own threshold and its own delay.
#[test]
fn thresholds_and_delays_are_of_an_arm() {
    let mut world = machine();
    world.policy_mut().threshold[3].fill(THRESHOLD - 1);
    for (arm, is_delayed) in [(0, true), (3, false)] {
        let mut task = Task::new(7, &world);
        task.state.pol.features = SMOVE.bits();
        task.state.pol.arm = arm;
        task.state.pol.delay_ns = 7_000;
        let facts = world.facts().clone();
        let mut wakeup = Wakeup::new(&mut task, 0, 0, &facts);
        wakeup.now = NOW;
        wakeup.features = SMOVE.bits();
        world.place(wakeup);
        let until = if is_delayed { NOW + 7_000 } else { 0 };
        assert_eq!(task.state.delay_at, until, "arm {arm}");
    }
}

/// Each CPU has its own threshold; that of the chosen CPU counts.
#[test]
fn thresholds_are_of_a_cpu() {
    for (cpu, is_delayed) in [(0, false), (1, true), (2, false)] {
        let mut world = machine();
        world.policy_mut().threshold[0].fill(0);
        world.policy_mut().threshold[0][cpu] = THRESHOLD;
        let task = wake(&mut world, SMOVE, NOW);
        assert_eq!(task.state.delay_at > 0, is_delayed, "CPU {cpu}");
    }
}
