// SPDX-License-Identifier: GPL-2.0-only
//! CPUs that are online at the load and offline later: placement while they are away, and what
//! still runs there (hotplug.h).

use crate::callbacks::{FIRST, Machine, SLICE, WAKEUP};
use crate::rescue::{rescues, taken};
use crate::setup::{MAINLINE, NOW};
use crate::topology::Tables;
use scx_roost::native::sys::{KICK_IDLE, SET_IDLE_CORE, TIMER_SLICE, WAKE_FORK};
use scx_roost::native::{Act, Kernel, Task};
use scx_roost::placement::topology::Topology;
use scx_roost::policy::features::bits;

const CHILD: usize = 0;
/// Longer than an arm's slice, ns.
const LONG: u64 = 3_000_000;

/// A machine on which every CPU has been busy for long, with one task to place.
fn busy_machine(topology: &Topology) -> Kernel {
    let mut world = topology.world();
    for cpu in topology.online().collect::<Vec<_>>() {
        world.set_busy(cpu);
        world.cpu_mut(cpu).curr_pid = 1;
    }
    let mut kernel = Kernel::new(world, 1);
    kernel.set_now(NOW);
    let everywhere = kernel.mask(&[u64::MAX]);
    kernel.begin(CHILD, everywhere, 0);
    kernel
}

/// A core counts as vacant when its other threads are: a thread that is away is not asked.
#[test]
fn a_core_with_a_thread_away_is_vacant() {
    // Cores 0/8 1/9 | 2/10 3/11 || 4/12 5/13 | 6/14 7/15
    let mut kernel = busy_machine(&Topology::regular(4, 2, 2, 2, true));
    let mut task = Task::new(7, kernel.world());
    task.state.pol.features = bits::smt_spread.0;
    task.state.burst_run = NOW;
    // An offline CPU runs its idle task, and has no idle period of the policy's.
    let mut at = NOW;
    let mut target = |kernel: &mut Kernel, thread_idles: bool| {
        at += 100 * LONG;
        kernel.view(10).0.idle = thread_idles.into();
        let world = kernel.world_mut();
        world.set_busy(2);
        world.set_idle(2);
        world.cpu_mut(2).curr_pid = 0;
        world.cpu_mut(2).idle_every.since = 1;
        world.spread_target(&task, 0, at)
    };
    assert_eq!(target(&mut kernel, false), None, "CPU 10 is busy");
    kernel.cpu_turns(10, None, false);
    assert_eq!(target(&mut kernel, true), Some(2), "CPU 10 is away");
    kernel.cpu_turns(10, None, true);
    assert_eq!(target(&mut kernel, true), None, "CPU 10 has just come back");
}

/// core_first finds a core whose first thread is away.
#[test]
fn a_core_without_its_first_thread_is_found() {
    // Cores 0/4 1/5 2/6 3/7
    let mut kernel = busy_machine(&Topology::regular(1, 4, 2, 1, true));
    kernel.state_mut(CHILD).pol.features = bits::core_first.0;
    kernel.state_mut(CHILD).left_at = NOW - 1000;
    kernel.cpu_turns(1, None, false);
    for cpu in [0, 5] {
        kernel.world_mut().set_idle(cpu);
        kernel.world_mut().cpu_mut(cpu).curr_pid = 0;
        kernel.world_mut().cpu_mut(cpu).idle_every.since = 1;
        kernel.view(cpu).0.idle = 1;
    }
    kernel.set_cpu(CHILD, 0);
    assert_eq!(kernel.select_cpu(2, None, CHILD, 0), 5);
}

/// A fork goes to the idlest LLC. One whose CPUs are all away takes no task, even if its idle bits
/// are still set.
#[test]
fn a_fork_does_not_go_to_a_cache_whose_cpus_are_away() {
    let topology = Topology::regular(2, 2, 1, 1, false);
    let mut kernel = busy_machine(&topology);
    let forked = |kernel: &mut Kernel| kernel.select_cpu(0, None, CHILD, WAKE_FORK.into());
    for cpu in 1..4 {
        kernel.world_mut().set_idle(cpu);
    }
    assert!([2, 3].contains(&forked(&mut kernel)), "CPUs 2 and 3 idle");
    for cpu in [2, 3] {
        kernel.cpu_turns(cpu, None, false);
    }
    assert_eq!(forked(&mut kernel), 1, "CPUs 2 and 3 are away");
    for cpu in [2, 3] {
        kernel.cpu_turns(cpu, None, true);
    }
    assert!(
        [2, 3].contains(&forked(&mut kernel)),
        "CPUs 2 and 3 are back"
    );
}

/// A CPU goes offline: its waiting tasks go to its local queue, which the kernel empties. No task
/// is placed there, and its core is idle when the other thread is. Then the CPU comes back.
#[test]
fn an_offline_cpu_keeps_no_task() {
    let mut machine = Machine::on(&Topology::regular(1, 2, 2, 1, false), MAINLINE);
    let idle_cores =
        |machine: &Machine| machine.kernel.world().llc(0).set[SET_IDLE_CORE as usize][0];
    machine.run(0, 0);
    machine.run(3, 1);
    let bound = machine.kernel.mask(&[0b1000]);
    machine.kernel.begin(2, bound, 3);
    machine.enqueue(2, WAKEUP);
    assert_eq!(idle_cores(&machine), 0);
    machine.kernel.cpu_turns(3, None, false);
    assert_eq!(*machine.kernel.local(3), [2], "also a task bound to it");
    assert_eq!(machine.kernel.queue_length(3), 0);
    machine.kernel.local(3).clear();
    machine.sleep(3);
    machine.run(2, 4);
    machine.sleep(2);
    assert_eq!(machine.dispatch(2), None);
    assert_eq!(idle_cores(&machine), 0b0100, "CPU 2 is its core");
    machine.kernel.view(3).0.idle = 1;
    assert_eq!(machine.wake(0, 3, 3).0, 2, "though CPU 3 looks idle");
    machine.run(2, 3);
    assert_eq!(machine.wake(0, 5, 3).0, 1);

    machine.sleep(2);
    assert_eq!(machine.dispatch(2), None);
    machine.kernel.cpu_turns(3, None, true);
    assert_eq!(machine.dispatch(3), None);
    assert_eq!(idle_cores(&machine), 0b1100);
    assert_eq!(machine.wake(0, 3, 3).0, 3);
}

/// The slice of a task on a CPU that is away, ns.
const FOREVER: u64 = 1 << 62;

/// CPU 1 is away, taken offline by its kthread 1, which runs there; the kthread 2 is bound to it
/// too. Tasks wait on CPU 0.
fn away() -> Machine {
    let mut machine = Machine::new(2, MAINLINE);
    let bound = machine.kernel.mask(&[0b10]);
    for kthread in [1, 2] {
        machine.kernel.begin(kthread, bound, 1);
        machine.kernel.set_kthread(kthread, true);
        machine.kernel.set_slice(kthread, FIRST);
    }
    machine.run(0, 0);
    for task in [3, 4, 5] {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    machine.run(1, 1);
    machine.kernel.cpu_turns(1, Some(1), false);
    machine.acts();
    machine
}

/// The kernel asks nobody what runs next on a CPU that is away: a task that loses its slice there
/// while no other waits is not kept, and the CPU goes idle beside it. So it loses none, by whatever
/// would end a slice elsewhere.
#[test]
fn a_slice_does_not_end_on_a_cpu_that_is_away() {
    let mut machine = away();
    assert_eq!(machine.kernel.slice(1), FOREVER, "it takes CPU 1 offline");
    for n in 1..100 {
        machine.at(NOW + n * SLICE);
        machine.tick(1);
        machine.kernel.timer(TIMER_SLICE, 1, Some(1));
    }
    assert_eq!(machine.acts(), [], "no other queue is served from there");
    machine.kernel.yields(1, 1);
    assert_eq!(machine.kernel.slice(1), FOREVER);
    machine.sleep(1);
    machine.run(1, 2);
    assert_eq!(machine.kernel.slice(2), FOREVER, "of one that begins there");
    machine.kernel.cpu_turns(1, Some(2), true);
    assert_eq!(machine.kernel.slice(2), SLICE, "the CPU is back");
}

/// It ends where another task is in the local queue.
#[test]
fn a_slice_ends_on_a_cpu_that_is_away_and_has_another_task() {
    let mut machine = away();
    machine.kernel.view(1).1.local = 1;
    machine.tick(1);
    assert_eq!(machine.kernel.slice(1), FOREVER, "its own is not over");
    machine.at(NOW + 200 * SLICE);
    machine.kernel.timer(TIMER_SLICE, 1, Some(1));
    let why = "the other may go before a kick arrives";
    assert_eq!(machine.acts(), [], "{why}");
    machine.tick(1);
    assert_eq!(machine.kernel.slice(1), 0);
    machine.kernel.set_slice(1, FOREVER);
    machine.kernel.yields(1, 1);
    assert_eq!(machine.kernel.slice(1), 0, "it yields to the other");
}

/// The kernel pushes a task that is not one of its bound threads away when it chooses it.
#[test]
fn a_task_is_pushed_away_from_a_cpu_that_is_away() {
    let mut machine = away();
    machine.sleep(1);
    machine.run(1, 6);
    machine.tick(1);
    let flags = 0;
    assert_eq!(machine.acts(), [Act::Kick { cpu: 1, flags }]);
}

/// The kernel begins to take a CPU offline before it says so: the thread that does it is not
/// interrupted to serve another queue. One that runs for longer is.
#[test]
fn a_bound_kthread_does_not_serve_other_queues_at_once() {
    let mut machine = taken(2, 6);
    let bound = machine.kernel.mask(&[0b10]);
    machine.kernel.set_affinity(1, bound);
    machine.kernel.set_kthread(1, true);
    machine.sleep(1);
    machine.run(1, 1);
    machine.at(machine.now + 2_000_000);
    machine.tick(1);
    assert!(!rescues(&machine, 1), "it has just begun");
    machine.at(machine.now + 20_000_000);
    machine.tick(1);
    assert!(rescues(&machine, 1));
}

/// The kernel begins to take a CPU offline before it says so, and waits for an RCU grace period.
/// The CPU idles meanwhile, and a task that is bound to it may keep the grace period from ending.
#[test]
fn bound_tasks_beside_which_their_cpu_idles_go_to_the_kernel() {
    let mut machine = Machine::new(2, MAINLINE);
    let bound = machine.kernel.mask(&[0b01]);
    machine.kernel.begin(2, bound, 0);
    machine.run(0, 0);
    machine.run(1, 1);
    machine.enqueue(2, WAKEUP);
    machine.sleep(0);
    let timer =
        |act: &Act| matches!(act, Act::Timer { which, cpu: 0, .. } if *which == TIMER_SLICE);
    machine.acts();
    machine.at(NOW + 1_000_000);
    machine.tick(1);
    assert!(!machine.acts().iter().any(timer), "it was busy until now");
    machine.kernel.timer(TIMER_SLICE, 0, None);
    assert_eq!(machine.kernel.queue_length(0), 1, "it has time to dispatch");
    assert!(machine.acts().iter().any(timer));
    machine.at(NOW + 100_000_000);
    machine.tick(1);
    assert!(
        machine.acts().iter().any(timer),
        "a tick elsewhere starts it"
    );
    machine.kernel.timer(TIMER_SLICE, 0, None);
    assert_eq!(*machine.kernel.local(0), [2]);
    assert_eq!(machine.kernel.queue_length(0), 0);
}

/// A CPU may count a task that another has taken and not run yet: nothing waits for it then.
#[test]
fn a_timer_beside_an_empty_queue_does_nothing() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.sleep(0);
    machine.kernel.world_mut().cpu_mut(0).weight = 16384;
    machine.acts();
    machine.kernel.timer(TIMER_SLICE, 0, None);
    assert_eq!(machine.acts(), []);
}

/// The kernel begins to take a CPU offline before it says so. If a slice is ended meanwhile, the
/// CPU goes idle beside the task, and the timer finds it.
#[test]
fn a_cpu_that_idles_beside_a_task_is_woken() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.sleep(0);
    machine.kernel.view(0).1.local = 1;
    machine.acts();
    machine.kernel.timer(TIMER_SLICE, 0, None);
    let flags = KICK_IDLE.into();
    assert_eq!(machine.acts()[..1], [Act::Kick { cpu: 0, flags }]);
}
