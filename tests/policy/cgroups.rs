// SPDX-License-Identifier: GPL-2.0-only
//! cgroup weights: trees whose shares are worked out by hand.

use crate::topology::{NICE0, Topology, kernel_arm, kernel_tunables};
use scx_roost::native::sys::{CGROUP_DEPTH, IDLE_WEIGHT, MAX_WEIGHT, MIN_WEIGHT};
use scx_roost::native::{Task, World};

const SWEEP: u64 = 10_000_000;

struct Tree {
    world: World,
}

impl Tree {
    /// Groups as (parent, cpu.weight); the first is number 1, the root is 0.
    fn new(groups: &[(u32, u32)]) -> Self {
        let facts = Topology::regular(1, 2, 1, 1, false).facts();
        let mut world = World::new(facts, kernel_arm(), kernel_tunables(), groups.len() + 1);
        for (i, &(parent, weight)) in groups.iter().enumerate() {
            let cg = world.cgroup_mut(i + 1);
            cg.parent = parent;
            world.cgroup_weigh(i + 1, weight * NICE0 / 100, false);
        }
        Tree { world }
    }

    /// For `sweeps` periods, tasks of each (group, nice weight) are always runnable.
    fn run(&mut self, tasks: &[(usize, u32)], sweeps: usize) {
        for _ in 0..sweeps {
            for &(group, weight) in tasks {
                self.world.cgroup_charge(group, SWEEP, weight);
            }
            self.world.cgroup_sweep(SWEEP);
        }
    }

    fn weight(&mut self, group: usize, nice_weight: u32) -> u32 {
        self.world.cgroup_task_weight(group, nice_weight)
    }

    /// Shares of a CPU that all these tasks fight for, in percent.
    fn shares(&mut self, tasks: &[(usize, u32)]) -> Vec<f64> {
        let weights: Vec<f64> = tasks
            .iter()
            .map(|&(g, w)| f64::from(self.weight(g, w)))
            .collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|w| 100.0 * w / total).collect()
    }
}

fn close(got: &[f64], expected: &[f64]) {
    for (g, e) in got.iter().zip(expected) {
        assert!(
            (g - e).abs() <= 0.02 * e,
            "shares {got:?}, worked out {expected:?}"
        );
    }
    assert_eq!(got.len(), expected.len());
}

#[test]
fn the_root_has_nice_weights() {
    let mut tree = Tree::new(&[]);
    assert_eq!(tree.weight(0, 12345), 12345);
}

#[test]
fn two_groups_share_by_weight_whatever_is_in_them() {
    // a has 100, b 300; a runs three tasks, b one.
    let mut tree = Tree::new(&[(0, 100), (0, 300)]);
    let tasks = [(1, NICE0), (1, NICE0), (1, NICE0), (2, NICE0)];
    tree.run(&tasks, 30);
    close(&tree.shares(&tasks), &[8.33, 8.33, 8.33, 75.0]);
}

#[test]
fn nice_counts_inside_a_group() {
    let mut tree = Tree::new(&[(0, 100), (0, 100)]);
    let tasks = [(1, 3 * NICE0), (1, NICE0), (2, NICE0 / 4)];
    tree.run(&tasks, 30);
    close(&tree.shares(&tasks), &[37.5, 12.5, 50.0]);
}

#[test]
fn two_levels() {
    // top: a 100, b 100. a: a1 300 with two tasks, a2 100. b: one task. Beside a task of the root, which counts as
    // a group of 100.
    let mut tree = Tree::new(&[(0, 100), (0, 100), (1, 300), (1, 100)]);
    let tasks = [(3, NICE0), (3, NICE0), (4, NICE0), (2, NICE0), (0, NICE0)];
    tree.run(&tasks, 30);
    close(&tree.shares(&tasks), &[12.5, 12.5, 8.33, 33.33, 33.33]);
}

#[test]
fn who_sleeps_leaves_its_share_to_its_siblings() {
    let mut tree = Tree::new(&[(0, 100), (0, 100), (1, 300), (1, 100)]);
    let all = [(3, NICE0), (4, NICE0), (2, NICE0)];
    tree.run(&all, 30);
    close(&tree.shares(&all), &[37.5, 12.5, 50.0]);
    let awake = [(4, NICE0), (2, NICE0)];
    tree.run(&awake, 60);
    close(&tree.shares(&awake), &[50.0, 50.0]);
    tree.run(&all, 30);
    close(&tree.shares(&all), &[37.5, 12.5, 50.0]);
}

#[test]
fn a_group_that_runs_half_the_time_keeps_its_weight_while_it_runs() {
    let mut tree = Tree::new(&[(0, 100), (0, 100)]);
    for _ in 0..60 {
        tree.world.cgroup_charge(1, SWEEP / 2, NICE0);
        tree.world.cgroup_charge(2, SWEEP, NICE0);
        tree.world.cgroup_sweep(SWEEP);
    }
    close(&tree.shares(&[(1, NICE0), (2, NICE0)]), &[50.0, 50.0]);
}

#[test]
fn cpu_idle_weighs_as_one_sched_idle_task() {
    // Whatever its cpu.weight, and however many run in it; the old weight is back with cpu.idle off.
    let mut tree = Tree::new(&[(0, 300), (0, 100)]);
    let tasks = [(1, NICE0), (1, NICE0), (2, NICE0)];
    tree.world.cgroup_weigh(1, 3 * NICE0, true);
    tree.run(&tasks, 30);
    let idle = 100.0 * f64::from(IDLE_WEIGHT) / f64::from(NICE0 + IDLE_WEIGHT);
    close(
        &tree.shares(&tasks),
        &[idle / 2.0, idle / 2.0, 100.0 - idle],
    );
    tree.world.cgroup_weigh(1, 3 * NICE0, false);
    tree.run(&tasks, 30);
    close(&tree.shares(&tasks), &[37.5, 37.5, 25.0]);
}

#[test]
fn tasks_below_cpu_idle_give_way() {
    // 1 is idle, 2 its child; 3 is not.
    let mut tree = Tree::new(&[(0, 100), (1, 100), (0, 100)]);
    let gives_way = |tree: &mut Tree, group: u32, idle_policy: u32| {
        let mut task = Task::new(1, &tree.world);
        (task.state.cgroup, task.state.idle_policy) = (group, idle_policy);
        tree.world.cgroup_apply(&mut task, 0);
        task.state.sched_idle == 1
    };
    for (idle, expected) in [(true, [false, true, true, false]), (false, [false; 4])] {
        tree.world.cgroup_weigh(1, NICE0, idle);
        tree.run(&[], 3);
        for (group, expected) in (0..).zip(expected) {
            assert_eq!(gives_way(&mut tree, group, 0), expected, "{group}, {idle}");
            assert!(
                gives_way(&mut tree, group, 1),
                "policy SCHED_IDLE in {group}"
            );
        }
    }
}

#[test]
fn weights_stay_within_bounds() {
    // cpu.weight 1 shared by a thousand, and 10000 for one of nice -20.
    let mut tree = Tree::new(&[(0, 1), (0, 10_000)]);
    let crowd = vec![(1, NICE0); 1000];
    tree.run(&crowd, 30);
    tree.run(&[(2, 88761 * 16)], 30);
    assert_eq!(tree.weight(1, NICE0 / 100), MIN_WEIGHT);
    let heavy = tree.weight(2, 88761 * 16);
    assert!(heavy > NICE0 && heavy <= MAX_WEIGHT, "{heavy}");
}

#[test]
fn a_chain_deeper_than_we_look_ends() {
    let chain: Vec<(u32, u32)> = (0..3 * CGROUP_DEPTH).map(|parent| (parent, 100)).collect();
    let mut tree = Tree::new(&chain);
    let tasks = [(chain.len(), NICE0), (0, NICE0)];
    tree.run(&tasks, 30);
    close(&tree.shares(&tasks), &[50.0, 50.0]);
}

#[test]
fn a_sweep_counts_what_was_runnable_since_the_last() {
    let mut tree = Tree::new(&[(0, 100)]);
    tree.run(&[(1, NICE0), (1, NICE0)], 40);
    let load = tree.world.cgroup(1).load;
    assert!(load.abs_diff(2 * NICE0) <= 8, "{load}");
    tree.run(&[], 60);
    assert_eq!(tree.world.cgroup(1).load, 0, "nobody runs any more");
    assert_eq!(tree.world.cgroup(1).active, 0);
}
