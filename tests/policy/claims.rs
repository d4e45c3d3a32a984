// SPDX-License-Identifier: GPL-2.0-only
//! Several wakeups at once. With claims no two take the same idle CPU, without claims they do. Once
//! with real threads over the same C, once in turn.

use crate::setup::{MAINLINE, NOW};
use crate::topology::{CLAIM_TTL, Tables};
use scx_roost::native::sys::{
    PLACE_IDLE, STAT_claim_clear_idle, STAT_claim_clear_run, STAT_claim_conflict,
    STAT_claim_expired, STAT_claim_release, STAT_claim_set, STAT_stacked, placement,
};
use scx_roost::native::{Placer, Task, Wakeup, World};
use scx_roost::placement::Features;
use scx_roost::placement::topology::Topology;
use std::sync::Barrier;
use std::thread;

const CLAIM: Features = Features {
    claim: true,
    ..MAINLINE
};
const PLAIN: Features = Features {
    claim_plain: true,
    ..CLAIM
};
const CORES: Features = Features {
    core_claim: true,
    ..CLAIM
};

/// One LLC with `cpus` idle CPUs in cores of `threads`, followed by one busy core for each of
/// `wakers`.
fn machine(cpus: usize, threads: usize, wakers: usize) -> World {
    let mut world = Topology::regular(1, cpus / threads + wakers, threads, 1, false).world();
    (0..cpus).for_each(|cpu| world.set_idle(cpu));
    world
}

/// Wakes a task whose previous CPU is the waker's, `from`. That CPU is busy, so every wakeup
/// prefers the first idle CPU.
fn place(
    placer: &mut Placer<'_>,
    world: &World,
    waker: &mut Task,
    from: usize,
    features: Features,
    now: u64,
) -> (placement, Task) {
    let mut task = Task::new(1000, world);
    task.state.pol.features = features.bits();
    let mut wakeup = Wakeup::new(&mut task, from, from, world.facts());
    wakeup.features = features.bits();
    wakeup.now = now;
    wakeup.waker_pid = waker.pid;
    wakeup.waker = Some(waker);
    (placer.place(wakeup), task)
}

#[derive(Default, Debug)]
struct Outcome {
    /// Tasks put on an idle CPU that already had one.
    stacked: u64,
    /// Tasks put on a CPU that did not look idle.
    busy: u64,
    /// Cores with more than one busy thread.
    shared: u64,
    set: u64,
    ended: u64,
    conflicts: u64,
    released: u64,
}

impl Outcome {
    fn add(&mut self, placer: &Placer<'_>) {
        self.set += placer.count(STAT_claim_set);
        self.ended += placer.count(STAT_claim_clear_run)
            + placer.count(STAT_claim_clear_idle)
            + placer.count(STAT_claim_expired);
        self.released += placer.count(STAT_claim_release);
        self.conflicts += placer.count(STAT_claim_conflict);
    }
}

const WAKERS: usize = 8;

/// In each of `rounds`, each of WAKERS threads wakes `per_waker` tasks. They go to `cpus` idle CPUs
/// and run there at once.
fn race(cpus: usize, threads: usize, per_waker: usize, rounds: u64, features: Features) -> Outcome {
    let world = &machine(cpus, threads, WAKERS);
    let barrier = &Barrier::new(WAKERS);
    let thread = |number: usize| {
        let mut placer = world.placer();
        let mut waker = Task::new(number as u32 + 1, world);
        let from = cpus + number * threads;
        let mut outcome = Outcome::default();
        for round in 0..rounds {
            barrier.wait();
            for _ in 0..per_waker {
                let now = NOW + round;
                let (at, mut task) = place(&mut placer, world, &mut waker, from, features, now);
                // Makes the time between look and insertion longer.
                thread::yield_now();
                if at.how == PLACE_IDLE {
                    outcome.stacked += u64::from(placer.insert(at.cpu as usize) > 0);
                    placer.run(&mut task, at.cpu as usize, now);
                } else {
                    outcome.busy += 1;
                }
            }
            if barrier.wait().is_leader() {
                outcome.shared += shared_cores(world, cpus, threads);
                (0..cpus).for_each(|cpu| placer.drain(cpu));
            }
        }
        outcome.add(&placer);
        outcome
    };
    let mut sum = Outcome::default();
    thread::scope(|s| {
        let threads: Vec<_> = (0..WAKERS).map(|n| s.spawn(move || thread(n))).collect();
        for t in threads {
            let o = t.join().unwrap();
            sum.stacked += o.stacked;
            sum.busy += o.busy;
            sum.shared += o.shared;
            sum.set += o.set;
            sum.ended += o.ended;
            sum.conflicts += o.conflicts;
            sum.released += o.released;
        }
    });
    assert!((0..cpus).all(|cpu| world.cpu(cpu).claim == 0 && world.cpu(cpu).core_claim == 0));
    println!("{features:?}: {sum:?}");
    sum
}

const TRIES: usize = 10;

/// Repeats a race until `seen`, at most TRIES times: on a busy machine the threads may run one
/// after another, and then there is no race.
fn race_until(race: impl Fn() -> Outcome, seen: fn(&Outcome) -> bool) -> Outcome {
    let mut outcome = race();
    for _ in 1..TRIES {
        if seen(&outcome) {
            break;
        }
        outcome = race();
    }
    outcome
}

/// The number of cores with more than one busy thread.
fn shared_cores(world: &World, cpus: usize, threads: usize) -> u64 {
    let busy = |cpu: usize| u64::from(world.view(cpu).nr_running > 0);
    (0..cpus)
        .step_by(threads)
        .filter(|&core| (core..core + threads).map(busy).sum::<u64>() > 1)
        .count() as u64
}

const ROUNDS: u64 = 2000;

#[test]
fn wakeups_at_once_share_an_idle_cpu_without_claims() {
    let off = race_until(|| race(64, 1, 8, ROUNDS, MAINLINE), |off| off.stacked > 0);
    assert!(off.stacked > 0, "{off:?}");
    assert_eq!(off.set, 0, "{off:?}");
}

#[test]
fn with_claims_64_wakeups_take_64_idle_cpus() {
    let each = || {
        let on = race(64, 1, 8, ROUNDS, CLAIM);
        assert_eq!((on.stacked, on.busy), (0, 0), "{on:?}");
        assert_eq!(on.set, 64 * ROUNDS + on.released, "{on:?}");
        assert_eq!(on.set, on.ended + on.released, "{on:?}");
        on
    };
    let on = race_until(each, |on| on.released > 0);
    // A CPU was seen idle, and another wakeup took it before this one claimed it.
    assert!(on.released > 0, "there was no race: {on:?}");
}

/// The source's plain store narrows the race and does not close it. The remaining stacked tasks are
/// printed.
#[test]
fn plain_claims_narrow_the_race() {
    let (mut off, mut plain) = (0, 0);
    // Enough for a comparison, also on a machine where most threads run one after another.
    for _ in 0..TRIES {
        if off >= 100 {
            break;
        }
        off += race(64, 1, 8, ROUNDS, MAINLINE).stacked;
        plain += race(64, 1, 8, ROUNDS, PLAIN).stacked;
    }
    assert!(off > 0, "there was no race");
    assert!(plain < off, "{plain} stacked, without claims {off}");
}

/// Each of eight wakeups finds one of eight idle cores.
#[test]
fn with_core_claims_no_two_settle_on_one_core() {
    let cores = race(16, 2, 1, ROUNDS, CORES);
    assert_eq!(
        (cores.stacked, cores.busy, cores.shared),
        (0, 0, 0),
        "{cores:?}"
    );
    let each = || {
        let threads = race(16, 2, 1, ROUNDS, CLAIM);
        assert_eq!((threads.stacked, threads.busy), (0, 0), "{threads:?}");
        threads
    };
    let threads = race_until(each, |threads| threads.shared > 0);
    assert!(threads.shared > 0, "there was no race: {threads:?}");
}

/// C1, C13: one wakeup after the other, before any of the tasks has run.
#[test]
fn claims_hold_until_the_task_arrives() {
    for (cpus, features, distinct) in [
        (2, CLAIM, 2),
        (64, CLAIM, 64),
        (64, PLAIN, 64),
        (64, MAINLINE, 1),
    ] {
        let world = &machine(cpus, 1, 1);
        let mut placer = world.placer();
        let mut waker = Task::new(1, world);
        let mut chosen: Vec<i32> = (0..cpus)
            .map(|_| place(&mut placer, world, &mut waker, cpus, features, NOW))
            .map(|(at, _)| at.cpu)
            .collect();
        chosen.sort_unstable();
        chosen.dedup();
        assert_eq!(chosen.len(), distinct, "{features:?}");
    }
}

/// A wakeup with these features has claimed a CPU of a core of two threads.
struct Claimed {
    world: World,
    task: Task,
    cpu: usize,
}

impl Claimed {
    fn by(features: Features) -> Self {
        let world = machine(4, 2, 1);
        let mut waker = Task::new(1, &world);
        let (at, task) = place(&mut world.placer(), &world, &mut waker, 4, features, NOW);
        let mut claimed = Claimed {
            world,
            task,
            cpu: at.cpu as usize,
        };
        claimed
            .world
            .placed_idle(&mut claimed.task, claimed.cpu, NOW);
        assert!(claimed.stands());
        claimed.world.clear_counters();
        claimed
    }

    /// The claims of the CPU and of its core; they end together.
    fn stands(&self) -> bool {
        let thread = self.world.cpu(self.cpu).claim != 0;
        let core = self.world.cpu(self.cpu & !1).core_claim != 0;
        assert_eq!(thread, core);
        thread
    }

    fn ended_by(&self) -> [u64; 3] {
        [
            STAT_claim_clear_run,
            STAT_claim_clear_idle,
            STAT_claim_release,
        ]
        .map(|s| self.world.count(s))
    }
}

/// C4, C7, C9, and a task that is stolen, or leaves our class.
#[test]
fn a_claim_ends_with_its_task() {
    let mut there = Claimed::by(CORES);
    there.world.placed_runs(&mut there.task, there.cpu, NOW + 5);
    assert!(!there.stands());
    assert_eq!(there.ended_by(), [1, 0, 0]);
    there.world.placed_runs(&mut there.task, there.cpu, NOW + 9);
    assert_eq!(there.ended_by(), [1, 0, 0], "once");
    let mut stolen = Claimed::by(CORES);
    stolen.world.placed_runs(&mut stolen.task, 3, NOW + 5);
    assert!(!stolen.stands());
    assert_eq!(stolen.ended_by(), [0, 0, 1]);
    let mut gone = Claimed::by(CORES);
    gone.world.placed_nowhere(&mut gone.task);
    assert!(!gone.stands());
    assert_eq!(gone.ended_by(), [0, 0, 1]);
    // Facts change only by a new load, and then all state starts from 0.
    assert!((0..4).all(|cpu| machine(4, 2, 1).cpu(cpu).claim == 0));
}

/// A third task runs on the claimed CPU, or one of another class does. Only the source's plain
/// claim ends.
#[test]
fn a_third_task_ends_plain_claims_only() {
    let plain = Features {
        claim_plain: true,
        ..CORES
    };
    for how in [STAT_claim_clear_run, STAT_claim_clear_idle] {
        let mut on = Claimed::by(CORES);
        let mut third = Task::new(3, &on.world);
        third.state.pol.features = CORES.bits();
        on.world.placed_idle(&mut third, on.cpu, NOW - 1000);
        on.world.placed_runs(&mut third, on.cpu, NOW + 2);
        on.world.plain_claim_clear(on.cpu, how);
        assert!(on.stands());
        assert_eq!(on.ended_by(), [0, 0, 0]);
        let mut off = Claimed::by(plain);
        off.world.plain_claim_clear(off.cpu, how);
        assert!(!off.stands());
        let ran = u64::from(how == STAT_claim_clear_run);
        assert_eq!(off.ended_by(), [ran, 1 - ran, 0]);
        let mut own = Claimed::by(plain);
        own.world.placed_runs(&mut own.task, own.cpu, NOW + 2);
        own.world.plain_claim_clear(own.cpu, how);
        assert_eq!(own.ended_by(), [1, 0, 0], "once");
    }
}

/// An expired claim was taken over by another task: the task that made the first one does not end
/// it.
#[test]
fn a_late_task_does_not_end_another_tasks_claim() {
    let mut late = Claimed::by(CORES);
    let mut waker = Task::new(1, &late.world);
    let now = NOW + CLAIM_TTL + 1;
    let (at, _) = place(
        &mut late.world.placer(),
        &late.world,
        &mut waker,
        4,
        CORES,
        now,
    );
    assert_eq!(at.cpu as usize, late.cpu);
    late.world.placed_runs(&mut late.task, late.cpu, now + 5);
    assert!(late.stands());
    assert_eq!(late.ended_by(), [0, 0, 0]);
}

/// Of two tasks placed on one idle CPU the second counts itself, wherever it runs in the end.
#[test]
fn stacked_tasks_are_counted() {
    let mut world = machine(4, 1, 1);
    let mut tasks = [1, 2, 3].map(|pid| Task::new(pid, &world));
    world.placed_idle(&mut tasks[0], 1, NOW);
    world.placed_idle(&mut tasks[1], 1, NOW + 1);
    world.placed_runs(&mut tasks[0], 1, NOW + 100);
    assert_eq!(world.count(STAT_stacked), 0);
    world.placed_runs(&mut tasks[1], 2, NOW + 200);
    assert_eq!(world.count(STAT_stacked), 1, "stolen meanwhile");
    world.placed_runs(&mut tasks[1], 1, NOW + 300);
    assert_eq!(world.count(STAT_stacked), 1, "it was not placed again");
    world.placed_idle(&mut tasks[2], 1, NOW + 400);
    world.placed_runs(&mut tasks[2], 1, NOW + 500);
    assert_eq!(
        world.count(STAT_stacked),
        1,
        "it looked after the others had begun"
    );
}
