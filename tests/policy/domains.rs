// SPDX-License-Identifier: GPL-2.0-only
//! Domains of load balance (domain.h): no wakeup, fork, thief or helper crosses from one to
//! another.

use crate::rng::Rng;
use crate::setup::NOW;
use crate::steal::Waiting;
use crate::topology::Tables;
use scx_roost::native::sys::{DOMAIN_LOOKS, ROOST_NR_FEATURES};
use scx_roost::native::{Task, Wakeup, World};
use scx_roost::placement::topology::Topology;

/// Cuts two LLCs of four cores into two domains: even CPUs and odd CPUs.
fn cut(topology: &Topology) -> World {
    let mut world = topology.world();
    for cpu in 0..topology.nr_cpu_ids() {
        world.set_domain(cpu, cpu as u32 % 2);
        world.set_idle(cpu);
    }
    look(&mut world, topology.nr_cpu_ids());
    world
}

fn look(world: &mut World, cpus: usize) {
    for _ in 0..=cpus / DOMAIN_LOOKS as usize {
        world.look_at_domains();
    }
}

/// All features, none, or random ones.
fn features(rng: &mut Rng) -> u32 {
    let all = (1 << ROOST_NR_FEATURES) - 1;
    match rng.below(3) {
        0 => 0,
        1 => all,
        _ => rng.next() as u32 & all,
    }
}

#[test]
fn no_wakeup_or_fork_leaves_its_domain() {
    let mut rng = Rng::new(3);
    let topology = Topology::regular(2, 4, 2, 1, true);
    for round in 0..20_000 {
        let mut world = cut(&topology);
        (0..topology.nr_cpu_ids())
            .filter(|_| rng.chance(60))
            .for_each(|cpu| world.set_busy(cpu));
        let (this, prev) = (
            rng.below(topology.nr_cpu_ids()),
            rng.below(topology.nr_cpu_ids()),
        );
        let mut task = Task::new(7, &world);
        task.state.recent_cpu = rng.below(topology.nr_cpu_ids()) as i32 + 1;
        let facts = world.facts().clone();
        let mut wakeup = Wakeup::new(&mut task, this, prev, &facts);
        wakeup.features = features(&mut rng);
        wakeup.now = NOW;
        wakeup.fork = rng.chance(30);
        // As select_cpu.h asks. A child starts on its parent's CPU.
        wakeup.this_allowed = this % 2 == prev % 2;
        if wakeup.fork {
            (wakeup.prev, wakeup.this_allowed) = (this, true);
        }
        let own = wakeup.prev % 2;
        let features = wakeup.features;
        let at = world.place(wakeup);
        assert_eq!(
            at.cpu as usize % 2,
            own,
            "round {round}: {this} wakes a task of {prev}, features {features:#x}"
        );
    }
}

#[test]
fn a_machine_in_one_piece_again_is_used_whole() {
    let topology = Topology::regular(1, 4, 1, 1, false);
    let mut world = cut(&topology);
    let wake = |world: &mut World| {
        let mut task = Task::new(7, world);
        let facts = world.facts().clone();
        let mut wakeup = Wakeup::new(&mut task, 3, 3, &facts);
        wakeup.now = NOW;
        world.place(wakeup).cpu
    };
    [1, 3].iter().for_each(|&cpu| world.set_busy(cpu));
    assert_eq!(wake(&mut world), 3, "0 and 2 idle, and are another's");
    (0..4).for_each(|cpu| world.set_domain(cpu, 5));
    assert!(
        wake(&mut world) % 2 == 0,
        "the kernel is asked, not the last look"
    );
    look(&mut world, 4);
    assert!(wake(&mut world) % 2 == 0, "0 and 2 are idle");
}

#[test]
fn a_task_whose_mask_leaves_its_domain_goes_where_it_may() {
    let topology = Topology::regular(1, 4, 1, 1, false);
    let mut world = cut(&topology);
    let facts = world.facts().clone();
    let mut task = Task::new(7, &world);
    task.allow(&[0b0100], &facts);
    let mut wakeup = Wakeup::new(&mut task, 1, 1, &facts);
    wakeup.now = NOW;
    assert_eq!(world.place(wakeup).cpu, 2);
}

#[test]
fn the_last_of_many_cpus_is_asked_too() {
    let topology = Topology::regular(4, 40, 1, 1, false);
    let mut world = topology.world();
    // Only the last CPU is isolated: looks at the CPUs before it find one domain.
    world.set_domain(159, 1);
    look(&mut world, 160);
    let mut queues = Waiting::new(160);
    queues.tasks[159] = 1;
    world.mark_waiting(159);
    assert!(!world.steal(121, &mut queues, NOW, false));
    assert_eq!(queues.tasks[159], 1);
}

#[test]
fn no_thief_robs_another_domain_and_spends_no_try_on_it() {
    let topology = Topology::regular(2, 4, 2, 1, true);
    let mut world = cut(&topology);
    let mut queues = Waiting::new(16);
    for cpu in (1..16).step_by(2) {
        queues.tasks[cpu] = 1;
        world.mark_waiting(cpu);
    }
    assert!(!world.steal(4, &mut queues, NOW, false));
    assert!(queues.tasks.iter().sum::<usize>() == 8);
    queues.tasks[10] = 1;
    world.mark_waiting(10);
    assert!(world.steal(4, &mut queues, NOW, false), "one of its own");
    assert_eq!(queues.tasks[10], 0);
}

#[test]
fn no_cpu_of_another_domain_is_called_for_help() {
    let topology = Topology::regular(2, 2, 1, 1, false);
    let mut world = cut(&topology);
    world.set_busy(1);
    let task = Task::new(7, &world);
    assert_eq!(world.idle_helper(&task, 1, NOW), Some(3));
    world.set_busy(3);
    assert_eq!(world.idle_helper(&task, 1, NOW), None);
}
