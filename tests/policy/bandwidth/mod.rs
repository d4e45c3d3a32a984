// SPDX-License-Identifier: GPL-2.0-only
//! CPU limits (bandwidth.h, parking.h): whole lives of tasks on a model of the kernel. Quotas are
//! kept, the least of all levels counts, bursts are spent. Parked tasks are released in order and
//! within the bound, and none is left behind.

pub mod machine;

use crate::rng::Rng;
use machine::{Life, MSEC, Machine, PERIOD, SECOND, USEC};
use scx_roost::native::sys::{
    PARK_QUEUES, STAT_budget_none, STAT_park, STAT_park_owed, STAT_park_release,
};

/// Half of `wait_bound_ns` (parking.h), ns.
const PARK_MOST: u64 = 1250 * MSEC;

fn hogs(group: usize, count: usize) -> Vec<Life> {
    vec![naps(group, 0, 0); count]
}

fn naps(group: usize, run: u64, sleep: u64) -> Life {
    Life {
        group,
        run,
        sleep,
        yields: false,
        in_kernel: false,
        exits: false,
    }
}

fn close(got: u64, due: u64, what: &str) {
    let off = (got as f64 / due as f64 - 1.0) * 100.0;
    assert!(
        off.abs() <= 5.0,
        "{what}: {got} ns, due {due}, off by {off:.1} %"
    );
}

#[test]
fn a_quota_is_kept_on_any_number_of_cpus() {
    for (cpus, count, percent) in [
        (1, 1, 20),
        (1, 5, 37),
        (4, 2, 50),
        (8, 16, 300),
        (16, 40, 10),
    ] {
        let mut machine = Machine::new(cpus, &[0], &hogs(1, count));
        machine.limit(1, PERIOD * percent / 100, 0);
        machine.goes_on(SECOND / 2);
        let used = machine.measure(5 * SECOND)[1];
        let what = format!("{count} hogs on {cpus} CPUs, {percent} %");
        close(used, 5 * SECOND * percent / 100, &what);
        assert!(machine.kernel.world().count(STAT_park_release) > 0);
        let told = machine.kernel.world().bandwidth(1);
        close(told.used_ns, machine.used(1), "what is counted");
        assert!(told.throttled > 40, "{}", told.throttled);
    }
}

/// In the kernel it may hold a lock for which others wait; the model looks at each task that parks.
#[test]
fn a_task_is_parked_on_its_way_to_user_mode() {
    let hog = Life {
        in_kernel: true,
        ..naps(1, 0, 0)
    };
    for (cpus, count) in [(1, 1), (2, 3), (4, 2)] {
        let mut machine = Machine::new(cpus, &[0], &vec![hog; count]);
        machine.limit(1, PERIOD / 10, 0);
        machine.goes_on(SECOND);
        let used = machine.measure(5 * SECOND)[1];
        close(used, SECOND / 2, &format!("{count} on {cpus} CPUs"));
        assert!(machine.kernel.world().count(STAT_park) > 0);
    }
}

/// Children that only exit, beside a hog of their group; none of them is parked.
#[test]
fn a_group_owes_what_its_exiting_tasks_take() {
    let exit = Life {
        exits: true,
        ..naps(1, MSEC, 19 * MSEC)
    };
    let mut machine = Machine::new(1, &[0], &[hogs(1, 1)[0], exit]);
    machine.limit(1, PERIOD / 10, 0);
    machine.goes_on(SECOND);
    let used = machine.measure(5 * SECOND)[1];
    close(used, SECOND / 2, "hog and children");
}

/// A change of cpu.weight reports the limit again.
#[test]
fn a_limit_that_is_set_again_gives_no_budget() {
    let mut machine = Machine::new(1, &[0], &hogs(1, 1));
    machine.limit(1, PERIOD / 10, 0);
    machine.goes_on(SECOND);
    let before = machine.used(1);
    for _ in 0..400 {
        machine.goes_on(10 * MSEC);
        machine.limit(1, PERIOD / 10, 0);
    }
    close(machine.used(1) - before, 4 * SECOND / 10, "set 400 times");
}

#[test]
fn a_group_beside_gets_the_rest() {
    let lives = [hogs(1, 4), hogs(2, 2)].concat();
    let mut machine = Machine::new(2, &[0, 0], &lives);
    machine.limit(1, PERIOD / 2, 0);
    machine.goes_on(SECOND);
    let used = machine.measure(5 * SECOND);
    close(used[1], 5 * SECOND / 2, "limited");
    close(used[2], 5 * SECOND * 3 / 2, "beside it");
}

#[test]
fn the_least_of_all_levels_counts() {
    // Group 1 has 40 %. Below it, 2 has 60 % and 3 has 10 %. Group 4, below 3, has no limit of its
    // own.
    let lives = [hogs(2, 2), hogs(4, 2)].concat();
    let mut machine = Machine::new(4, &[0, 1, 1, 3], &lives);
    machine.limit(1, PERIOD * 4 / 10, 0);
    machine.limit(2, PERIOD * 6 / 10, 0);
    machine.limit(3, PERIOD / 10, 0);
    machine.goes_on(SECOND);
    let used = machine.measure(5 * SECOND);
    close(used[2] + used[4], 5 * SECOND * 4 / 10, "all below 1");
    close(used[4], 5 * SECOND / 10, "below 3");
}

#[test]
fn a_burst_is_saved_up_and_spent() {
    // 30 ms every 187 ms: within 20 % over time, but beyond the quota of a period.
    let worker = [naps(1, 30 * MSEC, 157 * MSEC)];
    let throttled = |burst| {
        let mut machine = Machine::new(1, &[0], &worker);
        machine.limit(1, 20 * MSEC, burst);
        machine.goes_on(5 * SECOND);
        machine.kernel.world().bandwidth(1).throttled
    };
    assert!(throttled(0) >= 20, "{}", throttled(0));
    assert!(throttled(15 * MSEC) <= 2, "{}", throttled(15 * MSEC));
}

#[test]
fn a_small_quota_lets_every_task_run_in_time() {
    let mut machine = Machine::new(2, &[0], &hogs(1, 60));
    machine.limit(1, MSEC, 0);
    machine.goes_on(12 * SECOND);
    let wait = machine.longest_wait();
    assert!(wait <= PARK_MOST + PERIOD, "{} ms", wait / MSEC);
    assert!(machine.kernel.world().count(STAT_park_owed) > 0);
    // 60 tasks every 1.25 s, 50 us each, use less than the quota.
    close(machine.measure(6 * SECOND)[1], 60 * MSEC, "all the same");
}

#[test]
fn a_limit_changes_and_goes_while_tasks_are_parked() {
    let mut machine = Machine::new(2, &[0, 1], &hogs(2, 3));
    machine.limit(1, PERIOD / 10, 0);
    machine.goes_on(SECOND + PERIOD / 2);
    assert!(machine.kernel.parked().count() > 0);
    machine.limit(1, PERIOD, 0);
    machine.goes_on(SECOND / 5);
    close(machine.measure(2 * SECOND)[2], 2 * SECOND, "one CPU");
    machine.limit(1, PERIOD / 10, 0);
    machine.goes_on(SECOND + PERIOD / 2);
    assert!(machine.kernel.parked().count() > 0);
    machine.limit(1, 0, 0);
    machine.goes_on(10 * MSEC);
    assert_eq!(machine.kernel.parked().count(), 0);
    close(machine.measure(SECOND)[2], 2 * SECOND, "both CPUs");
}

#[test]
fn a_group_within_its_limit_is_never_parked() {
    let lives = [
        naps(1, MSEC, 9 * MSEC),
        naps(1, 2 * MSEC, 30 * MSEC),
        naps(0, MSEC, MSEC),
    ];
    let mut machine = Machine::new(2, &[0], &lives);
    machine.limit(1, PERIOD / 2, 0);
    machine.goes_on(5 * SECOND);
    let world = machine.kernel.world();
    assert_eq!(
        (world.count(STAT_park), world.count(STAT_budget_none)),
        (0, 0)
    );
    assert_eq!(world.bandwidth(1).throttled, 0);
}

/// Random trees, limits and tasks: no group, with all below it, uses more than its quota, and no
/// task waits for more than PARK_MOST and a second.
#[test]
fn random_lives_keep_their_quotas() {
    for seed in 0..24 {
        let mut rng = Rng::new(seed);
        let cpus = 1 + rng.below(6);
        let nr_groups = 1 + rng.below(5);
        let groups: Vec<u32> = (0..nr_groups).map(|g| rng.below(g + 1) as u32).collect();
        let lives: Vec<Life> = (0..2 + rng.below(20))
            .map(|_| {
                let group = rng.below(nr_groups + 1);
                let run = rng.within(1, 20_000) as u64 * USEC;
                let sleep = rng.below(30_000) as u64 * USEC * rng.below(2) as u64;
                Life {
                    yields: rng.chance(30),
                    ..naps(group, run, sleep)
                }
            })
            .collect();
        let mut machine = Machine::new(cpus, &groups, &lives);
        let mut quotas = vec![0; nr_groups + 1];
        for (group, quota) in quotas.iter_mut().enumerate().skip(1) {
            if rng.chance(70) {
                *quota = rng.within(5, 100 * cpus) as u64 * MSEC;
                machine.limit(group, *quota, 0);
            }
        }
        machine.goes_on(SECOND);
        let span = 3 * SECOND;
        let used = machine.measure(span);
        for (group, quota) in quotas.iter().enumerate().skip(1) {
            let below = |mut g: usize| {
                while g != 0 && g != group {
                    g = groups[g - 1] as usize;
                }
                g == group
            };
            let all: u64 = (1..used.len()).filter(|&g| below(g)).map(|g| used[g]).sum();
            let most = quota * (span / PERIOD + 1) * 103 / 100;
            assert!(
                *quota == 0 || all <= most,
                "seed {seed}, group {group}: {all} of {most}"
            );
        }
        let wait = machine.longest_wait();
        assert!(
            wait <= PARK_MOST + SECOND,
            "seed {seed}: {} ms",
            wait / MSEC
        );
    }
}

#[test]
fn moves_and_changes_strand_no_task() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let cpus = 1 + rng.below(4);
        let lives = [hogs(1, 4), hogs(2, 3), vec![naps(3, 3 * MSEC, MSEC); 4]].concat();
        let mut machine = Machine::new(cpus, &[0, 1, 0], &lives);
        for _ in 0..300 {
            machine.goes_on(rng.within(1, 10) as u64 * MSEC);
            machine.move_to(rng.below(lives.len()), rng.below(4));
            if rng.chance(12) {
                let quota = rng.below(100 * cpus) as u64 * MSEC;
                machine.limit(1 + rng.below(3), quota, 0);
            }
        }
        let wait = machine.longest_wait();
        assert!(wait <= 2 * PARK_MOST, "seed {seed}: {} ms", wait / MSEC);
        (1..4).for_each(|group| machine.limit(group, 0, 0));
        machine.goes_on(20 * MSEC);
        assert_eq!(machine.kernel.parked().count(), 0, "seed {seed}");
        machine.goes_on(SECOND);
        for group in 1..4 {
            assert_eq!(machine.kernel.world().bandwidth(group).parked, 0);
        }
    }
}

#[test]
fn a_limit_that_is_set_while_a_lone_task_runs_holds_from_then_on() {
    // Group 1, and group 2 below it. One task in each, on a CPU of its own.
    let mut machine = Machine::new(2, &[0, 1], &[hogs(1, 1), hogs(2, 1)].concat());
    close(machine.measure(SECOND)[1], SECOND, "no limit yet");
    machine.limit(1, PERIOD * 12 / 10, 0);
    machine.goes_on(SECOND / 2);
    let used = machine.measure(2 * SECOND);
    close(used[1] + used[2], 2 * SECOND * 12 / 10, "a limit on both");
    machine.limit(2, PERIOD / 10, 0);
    machine.goes_on(SECOND / 2);
    let used = machine.measure(2 * SECOND);
    close(used[2], 2 * SECOND / 10, "a nearer limit");
    close(used[1], 2 * SECOND, "beside it");
}

#[test]
fn a_crowd_without_budget_holds_up_no_other_group() {
    // Both groups park in the same queue.
    let other = 1 + PARK_QUEUES as usize;
    let lives = [hogs(1, 3000), hogs(other, 1)].concat();
    let mut machine = Machine::new(2, &vec![0; other], &lives);
    machine.limit(1, MSEC, 0);
    machine.limit(other, PERIOD / 5, 0);
    machine.goes_on(SECOND);
    let used = machine.measure(SECOND)[other];
    close(used, SECOND / 5, "beside a crowd");
    assert!(machine.kernel.parked().count() > 2000);
}

#[test]
fn a_crowd_that_waits_for_one_budget_is_not_walked_through() {
    let mut machine = Machine::new(2, &[0], &hogs(1, 6000));
    machine.limit(1, MSEC, 0);
    machine.goes_on(SECOND);
    // A look at a task reads the clock once, and there are few looks without budget. The timer
    // rests for twice as long as they took, and a pass ends once it took a millisecond.
    for (read, longest) in [(4 * USEC, 40 * USEC), (MSEC, 6 * MSEC)] {
        machine.kernel.set_clock_step(read);
        let mut rests = 0;
        for _ in 0..1000 {
            machine.goes_on(MSEC);
            let until = machine.kernel.world().park(1).rests_until;
            rests = rests.max(until.saturating_sub(machine.now));
        }
        assert!(
            (1..=longest).contains(&rests),
            "{rests} where a read takes {read}"
        );
    }
    // The group never has budget again, and that time is counted nevertheless.
    let without = machine.kernel.world().bandwidth(1).throttled_ns;
    assert!(without > SECOND, "{without}");
}

#[test]
fn a_requeued_task_keeps_its_place() {
    let mut machine = Machine::new(1, &[0], &hogs(1, 6));
    machine.limit(1, 5 * MSEC, 0);
    machine.goes_on(SECOND + PERIOD / 2);
    let before: Vec<_> = machine.kernel.parked().collect();
    assert_eq!(before.len(), 6);
    // As after a change of its affinity.
    machine.move_to(before[2], 1);
    assert_eq!(machine.kernel.parked().collect::<Vec<_>>(), before);
}

#[test]
fn what_a_task_was_granted_stays_with_its_group() {
    let mut machine = Machine::new(1, &[0, 0], &hogs(1, 4));
    machine.limit(1, PERIOD / 2, 0);
    machine.limit(2, PERIOD / 2, 0);
    machine.goes_on(SECOND);
    let waits = |m: &Machine, task: usize| {
        m.current[0] != Some(task) && !m.kernel.parked().any(|p| p == task)
    };
    let granted = |m: &Machine| (0..4).find(|&t| waits(m, t) && m.kernel.state(t).granted > 0);
    while granted(&machine).is_none() {
        machine.goes_on(25 * USEC);
    }
    let task = granted(&machine).unwrap();
    let (grant, left) = (
        machine.kernel.state(task).granted,
        machine.kernel.world().bandwidth(1).runtime,
    );
    machine.move_to(task, 2);
    assert_eq!(machine.kernel.state(task).granted, 0);
    assert_eq!(machine.kernel.world().bandwidth(1).runtime, left + grant);
}

/// Budgets summed up over a long sleep would not fit into 64 bits.
#[test]
fn a_quota_that_no_machine_can_use_up_is_none() {
    let mut machine = Machine::new(1, &[0], &[naps(1, SECOND, 120 * SECOND)]);
    machine.limit(1, 1 << 53, 0);
    let used = machine.measure(4 * 121 * SECOND);
    close(used[1], 4 * SECOND, "a nap in two minutes");
}
