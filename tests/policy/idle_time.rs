// SPDX-License-Identifier: GPL-2.0-only
//! Idle periods: the table tests/cases/time/avg_idle.txt natively and as BPF, random events against
//! the model, and the effect of a mean on the search for work.

use crate::jit::Jit;
use crate::rng::Rng;
use crate::setup::NOW;
use crate::steal::Waiting;
use crate::topology::Tables;
use scx_roost::native::World;
use scx_roost::native::sys::{
    ARRIVAL_FORK, ARRIVAL_OTHER, ARRIVAL_STEAL, ARRIVAL_WAKEUP, FEATURE_avg_idle,
    FEATURE_avg_idle_every, STAT_avg_idle_fork, STAT_avg_idle_other, STAT_avg_idle_steal,
    STAT_avg_idle_wakeup, STAT_dispatch_steal_llc, STAT_dispatch_steal_machine,
    STAT_dispatch_steal_node, STAT_steal_skipped, STEAL_LLC, STEAL_MACHINE, STEAL_NODE, arrival,
    idle_time,
};
use scx_roost::placement::idle::{Event, Idle, Period};
use scx_roost::placement::topology::Topology;

const TABLE: &str = include_str!("../cases/time/avg_idle.txt");
const USEC: u64 = 1000;

/// An event, at this many ns after NOW.
#[derive(Clone, Copy, Debug)]
enum Step {
    Event(Event, u64),
    Costly,
}

struct Row {
    name: &'static str,
    steps: Vec<Step>,
    /// ns
    wakeup: u64,
    every: u64,
}

fn ns(us: &str) -> u64 {
    (us.parse::<f64>().unwrap_or_else(|_| panic!("'{us}' us")) * 1e3).round() as u64
}

fn step(word: &str) -> Step {
    let Some((what, at)) = word.split_once('@') else {
        assert_eq!(word, "costly");
        return Step::Costly;
    };
    let event = match what {
        "idle" => Event::Idle,
        "wakeup" => Event::Wakeup,
        "fork" => Event::Fork,
        "steal" => Event::Steal,
        "other" => Event::Other,
        _ => panic!("unknown event '{what}'"),
    };
    Step::Event(event, ns(at))
}

fn rows() -> Vec<Row> {
    let lines = TABLE
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [name, steps, means] = cells[..] else {
                panic!("'{line}': expected name | events | means");
            };
            let mean = |key| {
                let word = means.split(' ').find_map(|w| w.strip_prefix(key));
                ns(word.unwrap_or_else(|| panic!("{name}: no {key}")))
            };
            Row {
                name,
                steps: steps.split_whitespace().map(step).collect(),
                wakeup: mean("wakeup="),
                every: mean("every="),
            }
        })
        .collect()
}

fn arrival_of(event: Event) -> Option<arrival> {
    match event {
        Event::Idle => None,
        Event::Wakeup => Some(ARRIVAL_WAKEUP),
        Event::Fork => Some(ARRIVAL_FORK),
        Event::Steal => Some(ARRIVAL_STEAL),
        Event::Other => Some(ARRIVAL_OTHER),
    }
}

fn happens(world: &mut World, event: Event, now: u64) {
    match arrival_of(event) {
        Some(arrival) => world.idle_ends(0, now, arrival),
        None => world.idle_begins(0, now),
    }
}

/// A search that found nothing, with its cost as the kernel accounts it: 200 ns above the migration
/// cost.
fn costly(world: &mut World) {
    world.cpu_mut(0).steal_cost[STEAL_LLC as usize] = 500 * USEC + 200;
}

fn world() -> World {
    Topology::regular(1, 2, 1, 1, false).world()
}

fn check(row: &Row, world: &World, how: &str) {
    let cpu = world.cpu(0);
    assert_eq!(
        cpu.idle_wakeup.mean / 100,
        row.wakeup / 100,
        "{how}, {}: wakeup",
        row.name
    );
    assert_eq!(
        cpu.idle_every.mean / 100,
        row.every / 100,
        "{how}, {}: every",
        row.name
    );
}

fn run(rows: &[Row], how: &str, mut happens: impl FnMut(&mut World, Event, u64)) {
    for row in rows {
        let mut world = world();
        for &step in &row.steps {
            match step {
                Step::Event(event, at) => happens(&mut world, event, NOW + at),
                Step::Costly => costly(&mut world),
            }
        }
        check(row, &world, how);
    }
}

#[test]
fn the_table() {
    let rows = rows();
    assert!(rows.len() >= 15, "{} rows", rows.len());
    run(&rows, "native", happens);
}

#[test]
#[ignore = "needs to load BPF programs; the guest test policy-bpf runs it"]
fn the_table_as_bpf() {
    let mut jit = Jit::load_program(&world(), "idle_event").unwrap();
    run(&rows(), "BPF", |world, event, now| {
        jit.idle_event(world, arrival_of(event), now).unwrap();
    });
}

fn numbers(time: idle_time) -> (u64, u64) {
    (time.since, time.mean)
}

fn of_model(period: Period) -> (u64, u64) {
    (period.began.map_or(0, |b| b as u64), period.mean as u64)
}

#[test]
fn random_events_as_in_the_model() {
    const EVENTS: [Event; 5] = [
        Event::Idle,
        Event::Wakeup,
        Event::Fork,
        Event::Steal,
        Event::Other,
    ];
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let mut world = world();
        let mut model = Idle::new(1_000_000);
        let mut now = NOW;
        for _ in 0..200 {
            let most = 1 << rng.within(1, 24);
            now += rng.below(most) as u64;
            now -= rng.below(2000) as u64;
            let event = EVENTS[rng.below(5)];
            happens(&mut world, event, now);
            model.happens(event, now.into());
            let cpu = world.cpu(0);
            assert_eq!(
                numbers(cpu.idle_wakeup),
                of_model(model.wakeup),
                "seed {seed}"
            );
            assert_eq!(
                numbers(cpu.idle_every),
                of_model(model.every),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn each_arrival_has_its_counter() {
    let mut world = world();
    for (arrival, stat) in [
        (ARRIVAL_WAKEUP, STAT_avg_idle_wakeup),
        (ARRIVAL_FORK, STAT_avg_idle_fork),
        (ARRIVAL_STEAL, STAT_avg_idle_steal),
        (ARRIVAL_OTHER, STAT_avg_idle_other),
    ] {
        world.clear_counters();
        world.idle_begins(0, NOW);
        world.idle_ends(0, NOW + 1, arrival);
        world.idle_ends(0, NOW + 2, arrival);
        let counted: Vec<u64> = (STAT_avg_idle_wakeup..=STAT_avg_idle_other)
            .map(|s| world.count(s))
            .collect();
        assert_eq!(counted.iter().sum::<u64>(), 1);
        assert_eq!(world.count(stat), 1);
    }
}

/// 2 nodes x 2 LLCs x 2 CPUs. A task waits on CPU 1, 2 or 4: in the LLC, the node or the other node
/// of CPU 0.
fn thief(features: u32, mean: u64, waits: usize) -> (World, Waiting) {
    let topology = Topology::regular(4, 2, 1, 2, false);
    let mut world = topology.world();
    world.policy_mut().arm[0].task.features = features;
    world.cpu_mut(0).idle_wakeup.mean = mean;
    world.cpu_mut(0).idle_every.mean = mean;
    let mut queues = Waiting::new(topology.nr_cpu_ids());
    queues.tasks[waits] = 1;
    world.mark_waiting(waits);
    (world, queues)
}

#[test]
fn a_search_has_to_be_worth_the_idle_period() {
    const COST: u64 = 50 * USEC;
    for (level, waits, stat) in [
        (STEAL_LLC, 1, STAT_dispatch_steal_llc),
        (STEAL_NODE, 2, STAT_dispatch_steal_node),
        (STEAL_MACHINE, 4, STAT_dispatch_steal_machine),
    ] {
        for (features, mean, asked, found) in [
            (FEATURE_avg_idle, COST, false, true),
            (FEATURE_avg_idle, COST - 1, false, false),
            // The CPU was kicked because a task waits.
            (FEATURE_avg_idle, COST - 1, true, true),
            (0, 0, false, true),
            (FEATURE_avg_idle_every, 0, false, true),
        ] {
            let (mut world, mut queues) = thief(features, mean, waits);
            world.cpu_mut(0).steal_cost[level as usize] = COST;
            assert_eq!(
                world.steal(0, &mut queues, NOW, asked),
                found,
                "level {level}"
            );
            assert_eq!(world.count(stat), u64::from(found));
            assert_eq!(world.count(STAT_steal_skipped), u64::from(!found));
        }
    }
}

#[test]
fn what_was_spent_on_the_way_counts() {
    // The search of each level takes one step of the clock, 30 us. The LLC is not searched, because
    // nothing waits there.
    for (mean, found) in [(29, false), (30, false), (60, true)] {
        let (mut world, mut queues) = thief(FEATURE_avg_idle, mean * USEC, 4);
        world.clock_step = 30 * USEC;
        world.cpu_mut(0).steal_cost[STEAL_MACHINE as usize] = 30 * USEC;
        assert_eq!(world.steal(0, &mut queues, NOW, false), found, "{mean} us");
        assert_eq!(world.cpu(0).steal_cost[STEAL_NODE as usize], 30 * USEC);
    }
}

#[test]
fn which_mean_counts() {
    let mut world = world();
    world.cpu_mut(0).idle_wakeup.mean = 1;
    world.cpu_mut(0).idle_every.mean = 2;
    for (features, budget) in [
        (0, u64::MAX),
        (FEATURE_avg_idle, 1),
        (FEATURE_avg_idle | FEATURE_avg_idle_every, 2),
    ] {
        world.policy_mut().arm[0].task.features = features;
        assert_eq!(world.search_budget(0), budget);
    }
}

#[test]
fn costs_are_bounded_and_forgotten() {
    let (mut world, mut queues) = thief(0, 0, 1);
    let mut search = |now, step| {
        queues.tasks[1] = 1;
        world.mark_waiting(1);
        world.clock_step = step;
        assert!(world.steal(0, &mut queues, now, false));
        world.cpu(0).steal_cost[STEAL_LLC as usize]
    };
    assert_eq!(search(NOW, 10_000), 10_000);
    assert_eq!(search(NOW + 1, 900 * USEC), 500_200);
    let second = 1_000_000_000;
    assert_eq!(search(NOW + 2 + second, 1), 500_200 * 253 / 256);
    assert_eq!(
        search(NOW + 2 + second, 1),
        500_200 * 253 / 256,
        "once a second"
    );
}
