// SPDX-License-Identifier: GPL-2.0-only
//! Queues: the virtual clock stays the weighted mean, lag is kept and clamped, shares follow
//! weights, and extreme weights do no harm.

use crate::rng::Rng;
use crate::topology::{Tables, kernel_arm};
use scx_roost::native::sys::{FEATURE_burst_slice, MAX_WEIGHT, MIN_WEIGHT, STAT_burst_request};
use scx_roost::native::{Task, World};
use scx_roost::placement::topology::NICE0;
use scx_roost::placement::topology::Topology;

/// The weight of nice -20, in our scale.
const NICE_M20: u32 = 88761 * 16;
/// The weight of nice 19.
const NICE_19: u32 = 15 * 16;
pub(crate) const MSEC: u64 = 1_000_000;

pub(crate) fn world(cpus: usize) -> World {
    Topology::regular(1, cpus, 1, 1, false).world()
}

pub(crate) fn task(world: &World, pid: u32, weight: u32) -> Task {
    let mut task = Task::new(pid, world);
    task.state.weight = weight;
    task.state.nice_weight = weight;
    task
}

/// The distance of a CPU's clock from the weighted mean of its tasks, times their weight: in ns of
/// NICE0_WEIGHT.
fn drift(world: &World, cpu: usize, tasks: &[Task]) -> i128 {
    let on_cpu = || tasks.iter().filter(|t| t.state.on_rq == cpu as i32 + 1);
    let weight: u64 = on_cpu().map(|t| u64::from(t.state.on_rq_weight)).sum();
    assert_eq!(world.cpu(cpu).weight, weight, "sum of weights of CPU {cpu}");
    let vtime = world.cpu(cpu).avg_vruntime;
    on_cpu()
        .map(|t| {
            i128::from(t.state.vruntime.wrapping_sub(vtime) as i64)
                * i128::from(t.state.on_rq_weight)
        })
        .sum()
}

/// The limit of a task's lag: 2 slices, at least 4 ms, of real time.
fn lag_limit(task: &Task) -> i128 {
    let slice = kernel_arm().task.slice_ns;
    i128::from((2 * slice).max(4 * MSEC)) * i128::from(NICE0) / i128::from(task.state.weight)
}

#[test]
fn the_clock_is_the_weighted_mean() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut world = world(3);
        let mut tasks: Vec<Task> = (0..20)
            .map(|pid| {
                let most = 1 << rng.within(5, 21);
                let weight = rng.within(MIN_WEIGHT as usize, most) as u32;
                task(&world, pid, weight)
            })
            .collect();
        let mut now = 1_000_000_000;
        // Each step rounds by less than one virtual ns times the weight in the queue.
        let mut rounding = [0i128; 3];
        for step in 0..2000 {
            now += rng.below(3_000_000) as u64;
            let cpu = rng.below(3);
            let t = &mut tasks[rng.below(20)];
            let joined = usize::try_from(t.state.on_rq - 1).ok();
            match (rng.below(6), joined) {
                (_, None) => world.join(cpu, t, now),
                (0, Some(_)) => world.leave(t, now),
                (1, Some(_)) => world.move_to(cpu, t, now),
                (2, Some(_)) => {
                    let weight = rng.within(MIN_WEIGHT as usize, 1 << 21) as u32;
                    world.reweigh(t, weight, now);
                }
                (3, Some(on)) => world.yields(on, t, 0),
                (_, Some(on)) => world.charge(on, t, rng.below(4_000_000) as u64),
            }
            if t.state.on_rq == 0 {
                assert!(
                    i128::from(t.state.lag).abs() <= lag_limit(t),
                    "lag {} is not clamped",
                    t.state.lag
                );
            }
            for (cpu, rounding) in rounding.iter_mut().enumerate() {
                *rounding += 3 * i128::from(world.cpu(cpu).weight) + 3 * (1 << 21);
                let drift = drift(&world, cpu, &tasks);
                assert!(
                    drift.abs() <= *rounding,
                    "seed {seed} step {step} CPU {cpu}: {drift} of {rounding}"
                );
                if world.cpu(cpu).weight == 0 {
                    *rounding = 0;
                }
            }
        }
    }
}

/// A CPU on which two tasks always compute, while a third wakes behind the mean, ahead of it, or
/// with no lag, half a million times: rounding errors do not add up.
#[test]
fn wakeups_do_not_drift() {
    let mut rng = Rng::new(6);
    for weights in [
        [NICE0; 3],
        [NICE0, NICE0, NICE_M20],
        [NICE_19, NICE0, 335 * 16],
    ] {
        for least in [0, 100_000, 50_000] {
            let mut world = world(1);
            let mut tasks = [0, 1, 2].map(|i| task(&world, i as u32 + 1, weights[i]));
            let mut now = 1_000_000_000;
            for t in &mut tasks[..2] {
                world.join(0, t, now);
            }
            world.cpu_mut(0).curr_pid = 1;
            for step in 0..500_000 {
                let ns = 1 + rng.below(20_000) as u64;
                // The two that compute take turns, and are last charged before the wakeup.
                let runs = step % 2;
                tasks[runs].state.started = now;
                world.cpu_mut(0).charged_at = now;
                now += ns;
                let lag = rng.below(100_000) as i64 - least;
                tasks[2].state.lag = if step % 3 == 0 { 0 } else { lag };
                tasks[2].state.left_at = now;
                world.join(0, &mut tasks[2], now);
                world.charge(0, &mut tasks[runs], ns);
                world.leave(&mut tasks[2], now);
            }
            let drift = drift(&world, 0, &tasks) / i128::from(world.cpu(0).weight);
            assert!(drift.abs() <= 1, "{weights:?}, least {least}: {drift} ns");
        }
    }
}

/// A CPU that is never empty, for five minutes of slices of odd lengths: rounding errors do not add
/// up.
#[test]
fn charging_does_not_drift() {
    let mut rng = Rng::new(6);
    for count in [2, 3, 8] {
        let mut world = world(1);
        let mut tasks: Vec<Task> = (0..count).map(|pid| task(&world, pid, NICE0)).collect();
        for t in &mut tasks {
            world.join(0, t, 1_000_000_000);
        }
        for step in 0..300_000 {
            let ns = 1 + 2 * rng.below(500_000) as u64;
            world.charge(0, &mut tasks[step % count as usize], ns);
        }
        let drift = drift(&world, 0, &tasks);
        assert!(
            drift.abs() <= i128::from(world.cpu(0).weight),
            "{count} tasks: {drift}, more than a ns of all"
        );
    }
}

/// The contract of state.h: a thief does not hold the victim's lock, so it writes only atomic
/// fields.
#[test]
fn a_thief_leaves_the_victims_signals_alone() {
    let mut world = world(2);
    let mut tasks = [1, 2].map(|pid| task(&world, pid, NICE0));
    for t in &mut tasks {
        world.join(0, t, 1_000_000_000);
    }
    let signals = |world: &World| (world.cpu(0).load_since, world.cpu(0).load_sum);
    let before = signals(&world);
    world.move_to(1, &mut tasks[0], 1_003_000_000);
    assert_eq!(signals(&world), before);
}

/// This also holds with a least slice of 0: a slice of 0 ns would end where it began.
#[test]
fn a_slice_reaches_the_deadline() {
    for weight in [MIN_WEIGHT, NICE_19, 526 * 16, NICE0, NICE_M20] {
        for left in [1, 2, 1023, MSEC + 1] {
            let mut world = world(1);
            let mut t = task(&world, 1, weight);
            t.state.pol.min_slice_ns = 0;
            world.join(0, &mut t, 0);
            t.state.deadline = t.state.vruntime + left;
            let slice = world.slice_left(&t);
            world.charge(0, &mut t, slice);
            let short = t.state.deadline.wrapping_sub(t.state.vruntime) as i64;
            assert!(
                short <= 0,
                "weight {weight}: {slice} ns of {left}, {short} short"
            );
        }
    }
}

#[test]
fn lag_is_kept_over_sleep_and_migration() {
    let mut world = world(2);
    let mut a = task(&world, 1, NICE0);
    let mut b = task(&world, 2, 2 * NICE0);
    let mut c = task(&world, 3, NICE0);
    for (cpu, t) in [(0, &mut a), (0, &mut b), (1, &mut c)] {
        world.join(cpu, t, 0);
        world.new_request(t, 0);
    }
    world.charge(0, &mut b, 3 * MSEC);
    // The queue served 3 ms for 3 NICE0 of weight, so a is owed 1 ms.
    let owed = world.cpu(0).avg_vruntime.wrapping_sub(a.state.vruntime);
    assert!(owed.abs_diff(MSEC) <= 2, "owed {owed}");
    let left = a.state.deadline - a.state.vruntime;
    world.move_to(1, &mut a, 10 * MSEC);
    // With two tasks of equal weight it must start 2 ms behind, to be 1 ms behind the new mean.
    assert!(
        world
            .cpu(1)
            .avg_vruntime
            .wrapping_sub(a.state.vruntime)
            .abs_diff(MSEC)
            <= 2
    );
    assert_eq!(a.state.deadline - a.state.vruntime, left);
    world.leave(&mut a, 11 * MSEC);
    assert!((a.state.lag - MSEC as i64).abs() <= 2);
    world.join(0, &mut a, 500 * MSEC);
    assert!(
        world
            .cpu(0)
            .avg_vruntime
            .wrapping_sub(a.state.vruntime)
            .abs_diff(MSEC)
            <= 2
    );
}

/// As the kernel: update_curr() before place_entity().
#[test]
fn a_joining_task_is_placed_by_the_time_run_so_far() {
    let mut rng = Rng::new(3);
    for _ in 0..1000 {
        let ran = rng.below(8_000_000) as u64;
        let weights = [(); 3].map(|()| rng.within(1024, 1 << 18) as u32);
        let lag = rng.below(4_000_000) as i64 - 2_000_000;
        let [charged, uncharged] = [true, false].map(|charge_first| {
            let mut world = world(1);
            let [mut runner, mut waiter, mut newcomer] =
                [0, 1, 2].map(|i| task(&world, i as u32 + 1, weights[i]));
            for t in [&mut runner, &mut waiter] {
                world.join(0, t, 0);
            }
            world.cpu_mut(0).curr_pid = 1;
            runner.state.started = 1;
            newcomer.state.lag = lag;
            // Owed time decays with sleep; here it has not slept.
            newcomer.state.left_at = ran;
            if charge_first {
                world.charge(0, &mut runner, ran);
                world.cpu_mut(0).charged_at = ran;
            }
            world.join(0, &mut newcomer, ran);
            if !charge_first {
                world.charge(0, &mut runner, ran);
            }
            newcomer
                .state
                .vruntime
                .wrapping_sub(world.cpu(0).avg_vruntime) as i64
        });
        // A late charge counts for the newcomer's weight too. So both sides round by a few ns of
        // the lightest task.
        assert!(
            (charged - uncharged).abs() <= 100,
            "{charged} {uncharged} of {ran} ns, {weights:?}"
        );
    }
}

#[test]
fn a_task_alone_was_the_mean() {
    let mut world = world(1);
    let mut a = task(&world, 1, NICE0);
    world.join(0, &mut a, 0);
    world.charge(0, &mut a, 5 * MSEC);
    world.cpu_mut(0).avg_vruntime += 1000; // what rounding may leave
    world.leave(&mut a, 5 * MSEC);
    assert_eq!(a.state.lag, 0);
}

/// It decays at the rate of the clock of a queue of two: half as fast as time.
#[test]
fn what_a_sleeper_owes_melts() {
    // The clock of the CPU on which it wakes may be behind that of the CPU it left.
    let behind = 0u64.wrapping_sub(100);
    for (slept, expected) in [
        (0, -2),
        (behind, -2),
        (2 * MSEC, -1),
        (4 * MSEC, 0),
        (u64::MAX / 2, 0),
    ] {
        let mut world = world(1);
        let mut a = task(&world, 1, NICE0);
        let mut b = task(&world, 2, NICE0);
        world.join(0, &mut a, 0);
        world.join(0, &mut b, 0);
        world.charge(0, &mut a, 4 * MSEC);
        world.leave(&mut a, 4 * MSEC);
        assert_eq!(a.state.lag, -2 * MSEC as i64);
        world.join(0, &mut a, (4 * MSEC).wrapping_add(slept));
        let lag = world.cpu(0).avg_vruntime.wrapping_sub(a.state.vruntime) as i64;
        assert!(
            (lag - expected * MSEC as i64).abs() <= 2,
            "slept {slept}: {lag}"
        );
    }
}

#[test]
fn reweigh_keeps_real_time() {
    let mut rng = Rng::new(7);
    for _ in 0..10_000 {
        let mut world = world(1);
        let mut a = task(
            &world,
            1,
            rng.within(NICE_19 as usize, NICE_M20 as usize) as u32,
        );
        let mut b = task(
            &world,
            2,
            rng.within(NICE_19 as usize, NICE_M20 as usize) as u32,
        );
        world.join(0, &mut a, 0);
        world.join(0, &mut b, 0);
        world.new_request(&mut a, 0);
        world.charge(0, &mut b, rng.below(3_000_000) as u64);
        let weight = rng.within(NICE_19 as usize, NICE_M20 as usize) as u32;
        let lag = |world: &World, t: &Task| {
            world.cpu(0).avg_vruntime.wrapping_sub(t.state.vruntime) as i64
        };
        let limit = lag_limit(&a);
        let before = i128::from(lag(&world, &a)).clamp(-limit, limit) * i128::from(a.state.weight);
        let request = i128::from(a.state.deadline - a.state.vruntime) * i128::from(a.state.weight);
        world.reweigh(&mut a, weight, 0);
        let after = i128::from(lag(&world, &a)) * i128::from(weight);
        let slack = 4 * i128::from(weight.max(NICE_M20));
        assert!(
            (after - before).abs() <= slack,
            "lag {before} became {after}"
        );
        let now = i128::from(a.state.deadline - a.state.vruntime) * i128::from(weight);
        assert!(
            (now - request).abs() <= slack,
            "request {request} became {now}"
        );
        assert_eq!(world.cpu(0).weight, u64::from(weight + b.state.weight));
    }
}

/// One CPU serves tasks by the real functions: earliest deadline first, each to the end of its
/// slice, charged one tick at a time. `sleep_of` gives a task's (burst, sleep); None: it never
/// sleeps. Returns the ns that each ran.
fn serve(weights: &[u32], sleep_of: impl Fn(usize) -> Option<(u64, u64)>, span: u64) -> Vec<u64> {
    const TICK: u64 = 250_000;
    let mut world = world(1);
    let mut tasks: Vec<Task> = (0..weights.len())
        .map(|i| task(&world, i as u32 + 1, weights[i]))
        .collect();
    let mut ran = vec![0; tasks.len()];
    let mut burst = vec![0; tasks.len()];
    let mut wakes_at = vec![Some(0); tasks.len()];
    let mut now = 0;
    let mut current: Option<(usize, u64)> = None;
    while now < span {
        for i in 0..tasks.len() {
            if wakes_at[i].is_some_and(|at| at <= now) {
                wakes_at[i] = None;
                world.join(0, &mut tasks[i], now);
                world.new_request(&mut tasks[i], 0);
            }
        }
        let first = |tasks: &[Task]| {
            (0..tasks.len())
                .filter(|&i| wakes_at[i].is_none())
                .min_by_key(|&i| tasks[i].state.deadline)
        };
        if current.is_none_or(|(_, end)| now >= end)
            && let Some(i) = first(&tasks)
        {
            current = Some((i, now + world.slice_left(&tasks[i])));
        }
        now += TICK;
        let Some((i, _)) = current else { continue };
        world.charge(0, &mut tasks[i], TICK);
        ran[i] += TICK;
        burst[i] += TICK;
        if tasks[i]
            .state
            .vruntime
            .wrapping_sub(tasks[i].state.deadline) as i64
            >= 0
        {
            world.new_request(&mut tasks[i], 0);
        }
        if let Some((run, sleep)) = sleep_of(i)
            && burst[i] >= run
        {
            burst[i] = 0;
            world.leave(&mut tasks[i], now);
            wakes_at[i] = Some(now + sleep);
            current = None;
        }
    }
    ran
}

#[test]
fn shares_follow_weights() {
    let cases: [&[u32]; 5] = [
        &[NICE0, NICE0],
        &[NICE0, NICE0, 2 * NICE0, 4 * NICE0],
        &[NICE_M20, NICE0],
        &[NICE_19, NICE0, NICE0],
        &[NICE_19, 335 * 16, NICE0, 3121 * 16, 9548 * 16],
    ];
    let span = 60_000 * MSEC;
    for weights in cases {
        let ran = serve(weights, |_| None, span);
        let total: u64 = weights.iter().map(|&w| u64::from(w)).sum();
        for (i, &ran) in ran.iter().enumerate() {
            let fair = span as f64 * f64::from(weights[i]) / total as f64;
            // Within 1 %, or two slices of the last task served.
            let slack = (fair * 0.01).max(2.0 * 2_800_000.0);
            assert!(
                (ran as f64 - fair).abs() <= slack,
                "{weights:?}: task {i} ran {ran}, fair is {fair}"
            );
        }
    }
}

#[test]
fn a_sleepers_credit_is_bounded() {
    // A task that sleeps most of the time gets what it asks for, and takes no time of the others.
    let span = 20_000 * MSEC;
    let ran = serve(
        &[NICE0; 3],
        |i| (i == 0).then_some((2 * MSEC, 18 * MSEC)),
        span,
    );
    let others = ran[1] + ran[2];
    assert!(ran[1].abs_diff(ran[2]) <= others / 100, "{ran:?}");
    assert!(
        ran[0] >= span / 100 * 7 && ran[0] <= span / 100 * 11,
        "{ran:?}"
    );
    // A task that comes back after ten seconds does not catch up on them.
    let ran = serve(
        &[NICE0; 2],
        |i| (i == 0).then_some((4_000 * MSEC, 10_000 * MSEC)),
        18_000 * MSEC,
    );
    assert!(ran[0] <= 4_500 * MSEC, "{ran:?}");
}

#[test]
fn extreme_weights_do_not_overflow() {
    let mut world = world(2);
    let mut heavy: Vec<Task> = (0..1000).map(|pid| task(&world, pid, NICE_M20)).collect();
    let mut light = task(&world, 2000, MIN_WEIGHT);
    light.state.custom_slice = 100 * MSEC;
    let mut huge = task(&world, 2001, MAX_WEIGHT);
    let mut now = 1;
    for t in &mut heavy {
        world.join(0, t, now);
        world.new_request(t, 0);
    }
    for round in 0..200usize {
        now += 100 * MSEC;
        for t in [&mut light, &mut huge] {
            world.join(0, t, now);
            world.new_request(t, 0);
        }
        world.charge(0, &mut light, 100 * MSEC);
        world.charge(0, &mut huge, 100 * MSEC);
        world.charge(0, &mut heavy[round * 5], 100 * MSEC);
        world.cpu_fold(0, now);
        world.reweigh(
            &mut light,
            if round % 2 == 0 {
                MAX_WEIGHT
            } else {
                MIN_WEIGHT
            },
            now,
        );
        world.leave(&mut light, now);
        world.leave(&mut huge, now);
        assert!(
            i128::from(light.state.lag).abs() <= lag_limit(&light),
            "{}",
            light.state.lag
        );
    }
    let total = 1000 * u64::from(NICE_M20);
    assert_eq!(world.cpu(0).weight, total);
    let mean = heavy
        .iter()
        .map(|t| u128::from(t.state.vruntime))
        .sum::<u128>()
        / 1000;
    assert!(
        mean.abs_diff(u128::from(world.cpu(0).avg_vruntime)) < 2_000,
        "{mean} against {}",
        world.cpu(0).avg_vruntime
    );
    assert!(
        world.cpu_load(0, now).abs_diff(total) <= total / 50,
        "{}",
        world.cpu_load(0, now)
    );
}

#[test]
fn a_request_is_the_slice_the_custom_slice_or_the_burst() {
    let mut world = world(1);
    let mut t = task(&world, 1, 2 * NICE0);
    let request = |world: &mut World, t: &mut Task, features| {
        world.new_request(t, features);
        (t.state.deadline - t.state.vruntime) * 2
    };
    assert_eq!(request(&mut world, &mut t, 0), 2_800_000);
    t.state.burst = 1_000_000;
    assert_eq!(request(&mut world, &mut t, 0), 2_800_000);
    assert_eq!(request(&mut world, &mut t, FEATURE_burst_slice), 1_000_000);
    t.state.util_avg = 128; // an eighth of a CPU: no longer light
    assert_eq!(request(&mut world, &mut t, FEATURE_burst_slice), 2_800_000);
    t.state.util_avg = 127;
    t.state.burst = 50_000;
    assert_eq!(request(&mut world, &mut t, FEATURE_burst_slice), 87_500);
    t.state.burst = 90_000_000;
    assert_eq!(request(&mut world, &mut t, FEATURE_burst_slice), 2_800_000);
    // One that only yields was light once.
    (t.state.burst, t.state.burst_run) = (50_000, 1_000_000);
    assert_eq!(request(&mut world, &mut t, FEATURE_burst_slice), 1_000_000);
    t.state.burst_run = 2_800_000;
    assert_eq!(request(&mut world, &mut t, FEATURE_burst_slice), 2_800_000);
    t.state.burst_run = 0;
    t.state.custom_slice = 100_000;
    t.state.burst = 50_000;
    assert_eq!(request(&mut world, &mut t, FEATURE_burst_slice), 100_000);
    // Others would wait for as long.
    t.state.custom_slice = 100_000_000;
    assert_eq!(request(&mut world, &mut t, FEATURE_burst_slice), 2_800_000);
    // The three requests that burst_slice shortened.
    assert_eq!(world.count(STAT_burst_request), 3);
}

/// place_entity() with ENQUEUE_INITIAL.
#[test]
fn a_new_task_asks_for_half() {
    let mut world = world(1);
    for (weight, custom, expected) in [
        (NICE0, 0, 1_400_000),
        (2 * NICE0, 0, 700_000),
        (NICE0, 100_000, 50_000),
    ] {
        let mut t = task(&world, 1, weight);
        t.state.vruntime = 7 * MSEC;
        t.state.custom_slice = custom;
        world.first_request(&mut t, 0);
        assert_eq!(t.state.deadline - t.state.vruntime, expected);
    }
}

#[test]
fn a_slice_ends_with_the_request_but_has_a_minimum() {
    let mut world = world(1);
    let mut t = task(&world, 1, NICE0 / 2);
    world.new_request(&mut t, 0);
    assert_eq!(world.slice_left(&t), 2_800_000);
    t.state.vruntime += 2 * 2_000_000;
    assert_eq!(world.slice_left(&t), 800_000);
    t.state.vruntime += 2 * 500_000;
    assert_eq!(world.slice_left(&t), 700_000);
    t.state.vruntime += 2 * 5_000_000;
    assert_eq!(world.slice_left(&t), 700_000);
}

/// yield_task_fair(): a task that is not ahead of the mean forfeits the rest of its request. One
/// that is ahead is not eligible: it keeps its request, however often it yields.
#[test]
fn a_task_that_yields_forfeits_its_request_until_it_is_ahead() {
    let mut world = world(1);
    let mut tasks: Vec<Task> = (1..=4).map(|pid| task(&world, pid, NICE0)).collect();
    for t in &mut tasks {
        world.join(0, t, 0);
        world.new_request(t, 0);
    }
    let begin = tasks[0].state.vruntime;
    world.charge(0, &mut tasks[0], 200_000);
    let ahead = |t: &Task| t.state.vruntime - begin;
    for _ in 0..1000 {
        world.yields(0, &mut tasks[0], 0);
    }
    assert_eq!(ahead(&tasks[0]), 200_000);
    assert_eq!(tasks[0].state.deadline - begin, 2_800_000);
    // The mean is now 50,000 ahead.
    world.yields(0, &mut tasks[1], 0);
    assert_eq!(ahead(&tasks[1]), 2_800_000);
    assert_eq!(tasks[1].state.deadline - begin, 2 * 2_800_000);
    assert!(drift(&world, 0, &tasks).abs() < i128::from(64 * NICE0));
    // It has run beyond its request, and was not charged since.
    tasks[2].state.deadline = tasks[2].state.vruntime;
    world.yields(0, &mut tasks[2], 0);
    assert_eq!(ahead(&tasks[2]), 0);
    assert_eq!(tasks[2].state.deadline - begin, 2_800_000);
}

#[test]
fn bursts_are_learnt_up_at_once_and_down_by_a_quarter() {
    let mut world = world(1);
    let mut t = task(&world, 1, NICE0);
    for (run, burst) in [(400, 400), (1000, 1000), (200, 800), (800, 800), (0, 600)] {
        t.state.burst_run = run;
        world.burst_end(&mut t);
        assert_eq!((t.state.burst, t.state.burst_run), (burst, 0));
    }
}
