// SPDX-License-Identifier: GPL-2.0-only
//! Which of the waiting tasks runs next: the earliest deadline of those that are not ahead of the
//! mean (kernel: pick_eevdf()).

use crate::callbacks::{Machine, ToQueue, WAKEUP};
use crate::queue::MSEC;
use scx_roost::native::sys::{CAPACITY_SCALE, FEATURE_burst_slice};
use scx_roost::placement::Features;

const RUNS: usize = 0;
const FIRST: usize = 1;
const SECOND: usize = 2;
const WAKES: usize = 3;

/// One CPU, on which RUNS runs.
fn machine() -> Machine {
    let mut m = Machine::new(1, Features::default());
    m.run(0, RUNS);
    m
}

/// The task joins the queue with that lag, and requests that time.
fn joins(m: &mut Machine, task: usize, lag: i64, request: u64) {
    let now = m.now;
    let state = m.kernel.state_mut(task);
    state.custom_slice = request;
    (state.lag, state.left_at, state.load_cpu) = (lag, now, 1);
    m.kernel.set_cpu(task, 0);
    let insert = m.enqueue(task, 0);
    assert!(insert.to_queue().is_some(), "task {task} waits");
}

#[test]
fn a_waiting_task_that_is_ahead_is_passed_over() {
    let mut m = machine();
    joins(&mut m, FIRST, -(MSEC as i64), MSEC / 10);
    joins(&mut m, SECOND, 0, 0);
    assert!(m.kernel.state(FIRST).deadline < m.kernel.state(SECOND).deadline);
    m.sleep(0);
    assert_eq!(m.dispatch(0), Some(SECOND));
    assert_eq!(m.dispatch(0), Some(FIRST), "alone it runs, ahead or not");
}

#[test]
fn a_running_task_that_is_ahead_gives_way_to_a_later_deadline() {
    for (ran, expected) in [(0, None), (MSEC, Some(FIRST))] {
        let mut m = machine();
        joins(&mut m, FIRST, 0, 0);
        joins(&mut m, SECOND, 0, 0);
        let (runs, first) = (
            m.kernel.state(RUNS).deadline,
            m.kernel.state(FIRST).deadline,
        );
        assert!(runs < first);
        m.at(m.now + ran);
        assert_eq!(m.dispatch(0), expected, "after {ran} ns");
    }
}

/// [burst_slice] A task that joins is compared with the running one as that was at the start of its
/// turn.
#[test]
fn who_runs_is_light_or_not_at_each_turn() {
    let mut m = Machine::new(1, Features::default());
    for task in [RUNS, WAKES] {
        is_light(&mut m, task);
    }
    m.run(0, RUNS);
    assert_eq!(m.kernel.world().cpu(0).curr_light, 1);
    m.kernel.state_mut(RUNS).util_avg = CAPACITY_SCALE;
    assert_eq!(m.dispatch(0), None, "it goes on");
    assert_eq!(m.kernel.world().cpu(0).curr_light, 0);
    m.kernel.state_mut(WAKES).lag = MSEC as i64;
    m.wake(0, WAKES, 0);
    assert!(m.enqueue(WAKES, WAKEUP).to_queue().is_none(), "it preempts");
    assert_eq!(m.kernel.world().cpu(0).curr_light, 1);
}

/// The kernel stops and starts a running task to change it, also on its way out of a CPU that
/// somebody has called (Linux 7.2: migrate_disable_switch()). A group at its limit else held locks:
/// its task ran on from where it was to be parked.
#[test]
fn a_turn_that_was_ended_stays_over_when_the_task_is_changed() {
    for kicked in [true, false] {
        let mut m = machine();
        let slice = m.kernel.slice(RUNS);
        m.at(m.now + MSEC / 10);
        m.kernel.ran(RUNS, MSEC / 10);
        if kicked {
            m.kernel.set_slice(RUNS, 0);
        }
        m.kernel.stopping(0, RUNS, false);
        m.kernel.running(0, RUNS);
        let left = if kicked { 0 } else { slice - MSEC / 10 };
        assert_eq!(m.kernel.slice(RUNS), left, "kicked {kicked}");
    }
}

/// What keeps the clock ahead of the mean holds for the tasks of that queue. Its last one may leave
/// it by a move.
#[test]
fn an_empty_queue_keeps_no_clock_ahead() {
    let mut m = Machine::new(2, Features::default());
    m.run(0, RUNS);
    joins(&mut m, FIRST, 0, 0);
    m.at(m.now + 2 * MSEC);
    m.sleep(0);
    assert!(m.kernel.world().cpu(0).kept_ahead > 0);
    m.kernel.unqueue(FIRST);
    m.kernel.set_cpu(FIRST, 1);
    m.run(1, FIRST);
    assert_eq!(m.kernel.world().cpu(0).weight, 0);
    m.run(0, SECOND);
    assert_eq!(m.kernel.world().cpu(0).kept_ahead, 0);
}

#[test]
fn a_running_task_goes_on_before_one_that_is_ahead() {
    let mut m = machine();
    joins(&mut m, FIRST, -(2 * MSEC as i64), MSEC / 10);
    m.kernel.state_mut(RUNS).deadline += 4 * MSEC;
    assert!(m.kernel.state(FIRST).deadline < m.kernel.state(RUNS).deadline);
    assert_eq!(m.dispatch(0), None);
}

/// [burst_slice] The task asks for little.
fn is_light(m: &mut Machine, task: usize) {
    let state = m.kernel.state_mut(task);
    (state.burst, state.util_avg, state.load_cpu) = (1, 0, 1);
    state.pol.features |= FEATURE_burst_slice;
}

/// The first of the queue is ahead. Behind it waits one that is owed time: it is the pick, unless
/// the waking task has the earlier deadline, or asks for little. The pick's turn begins then.
#[test]
fn a_wakeup_does_not_interrupt_where_another_is_the_pick() {
    let (soon, late) = (9 * MSEC / 2, 12 * MSEC);
    for (after, request, light, interrupts) in [
        (soon, 0, false, false),
        (soon, 7 * MSEC / 10, false, true),
        (late, 7 * MSEC / 10, false, false),
        (late, 0, true, true),
    ] {
        let mut m = machine();
        joins(&mut m, FIRST, -(2 * MSEC as i64), MSEC / 10);
        joins(&mut m, SECOND, 0, 0);
        if light {
            is_light(&mut m, WAKES);
        }
        let wakes = m.kernel.state_mut(WAKES);
        (wakes.custom_slice, wakes.load_cpu) = (request, 1);
        m.at(m.now + after);
        m.wake(0, WAKES, 0);
        let insert = m.enqueue(WAKES, WAKEUP);
        let [first, wakes] = [FIRST, WAKES].map(|task| m.kernel.state(task).deadline);
        assert!(first < wakes);
        let row = format!("after {after}, asks {request}, light {light}");
        assert_eq!(insert.to_queue().is_none(), interrupts, "{row}");
        let cpu = m.kernel.world().cpu(0);
        let over = cpu.curr_slice == m.now - cpu.curr_start;
        assert_eq!(over, !interrupts, "{row}");
        if !interrupts {
            assert!(m.dispatch(0).is_some(), "{row}");
        }
    }
}

/// [burst_slice] It would else wait for the whole request of the running task, or of the next.
#[test]
fn a_slice_ends_where_a_light_task_is_ahead_no_more() {
    for next in [false, true] {
        let mut m = machine();
        if next {
            joins(&mut m, FIRST, 0, 0);
        }
        is_light(&mut m, WAKES);
        let state = m.kernel.state_mut(WAKES);
        (state.lag, state.left_at) = (-(4 * MSEC as i64 / 10), m.now);
        m.wake(0, WAKES, 0);
        assert!(m.enqueue(WAKES, WAKEUP).to_queue().is_some());
        if next {
            m.sleep(0);
            assert_eq!(m.dispatch(0), Some(FIRST));
            m.run(0, FIRST);
        }
        let cpu = m.kernel.world().cpu(0);
        let ahead = m.kernel.state(WAKES).vruntime - cpu.avg_vruntime;
        let ends = cpu.curr_slice;
        // At least the minimum slice, where a turn begins.
        let least = u64::from(next) * 7 * MSEC / 10;
        assert_eq!(ends, least.max(2 * ahead + MSEC / 20 - 128), "next {next}");
        m.at(m.now + ends);
        assert_eq!(m.dispatch(0), Some(WAKES), "next {next}");
    }
}
