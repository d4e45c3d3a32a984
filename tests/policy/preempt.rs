// SPDX-License-Identifier: GPL-2.0-only
//! Which task may preempt which when one joins a queue.

use crate::queue::{MSEC, task, world};
use scx_roost::native::sys::{
    FEATURE_burst_slice, PREEMPT_LATER, PREEMPT_NO, PREEMPT_NOW, STAT_burst_preempt, cpu_state,
    preempt,
};
use scx_roost::placement::topology::NICE0;

/// The running task's time since its last charge counts against it.
#[test]
fn a_task_owed_nothing_preempts_one_that_is_ahead() {
    for (lag, expected) in [(0, PREEMPT_NOW), (-(2 * MSEC as i64), PREEMPT_NO)] {
        let mut world = world(1);
        let [mut runner, mut waiter, mut newcomer] = [1, 2, 3].map(|pid| task(&world, pid, NICE0));
        for t in [&mut runner, &mut waiter] {
            world.join(0, t, 0);
            world.new_request(t, 0);
        }
        let cpu = world.cpu_mut(0);
        (cpu.curr_pid, cpu.curr_weight) = (1, NICE0);
        (cpu.curr_vruntime, cpu.curr_deadline) = (runner.state.vruntime, runner.state.deadline);
        newcomer.state.lag = lag;
        newcomer.state.left_at = 2 * MSEC;
        world.join(0, &mut newcomer, 2 * MSEC);
        newcomer.state.deadline = runner.state.deadline + MSEC;
        assert_eq!(
            world.preempts(0, &newcomer, 0, 2 * MSEC),
            expected,
            "lag {lag}"
        );
    }
}

#[test]
fn a_light_task_interrupts_sooner() {
    let mut world = world(1);
    let mut t = task(&world, 1, NICE0);
    for (burst, util, expected) in [(0, 0, 700_000), (1, 127, 87_500), (1, 128, 700_000)] {
        t.state.burst = burst;
        t.state.util_avg = util;
        let protected = world.protected_ns(0, &t, FEATURE_burst_slice);
        assert_eq!(protected, expected, "burst {burst}, utilisation {util}");
        assert_eq!(world.protected_ns(0, &t, 0), 700_000);
    }
}

/// Else each of a ring of tasks that wake the next would be interrupted by it, and all would wait.
#[test]
fn a_light_task_does_not_interrupt_a_light_one() {
    for (light, burst, expected) in [(0, 1, PREEMPT_NOW), (1, 1, PREEMPT_NO), (1, 0, PREEMPT_NOW)] {
        let mut world = world(1);
        let mut t = task(&world, 1, NICE0);
        *world.cpu_mut(0) = cpu_state {
            avg_vruntime: MSEC,
            curr_pid: 9,
            curr_weight: NICE0,
            curr_vruntime: 2 * MSEC,
            curr_light: light,
            ..Default::default()
        };
        t.state.burst = burst;
        (t.state.vruntime, t.state.deadline) = (MSEC, 2 * MSEC);
        let verdict = world.preempts(0, &t, FEATURE_burst_slice, 0);
        assert_eq!(verdict, expected, "light {light}, burst {burst}");
        world.cpu_mut(0).curr_light = 1;
        let protected = world.protected_ns(0, &t, FEATURE_burst_slice);
        assert_eq!(protected, 700_000);
    }
}

#[test]
fn a_task_that_may_preempt_later_shortens_the_running_slice() {
    let mut world = world(1);
    let mut t = task(&world, 1, NICE0);
    for (features, slice, expected) in [
        (0, 2_800_000, 700_000),
        (0, 600_000, 600_000),
        (FEATURE_burst_slice, 2_800_000, 87_500),
    ] {
        *world.cpu_mut(0) = cpu_state {
            avg_vruntime: MSEC,
            curr_pid: 9,
            curr_weight: NICE0,
            curr_deadline: 10,
            curr_slice: slice,
            curr_start: 1000,
            ..Default::default()
        };
        t.state.burst = 1;
        t.state.deadline = 5;
        assert_eq!(world.preempts(0, &t, features, 1000), PREEMPT_LATER);
        assert_eq!(world.cpu(0).curr_slice, expected);
        assert_eq!(world.preempts(0, &t, features, 1000 + 700_000), PREEMPT_NOW);
        assert_eq!(world.count(STAT_burst_preempt), 0);
        let early = world.preempts(0, &t, features, 1000 + 87_500);
        let light = features == FEATURE_burst_slice;
        assert_eq!(early == PREEMPT_NOW, light, "a light task need not wait");
        assert_eq!(world.count(STAT_burst_preempt), u64::from(light));
    }
}

/// Times are in units of 0.1 ms. The queue's mean is at 1000; the running task started `ran` ago.
struct Contest {
    ran: u64,
    curr_vruntime: u64,
    curr_deadline: u64,
    vruntime: u64,
    deadline: u64,
    expected: preempt,
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn which_task_may_preempt_which() {
    const UNIT: u64 = 100_000;
    let row = |ran, curr_vruntime, curr_deadline, vruntime, deadline, expected| Contest {
        ran,
        curr_vruntime,
        curr_deadline,
        vruntime,
        deadline,
        expected,
    };
    let table = [
        // An earlier deadline wins once the running task's 0.7 ms of protection are over.
        row(10, 990, 1020, 995, 1010, PREEMPT_NOW),
        row(7, 990, 1020, 995, 1010, PREEMPT_NOW),
        row(6, 990, 1020, 995, 1010, PREEMPT_LATER),
        // A later or equal deadline does not.
        row(5, 990, 1020, 995, 1030, PREEMPT_NO),
        row(5, 990, 1020, 995, 1020, PREEMPT_NO),
        // Exception: the running task is ahead of the mean, the other is not. Nothing protects it.
        row(20, 990, 1020, 995, 1030, PREEMPT_NOW),
        row(6, 996, 1020, 995, 1030, PREEMPT_NOW),
        row(1, 1001, 1020, 995, 1030, PREEMPT_NOW),
        row(1, 998, 1020, 995, 1030, PREEMPT_NO),
        row(20, 980, 1020, 995, 1030, PREEMPT_NO),
        row(20, 990, 1020, 1001, 1030, PREEMPT_NO),
        row(20, 990, 1020, 1000, 1030, PREEMPT_NOW),
        // A task that is ahead of the mean does not, whatever its deadline.
        row(20, 990, 1020, 1001, 1010, PREEMPT_NO),
        row(6, 990, 1020, 1001, 1010, PREEMPT_NO),
    ];
    for (i, c) in table.iter().enumerate() {
        let mut world = world(1);
        let mut t = task(&world, 1, NICE0);
        t.state.vruntime = c.vruntime * UNIT;
        t.state.deadline = c.deadline * UNIT;
        let now = 1_000_000 * UNIT;
        *world.cpu_mut(0) = cpu_state {
            avg_vruntime: 1000 * UNIT,
            curr_pid: 9,
            curr_weight: NICE0,
            curr_start: now - c.ran * UNIT,
            curr_vruntime: c.curr_vruntime * UNIT,
            curr_deadline: c.curr_deadline * UNIT,
            ..Default::default()
        };
        assert_eq!(world.preempts(0, &t, 0, now), c.expected, "row {i}");
        // Batch and SCHED_IDLE tasks never preempt.
        t.state.batch = 1;
        assert_eq!(world.preempts(0, &t, 0, now), PREEMPT_NO, "row {i}, batch");
        (t.state.batch, t.state.sched_idle) = (0, 1);
        assert_eq!(
            world.preempts(0, &t, 0, now),
            PREEMPT_NO,
            "row {i}, SCHED_IDLE"
        );
        // A SCHED_IDLE task gives way at once, but not to another SCHED_IDLE task.
        world.cpu_mut(0).curr_sched_idle = 1;
        assert_eq!(
            world.preempts(0, &t, 0, now),
            PREEMPT_NO,
            "row {i}, two of SCHED_IDLE"
        );
        t.state.sched_idle = 0;
        assert_eq!(
            world.preempts(0, &t, 0, now),
            PREEMPT_NOW,
            "row {i}, against SCHED_IDLE"
        );
        t.state.batch = 1;
        assert_eq!(
            world.preempts(0, &t, 0, now),
            PREEMPT_NOW,
            "row {i}, batch against SCHED_IDLE"
        );
        t.state.batch = 0;
        world.cpu_mut(0).curr_pid = 0;
        assert_eq!(
            world.preempts(0, &t, 0, now),
            PREEMPT_NO,
            "row {i}, nobody runs"
        );
    }
}
