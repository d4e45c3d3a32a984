// SPDX-License-Identifier: GPL-2.0-only
//! cgroup weights: trees whose shares are computed by hand, the sums that groups keep, and a CPU
//! for which groups compete.

use crate::rng::Rng;
use crate::topology::{Tables, kernel_arm, kernel_tunables};
use scx_roost::native::sys::{IDLE_WEIGHT, MAX_WEIGHT, MIN_WEIGHT};
use scx_roost::native::{Task, World};
use scx_roost::placement::topology::NICE0;
use scx_roost::placement::topology::Topology;

const MSEC: u64 = 1_000_000;

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

    fn task(&self, group: usize, nice_weight: u32) -> Task {
        let mut task = Task::new(1, &self.world);
        (task.state.cgroup, task.state.nice_weight) = (group as u32, nice_weight);
        task
    }

    /// Tasks of each (group, nice weight) are runnable for `sweeps` periods.
    fn run(&mut self, tasks: &[(usize, u32)], sweeps: usize) {
        let mut tasks: Vec<Task> = tasks.iter().map(|&(g, w)| self.task(g, w)).collect();
        for task in &mut tasks {
            self.world.cgroup_enter(task);
        }
        for _ in 0..sweeps {
            self.world.cgroup_sweep();
        }
        for task in &mut tasks {
            self.world.cgroup_leave(task);
        }
    }

    /// The weight that each of these tasks has while all are runnable.
    fn weights(&mut self, tasks: &[(usize, u32)]) -> Vec<u32> {
        let mut all: Vec<Task> = tasks.iter().map(|&(g, w)| self.task(g, w)).collect();
        for task in &mut all {
            self.world.cgroup_enter(task);
        }
        let weight = |&(group, nice): &(usize, u32)| self.world.cgroup_task_weight(group, nice);
        let weights = tasks.iter().map(weight).collect();
        for task in &mut all {
            self.world.cgroup_leave(task);
        }
        weights
    }

    /// The shares of a CPU for which all these tasks compete, in percent.
    fn shares(&mut self, tasks: &[(usize, u32)]) -> Vec<f64> {
        let weights = self.weights(tasks);
        let total = f64::from(weights.iter().sum::<u32>());
        let share = |weight| 100.0 * f64::from(weight) / total;
        weights.into_iter().map(share).collect()
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
    assert_eq!(tree.weights(&[(0, 12345)]), [12345]);
}

#[test]
fn two_groups_share_by_weight_whatever_is_in_them() {
    // a has weight 100, b 300; a runs three tasks, b one.
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
    // Top level: a 100, b 100. In a: a1 300 with two tasks, a2 100. b has one task. A task of the
    // root competes with them and counts as a group of weight 100.
    let mut tree = Tree::new(&[(0, 100), (0, 100), (1, 300), (1, 100)]);
    let tasks = [(3, NICE0), (3, NICE0), (4, NICE0), (2, NICE0), (0, NICE0)];
    tree.run(&tasks, 30);
    close(&tree.shares(&tasks), &[12.5, 12.5, 8.33, 33.33, 33.33]);
}

#[test]
fn a_sleeping_group_leaves_its_share_to_its_siblings() {
    let mut tree = Tree::new(&[(0, 100), (0, 100), (1, 300), (1, 100)]);
    let all = [(3, NICE0), (4, NICE0), (2, NICE0)];
    tree.run(&all, 30);
    close(&tree.shares(&all), &[37.5, 12.5, 50.0]);
    let awake = [(4, NICE0), (2, NICE0)];
    tree.run(&awake, 70);
    close(&tree.shares(&awake), &[50.0, 50.0]);
    tree.run(&all, 30);
    close(&tree.shares(&all), &[37.5, 12.5, 50.0]);
}

#[test]
fn a_group_that_runs_half_the_time_keeps_its_weight_while_it_runs() {
    let mut tree = Tree::new(&[(0, 100), (0, 100)]);
    for _ in 0..30 {
        tree.run(&[(1, NICE0), (2, NICE0)], 1);
        tree.run(&[(2, NICE0)], 1);
    }
    close(&tree.shares(&[(1, NICE0), (2, NICE0)]), &[50.0, 50.0]);
}

#[test]
fn cpu_idle_weighs_as_one_sched_idle_task() {
    // This holds for any cpu.weight and any number of tasks in it. Without cpu.idle the old weight
    // is back.
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
    // Group 1 has cpu.idle, 2 is its child, 3 is not below it.
    let mut tree = Tree::new(&[(0, 100), (1, 100), (0, 100)]);
    let gives_way = |tree: &mut Tree, group, idle_policy: u32| {
        let mut task = tree.task(group, NICE0);
        task.state.idle_policy = idle_policy;
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
    // cpu.weight 1 shared by a thousand tasks, and cpu.weight 10000 for one task of nice -20.
    let mut tree = Tree::new(&[(0, 1), (0, 10_000)]);
    let mut crowd = vec![(1, NICE0); 1000];
    crowd.push((1, NICE0 / 100));
    assert_eq!(tree.weights(&crowd)[1000], MIN_WEIGHT);
    let heavy = tree.weights(&[(2, 88761 * 16)])[0];
    assert!(heavy > NICE0 && heavy <= MAX_WEIGHT, "{heavy}");
}

#[test]
fn little_is_divided_to_the_nearest() {
    // cpu.weight 1 is 163 in our unit, divided by 100 tasks 1.63. In a child group a task gets half
    // of that.
    let mut tree = Tree::new(&[(0, 1), (1, 100), (1, 100)]);
    let crowd = vec![(1, NICE0); 100];
    assert_eq!(tree.weights(&crowd)[0], 2);
    let halves: Vec<_> = (0..100).map(|i| (2 + i % 2, NICE0)).collect();
    tree.run(&halves, 80);
    assert_eq!(tree.weights(&halves)[0], 2);
    tree.run(&[], 80);
    assert_eq!(tree.weights(&crowd[..60])[0], 3);
}

/// The owner of a group can nest others in it, of any weight.
#[test]
fn no_depth_escapes_the_weight_of_a_group_above() {
    for depth in [2usize, 15, 17, 70, 300] {
        // Group 1 has cpu.weight 1; below it one group in another, of 10000 each; and a neighbour.
        let mut groups = vec![(0, 1)];
        groups.extend((1..depth as u32).map(|parent| (parent, 10_000)));
        groups.push((0, 100));
        let mut tree = Tree::new(&groups);
        let tasks = [(depth, NICE0), (depth + 1, NICE0)];
        tree.run(&tasks, 30);
        close(&tree.shares(&tasks), &[100.0 / 101.0, 10_000.0 / 101.0]);
    }
}

#[test]
fn how_often_a_group_runs_is_a_mean() {
    let mut tree = Tree::new(&[(0, 100)]);
    let busy = |tree: &Tree| tree.world.cgroup(1).busy;
    tree.run(&[(1, NICE0)], 1);
    assert_eq!(busy(&tree), NICE0, "the first sweep sees it run");
    for _ in 0..60 {
        tree.run(&[], 1);
        tree.run(&[(1, NICE0)], 1);
    }
    let half = f64::from(busy(&tree)) / f64::from(NICE0);
    assert!((0.45..0.55).contains(&half), "{half}");
    tree.run(&[], 200);
    assert_eq!(busy(&tree), 0, "no task runs any more");
}

/// Groups of the cpu controller may hold both tasks and groups, if they are threaded.
#[test]
fn tasks_beside_groups_do_not_add_to_a_groups_part() {
    for depth in [1, 2, 5, 20, 100] {
        let nest = (0..depth).map(|of| (of, 100));
        let mut tree = Tree::new(&nest.chain([(0, 100)]).collect::<Vec<_>>());
        let tasks: Vec<_> = (1..=depth as usize + 1)
            .map(|group| (group, NICE0))
            .collect();
        tree.run(&tasks, 30 + depth as usize);
        let shares = tree.shares(&tasks);
        assert!(
            (shares[depth as usize] - 50.0).abs() < 1.0,
            "{depth}: {shares:?}"
        );
        if depth > 1 {
            assert!(
                (shares[0] - 25.0).abs() < 1.0,
                "half is the outermost task's: {shares:?}"
            );
        }
    }
}

/// A hog beside ten groups that run 2 % of the time each, in a group beside another hog.
#[test]
fn groups_that_seldom_run_leave_their_part_to_their_siblings() {
    let seldom: Vec<_> = (0..10).map(|_| (1, 100)).collect();
    let mut groups = vec![(0, 100), (0, 100), (1, 100)];
    groups.extend(&seldom);
    let mut tree = Tree::new(&groups);
    let hogs = [(2, NICE0), (3, NICE0)];
    for sweep in 0..500 {
        let mut awake = hogs.to_vec();
        if sweep % 5 == 0 {
            awake.push((4 + sweep / 5 % 10, NICE0));
        }
        tree.run(&awake, 1);
    }
    let shares = tree.shares(&hogs);
    assert!(shares[1] > 43.0, "the kernel gives it half: {shares:?}");
}

#[test]
fn what_a_group_counts_is_what_is_runnable_in_it() {
    let mut tree = Tree::new(&[(0, 100), (0, 100), (2, 100)]);
    let mut rng = Rng::new(3);
    let mut tasks: Vec<Task> = (0..30).map(|i| tree.task(i % 4, NICE0)).collect();
    for _ in 0..20_000 {
        let task = &mut tasks[rng.below(30)];
        match rng.below(5) {
            0 => task.state.nice_weight = rng.within(15, 88761) as u32 * 16,
            1 => task.state.cgroup = rng.below(4) as u32,
            2 if task.state.runnable_since == 0 => {
                task.state.runnable_since = 1;
                tree.world.cgroup_enter(task);
            }
            _ => {
                // A leave while it sleeps already must change nothing.
                task.state.runnable_since = 0;
                tree.world.cgroup_leave(task);
            }
        }
        tree.world.cgroup_follow(task);
        for group in 1..4 {
            let sum: u64 = tasks
                .iter()
                .map(|t| &t.state)
                .filter(|t| t.runnable_since != 0 && t.cgroup == group)
                .map(|t| u64::from(t.nice_weight))
                .sum();
            assert_eq!(tree.world.cgroup(group as usize).runnable, sum);
        }
    }
    assert_eq!(tree.world.cgroup(0).runnable, 0, "the root's is not kept");
}

/// Tasks of a group that compete for the CPU. Each runs for `burst` and then sleeps, or never
/// sleeps.
struct Crowd {
    group: usize,
    count: usize,
    burst_and_sleep: Option<(u64, u64)>,
    /// All go at once from group to group, of so many, each time this has passed.
    moves: Option<(u64, usize)>,
}

fn hogs(group: usize, count: usize) -> Crowd {
    Crowd {
        group,
        count,
        burst_and_sleep: None,
        moves: None,
    }
}

/// What comes before the task may run: its crowd goes to another group, or it wakes.
fn arrive(world: &mut World, crowd: &Crowd, task: &mut Task, wakes_at: u64, now: u64) {
    if let Some((each, groups)) = crowd.moves
        && now.is_multiple_of(each)
    {
        world.cgroup_move(task, crowd.group + (now / each) as usize % groups);
    }
    if task.state.runnable_since == 0 && wakes_at <= now {
        task.state.runnable_since = now;
        world.cgroup_enter(task);
        world.cgroup_apply(task, now);
        world.join(0, task, now);
        world.new_request(task, 0);
    }
}

/// One CPU serves crowds by the real functions, as run.h and tick.h call them: earliest deadline
/// first, to the end of its slice. A tick every 4 ms applies weights and sweeps. Returns the
/// percentage that each crowd ran, and the longest time in which the first did not, ms.
fn fight(tree: &mut Tree, crowds: &[Crowd], span: u64) -> (Vec<f64>, f64) {
    const STEP: u64 = MSEC / 4;
    let world = &mut tree.world;
    let mut owner = Vec::new();
    let mut tasks = Vec::new();
    for (i, crowd) in crowds.iter().enumerate() {
        for _ in 0..crowd.count {
            let mut task = Task::new(1, world);
            task.state.cgroup = crowd.group as u32;
            owner.push(i);
            tasks.push(task);
        }
    }
    let mut ran = vec![0; crowds.len()];
    let mut wakes_at = vec![0; tasks.len()];
    let mut burst = vec![0; tasks.len()];
    let (mut current, mut slice_end, mut swept) = (None, 0, 0);
    let (mut first_ran, mut gap) = (MSEC, 0);
    for now in (MSEC..span).step_by(STEP as usize) {
        for (i, task) in tasks.iter_mut().enumerate() {
            arrive(world, &crowds[owner[i]], task, wakes_at[i], now);
        }
        if now >= slice_end || current.is_none() {
            current = (0..tasks.len())
                .filter(|&i| tasks[i].state.runnable_since != 0)
                .min_by_key(|&i| tasks[i].state.deadline);
            slice_end = now + current.map_or(0, |i| world.slice_left(&tasks[i]));
        }
        let Some(i) = current else { continue };
        let task = &mut tasks[i];
        world.charge(0, task, STEP);
        ran[owner[i]] += STEP;
        gap = gap.max(now - first_ran);
        if owner[i] == 0 {
            first_ran = now;
        }
        burst[i] += STEP;
        if task.state.vruntime.wrapping_sub(task.state.deadline) as i64 >= 0 {
            world.new_request(task, 0);
        }
        let tick = now % (4 * MSEC) == 0;
        if let Some((run, sleep)) = crowds[owner[i]].burst_and_sleep
            && burst[i] >= run
        {
            (burst[i], wakes_at[i], current) = (0, now + sleep, None);
            task.state.runnable_since = 0;
            world.cgroup_leave(task);
            world.leave(task, now);
        }
        if tick || current.is_none() || now + STEP >= slice_end {
            world.cgroup_apply(task, now);
        }
        if tick && now - swept >= 10 * MSEC {
            swept = now;
            world.cgroup_sweep();
        }
    }
    let total: u64 = ran.iter().sum();
    let part = |&ns: &u64| 100.0 * ns as f64 / total as f64;
    (ran.iter().map(part).collect(), gap as f64 / MSEC as f64)
}

#[test]
fn a_cpu_is_shared_by_weight_however_unequal_the_crowds() {
    let napping = |group, count| Crowd {
        group,
        count,
        burst_and_sleep: Some((MSEC, 5 * MSEC)),
        moves: None,
    };
    let cases = [
        ([100, 1000], [hogs(1, 1), hogs(2, 1)]),
        ([100, 1000], [hogs(1, 4), hogs(2, 4)]),
        ([100, 1000], [hogs(1, 1), hogs(2, 8)]),
        ([100, 1000], [hogs(1, 8), hogs(2, 1)]),
        ([100, 100], [hogs(1, 1), hogs(2, 20)]),
        ([100, 100], [hogs(1, 1), napping(2, 30)]),
        ([1, 100], [hogs(1, 4), hogs(2, 4)]),
    ];
    for (weights, crowds) in cases {
        let mut tree = Tree::new(&[(0, weights[0]), (0, weights[1])]);
        let (got, _) = fight(&mut tree, &crowds, 30_000 * MSEC);
        let due = 100.0 * f64::from(weights[0]) / f64::from(weights[0] + weights[1]);
        let counts = crowds.map(|c| c.count);
        assert!(
            (got[0] - due).abs() <= 0.05 * due,
            "{weights:?} with {counts:?} tasks: {got:?}, the first is due {due}"
        );
    }
}

/// A crowd that goes from group to group, each of them asleep for a while or new, has the part of
/// one group.
#[test]
fn a_crowd_that_moves_from_group_to_group_has_the_part_of_one() {
    let mut groups = vec![(0, 100), (0, 100)];
    groups.extend((0..16).map(|_| (2, 100)));
    for ms in [3, 12, 25] {
        let mut tree = Tree::new(&groups);
        let crowd = Crowd {
            moves: Some((ms * MSEC, 16)),
            ..hogs(3, 20)
        };
        let (got, gap) = fight(&mut tree, &[hogs(1, 1), crowd], 5_000 * MSEC);
        assert!(
            got[0] > 43.0 && gap < 10.0,
            "every {ms} ms: {got:?}, {gap} ms"
        );
    }
}

/// A crowd that wakes at once after a long sleep.
#[test]
fn a_crowd_that_wakes_at_once_has_the_part_of_its_group() {
    let mut tree = Tree::new(&[(0, 100), (0, 100)]);
    let crowd = Crowd {
        burst_and_sleep: Some((2 * MSEC, 400 * MSEC)),
        ..hogs(2, 50)
    };
    let (got, gap) = fight(&mut tree, &[hogs(1, 1), crowd], 5_000 * MSEC);
    assert!(got[0] > 70.0 && gap < 10.0, "{got:?}, {gap} ms");
}
