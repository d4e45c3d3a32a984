// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's fair class: shares, latency and balancing by arithmetic, and algorithm3 against
//! another model.

use crate::runs::{near, run, smt, workload};
use roost_sim::Measured;

/// ns; base_slice and tick_period of params.tsv.
const SLICE: f64 = 2.8e6;
const TICK: f64 = 4e6;

/// The count of a mark.
fn count(m: &Measured, mark: usize) -> f64 {
    m.marks[mark] as f64
}

/// Weights of nice -2, 0, 2 (kernel: sched_prio_to_weight[]).
#[test]
fn hogs_share_a_cpu_by_weight() {
    let weights = [1586.0, 1024.0, 655.0];
    let hog = |name: &str, nice: i32| {
        format!(
            "task {name}, cpus 0, nice {nice}:\n    forever\n        run 100us\n        count {name}\n"
        )
    };
    let text = format!(
        "duration 2s\nmeasure rate a\n{}{}{}",
        hog("a", -2),
        hog("b", 0),
        hog("c", 2)
    );
    let m = run(&text, &[], "eevdf", 1);
    let all: f64 = (0..3).map(|mark| count(&m, mark)).sum();
    for (mark, weight) in weights.iter().enumerate() {
        near(
            count(&m, mark) / all,
            weight / weights.iter().sum::<f64>(),
            2.0,
        );
    }
}

/// Two hogs per core on four cores, once balancing has evened out their start.
#[test]
fn hogs_share_several_cpus() {
    let hog = |name: &str, nice: i32| {
        format!(
            "task {name}, cpus 0-3, nice {nice}:\n    forever\n        run 100us\n        count {name}\n"
        )
    };
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let hogs: String = names.iter().map(|name| hog(name, 0)).collect();
    let m = run(
        &format!("warmup 2s\nduration 2s\nmeasure rate a\n{hogs}"),
        &[],
        "eevdf",
        1,
    );
    let all: f64 = (0..8).map(|mark| count(&m, mark)).sum();
    (0..8).for_each(|mark| near(count(&m, mark), all / 8.0, 2.0));
}

/// At any time each task is within a slice and a tick of its share.
#[test]
fn every_task_is_near_its_share() {
    for ms in (20..420).step_by(13) {
        let text = format!(
            "duration {ms}ms\nmeasure rate a\n\
             task a, cpus 0:\n    forever\n        run 20us\n        count a\n\
             task b, cpus 0:\n    forever\n        run 20us\n        count b\n\
             task c, cpus 0, nice -3:\n    forever\n        run 20us\n        count c\n"
        );
        let m = run(&text, &[], "eevdf", 1);
        let all: f64 = (0..3).map(|mark| count(&m, mark)).sum();
        for (mark, weight) in [1024.0, 1024.0, 1991.0].into_iter().enumerate() {
            let off = (count(&m, mark) - all * weight / 4039.0) * 20e3;
            assert!(
                off.abs() <= SLICE + TICK,
                "after {ms} ms {mark} is {off} ns off"
            );
        }
    }
}

/// A task that sleeps briefly after each run stays in the queue for the time it owes, and gains
/// nothing.
#[test]
fn a_short_sleep_does_not_pay() {
    let text = "duration 4s\nmeasure rate a\n\
        task a, cpus 0:\n    forever\n        run 3500us\n        count a 35\n        sleep 20us\n\
        task b, cpus 0:\n    forever\n        run 100us\n        count b\n";
    let m = run(text, &[], "eevdf", 1);
    let part = count(&m, 0) / (count(&m, 0) + count(&m, 1));
    assert!((0.45..0.51).contains(&part), "{part}");
}

/// A task that mostly sleeps waits at most for the rest of a slice of a task that never does.
#[test]
fn a_sleeper_soon_runs() {
    let text = "warmup 100ms\nduration 2s\nmeasure latency woken\n\
        task hog, cpus 0:\n    run 3s\n\
        task sleeper, cpus 0:\n    forever\n        sleep 10ms\n        stamp\n        run 200us\n        latency woken\n";
    let m = run(text, &[], "eevdf", 1);
    let longest = m.wakeups.quantile(1000).unwrap() as f64;
    assert!(longest < SLICE + TICK, "{longest} ns");
}

/// A task wakes on the one busy CPU of its cache that it may use. CPU 8, elsewhere, is idle and
/// fetches it at the next tick.
#[test]
fn an_idle_cpu_takes_a_waiting_task() {
    let text = "duration 200ms\nmeasure latency done\n\
        task late, cpus 0, 8:\n    run 100us\n    sleep 50ms\n    stamp\n    run 20ms\n    latency done\n    sleep 1s\n\
        task hog, cpus 0:\n    sleep 5ms\n    run 1s\n";
    let m = run(text, &[], "eevdf", 1);
    let took = m.latency[0].quantile(500).unwrap() as f64;
    assert!(took < 20e6 + TICK + 1e6, "{took} ns");
}

/// A task sleeps on CPU 0, where a hog starts meanwhile. 100 us after it woke, a CPU goes idle and
/// looks for work. A task that ran on its CPU within 0.5 ms is left there (kernel: task_hot()) and
/// fetched at a tick. One that slept longer is taken at once.
#[test]
fn a_hot_task_is_left_to_the_next_tick() {
    // CPU 32 is the other thread of the core.
    for (sleep, near, soon) in [(200, 8, false), (900, 8, true), (200, 32, true)] {
        let text = format!(
            "duration 100ms\nmeasure latency woken\n\
             task hog, cpus 0, nice -15:\n    sleep 50050us\n    run 1s\n\
             task late, cpus 0, {near}:\n    run 50ms\n    stamp\n    sleep {sleep}us\n    run 10us\n    latency woken\n    sleep 1s\n\
             task there, cpus {near}:\n    sleep 49ms\n    run {}us\n    sleep 1s\n",
            1150 + sleep
        );
        let m = run(&text, &[], "eevdf", 1);
        let took = m.latency[0].quantile(500).unwrap() as f64;
        let soonest = f64::from(sleep + 100) * 1e3;
        assert_eq!(took < soonest + 150e3, soon, "slept {sleep} us: {took} ns");
    }
}

/// Two tasks take turns of 100 us on CPU 0, so that the waiting one is always hot. CPU 2 is free
/// from 20 ms on. In an LLC of 8 CPUs its looks are 8 ms apart, at ticks. The third one moves a
/// task there (kernel: can_migrate_task(), nr_balance_failed). One CPU is busy until then, two
/// afterwards.
#[test]
fn an_always_hot_task_is_pulled_after_two_failures() {
    let text = "duration 100ms\n\
        task there, cpus 2, nice -20:\n    run 20ms\n    sleep 1s\n\
        task turn x 2, cpus 0, 2:\n    forever\n        run 100us\n        yield\n";
    // Tasks that wait on another CPU of the LLC, and may go nowhere, change nothing.
    let pinned = "task pin x 2, cpus 3:\n    forever\n        run 100us\n        yield\n";
    for (others, there) in [("", 0.0), (pinned, 100e6)] {
        let busy = run(&format!("{text}{others}"), &[], "eevdf", 1).busy_ns as f64;
        let alone = 20e6 + 100e6 + 80e6 + there - busy;
        assert!(
            (4.0 * TICK..5.0 * TICK + 1e6).contains(&alone),
            "{alone} ns"
        );
    }
}

/// A CPU looks every 16 ms, and the fourth look moves. `late` runs beside `here` until then, though
/// a core is idle from 30 ms on.
#[test]
fn a_task_on_a_shared_core_moves_to_an_idle_one() {
    let text = "measure time\n\
        task here, cpus 0:\n    run 500ms\n\
        task there, cpus 1:\n    run 30ms\n\
        task late, cpus 1, 32:\n    run 500ms\n";
    let m = run(text, &[], "eevdf", 1);
    let shared = m.shared_ns as f64 / 2.0;
    let looks = 16e6 + TICK;
    assert!(
        (30e6 + 3.0 * 16e6..30e6 + 4.0 * looks).contains(&shared),
        "{shared} ns"
    );
}

/// More tasks than CPUs: an even load stays even, and no time is lost.
#[test]
fn a_full_machine_is_full() {
    let hogs = "param n = 128\nwarmup 100ms\nduration 1s\nmeasure rate turns\n\
        task hog x n:\n    forever\n        run 100us\n        count turns\n";
    for n in [64, 128, 200] {
        near(
            run(hogs, &[("n", n)], "eevdf", 1).result(),
            64.0 * smt() * 1e4,
            3.0,
        );
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let of = |seed| {
        let m = run(workload("algorithm3"), &[], "eevdf:roy-v7", seed);
        (m.events, m.marks, m.busy_ns, m.shared_ns, m.moves)
    };
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}
