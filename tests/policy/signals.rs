// SPDX-License-Identifier: GPL-2.0-only
//! Decayed averages against floating point, and the scan budget against the kernel's formula.

use crate::rng::Rng;
use crate::topology::Tables;
use scx_roost::native::sys::CAPACITY_SCALE;
use scx_roost::native::{Task, World, count_bits, decayed, lowest_bit, scan_budget};
use scx_roost::placement::topology::NICE0;
use scx_roost::placement::topology::Topology;

const PERIOD: u64 = 1 << 20;
const MSEC: u64 = 1_000_000;

fn world() -> World {
    Topology::regular(1, 2, 1, 1, false).world()
}

/// The fraction left after `ns`: it halves every 32 periods.
fn decay(ns: u64) -> f64 {
    (-(ns as f64) / PERIOD as f64 / 32.0).exp2()
}

#[test]
fn decayed_halves_every_32_periods() {
    let mut rng = Rng::new(3);
    for _ in 0..1_000_000 {
        let avg = rng.scale(u32::MAX as usize) as u64;
        let ns = rng.scale(2000 * PERIOD as usize) as u64;
        let expected = avg as f64 * decay(ns);
        let got = decayed(avg, ns) as f64;
        assert!(
            (got - expected).abs() <= 3.0 + expected * 1e-4,
            "{avg} after {ns}: {got}, {expected}"
        );
    }
    assert_eq!(decayed(1 << 31, u64::MAX / 2), 0);
    // A clock that is behind: nothing has decayed.
    assert_eq!(decayed(1 << 31, 100u64.wrapping_neg()), (1 << 31) - 1);
}

#[test]
fn words() {
    let mut rng = Rng::new(4);
    for _ in 0..100_000 {
        let word = rng.next() >> rng.below(64) << rng.below(64);
        assert_eq!(count_bits(word), word.count_ones());
        if word != 0 {
            assert_eq!(lowest_bit(word), word.trailing_zeros());
        }
    }
    for bit in 0..64 {
        assert_eq!(lowest_bit(1 << bit), bit);
    }
    assert_eq!(count_bits(u64::MAX), 64);
}

#[test]
fn a_busy_cpu_and_then_an_idle_one_follow_the_exponential() {
    for tick in [MSEC, 4 * MSEC, 10 * MSEC] {
        let mut world = world();
        let mut t = Task::new(1, &world);
        world.cpu_fold(0, 0);
        world.join(0, &mut t, 0);
        let full = f64::from(NICE0);
        let mut now = 0;
        while now < 400 * MSEC {
            now += tick;
            world.cpu_mut(0).busy_sum += tick;
            world.cpu_fold(0, now);
            // Utilisation is that of the last fold, so up to a period is missing.
            let slack = 0.003 + 1.0 - decay(PERIOD);
            let expected = 1.0 - decay(now);
            let load = world.cpu_load(0, now) as f64 / full;
            let util = world.cpu_util(0, now) as f64 / f64::from(CAPACITY_SCALE);
            assert!(
                (load - expected).abs() <= slack,
                "tick {tick} at {now}: load {load}, {expected}"
            );
            assert!(
                (util - expected).abs() <= slack,
                "tick {tick} at {now}: util {util}, {expected}"
            );
        }
        world.leave(&mut t, now);
        let from = world.cpu_load(0, now) as f64;
        // An idle CPU is not folded: its load is decayed when it is read.
        for ms in [32, 64, 128, 512] {
            let gap = ms * MSEC;
            let expected = from * decay(gap);
            let got = world.cpu_load(0, now + gap) as f64;
            assert!(
                (got - expected).abs() <= from * 0.001,
                "{ms} ms later: {got}, {expected}"
            );
        }
        assert_eq!(world.cpu_load(0, now + 10_000 * MSEC), 0);
        assert_eq!(world.cpu_util(0, now + 10_000 * MSEC), 0);
    }
}

#[test]
fn reading_changes_nothing_and_agrees_with_folding() {
    let mut rng = Rng::new(5);
    let mut world = world();
    let mut t = Task::new(1, &world);
    let mut now = PERIOD;
    for _ in 0..20_000 {
        now += rng.within(1, 20) as u64 * MSEC;
        match t.state.on_rq {
            0 => world.join(0, &mut t, now),
            _ => world.leave(&mut t, now),
        }
        now += rng.below(2 * PERIOD as usize) as u64;
        let (load, util) = (world.cpu_load(0, now), world.cpu_util(0, now));
        assert_eq!(
            (load, util),
            (world.cpu_load(0, now), world.cpu_util(0, now))
        );
        assert!(
            load <= u64::from(NICE0) && util <= u64::from(CAPACITY_SCALE),
            "{load} {util}"
        );
        world.cpu_fold(0, now);
        assert_eq!(world.cpu_load(0, now), load);
        assert_eq!(world.cpu_util(0, now), util);
    }
}

/// What a tick has charged counts once.
#[test]
fn a_running_task_is_counted_from_its_last_charge() {
    let mut world = world();
    world.cpu_fold(0, PERIOD);
    let now = PERIOD + 2 * MSEC;
    let cpu = world.cpu_mut(0);
    cpu.curr_pid = 1;
    // It began 1 ms ago, and was charged for half of that.
    cpu.curr_start = now - MSEC;
    cpu.charged_at = now - MSEC / 2;
    cpu.busy_sum = MSEC / 2;
    let got = world.cpu_util(0, now);
    let cpu = world.cpu_mut(0);
    cpu.curr_pid = 0;
    cpu.busy_sum = MSEC;
    assert_eq!(got, world.cpu_util(0, now));
}

#[test]
fn a_tasks_signals_follow_what_it_does() {
    let mut world = world();
    let mut t = Task::new(1, &world);
    world.task_signals_init(&mut t, 0);
    // A new task's utilisation is guessed as half of what its first CPU has left.
    world.cpu_mut(0).util_avg = CAPACITY_SCALE / 4;
    world.load_follows(0, &mut t, 0);
    assert_eq!(t.state.util_avg, CAPACITY_SCALE * 3 / 8);
    world.load_follows(1, &mut t, 0);
    assert_eq!(t.state.util_avg, CAPACITY_SCALE * 3 / 8, "guessed once");
    // Tasks that have just come have what they are expected to use.
    world.cpu_mut(0).util_est = u64::from(CAPACITY_SCALE / 2);
    let mut next = Task::new(2, &world);
    world.load_follows(0, &mut next, 0);
    assert_eq!(next.state.util_avg, CAPACITY_SCALE / 4);
    let mut now = 0;
    // Always runnable, a quarter of the time running.
    for _ in 0..400 {
        now += 4 * MSEC;
        t.state.runnable_sum += 4 * MSEC;
        t.state.running_sum += MSEC;
        world.task_fold(&mut t, now);
    }
    assert!(
        t.state.runnable_avg.abs_diff(CAPACITY_SCALE) <= 1,
        "{}",
        t.state.runnable_avg
    );
    assert!(
        t.state.util_avg.abs_diff(CAPACITY_SCALE / 4) <= 2,
        "{}",
        t.state.util_avg
    );
    let half_life = 32 * PERIOD;
    let load = world.task_load(&mut t, now + half_life);
    assert!(load.abs_diff(u64::from(NICE0) / 2) <= 32, "{load}");
}

/// arch_scale_freq_capacity(): a task that runs at half speed does half the work.
#[test]
fn a_slow_cpu_is_utilised_less() {
    let mut world = world();
    let state = world.cpu_mut(0);
    state.curr_pid = 1;
    state.slow = CAPACITY_SCALE / 2;
    let util = world.cpu_util(0, 3200 * PERIOD);
    assert_eq!(util, u64::from(CAPACITY_SCALE) / 2);
}

/// update_rq_clock_pelt(): a task on a CPU of half the capacity does half the work.
#[test]
fn utilisation_is_scaled_by_capacity() {
    let mut topology = Topology::regular(1, 2, 1, 1, false);
    topology.cpus[1].capacity = CAPACITY_SCALE / 2;
    let mut world = topology.world();
    let mut t = Task::new(1, &world);
    world.load_follows(1, &mut t, 0);
    assert_eq!(
        t.state.util_avg,
        CAPACITY_SCALE / 4,
        "half of the small CPU"
    );
    let mut now = 0;
    for (cpu, expected) in [(1, CAPACITY_SCALE / 4), (0, CAPACITY_SCALE / 2)] {
        world.load_follows(cpu, &mut t, now);
        for _ in 0..400 {
            now += 4 * MSEC;
            t.state.running_sum += 2 * MSEC;
            world.task_fold(&mut t, now);
        }
        let util = t.state.util_avg;
        assert!(util.abs_diff(expected) <= 2, "CPU {cpu}: {util}");
    }
    for cpu in 0..2 {
        world.cpu_mut(cpu).util_avg = 600;
        world.cpu_mut(cpu).folded_at = now;
    }
    world.llc_sum(0, now);
    assert_eq!(world.llc(0).util, 600 + 300);
}

#[test]
fn a_blocked_load_follows_its_task() {
    let mut world = world();
    let mut t = Task::new(1, &world);
    world.task_signals_init(&mut t, 0);
    world.load_follows(0, &mut t, 0);
    let at_first = world.cpu_load(0, 0);
    assert!(at_first.abs_diff(NICE0.into()) <= 32, "{at_first}");
    world.load_follows(0, &mut t, 0);
    assert_eq!(world.cpu_load(0, 0), at_first, "the load counts once");
    world.load_follows(1, &mut t, 0);
    assert_eq!(world.cpu_load(0, 0), 0);
    assert_eq!(world.cpu_load(1, 0), at_first);
    // It runs there, which folds its load in, and sleeps a half-life. When it then leaves, almost
    // nothing remains.
    world.cpu_fold(1, PERIOD);
    let later = 33 * PERIOD;
    let (there, own) = (world.cpu_load(1, later), world.task_load(&mut t, later));
    assert!(there.abs_diff(u64::from(NICE0) / 2) <= 16, "{there}");
    world.load_follows(0, &mut t, later);
    assert_eq!(world.cpu_load(1, later), there - own);
    assert!(there - own <= there / 40, "{there} {own}");
    assert_eq!(world.cpu_load(0, later), own);
}

#[test]
fn the_scan_budget_is_the_kernels() {
    for nr_cpus in [1u32, 2, 3, 4, 8, 16, 20, 64, 128, 176, 1024] {
        let mut last = nr_cpus;
        for mean in 0..=1100u64 {
            let util = mean * u64::from(nr_cpus) + u64::from(nr_cpus) / 2;
            let used = (mean as f64).powi(2) * 117f64.powi(2) / (10_000.0 * 1024.0);
            let expected = f64::from(nr_cpus) * (1024.0 - used.floor().min(1024.0)) / 1024.0;
            let got = scan_budget(util, nr_cpus);
            assert_eq!(got, expected.floor() as u32, "{nr_cpus} CPUs at {mean}");
            assert!(got <= last, "the busier, the fewer");
            last = got;
        }
        assert_eq!(scan_budget(0, nr_cpus), nr_cpus);
        assert_eq!(
            scan_budget(876 * u64::from(nr_cpus), nr_cpus),
            0,
            "85 % busy"
        );
    }
}

#[test]
fn an_llcs_sums_are_those_of_its_cpus() {
    let mut world = Topology::regular(2, 4, 1, 2, false).world();
    for cpu in 0..8 {
        let state = world.cpu_mut(cpu);
        state.load_avg = 100 * cpu as u64;
        state.util_avg = 100 * cpu as u32;
        state.folded_at = 1000;
        state.load_since = 1000;
        world.view_mut(cpu).nr_running = cpu as u32;
    }
    world.llc_sum(1, 1000);
    let llc = world.llc(1);
    assert_eq!(
        (llc.load, llc.util, llc.scan_budget),
        (2200, 2200, scan_budget(2200, 4))
    );
    assert_eq!(llc.nr_running, 4 + 5 + 6 + 7);
    assert_eq!(
        (world.llc(0).load, world.llc(0).scan_budget),
        (0, 4),
        "the other is left alone"
    );
}
