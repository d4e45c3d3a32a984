// SPDX-License-Identifier: GPL-2.0-only
//! Placement while CPUs are away: they are online at the load, and offline later.

use crate::setup::NOW;
use crate::topology::Topology;
use scx_roost::native::sys::WAKE_FORK;
use scx_roost::native::{Kernel, Task};
use scx_roost::policy::features::bits;

const CHILD: usize = 0;
/// Longer than an arm's slice, ns.
const SLICE: u64 = 3_000_000;

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
        at += 100 * SLICE;
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
