// SPDX-License-Identifier: GPL-2.0-only
//! Idle states of a Broadwell and an AMD machine, by arithmetic.

use super::*;

#[test]
fn a_pattern_is_found_beside_two_long_periods() {
    for (last, expected) in [
        ([100; 8], Some(100)),
        ([100, 100, 100, 100, 100, 100, 9000, 8000], Some(100)),
        ([100, 100, 100, 100, 100, 7000, 9000, 8000], None),
        // Equal ones go at once. A few that are left are a pattern within 20 us alone.
        ([100, 100, 100, 100, 9000, 9000, 9000, 9000], Some(100)),
        ([300, 400, 400, 500, 9000, 9000, 9000, 9000], None),
        ([9000, 9000, 9000, 7, 9000, 9000, 9000, 9000], Some(9000)),
        ([1, 5, 3, 30, 20, 11, 2, 9], Some(10)),
    ] {
        assert_eq!(typical(&last), expected, "{last:?}");
    }
}

/// A wakeup ends a look of 20 us after 10. What comes next is no look: 5 us of C1.
#[test]
fn a_look_that_ended_is_over() {
    let mut cstates = broadwell();
    cstates.wakes(0, 0);
    cstates.runs(0);
    cstates.stays_up(0, MS + 20_000);
    cstates.begins(0, MS, 4 * MS, None);
    assert_eq!(cstates.wakes(0, MS + 10_000).0, 0);
    cstates.begins(0, MS + 12_000, 4 * MS, Some(MS + 17_000));
    assert!(cstates.listens(0, MS + 15_000));
    assert_eq!(cstates.wakes(0, MS + 15_000).0, 2_000);
}

/// Broadwell: C1 2 us, C1E 10 us from 20 on, C3 40 us from 100 on, C6 133 us from 400
/// on. CPU 80 is the other thread of CPU 0's core.
fn broadwell() -> Cstates {
    let model = crate::machines::model("e7-8870v4/passive").unwrap();
    model.hardware().unwrap().cstates
}

const MS: u64 = 1_000_000;

/// The time to wake up of CPU 0, us, after `now` us of an idle period, where many others were
/// of `us`. Both threads of the core idle, the other one for long; `beside`: it worked until
/// this period. `timer`: how far CPU 0's next timer is, us.
fn exit(us: u64, beside: bool, now: u64, timer: Option<u64>) -> u64 {
    exit_of(broadwell(), us, beside, now, timer)
}

fn exit_of(mut cstates: Cstates, us: u64, beside: bool, now: u64, timer: Option<u64>) -> u64 {
    let mut at = 0;
    if beside {
        cstates.wakes(80, at);
    }
    for _ in 0..5 * INTERVALS {
        cstates.wakes(0, at);
        cstates.runs(0);
        at += 8 * MS;
        cstates.begins(0, at, at + 4 * MS, None);
        at += us * 1000;
    }
    cstates.wakes(0, at);
    cstates.runs(0);
    at += 8 * MS;
    cstates.begins(80, at, at + 4 * MS, None);
    cstates.begins(0, at, at + 4 * MS, timer.map(|us| at + us * 1000));
    cstates.wakes(0, at + now * 1000).0 / 1000
}

#[test]
fn the_state_is_what_the_last_periods_are_worth() {
    for (us, beside, expected) in [
        (10, true, 2),
        (30, true, 10),
        (150, false, 40),
        (900, false, 133),
    ] {
        assert_eq!(exit(us, beside, 5, None), expected, "{us} us");
    }
}

/// A timer in 50 us: no state that needs 100 is worth it.
#[test]
fn the_next_timer_is_known() {
    assert_eq!(exit(900, false, 5, None), 133);
    assert_eq!(exit(900, false, 5, Some(50)), 10);
}

/// Ticks each 4 ms. What they end counts as long, and equally. The long periods are left out, until
/// they are more than the short ones, after five of eight. Then the short ones are.
#[test]
fn the_tick_goes_on_until_short_periods_are_no_pattern() {
    for ms in [3, 5, 9, 13, 19] {
        assert_eq!(exit(10, true, ms * 1000, None), 2, "{ms} ms");
    }
    for ms in [21, 33] {
        assert_eq!(exit(10, true, ms * 1000, None), 133, "{ms} ms");
    }
}

/// A wakeup while the CPU looks for work finds it awake, and the governor learns nothing. Its
/// sibling halts meanwhile, and no write wakes it. The idle period begins after the look.
#[test]
fn who_looks_for_work_does_not_idle() {
    let mut cstates = broadwell();
    cstates.wakes(0, MS);
    cstates.runs(0);
    let looks = |cstates: &mut Cstates, at: u64| {
        cstates.stays_up(0, at + 20_000);
        cstates.begins(0, at, at + 10_000, None);
    };
    let before = cstates.cpus[0].last;
    looks(&mut cstates, 2 * MS);
    assert!(!cstates.listens(0, 2 * MS + 5000));
    assert_eq!(cstates.wakes(80, 2 * MS + 5000), (2000, false));
    assert_eq!(cstates.wakes(0, 2 * MS + 10_000), (0, false));
    assert_eq!(cstates.cpus[0].last, before);
    cstates.begins(80, 3 * MS, 4 * MS, None);
    looks(&mut cstates, 8 * MS);
    assert!(cstates.listens(0, 8 * MS + 20_000));
    let Doing::Idles(idle) = cstates.cpus[0].doing else {
        panic!("it idles");
    };
    // The periods before were long, so the tick stops.
    assert_eq!((idle.since, idle.tick), (8 * MS + 20_000, None));
    assert_eq!(cstates.wakes(0, 8 * MS + 25_000), (133_000, true));
    // 5 us and the exit, of which half is taken.
    assert!(cstates.cpus[0].last.contains(&69));
}

/// CPU 0 asks for C6 while its sibling runs, so that the core halts. Its timer is near after the
/// tick. That the sibling goes deep then empties nothing.
#[test]
fn what_a_thread_asked_for_alone_empties_nothing() {
    let mut cstates = broadwell();
    cstates.wakes(0, MS);
    cstates.runs(0);
    cstates.wakes(80, MS);
    cstates.runs(80);
    let at = 2 * MS;
    cstates.begins(0, at, at + 3_900_000, Some(at + 3_950_000));
    cstates.begins(80, at + 3_910_000, at + 7_900_000, None);
    assert_eq!(cstates.wakes(0, at + 3_920_000), (10_000, false));
}

/// The core of a CPU that went offline sleeps as deeply as its other thread.
#[test]
fn a_cpu_that_went_offline_is_no_thread_of_its_core() {
    let mut cstates = broadwell();
    cstates.wakes(0, MS);
    cstates.leaves(0, MS);
    assert_eq!(cstates.wakes(80, 2 * MS), (133_000, true));
    cstates.begins(80, 3 * MS, 4 * MS, None);
    cstates.returns(0, 4 * MS);
    assert_eq!(cstates.wakes(80, 5 * MS), (2000, false));
}

#[test]
fn a_core_sleeps_no_deeper_than_any_of_its_threads() {
    let mut cstates = broadwell();
    // Both have slept deeply.
    assert_eq!(cstates.wakes(0, MS), (133_000, true));
    // The core is still waking up. From then on the other one only halts.
    assert_eq!(cstates.wakes(80, MS + 33_000), (100_000, false));
    cstates.begins(0, 3 * MS, 4 * MS, None);
    assert_eq!(cstates.wakes(0, 4 * MS), (2000, false));
    cstates.begins(0, 5 * MS, 8 * MS, None);
    // The other one halts for a timer that is near. The L2 keeps its contents.
    cstates.begins(80, 5 * MS, 8 * MS, Some(5 * MS + 10_000));
    assert_eq!(cstates.wakes(0, 5 * MS + 5000), (2000, false));
}

/// intel_idle enters all states by MWAIT. AMD's C2 needs an interrupt, its C1 does not.
#[test]
fn a_write_wakes_a_cpu_in_mwait() {
    assert!(broadwell().listens(0, MS));
    let amd = crate::machines::model("tr-3970x").unwrap();
    let mut cstates = amd.hardware().unwrap().cstates;
    assert!(!cstates.listens(0, MS));
    cstates.wakes(0, MS);
    cstates.begins(0, 2 * MS, 4 * MS, Some(2 * MS + 50_000));
    assert!(cstates.listens(0, 2 * MS));
}

/// A timer in 3.95 ms, and a tick 50 us before it, which wakes the core: that takes 133 us.
/// What C6 has emptied stays empty.
#[test]
fn a_tick_wakes_its_core_and_what_it_had_emptied_stays_empty() {
    let mut cstates = broadwell();
    cstates.wakes(0, MS);
    cstates.runs(0);
    cstates.begins(0, 2 * MS, 2 * MS + 3_900_000, Some(2 * MS + 3_950_000));
    assert_eq!(cstates.wakes(0, 2 * MS + 3_950_000), (83_000, true));
}

#[test]
fn who_is_about_to_wake_up_is_not_woken_again() {
    let mut cstates = broadwell();
    assert_eq!(cstates.wakes(0, MS), (133_000, true));
    assert_eq!(cstates.wakes(0, MS + 33_000), (100_000, false));
    assert_eq!(cstates.wakes(0, 2 * MS), (0, false));
}

/// CPU 0 wakes up after 1 ms, works for 1 ms, and idles for 40 us before its timer. The other 79
/// cores sleep. CPU 80, the other thread of its core, does so too, and does not count for it.
#[test]
fn a_core_sleeps_while_all_its_threads_do() {
    let mut cstates = broadwell();
    let others = 79 * MS;
    assert_eq!(cstates.slept(MS), others + MS);
    cstates.wakes(0, MS);
    cstates.runs(0);
    assert_eq!(cstates.slept(2 * MS), 2 * others + MS);
    cstates.begins(0, 2 * MS, 5 * MS, Some(2 * MS + 50_000));
    assert_eq!(cstates.slept(3 * MS), 3 * others + MS);
    // A timer that is far enough.
    cstates.wakes(0, 3 * MS);
    cstates.runs(0);
    cstates.begins(0, 4 * MS, 8 * MS, None);
    assert_eq!(cstates.slept(5 * MS), 5 * others + 2 * MS);
    // Where CPU 80 is offline, its core has one thread; where both are, it does not count.
    cstates.leaves(80, 5 * MS);
    assert_eq!(cstates.slept(6 * MS), 6 * others + 3 * MS);
    cstates.leaves(0, 6 * MS);
    assert_eq!(cstates.slept(7 * MS), 7 * others + 3 * MS);
}
