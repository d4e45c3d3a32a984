// SPDX-License-Identifier: GPL-2.0-only
//! smt_spread of running tasks: when one leaves a shared core, and for which core.

use crate::rng::Rng;
use crate::setup::NOW;
use crate::topology::{CLAIM_TTL, Tables};
use scx_roost::native::sys::{STAT_claim_set, STAT_spread_none};
use scx_roost::native::{Task, World};
use scx_roost::placement::spread::{Core, leaves_for};
use scx_roost::placement::topology::Topology;
use scx_roost::policy::features::bits;

/// The arm's slice, and the kernel's migration cost, ns.
const SLICE: u64 = 2_800_000;
const MIGRATION_COST: u64 = 500_000;

/// Times around the bounds of a vacant core, ns.
const IDLE_FOR: [u64; 10] = [
    MIGRATION_COST - 1,
    MIGRATION_COST,
    2 * MIGRATION_COST - 1,
    2 * MIGRATION_COST,
    10 * MIGRATION_COST - 1,
    NOW - 1,
    NOW - 1,
    NOW - 1,
    NOW - 1,
    NOW - 1,
];

/// Times around a slice, and around the bound for a move, ns.
const BUSY_FOR: [u64; 8] = [
    0,
    MIGRATION_COST - 1,
    MIGRATION_COST,
    SLICE - 1,
    SLICE,
    SLICE,
    NOW,
    NOW,
];

/// All CPUs have been busy for long, and a task has run on CPU 0 for as long.
struct Scene {
    topology: Topology,
    world: World,
    task: Task,
}

impl Scene {
    fn new(topology: Topology) -> Scene {
        let mut world = topology.world();
        for cpu in topology.online().collect::<Vec<_>>() {
            world.set_busy(cpu);
            world.cpu_mut(cpu).curr_pid = 1;
        }
        let mut task = Task::new(7, &world);
        task.state.pol.features = bits::smt_spread.0;
        task.state.burst_run = NOW;
        Scene {
            topology,
            world,
            task,
        }
    }

    /// 2 LLCs x 2 cores x 2 threads on each of 2 nodes: cores 0/8 1/9 | 2/10 3/11 || 4/12 5/13 |
    /// 6/14 7/15
    fn of_two_nodes() -> Scene {
        Scene::new(Topology::regular(4, 2, 2, 2, true))
    }

    fn idle(mut self, cpus: &[usize]) -> Scene {
        for &cpu in cpus {
            self.world.set_idle(cpu);
            self.world.cpu_mut(cpu).curr_pid = 0;
            self.world.cpu_mut(cpu).idle_every.since = 1;
        }
        self
    }

    /// The CPU has been busy since `at`.
    fn since(mut self, cpu: usize, at: u64) -> Scene {
        self.world.cpu_mut(cpu).busy_since = at;
        self
    }

    fn claims(mut self) -> Scene {
        self.task.state.pol.features |= bits::claim.0;
        self
    }

    /// The CPU to which the task on CPU 0 goes.
    fn target(&mut self) -> Option<usize> {
        self.world.spread_target(&self.task, 0, NOW)
    }
}

/// The ticks of two cores may come at the same time.
#[test]
fn two_cores_that_look_at_once_choose_two() {
    let mut scene = Scene::of_two_nodes().idle(&[2, 10, 3, 11]);
    let from = |cpu| scene.world.spread_target(&scene.task, cpu, NOW);
    let chosen = [0, 1].map(from);
    assert_eq!(chosen, [Some(2), Some(3)]);
}

#[test]
fn the_nearest_idle_core() {
    for (idle, to) in [
        (&[1, 9, 2, 10, 4, 12][..], Some(1)),
        (&[2, 10, 4, 12], Some(2)),
        (&[6, 14, 4, 12], Some(4)),
        (&[1, 2, 4, 15], None),
        (&[], None),
    ] {
        assert_eq!(
            Scene::of_two_nodes().idle(idle).target(),
            to,
            "idle: {idle:?}"
        );
    }
}

#[test]
fn only_one_that_the_task_may_use() {
    let mut scene = Scene::of_two_nodes().idle(&[1, 9, 2, 10]);
    scene
        .task
        .allow(&[1 | 1 << 8 | 1 << 10], scene.world.facts());
    assert_eq!(scene.target(), Some(10));
    let mut scene = Scene::of_two_nodes().idle(&[1, 9, 2, 10]);
    scene.task.allow(&[1 | 1 << 8], scene.world.facts());
    assert_eq!(scene.target(), None);
    assert_eq!(scene.world.count(STAT_spread_none), 1);
}

#[test]
fn both_threads_have_been_busy_for_a_slice() {
    let scene = || Scene::of_two_nodes().idle(&[1, 9]);
    assert_eq!(scene().since(8, NOW - SLICE).target(), Some(1));
    assert_eq!(scene().since(8, NOW - SLICE + 1).target(), None);
    assert_eq!(scene().since(0, NOW - SLICE + 1).target(), None);
    // The clocks of two CPUs differ a little.
    assert_eq!(scene().since(8, NOW + 1000).target(), None);
    // An idle sibling, one that runs a task of another class, and one that runs a SCHED_IDLE task,
    // which gives way.
    assert_eq!(scene().idle(&[8]).target(), None);
    let mut other_class = scene();
    other_class.world.cpu_mut(8).curr_pid = 0;
    assert_eq!(other_class.target(), None);
    let mut sched_idle = scene();
    sched_idle.world.mark_idle(8);
    assert_eq!(sched_idle.target(), None);
}

/// With sync_local, two tasks that wake each other in turn keep a CPU as busy as a single one, and
/// the partner follows the move. Without sync_local it would stay behind.
#[test]
fn short_bursts_where_a_partner_comes_along() {
    let sync_local = bits::sync_local.0;
    for (burst, more, to) in [
        (MIGRATION_COST - 1, 0, None),
        (MIGRATION_COST, 0, Some(1)),
        (1, sync_local, Some(1)),
    ] {
        let mut scene = Scene::of_two_nodes().idle(&[1, 9]);
        scene.task.state.burst_run = burst;
        scene.task.state.pol.features |= more;
        assert_eq!(scene.target(), to, "burst {burst}, features {more:#x}");
    }
}

#[test]
fn not_from_a_cpu_that_has_been_busy_for_less_than_a_move_costs() {
    for (busy, to) in [(MIGRATION_COST - 1, None), (MIGRATION_COST, Some(1))] {
        let mut scene = Scene::of_two_nodes().idle(&[1, 9]).since(0, NOW - busy);
        scene.task.state.pol.slice_ns = MIGRATION_COST / 2;
        assert_eq!(scene.target(), to, "busy for {busy}");
    }
}

/// A task that left the core more recently than this CPU became busy may come back with the others.
#[test]
fn not_a_core_that_was_left_a_moment_ago() {
    for (busy, idle_for, to) in [
        (MIGRATION_COST, MIGRATION_COST - 1, None),
        (MIGRATION_COST, MIGRATION_COST, Some(1)),
        (2 * MIGRATION_COST, 2 * MIGRATION_COST - 1, None),
        (2 * MIGRATION_COST, 2 * MIGRATION_COST, Some(1)),
        (NOW, 10 * MIGRATION_COST - 1, None),
        (NOW, 10 * MIGRATION_COST, Some(1)),
    ] {
        for left in [1, 9] {
            let mut scene = Scene::of_two_nodes().idle(&[1, 9]).since(0, NOW - busy);
            scene.world.cpu_mut(left).idle_every.since = NOW - idle_for;
            scene.task.state.pol.slice_ns = MIGRATION_COST;
            assert_eq!(
                scene.target(),
                to,
                "busy for {busy}, CPU {left} idle for {idle_for}"
            );
        }
    }
}

#[test]
fn one_of_a_core_and_slice() {
    let mut scene = Scene::of_two_nodes().idle(&[1, 9, 2, 10]);
    let task = scene.task.clone();
    assert_eq!(scene.world.spread_target(&task, 8, NOW), Some(9));
    assert_eq!(scene.target(), None, "its sibling has just sent its own");
    let later = NOW + SLICE;
    assert_eq!(scene.world.spread_target(&task, 0, later), Some(1));
}

#[test]
fn what_it_chooses_is_claimed() {
    let mut scene = Scene::of_two_nodes().idle(&[1, 9, 2, 10]).claims();
    scene.world.cpu_mut(9).claim = NOW - CLAIM_TTL;
    assert_eq!(scene.target(), Some(2));
    assert_eq!(scene.world.cpu(2).claim, NOW);
    let mut off = Scene::of_two_nodes().idle(&[1, 9]);
    off.world.cpu_mut(9).claim = NOW;
    assert_eq!(off.target(), Some(1));
    assert_eq!(off.world.count(STAT_claim_set), 0);
}

#[test]
fn no_business_of_machines_without_smt_or_of_unequal_cpus() {
    let mut plain = Scene::new(Topology::regular(2, 4, 1, 2, false)).idle(&[1]);
    assert_eq!(plain.target(), None);
    let mut topology = Topology::regular(1, 2, 2, 1, false);
    topology.cpus[2].capacity = 512;
    topology.cpus[3].capacity = 512;
    let mut unequal = Scene::new(Topology::new(topology.cpus)).idle(&[2, 3]);
    assert_eq!(unequal.target(), None);
}

#[test]
fn random_scenes_as_the_model() {
    let mut rng = Rng::new(0x5eed);
    let mut moved = 0;
    for round in 0..50_000 {
        let llcs = rng.within(1, 4);
        let per_node = *rng.pick(&[1, llcs]);
        let threads = *rng.pick(&[2, 2, 4]);
        let apart = rng.chance(50);
        let topology = Topology::regular(llcs, rng.within(1, 3), threads, per_node, apart);
        let n = topology.nr_cpu_ids();
        let percent = *rng.pick(&[10, 50, 90]);
        let idle: Vec<usize> = (1..n).filter(|_| rng.chance(percent)).collect();
        let mut scene = Scene::new(topology).idle(&idle);
        let mut core = Core {
            idle: (0..n).map(|c| idle.contains(&c)).collect(),
            busy_for: vec![NOW; n],
            idle_for: vec![NOW; n],
            sent: NOW,
            ran: *rng.pick(&[MIGRATION_COST - 1, MIGRATION_COST, NOW, NOW]),
            partners: rng.chance(50),
            allowed: (0..n).map(|c| c == 0 || rng.chance(70)).collect(),
            slice: *rng.pick(&[SLICE, SLICE, MIGRATION_COST / 2]),
        };
        scene.task.state.pol.slice_ns = core.slice;
        for cpu in 0..n {
            core.busy_for[cpu] = *rng.pick(&BUSY_FOR);
            core.idle_for[cpu] = *rng.pick(&IDLE_FOR);
            scene.world.cpu_mut(cpu).busy_since = NOW - core.busy_for[cpu];
            if core.idle[cpu] {
                scene.world.cpu_mut(cpu).idle_every.since = NOW - core.idle_for[cpu];
            }
        }
        core.sent = *rng.pick(&[core.slice - 1, core.slice, NOW]);
        let first = scene.topology.siblings(0).iter().copied().chain([0]).min();
        scene.world.cpu_mut(first.unwrap()).spread_at = NOW - core.sent;
        scene.task.state.burst_run = core.ran;
        if core.partners {
            scene.task.state.pol.features |= bits::sync_local.0;
        }
        let mask = (0..n).fold(0, |m, c| m | u64::from(core.allowed[c]) << c);
        scene.task.allow(&[mask], scene.world.facts());
        let want = leaves_for(&scene.topology, &core, 0);
        assert_eq!(
            scene.target(),
            want,
            "round {round}: {core:?}\n{:?}",
            scene.topology
        );
        moved += u32::from(want.is_some());
    }
    assert!(moved > 500, "only {moved} scenes moved a task");
}

/// The number of calls of a function in a header of the policy. Its definition does not count.
fn calls(header: &str, function: &str) -> usize {
    let path = format!("{}/src/bpf/policy/{header}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("it is a header of the policy");
    let code = text
        .split("/*")
        .map(|part| part.split("*/").last().unwrap_or(part));
    let code: String = code.collect();
    let defines = |line: &&str| line.starts_with("subprog ") || line.starts_with("static ");
    let lines = code.lines().filter(|line| !defines(line));
    lines
        .map(|line| line.matches(&format!("{function}(")).count())
        .sum()
}

/// Looking for a vacant core reads each idle core of a cache, and the result is the same for a
/// whole wakeup. No counter says how often it was done, so this reads the source: each function has
/// one call, the first one at the start of the search.
#[test]
fn a_wakeup_looks_for_a_vacant_core_once() {
    let headers = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/bpf/policy"));
    let headers = headers.expect("the policy is there").map(|entry| {
        let name = entry.expect("a file of it").file_name();
        name.into_string().expect("a name in ASCII")
    });
    let headers: Vec<String> = headers.collect();
    for (function, place) in [
        ("select_idle_sibling", "ladder.h"),
        ("look_for_vacant_core", "ladder.h"),
        ("llc_has_vacant_core", "select_idle.h"),
    ] {
        let all: Vec<(&str, usize)> = headers
            .iter()
            .map(|header| (header.as_str(), calls(header, function)))
            .filter(|&(_, calls)| calls > 0)
            .collect();
        assert_eq!(all, [(place, 1)], "{function}");
    }
}
