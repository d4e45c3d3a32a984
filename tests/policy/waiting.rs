// SPDX-License-Identifier: GPL-2.0-only
//! Nobody waits for ever: sched_ext ends a scheduler under which a task waits 5 s.

use crate::topology::{NICE0, Topology, kernel_tunables};
use scx_roost::native::sys::MIN_WEIGHT;
use scx_roost::native::{Task, World};

const MSEC: u64 = 1_000_000;
/// The weight of a SCHED_IDLE task, and of nice 19, in our scale.
const IDLE: u32 = 3 * 16;
const NICE_19: u32 = 15 * 16;

fn world() -> World {
    Topology::regular(1, 1, 1, 1, false).world()
}

fn task(world: &World, pid: u32, weight: u32) -> Task {
    let mut task = Task::new(pid, world);
    task.state.weight = weight;
    task.state.nice_weight = weight;
    task
}

/// One CPU serves tasks that never sleep, as run.bpf.h does. How long the first one had to wait at most, and what it had.
fn serve(world: &mut World, tasks: &mut [Task], span: u64) -> (u64, u64) {
    for t in tasks.iter_mut() {
        world.join(0, t, 0);
        world.new_request(t, 0);
        world.bound_wait(0, t);
    }
    let (mut now, mut last, mut longest, mut ran) = (0, 0, 0, 0);
    while now < span {
        let i = (0..tasks.len())
            .min_by_key(|&i| tasks[i].state.deadline)
            .unwrap();
        let slice = world.slice_left(&tasks[i]);
        if i == 0 {
            longest = longest.max(now - last);
            last = now + slice;
            ran += slice;
        }
        now += slice;
        world.charge(0, &mut tasks[i], slice);
        if tasks[i].state.vruntime >= tasks[i].state.deadline {
            world.new_request(&mut tasks[i], 0);
        }
        world.bound_wait(0, &mut tasks[i]);
    }
    (longest.max(now - last), ran)
}

#[test]
fn a_light_task_has_its_turn_before_the_watchdog() {
    for (weight, hogs, custom_slice) in [
        (IDLE, 8, 0),
        (MIN_WEIGHT, 3, 0),
        (MIN_WEIGHT, 30, 0),
        (NICE_19, 1, 100 * MSEC),
        (NICE_19, 10, 100 * MSEC),
    ] {
        let mut world = world();
        let mut tasks: Vec<Task> = (0..=hogs)
            .map(|i| task(&world, i + 1, if i == 0 { weight } else { NICE0 }))
            .collect();
        tasks[0].state.custom_slice = custom_slice;
        let span = 20_000 * MSEC;
        let (wait, ran) = serve(&mut world, &mut tasks, span);
        let name = format!("weight {weight} beside {hogs} hogs");
        // The first turn comes as if all had been there; those that are before it still have theirs.
        assert!(wait <= 4_000 * MSEC, "{name} waits {} ms", wait / MSEC);
        // What it gets for it is its share, or the minimum slice at each turn.
        let fair = span * u64::from(weight) / u64::from(weight + hogs * NICE0);
        let most = (fair * 11 / 10).max(span / (125 * MSEC) * 700_000) + 3 * MSEC;
        assert!(ran <= most, "{name} ran {} us", ran / 1000);
    }
}

#[test]
fn yielding_often_is_yielding_once() {
    let mut world = world();
    let mut t = task(&world, 1, NICE0);
    world.join(0, &mut t, 0);
    world.new_request(&mut t, 0);
    for _ in 0..1_000_000 {
        world.yield_request(&mut t, 0);
    }
    let slice = kernel_tunables().slice_ns;
    assert_eq!(t.state.deadline - t.state.vruntime, 2 * slice);
    assert_eq!(
        world.slice_left(&t),
        slice,
        "no slice is longer than what it may ask for"
    );
}
