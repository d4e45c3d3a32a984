// SPDX-License-Identifier: GPL-2.0-only
//! The life of a task through sched_ext's callbacks (select_cpu.h, enqueue.h, dispatch.h, run.h,
//! tick.h, slice_timer.h, delay_queue.h).

use crate::callbacks::{DELAY, FIRST, Machine, SLICE, ToQueue, WAKEUP, queued_on};
use crate::setup::{MAINLINE, NOW};
use crate::topology::WAIT_BOUND;
use scx_roost::native::sys::{
    ENQ_LAST, ENQ_PREEMPT, ENQ_WAKEUP, IMMED, KICK_PREEMPT, MAX_CPUS, STAT_delay_cancel,
    STAT_delay_disallowed, STAT_delay_expire, STAT_delay_wake, STAT_dispatch_keep,
    STAT_dispatch_own, STAT_enq_idle, STAT_enq_queued, STAT_enq_unplaced, STAT_misfit,
    STAT_preempt_slice, STAT_push_lost, STAT_spread_run, STAT_starved, STAT_steal_miss,
    TIMER_DELAY, TIMER_SLICE,
};
use scx_roost::native::{Act, Attr, SchedPolicy, To};
use scx_roost::placement::Features;
use scx_roost::placement::topology::{Cpu, Topology};

#[test]
fn an_idle_cpu_is_gone_to_at_once() {
    let mut machine = Machine::new(2, MAINLINE);
    let (cpu, insert) = machine.wake(1, 0, 0);
    let insert = insert.expect("it is inserted where it was placed");
    assert_eq!((cpu, insert.to, insert.slice), (0, To::Local, SLICE));
    assert_eq!(insert.flags, IMMED);
    assert_eq!(machine.count(STAT_enq_idle), 1);
    machine.run(0, 0);
    assert_eq!(machine.kernel.state(0).on_rq, 1, "1 + the CPU");
    machine.at(NOW + 1_000_000);
    machine.kernel.tick(0, 0);
    assert_eq!(machine.kernel.state(0).vruntime, 1_000_000);
    machine.sleep(0);
    assert_eq!(machine.kernel.state(0).on_rq, 0);
    assert_eq!(machine.kernel.world().cpu(0).weight, 0);
    assert_eq!(machine.dispatch(0), None);
}

/// wakeup_preempt_fair(): a task preempts only if it is the one to be picked next.
#[test]
fn a_task_behind_another_does_not_preempt() {
    let short = Attr {
        slice_ns: Some(100_000),
        ..Attr::default()
    };
    for (attr, preempts) in [(Attr::default(), false), (short, true)] {
        let mut machine = Machine::new(1, MAINLINE);
        // New tasks would owe what their parent does.
        for task in [1, 2] {
            machine.wake(0, task, 0);
            machine.run(0, task);
            machine.at(machine.now + 1_000_000);
            machine.sleep(0);
        }
        machine.kernel.set_attr(2, &attr);
        machine.wake(0, 0, 0);
        machine.run(0, 0);
        machine.at(machine.now + 1_000_000);
        machine.wake(0, 1, 0);
        assert_eq!(queued_on(&machine.enqueue(1, WAKEUP)), Some(0));
        machine.at(machine.now + 500_000);
        machine.wake(0, 2, 0);
        let insert = machine.enqueue(2, WAKEUP);
        assert_eq!(insert.flags & ENQ_PREEMPT != 0, preempts);
    }
}

/// The kernel stops and starts a running task to change it.
#[test]
fn a_turn_goes_on_when_the_task_is_changed() {
    for (sleeps, begins) in [(false, NOW), (true, NOW + 300_000)] {
        let mut machine = Machine::new(1, MAINLINE);
        machine.wake(0, 0, 0);
        machine.run(0, 0);
        machine.at(NOW + 300_000);
        machine.kernel.set_runnable(0, false, sleeps);
        machine.kernel.stopping(0, 0, false);
        machine.kernel.set_runnable(0, true, false);
        machine.kernel.running(0, 0);
        assert_eq!(machine.kernel.world().cpu(0).curr_start, begins);
    }
}

#[test]
fn a_new_task_owes_what_its_parent_does() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.wake(0, 0, 0);
    machine.run(0, 0);
    machine.wake(0, 1, 0);
    machine.enqueue(1, WAKEUP);
    machine.at(NOW + 1_000_000);
    machine.enqueue(2, 0);
    let child = machine.kernel.state(2).vruntime;
    assert!(
        child >= 1_000_000,
        "the parent has run for 1 ms, the child is at {child}"
    );
}

/// Linux before 7.1: the task waits in our queue, and its CPU finds it there.
#[test]
fn without_immed_it_is_fetched() {
    let mut machine = Machine::new(2, MAINLINE);
    machine.kernel.without_immed();
    assert_eq!(machine.wake(1, 0, 0), (0, None));
    let insert = machine.enqueue(0, WAKEUP);
    assert_eq!(queued_on(&insert), Some(0));
    assert_eq!(machine.dispatch(0), Some(0));
    assert_eq!(machine.count(STAT_dispatch_own), 1);
}

#[test]
fn the_slice_timer_lets_a_waiting_task_run() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.wake(0, 0, 0);
    machine.run(0, 0);
    machine.acts();
    assert_eq!(machine.wake(0, 1, 0), (0, None), "nothing is idle");
    let insert = machine.enqueue(1, WAKEUP);
    assert_eq!(queued_on(&insert), Some(0));
    assert_eq!(machine.count(STAT_enq_queued), 1);
    let timer = Act::Timer {
        which: TIMER_SLICE,
        cpu: 0,
        ns: FIRST,
    };
    assert_eq!(machine.acts(), [timer], "the running slice ends on time");

    machine.at(NOW + FIRST);
    machine.kernel.timer(TIMER_SLICE, 0, Some(0));
    let kick = Act::Kick {
        cpu: 0,
        flags: KICK_PREEMPT.into(),
    };
    assert_eq!(machine.acts(), [kick]);
    assert_eq!(machine.count(STAT_preempt_slice), 1);
    assert_eq!(machine.dispatch(0), Some(1), "its deadline is the earlier");
    assert_eq!(queued_on(&machine.put(0, 0)), Some(0));
    machine.run(0, 1);
    machine.acts();
    machine.at(NOW + FIRST + 1);
    assert_eq!(machine.dispatch(0), None, "it has only begun");
    assert_eq!(machine.count(STAT_dispatch_keep), 1);
    assert!(machine.kernel.slice(1) > 0, "and goes on");
}

#[test]
fn an_idle_cpu_pulls_a_task_that_waits_elsewhere() {
    let mut machine = Machine::new(2, MAINLINE);
    machine.run(0, 0);
    machine.run(1, 1);
    assert_eq!(machine.wake(0, 2, 0).1, None);
    machine.enqueue(2, WAKEUP);
    machine.at(NOW + 10 * SLICE);
    machine.sleep(1);
    let moved = Act::Moved {
        task: 2,
        from: 0,
        cpu: 1,
    };
    machine.acts();
    assert_eq!(machine.dispatch(1), Some(2));
    assert_eq!(machine.acts(), [moved]);
    assert_eq!(machine.count(STAT_steal_miss), 0);
}

#[test]
fn the_last_one_looks_for_work() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.at(NOW + SLICE);
    machine.acts();
    let insert = machine.put(0, ENQ_LAST);
    assert_eq!(queued_on(&insert), Some(0));
    let kick = Act::Kick { cpu: 0, flags: 0 };
    assert_eq!(machine.acts().first(), Some(&kick));
    assert_eq!(machine.dispatch(0), Some(0));
}

/// A search that takes another CPU's lock drops its own, so a task can be put on the CPU meanwhile.
/// The search then finds nothing and starts an idle period, which is no real one. The next period
/// that counts starts when that task sleeps.
#[test]
fn a_task_that_comes_during_a_search_leaves_no_old_idle_period() {
    let mut machine = Machine::new(2, MAINLINE);
    let since = |machine: &Machine| machine.kernel.world().cpu(0).idle_every.since;
    let one = machine.kernel.mask(&[0b01]);
    machine.kernel.begin(3, one, 0);
    assert_eq!(machine.enqueue(3, ENQ_WAKEUP.into()).to, To::Local);
    assert_eq!(since(&machine), 0, "whoever arrives ends the period");
    machine.kernel.world_mut().idle_begins(0, NOW);
    machine.run(0, 3);
    let slept = NOW + 5_000_000;
    machine.at(slept);
    machine.sleep(0);
    assert_eq!(machine.dispatch(0), None);
    assert_eq!(since(&machine), slept);
}

/// Two tasks share a core, and the tick sends one of them to another core. Either it reaches
/// dispatch, which lets it leave while that core is still idle; or it sleeps first, and then the
/// order is dropped and counted as lost.
#[test]
fn a_task_that_sleeps_before_its_move_loses_the_core() {
    let spread = Features {
        smt_spread: true,
        ..MAINLINE
    };
    let told = |ends: fn(&mut Machine)| {
        let mut machine = Machine::on(&Topology::regular(1, 2, 2, 1, false), spread);
        (0..2).for_each(|task| machine.run(task, task));
        machine.at(NOW + 2 * SLICE);
        machine.kernel.set_slice(0, SLICE);
        machine.tick(0);
        assert_eq!(machine.kernel.slice(0), 0, "it shall go");
        ends(&mut machine);
        [STAT_spread_run, STAT_push_lost].map(|stat| machine.count(stat))
    };
    let leaves = |machine: &mut Machine| {
        assert_eq!(machine.dispatch(0), None);
        assert_eq!(machine.put(0, ENQ_LAST).to, To::LocalOn(2));
    };
    assert_eq!(told(leaves), [1, 0]);
    assert_eq!(told(|machine| machine.sleep(0)), [0, 1]);
}

/// Of four CPUs with one task on CPU 2: where a tick sends it.
fn misfit_goes_to(capacities: [u32; 4], util: u32, change: fn(&mut Machine)) -> Option<To> {
    let cpu = |n: usize| Cpu {
        core: n,
        llc: n / 2,
        node: 0,
        capacity: capacities[n],
        online: true,
    };
    let mut machine = Machine::on(&Topology::new((0..4).map(cpu).collect()), MAINLINE);
    machine.run(2, 0);
    machine.kernel.set_slice(0, SLICE);
    machine.kernel.state_mut(0).util_avg = util;
    change(&mut machine);
    machine.tick(2);
    if machine.kernel.slice(0) > 0 {
        assert_eq!(machine.count(STAT_misfit), 0);
        return None;
    }
    assert_eq!(machine.dispatch(2), None);
    let to = machine.put(2, ENQ_LAST).to;
    assert_eq!(machine.count(STAT_misfit), 1);
    Some(to)
}

/// Capacities, the task's utilisation, what else is changed, and where it goes.
type Misfit = ([u32; 4], u32, fn(&mut Machine), Option<usize>);

/// Kernel: update_misfit_status(), capacity_greater().
#[test]
fn a_task_leaves_a_cpu_that_is_too_small_for_a_bigger_one() {
    let uneven = [1024, 1024, 512, 512];
    let cases: [Misfit; 14] = [
        (uneven, 512, |_| {}, Some(0)),
        // It fits as long as it takes less than four fifths: 409.6 of 512.
        (uneven, 409, |_| {}, None),
        (uneven, 410, |_| {}, Some(0)),
        // Not if others wait for this one.
        (uneven, 512, a_task_waits_behind_it, None),
        // A SCHED_IDLE task on CPU 0 does not hide CPU 1.
        (uneven, 512, cpu_0_runs_a_sched_idle_task, Some(1)),
        // It fits on CPU 1, but that is bigger by less than 5 %.
        ([1024, 720, 700, 700], 565, |_| {}, Some(0)),
        // On one of the biggest CPUs it stays, however slow that is now.
        ([1024, 1024, 1024, 512], 1024, |_| {}, None),
        (
            [1024, 1024, 1024, 512],
            1024,
            |m| m.kernel.world_mut().policy_mut().capacity[2] = 700,
            None,
        ),
        // Only to an idle CPU, and to one that it may use.
        (uneven, 512, |m| m.run(0, 1), Some(1)),
        (
            uneven,
            512,
            |m| (0..2).for_each(|cpu| m.run(cpu, cpu + 1)),
            None,
        ),
        (uneven, 512, |m| allow(m, 0b1110), Some(1)),
        (uneven, 512, |m| allow(m, 0b1100), None),
        // More capacity by over 5 %: 512 * 1078 / 1024 is 539.
        ([539, 539, 512, 512], 512, |_| {}, None),
        ([540, 539, 512, 512], 512, |_| {}, Some(0)),
    ];
    for (n, (capacities, util, change, to)) in cases.into_iter().enumerate() {
        let went = misfit_goes_to(capacities, util, change);
        assert_eq!(went, to.map(To::LocalOn), "case {n}");
    }
}

fn a_task_waits_behind_it(machine: &mut Machine) {
    machine.kernel.set_cpu(1, 2);
    machine.enqueue(1, WAKEUP);
}

fn cpu_0_runs_a_sched_idle_task(machine: &mut Machine) {
    let attr = Attr {
        nice: 0,
        policy: SchedPolicy::Idle,
        slice_ns: None,
    };
    machine.kernel.set_attr(1, &attr);
    machine.run(0, 1);
}

fn allow(machine: &mut Machine, cpus: u64) {
    let mask = machine.kernel.mask(&[cpus]);
    machine.kernel.set_affinity(0, mask);
}

/// yield_to(): the target runs next, whatever its deadline. If the target does not wait, the call
/// returns false.
#[test]
fn the_target_of_a_yield_runs_next() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    for task in [1, 2, 3] {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    let deadline = machine.kernel.state(0).deadline;
    assert!(!machine.kernel.yields_to(0, 0, 5), "it sleeps");
    assert!(!machine.kernel.yields_to(0, 0, 0), "it runs");
    assert_eq!(machine.kernel.state(0).deadline, deadline, "no penalty");
    assert!(machine.kernel.yields_to(0, 0, 3));
    assert_eq!(machine.dispatch(0), Some(3));
}

/// Whether a waiting task is cache hot is judged by our own clock, which is the same for all CPUs.
#[test]
fn when_it_last_ran_is_kept() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.at(NOW + 700_000);
    machine.put(0, 0);
    assert_eq!(machine.kernel.state(0).ran_at, NOW + 700_000);
}

/// A task keeps the start of its wait over every change: dequeued and queued again, and in another
/// class meanwhile.
#[test]
fn a_change_does_not_set_a_wait_back() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.kernel.set_cpu(1, 0);
    machine.enqueue(1, WAKEUP);
    let since = machine.kernel.state(1).waits_since;
    assert_eq!(since, NOW);
    machine.at(NOW + 100_000_000);
    machine.kernel.unqueue(1);
    let insert = machine.enqueue(1, 0);
    assert_eq!(machine.kernel.state(1).waits_since, since);
    assert_eq!(insert.to_queue(), Some(0), "it is young still");
    machine.kernel.unqueue(1);
    machine.at(NOW + WAIT_BOUND / 16);
    let insert = machine.enqueue(1, 0);
    assert_eq!(insert.to_queue(), Some(MAX_CPUS as usize), "it is old");
    machine.kernel.unqueue(1);
    machine.kernel.disable(0, 1);
    machine.at(NOW + WAIT_BOUND / 3);
    let insert = machine.enqueue(1, 0);
    assert_eq!(insert.to, To::Local, "and now it runs");
    machine.run(0, 1);
    assert_eq!(machine.kernel.state(1).waits_since, 0);
}

/// A task that may run on one CPU only: the kernel does not call select_cpu.
#[test]
fn unplaced_tasks_are_counted() {
    let mut machine = Machine::new(2, MAINLINE);
    let one = machine.kernel.mask(&[0b10]);
    machine.kernel.begin(3, one, 1);
    machine.run(1, 1);
    machine.enqueue(3, ENQ_WAKEUP.into());
    assert_eq!(machine.count(STAT_enq_unplaced), 1);
    machine.sleep(1);
    assert_eq!(machine.dispatch(0), None, "it may not go there");
    assert_eq!(machine.dispatch(1), Some(3));
}

/// The source changes the CPU and sets a timer; check_preempt_curr() still runs.
#[test]
fn a_delayed_task_may_interrupt_its_waker() {
    let smove = Features {
        delay_migration: true,
        ..MAINLINE
    };
    let mut machine = Machine::new(2, smove);
    machine.run(0, 0);
    machine.at(NOW + FIRST + 1);
    assert_eq!(machine.dispatch(0), None, "the waker makes a new request");
    machine.at(NOW + FIRST + 1_000_000);
    machine.wake(0, 1, 0);
    assert_eq!(machine.count(STAT_delay_wake), 1);
    let insert = machine.enqueue(1, WAKEUP);
    assert_eq!(insert.to, To::Local, "its deadline is earlier");
    machine.run(0, 1);
    assert_eq!(machine.count(STAT_delay_cancel), 1, "it ran here");
}

/// Task 1 waits on CPU 0, beside its waker, for a move to CPU 1.
fn delayed() -> Machine {
    let smove = Features {
        delay_migration: true,
        ..MAINLINE
    };
    let mut machine = Machine::new(2, smove);
    machine.run(0, 0);
    machine.acts();
    let (cpu, insert) = machine.wake(0, 1, 0);
    assert_eq!((cpu, insert), (0, None), "CPU 1 is idle and slow");
    assert_eq!(machine.count(STAT_delay_wake), 1);
    assert_eq!(queued_on(&machine.enqueue(1, WAKEUP)), Some(0));
    machine
}

#[test]
fn a_delayed_move_comes_by_its_timer() {
    let mut machine = delayed();
    let delay = Act::Timer {
        which: TIMER_DELAY,
        cpu: 0,
        ns: DELAY.into(),
    };
    assert!(machine.acts().contains(&delay));
    machine.at(NOW + u64::from(DELAY));
    machine.kernel.timer(TIMER_DELAY, 0, Some(0));
    let moved = Act::Moved {
        task: 1,
        from: 0,
        cpu: 1,
    };
    assert_eq!(machine.acts().first(), Some(&moved));
    assert_eq!(machine.count(STAT_delay_expire), 1);
    assert_eq!(machine.kernel.local(1).pop_front(), Some(1));
}

/// B10 of delay.rs: the destination is forbidden by then.
#[test]
fn a_delayed_move_to_a_forbidden_cpu_does_not_happen() {
    let mut machine = delayed();
    let first = machine.kernel.mask(&[0b01]);
    machine.kernel.set_affinity(1, first);
    machine.at(NOW + u64::from(DELAY));
    machine.kernel.timer(TIMER_DELAY, 0, Some(0));
    assert_eq!(machine.count(STAT_delay_disallowed), 1);
    assert_eq!(machine.count(STAT_delay_expire), 0);
    assert!(machine.kernel.local(1).is_empty());
}

/// Sets nr_running: the kernel counts a task before it runs.
fn counts(machine: &mut Machine, tasks: u32) {
    machine.kernel.view(0).0.nr_running = tasks;
}

#[test]
fn a_task_alone_on_a_nohz_full_cpu_has_a_slice_without_end() {
    let mut machine = Machine::nohz(1);
    machine.wake(0, 0, 0);
    counts(&mut machine, 1);
    machine.run(0, 0);
    assert_eq!(machine.kernel.slice(0), u64::MAX);
    machine.acts();
    // Its request ended long ago: a task that joins does not wait for a tick.
    machine.at(NOW + 50 * SLICE);
    assert_eq!(machine.wake(0, 1, 0), (0, None));
    let insert = machine.enqueue(1, WAKEUP);
    let at_once =
        |act: &Act| matches!(act, Act::Timer { which: TIMER_SLICE, ns, .. } if *ns <= SLICE);
    assert!(
        insert.flags & ENQ_PREEMPT != 0 || machine.acts().iter().any(at_once),
        "{insert:?}"
    );
}

/// A task without a slice timer, as after a lost timer.
#[test]
fn the_remote_tick_ends_a_slice_without_end() {
    let mut machine = Machine::nohz(1);
    machine.wake(0, 0, 0);
    counts(&mut machine, 1);
    machine.run(0, 0);
    machine.kernel.view(0).1.local = 1;
    machine.tick(0);
    assert_eq!(machine.kernel.slice(0), u64::MAX, "it has only begun");
    machine.at(NOW + 1_000_000_000);
    machine.tick(0);
    assert_eq!(machine.kernel.slice(0), 0);
}

#[test]
fn a_task_that_is_not_alone_there_has_an_end() {
    let mut machine = Machine::nohz(1);
    machine.wake(0, 0, 0);
    counts(&mut machine, 2);
    machine.run(0, 0);
    assert_eq!(
        machine.kernel.slice(0),
        FIRST,
        "another is behind it in the local queue"
    );
}

#[test]
fn without_nohz_full_a_slice_has_an_end() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.wake(0, 0, 0);
    counts(&mut machine, 1);
    machine.run(0, 0);
    assert_eq!(machine.kernel.slice(0), FIRST);
}

/// Tasks that are queued again do not go into a late queue, or it might never empty and the young
/// queue would get no turn.
#[test]
fn a_late_queue_takes_no_more() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.kernel.set_cpu(1, 0);
    machine.enqueue(1, WAKEUP);
    machine.at(NOW + WAIT_BOUND / 4);
    let mut old = |late| {
        machine.kernel.unqueue(1);
        machine.kernel.world_mut().cpu_mut(0).late = late;
        let young = machine.kernel.world().cpu(0).young;
        let to = machine.enqueue(1, 0).to_queue().expect("it waits");
        to / MAX_CPUS as usize != young as usize
    };
    assert!(old(0), "it has waited for long");
    assert!(!old(1), "but this one is late");
}

/// Turns stop while the local queue holds tasks, so at most one overdue task is put there.
#[test]
fn one_overdue_task_at_a_time() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    for task in [1, 2] {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
        machine.kernel.unqueue(task);
    }
    machine.at(NOW + WAIT_BOUND / 3);
    assert_eq!(machine.enqueue(1, 0).to, To::Local);
    machine.kernel.view(0).1.local = 1;
    assert_ne!(machine.enqueue(2, 0).to, To::Local);
}

/// A late task runs for the least slice of a crowd, even if --min-slice-us is 0. Else the slice
/// timer would end its turn where it began.
#[test]
fn a_late_task_runs_for_a_moment() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    for task in 1..3 {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
        machine.kernel.state_mut(task).pol.min_slice_ns = 0;
    }
    while machine.count(STAT_starved) == 0 {
        assert!(machine.now < NOW + 9 * WAIT_BOUND, "no task is late");
        machine.at(machine.now + WAIT_BOUND);
        machine.put(0, 0);
        let next = machine.dispatch(0).expect("a task waits");
        machine.kernel.unqueue(next);
        machine.run(0, next);
    }
    assert!(machine.kernel.world().cpu(0).curr_slice >= 25_000);
}

/// A task may be stolen by a CPU whose clock is behind that of the CPU where it woke, and stop at
/// once. It was runnable for no time then, not for centuries.
#[test]
fn a_clock_that_is_behind_makes_no_task_runnable_for_long() {
    let mut machine = Machine::new(2, MAINLINE);
    machine.run(0, 0);
    machine.wake(0, 1, 0);
    machine.enqueue(1, WAKEUP);
    machine.kernel.unqueue(1);
    machine.at(NOW - 1_000);
    machine.run(1, 1);
    machine.sleep(1);
    assert!(machine.kernel.state(1).runnable_sum < 1_000_000_000);
}

/// Where real-time tasks take a part of the CPU, slices shrink by as much, or the waiting tasks
/// would not all have their turn in time. The kernel leaves our class a twentieth.
#[test]
fn slices_shrink_beside_real_time_tasks() {
    let cap = |rt_util| {
        let mut machine = Machine::new(1, MAINLINE);
        machine.run(0, 0);
        machine.kernel.view(0).0.rt_util = rt_util;
        for task in 1..8 {
            machine.kernel.set_cpu(task, 0);
            machine.enqueue(task, WAKEUP);
        }
        machine.at(NOW + WAIT_BOUND);
        machine.run(0, 0);
        machine.dispatch(0);
        machine.kernel.world().cpu(0).slice_cap
    };
    let whole = cap(0);
    assert_eq!(whole, WAIT_BOUND / 4 / 2 / 8);
    assert_eq!(cap(512), whole / 2);
    assert_eq!(cap(1024), cap(1000));
    assert!((19..=21).contains(&(whole / cap(1024))));
}
