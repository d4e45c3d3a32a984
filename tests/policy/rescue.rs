// SPDX-License-Identifier: GPL-2.0-only
//! Queues whose CPU does not serve them: others find and serve them (serve.h, tick.h).

use crate::callbacks::{Machine, WAKEUP, queued_on};
use crate::setup::{MAINLINE, NOW};
use scx_roost::native::sys::{MAX_CPUS, STAT_rescue};
use scx_roost::placement::topology::Topology;

/// Looking at other CPUs' queues reads cache lines that they write, so one CPU of an LLC looks per
/// millisecond.
#[test]
fn abandoned_queues_are_looked_for_once_a_millisecond() {
    let mut machine = Machine::new(4, MAINLINE);
    for cpu in 0..4 {
        machine.run(cpu, cpu);
    }
    for cpu in [0, 3] {
        machine.kernel.set_cpu(cpu + 4, cpu);
        machine.enqueue(cpu + 4, WAKEUP);
        machine.put(cpu, 0);
        machine.kernel.view(cpu).1.taken = 1;
    }
    let assigned =
        |machine: &Machine| [1, 2].map(|cpu| machine.kernel.world().cpu(cpu).assigned_cpu > 0);
    machine.at(NOW + 30_000_000);
    machine.tick(1);
    machine.tick(2);
    assert_eq!(assigned(&machine), [true, false]);
    machine.at(NOW + 31_000_000);
    machine.tick(2);
    assert_eq!(assigned(&machine), [true, true]);
}

/// Each abandoned queue gets its turn, even if looks are rarer than SERVE_NS (serve.h), and if
/// another queue has no task that the looking CPU may run.
#[test]
fn an_abandoned_queue_does_not_hide_another() {
    let mut machine = Machine::new(4, MAINLINE);
    let elsewhere = machine.kernel.mask(&[0b1001]);
    machine.kernel.begin(4, elsewhere, 0);
    for cpu in 0..4 {
        machine.run(cpu, cpu);
    }
    for cpu in [0, 2] {
        machine.kernel.set_cpu(cpu + 4, cpu);
        machine.enqueue(cpu + 4, WAKEUP);
        machine.kernel.view(cpu).1.taken = 1;
        machine.sleep(cpu);
    }
    for look in 0..2 {
        machine.at(NOW + 30_000_000 + look * 10_000_000);
        machine.tick(1);
    }
    assert_eq!(machine.kernel.world().cpu(1).assigned_cpu, 1 + 2);
}

/// A machine of `cpus` CPUs, all busy. Then a real-time task takes CPU 0, on which `waiting` tasks
/// wait.
pub fn taken(cpus: usize, waiting: usize) -> Machine {
    let mut machine = Machine::new(cpus, MAINLINE);
    for cpu in 0..cpus {
        machine.run(cpu, cpu);
    }
    for task in cpus..cpus + waiting {
        if task >= 8 {
            machine.kernel.begin(task, 0, 0);
        }
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    machine.kernel.view(0).1.taken = 1;
    machine.sleep(0);
    machine.at(NOW + 30_000_000);
    machine
}

/// The CPU is assigned a queue, and not for balance.
pub fn rescues(machine: &Machine, cpu: usize) -> bool {
    let cpu = machine.kernel.world().cpu(cpu);
    cpu.assigned_cpu > 0 && cpu.assigned_balances == 0
}

/// The task of CPU 1 is interrupted; the next one runs there. Returns how many were rescued so far.
fn next_on_cpu_1(machine: &mut Machine) -> u64 {
    machine.put(1, 0);
    let next = machine.dispatch(1).expect("a task waits");
    machine.kernel.unqueue(next);
    machine.run(1, next);
    machine.count(STAT_rescue)
}

/// Tasks of the abandoned queue and of the CPU's own run in turn, until the queue's own CPU
/// dispatches again. One task per tick would leave hundreds of tasks waiting for seconds.
#[test]
fn a_rescue_goes_on_while_it_is_needed() {
    let mut machine = taken(2, 6);
    machine.tick(1);
    let rescued: Vec<u64> = (0..4).map(|_| next_on_cpu_1(&mut machine)).collect();
    assert_eq!(rescued, [1, 1, 2, 2]);
    machine.kernel.view(0).1.taken = 0;
    machine.run(0, 0);
    let rescued: Vec<u64> = (0..4).map(|_| next_on_cpu_1(&mut machine)).collect();
    assert_eq!(rescued, [2, 2, 2, 2], "no more is needed");
    assert_eq!(machine.kernel.world().cpu(1).assigned_cpu, 0);
}

/// A rescue ends after a while, so that the ticks can choose another abandoned queue.
#[test]
fn a_rescue_ends_though_more_tasks_wait() {
    let mut machine = taken(2, 6);
    machine.tick(1);
    assert_eq!(next_on_cpu_1(&mut machine), 1);
    machine.at(machine.now + 20_000_000);
    for _ in 0..3 {
        assert_eq!(next_on_cpu_1(&mut machine), 1);
    }
    machine.tick(1);
    assert_eq!(next_on_cpu_1(&mut machine), 2);
}

/// The kernel begins to take a CPU offline before it says so, and lets it idle beside its queue. A
/// CPU that was idle when the task came is given time to dispatch.
#[test]
fn a_queue_beside_which_its_cpu_idles_is_rescued() {
    let mut machine = taken(2, 1);
    let run = machine.kernel.view(0).1;
    (run.taken, run.curr_idle) = (0, 0);
    machine.tick(1);
    assert!(!rescues(&machine, 1), "CPU 0 is about to dispatch");
    machine.kernel.view(0).1.curr_idle = 1;
    machine.at(machine.now + 2_000_000);
    machine.tick(1);
    assert!(rescues(&machine, 1));

    let mut machine = Machine::new(2, MAINLINE);
    machine.run(1, 1);
    machine.at(NOW + 30_000_000);
    machine.kernel.view(0).1.curr_idle = 0;
    assert_eq!(queued_on(&machine.enqueue(2, WAKEUP)), Some(0));
    machine.kernel.view(0).1.curr_idle = 1;
    machine.at(machine.now + 1_000_000);
    machine.tick(1);
    assert!(!rescues(&machine, 1), "it came a moment ago");
}

/// A CPU without a task of its own does not wait for its turn.
#[test]
fn a_rescuer_without_a_task_of_its_own_goes_on() {
    let mut machine = taken(2, 6);
    machine.tick(1);
    for rescued in 1..4 {
        machine.sleep(1);
        let next = machine.dispatch(1).expect("a task waits on CPU 0");
        machine.kernel.unqueue(next);
        machine.run(1, next);
        if rescued == 1 {
            // Its own task sleeps.
            assert_eq!(machine.count(STAT_rescue), rescued);
        }
    }
    assert_eq!(machine.count(STAT_rescue), 3);
}

/// Tasks in the old queue have waited for longer than those with an earlier deadline.
#[test]
fn the_old_queue_is_rescued_first() {
    let mut machine = taken(2, 6);
    machine.kernel.unqueue(2);
    machine.kernel.queue(2, MAX_CPUS as usize, u64::MAX / 4);
    machine.kernel.world_mut().cpu_mut(0).old_waits = 1;
    machine.tick(1);
    machine.put(1, 0);
    assert_eq!(machine.dispatch(1), Some(2));
}

/// Of several CPUs that tick at once, one that has a queue to serve leaves the look to the others.
#[test]
fn a_rescuer_leaves_the_look_to_others() {
    let mut machine = taken(3, 16);
    machine.tick(1);
    machine.at(machine.now + 1_000_000);
    machine.tick(1);
    machine.tick(2);
    assert!(rescues(&machine, 2));
}

/// Many tasks that are bound to a taken CPU of this cache do not hide those of another cache.
#[test]
fn a_bound_crowd_hides_no_other_cache() {
    let topology = Topology::regular(2, 2, 1, 1, false);
    let mut machine = Machine::on(&topology, MAINLINE);
    let bound = machine.kernel.mask(&[0b0001]);
    (0..4).for_each(|cpu| machine.run(cpu, cpu));
    for task in 8..26 {
        machine.kernel.begin(task, bound, 0);
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    machine.kernel.set_cpu(4, 2);
    machine.enqueue(4, WAKEUP);
    for cpu in [0, 2, 3] {
        machine.kernel.view(cpu).1.taken = 1;
        machine.sleep(cpu);
    }
    let waiting = |machine: &mut Machine, cpu| machine.kernel.world_mut().mark_waiting(cpu);
    for tick in 0..4 {
        waiting(&mut machine, 0);
        waiting(&mut machine, 2);
        machine.at(NOW + 30_000_000 + tick * 4_000_000);
        machine.tick(1);
        if machine.kernel.world().cpu(1).assigned_cpu == 1 + 2 {
            return;
        }
    }
    panic!("the task on CPU 2 is never looked at");
}

/// One CPU rescues from a short queue for 20 ms, though the others look.
#[test]
fn a_short_queue_has_one_rescuer_at_a_time() {
    let mut machine = taken(3, 6);
    machine.tick(1);
    for (ms, joins) in [(4, false), (19, false), (20, true)] {
        machine.at(NOW + 30_000_000 + ms * 1_000_000);
        machine.tick(2);
        assert_eq!(rescues(&machine, 2), joins, "after {ms} ms");
        machine.kernel.world_mut().cpu_mut(2).assigned_cpu = 0;
    }
}

/// Balance looks at the same queues and may take nothing there. That hides none of them.
#[test]
fn balance_hides_no_abandoned_queue() {
    let mut machine = taken(3, 6);
    machine.kernel.world_mut().cpu_mut(0).served_at = machine.now;
    machine.tick(1);
    assert!(rescues(&machine, 1));
}

/// A CPU that may take no task of a queue hides it from others for 5 ms, and no longer.
#[test]
fn a_cpu_that_may_take_nothing_hides_a_queue_for_a_moment() {
    let mut machine = Machine::new(3, MAINLINE);
    let not_on_1 = machine.kernel.mask(&[0b101]);
    machine.kernel.begin(4, not_on_1, 0);
    (0..3).for_each(|cpu| machine.run(cpu, cpu));
    machine.kernel.set_cpu(4, 0);
    machine.enqueue(4, WAKEUP);
    machine.kernel.view(0).1.taken = 1;
    machine.sleep(0);
    machine.at(NOW + 30_000_000);
    machine.tick(1);
    assert_eq!(machine.kernel.world().cpu(1).assigned_cpu, 0);
    machine.at(NOW + 35_000_000);
    machine.tick(2);
    assert_eq!(machine.kernel.world().cpu(2).assigned_cpu, 1);
}

/// One CPU at a time rescues from a short queue; from a long one all do that look.
#[test]
fn a_long_queue_is_rescued_by_several_cpus() {
    for (waiting, rescuers) in [(15, 1), (16, 2)] {
        let mut machine = taken(3, waiting);
        for cpu in [1, 2] {
            machine.at(machine.now + 1_000_000);
            machine.tick(cpu);
        }
        let number = [1, 2]
            .into_iter()
            .filter(|&cpu| rescues(&machine, cpu))
            .count();
        assert_eq!(number, rescuers, "{waiting} wait");
    }
}

/// A task is found that waits behind tasks bound to a CPU which a real-time task occupies.
#[test]
fn bound_tasks_do_not_hide_the_waiters_after_them() {
    let mut machine = Machine::new(2, MAINLINE);
    let bound = machine.kernel.mask(&[0b01]);
    machine.run(0, 0);
    machine.run(1, 1);
    (2..7).for_each(|task| machine.kernel.begin(task, bound, 0));
    for task in 2..8 {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    machine.kernel.view(0).1.taken = 1;
    machine.sleep(0);
    machine.at(NOW + 30_000_000);
    machine.tick(1);
    assert_eq!(machine.kernel.world().cpu(1).assigned_cpu, 1);
}
