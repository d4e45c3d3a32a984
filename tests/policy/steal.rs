// SPDX-License-Identifier: GPL-2.0-only
//! Stealing: near queues first, a bounded number of tries, and empty queues leave the set.

use crate::rng::Rng;
use crate::setup::NOW;
use crate::topology::Tables;
use scx_roost::native::Queues;
use scx_roost::native::sys::{
    SET_WAITING, STAT_dispatch_steal_llc, STAT_dispatch_steal_machine, STAT_dispatch_steal_node,
    STAT_steal_miss, STEAL_TRIES, cursor, port_task, task_state,
};
use scx_roost::placement::topology::Topology;
use std::ptr::NonNull;

/// For each CPU the number of waiting tasks, and how many of the first of them only that CPU may
/// run. `tried`: the queues that thieves looked into.
pub(crate) struct Waiting {
    pub tasks: Vec<usize>,
    pinned: Vec<usize>,
    ran_at: Vec<u64>,
    sched_idle: Vec<bool>,
    tried: Vec<usize>,
    /// The task that was looked at last; `queue` is its queue.
    port: Box<port_task>,
    state: Box<task_state>,
    queue: usize,
    everywhere: Vec<u64>,
}

impl Waiting {
    pub fn new(n: usize) -> Self {
        Waiting {
            tasks: vec![0; n],
            pinned: vec![0; n],
            ran_at: vec![1; n],
            sched_idle: vec![false; n],
            tried: vec![],
            port: Box::default(),
            state: Box::default(),
            queue: 0,
            everywhere: vec![u64::MAX; n.div_ceil(64)],
        }
    }
}

impl Queues for Waiting {
    fn take(&mut self, cpu: usize) -> bool {
        let free = self.tasks[cpu] > self.pinned[cpu];
        self.tasks[cpu] -= usize::from(free);
        free
    }

    fn length(&self, cpu: usize) -> usize {
        self.tasks[cpu]
    }

    fn next(&mut self, cpu: usize, at: &mut cursor) -> Option<NonNull<port_task>> {
        if at.seq == 0 && self.tried.last() != Some(&cpu) {
            self.tried.push(cpu);
        }
        at.seq += 1;
        if at.seq as usize > self.tasks[cpu] {
            return None;
        }
        self.queue = cpu;
        self.state.ran_at = self.ran_at[cpu];
        self.state.idle_policy = self.sched_idle[cpu].into();
        *self.port = port_task {
            allowed: self.everywhere.as_ptr(),
            state: &raw mut *self.state,
            pinned: at.seq as usize <= self.pinned[cpu],
            ..Default::default()
        };
        Some(NonNull::from(&mut *self.port))
    }

    fn move_to(&mut self, _: NonNull<port_task>, _: Option<usize>) -> bool {
        assert!(!self.port.pinned);
        self.tasks[self.queue] -= 1;
        true
    }
}

#[test]
fn the_nearest_queue_first() {
    let topology = Topology::regular(8, 4, 2, 4, true);
    let mut world = topology.world();
    let mut queues = Waiting::new(64);
    // CPU 1 steals. CPU 2 is of its LLC, 9 of its node, 20 of the other node.
    for cpu in [2, 9, 20] {
        queues.tasks[cpu] = 1;
        world.mark_waiting(cpu);
    }
    for (victim, stat) in [
        (2, STAT_dispatch_steal_llc),
        (9, STAT_dispatch_steal_node),
        (20, STAT_dispatch_steal_machine),
    ] {
        assert!(world.steal(1, &mut queues, NOW, false));
        assert_eq!(queues.tried.last(), Some(&victim));
        assert_eq!(world.count(stat), 1);
    }
    queues.tried.clear();
    assert!(!world.steal(1, &mut queues, NOW, false));
    assert_eq!(
        queues.tried,
        [20],
        "the nearer ones were found empty on the way"
    );
    queues.tried.clear();
    assert!(!world.steal(1, &mut queues, NOW, false));
    assert_eq!(queues.tried, [0; 0], "an empty queue has left the set");
}

#[test]
fn a_thief_gives_up_after_its_tries_and_never_robs_itself() {
    for topology in [
        Topology::regular(1, 1024, 1, 1, false),
        Topology::regular(128, 4, 2, 16, true),
    ] {
        let n = topology.nr_cpu_ids();
        let mut world = topology.world();
        let mut queues = Waiting::new(n);
        for cpu in 0..n {
            (queues.tasks[cpu], queues.pinned[cpu]) = (1, 1);
            world.mark_waiting(cpu);
        }
        for thief in [0, 1, n / 2, n - 1] {
            queues.tried.clear();
            world.clear_counters();
            assert!(!world.steal(thief, &mut queues, NOW, false));
            assert_eq!(queues.tried.len(), STEAL_TRIES as usize);
            assert_eq!(world.count(STAT_steal_miss), u64::from(STEAL_TRIES));
            assert!(!queues.tried.contains(&thief));
            queues.tried.sort_unstable();
            queues.tried.dedup();
            assert_eq!(
                queues.tried.len(),
                STEAL_TRIES as usize,
                "no queue is tried twice"
            );
        }
        let still: u32 = (0..topology.nr_llcs())
            .flat_map(|l| world.llc(l).set[SET_WAITING as usize])
            .map(u64::count_ones)
            .sum();
        assert_eq!(
            still as usize, n,
            "a queue with a pinned task stays in the set"
        );
    }
}

#[test]
fn a_waiting_task_is_found_within_the_tries() {
    let mut rng = Rng::new(11);
    for _ in 0..20_000 {
        let topology = Topology::regular(4, 4, 2, 2, true);
        let mut world = topology.world();
        let mut queues = Waiting::new(32);
        let thief = rng.below(32);
        let waiting = rng.within(1, STEAL_TRIES as usize);
        for _ in 0..waiting {
            let cpu = rng.below(32);
            queues.tasks[cpu] += 1;
            queues.pinned[cpu] += usize::from(rng.chance(50));
            world.mark_waiting(cpu);
        }
        let to_be_had = |q: &Waiting| {
            (0..32)
                .filter(|&c| c != thief)
                .any(|c| q.tasks[c] > q.pinned[c])
        };
        let total: usize = queues.tasks.iter().sum();
        let expected = to_be_had(&queues);
        assert_eq!(world.steal(thief, &mut queues, NOW, false), expected);
        assert_eq!(
            queues.tasks.iter().sum::<usize>(),
            total - usize::from(expected)
        );
    }
}

/// The race described in steal.h: a task is queued between the thief's look and the clearing of the
/// bit.
#[test]
fn a_task_queued_at_the_wrong_moment_comes_back_with_its_cpus_tick() {
    struct Late(Waiting);
    impl Queues for Late {
        fn take(&mut self, cpu: usize) -> bool {
            self.0.take(cpu)
        }
        fn length(&self, _: usize) -> usize {
            0 // the thief looks just before the task is queued
        }
        fn next(&mut self, cpu: usize, at: &mut cursor) -> Option<NonNull<port_task>> {
            self.0.next(cpu, at)
        }
    }
    let mut world = Topology::regular(1, 4, 1, 1, false).world();
    let mut queues = Late(Waiting::new(4));
    world.mark_waiting(2);
    assert!(!world.steal(0, &mut queues, NOW, false));
    queues.0.tasks[2] = 1;
    assert!(
        !world.steal(0, &mut queues, NOW, false),
        "not in the set: not seen yet"
    );
    world.mark_waiting(2); // as tick_help() does while a task waits
    assert!(world.steal(0, &mut queues, NOW, false));
}

#[test]
fn a_task_that_ran_a_moment_ago_is_left_where_its_cache_is_warm() {
    let mut world = Topology::regular(2, 4, 1, 2, false).world();
    let mut queues = Waiting::new(8);
    queues.tasks[2] = 1;
    queues.ran_at[2] = NOW - 499_999;
    world.mark_waiting(2);
    assert!(!world.steal(0, &mut queues, NOW, false));
    assert_eq!(queues.tasks[2], 1, "its queue is passed over");
    queues.tasks[5] = 1;
    queues.ran_at[5] = NOW - 500_000;
    world.mark_waiting(5);
    assert!(
        world.steal(0, &mut queues, NOW, false),
        "one of another LLC that is cold"
    );
    assert_eq!((queues.tasks[2], queues.tasks[5]), (1, 0));
    assert!(
        world.steal(0, &mut queues, NOW + 1, false),
        "and the first, once it has cooled"
    );
}

/// task_hot(): SD_SHARE_CPUCAPACITY, task_has_idle_policy().
#[test]
fn a_thread_of_the_same_core_and_a_sched_idle_task_are_never_hot() {
    // CPUs 0 and 1 are one core, 2 and 3 the other.
    let mut world = Topology::regular(1, 2, 2, 1, false).world();
    let mut queues = Waiting::new(4);
    queues.ran_at.fill(NOW - 1);
    queues.tasks[1] = 1;
    world.mark_waiting(1);
    for other_core in [2, 3] {
        assert!(!world.steal(other_core, &mut queues, NOW, false));
    }
    assert!(
        world.steal(0, &mut queues, NOW, false),
        "it shares the warm cache"
    );
    queues.tasks[1] = 1;
    queues.sched_idle[1] = true;
    assert!(world.steal(3, &mut queues, NOW, false), "a SCHED_IDLE task");
    assert_eq!(queues.tasks[1], 0);
}

/// SERVE_NS in serve.h.
const SERVE: u64 = 5_000_000;

#[test]
fn one_busy_cpu_at_a_time_serves_a_queue() {
    let mut world = Topology::regular(1, 8, 1, 1, false).world();
    let mut queues = Waiting::new(8);
    assert!(world.assign_queue(1, &mut queues, 0, NOW));
    for cpu in 2..8 {
        // The clocks of CPUs differ a little.
        for now in [NOW - 1000, NOW, NOW + SERVE - 1] {
            assert!(
                !world.assign_queue(cpu, &mut queues, 0, now),
                "all see the same queue: CPU {cpu} keeps its own task"
            );
        }
        assert_eq!(world.cpu(cpu).assigned_cpu, 0);
    }
    assert!(
        world.assign_queue(2, &mut queues, 3, NOW),
        "another queue is free"
    );
    assert!(
        !world.assign_queue(1, &mut queues, 4, NOW + 1),
        "1 has one to serve"
    );
    assert!(
        world.assign_queue(5, &mut queues, 4, NOW + 1),
        "so 4 was not taken"
    );
    assert_eq!(world.assigned_queue(1, &mut queues, NOW + 2), Some(0));
    assert_eq!(world.cpu(1).assigned_cpu, 0, "once");
    assert!(!world.assign_queue(6, &mut queues, 0, NOW + 3));
    assert!(world.assign_queue(6, &mut queues, 0, NOW + SERVE));
}

#[test]
fn an_assignment_lapses() {
    let mut world = Topology::regular(1, 4, 1, 1, false).world();
    let mut queues = Waiting::new(4);
    assert!(world.assign_queue(1, &mut queues, 0, NOW));
    assert_eq!(
        world.assigned_queue(1, &mut queues, NOW + SERVE - 1),
        Some(0)
    );
    assert!(world.assign_queue(1, &mut queues, 0, NOW + SERVE));
    assert_eq!(
        world.assigned_queue(1, &mut queues, NOW + 2 * SERVE),
        None,
        "the CPU did not come to dispatch in time"
    );
    assert_eq!(world.cpu(1).assigned_cpu, 0);
    assert!(world.assign_queue(1, &mut queues, 2, NOW + 3 * SERVE));
    assert!(
        world.assign_queue(1, &mut queues, 3, NOW + 4 * SERVE),
        "a lapsed one does not bar the next"
    );
}
