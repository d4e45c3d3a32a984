// SPDX-License-Identifier: GPL-2.0-only
//! The effects of single steps and words of a workload, in runs whose outcome is arithmetic.

use crate::runs::{near, run};

/// Kernel: sched_prio_to_weight[] of nice 0, 5 and -3.
#[test]
fn a_nice_level_is_a_weight() {
    for (nice, weight) in [(5, 335.0), (-3, 1991.0)] {
        let text = format!(
            "warmup 100ms\nduration 4s\nmeasure rate turns\ntask a, cpus 0:\n    forever\n        run 1ms\n        count turns\n\
             task b, cpus 0, nice {nice}:\n    forever\n        run 1ms\n"
        );
        let m = run(&text, &[], "roost", 1);
        near(m.result(), 1000.0 * 1024.0 / (1024.0 + weight), 2.0);
    }
}

/// Two tasks on one CPU: a task that yields after each turn lets the other run first. Alone it goes
/// on.
#[test]
fn a_yield_lets_the_other_task_run_first() {
    let turns = |tasks: u64, step: &str| {
        let text = format!(
            "warmup 10ms\nduration 1s\nmeasure rate turns\ntask a x {tasks}, cpus 0:\n    forever\n        run 100us\n        {step}\n        count turns\n"
        );
        let m = run(&text, &[], "roost", 1);
        (m.result(), m.switches as f64)
    };
    let (yielding, switches) = turns(2, "yield");
    // Except when the other has run longer, because of a tick or a timer.
    assert!(switches > 0.8 * yielding, "{switches} of {yielding}");
    let (_, switches) = turns(2, "stamp");
    assert!(switches < 500.0, "{switches}");
    let (alone, switches) = turns(1, "yield");
    assert_eq!(switches, 0.0);
    near(alone, 1e4, 2.0);
}

/// The number of turns may depend on the task (`me`); 0 or less means none.
#[test]
fn a_loop_has_as_many_turns_as_it_says() {
    for (turns, busy) in [("3", 6e6), ("0", 0.0), ("me * 2", 2e6), ("0 - me", 0.0)] {
        let text = format!("task a x 2:\n    repeat {turns}\n        run 1ms\n");
        let m = run(&text, &[], "mainline", 1);
        assert!(
            (m.busy_ns as f64 - busy).abs() < 0.1e6,
            "{turns}: {}",
            m.busy_ns
        );
    }
}

/// The loser of a lock sleeps until it is free; no work is lost.
#[test]
fn the_loser_of_a_lock_sleeps() {
    let text = "warmup 10ms\nduration 100ms\nmeasure rate turns\nlock it\ntask a x 2, cpus 0-1:\n    forever\n        \
                lock it\n        run 100us\n        unlock it\n        count turns\n";
    let m = run(text, &[], "mainline", 1);
    near(m.result(), 1e4, 3.0);
    assert!(m.wakeups.quantile(500).is_some());
}

/// A waker works for a wakeup on an idle CPU, or one of another LLC, only for the placement. A busy
/// CPU of its LLC gets the task on its run queue by the waker.
#[test]
fn the_woken_cpu_does_its_part_of_a_wakeup() {
    let runs = |policy: &str, cpu: u32, beside: &str| {
        let text = format!(
            "warmup 10ms\nduration 200ms\nsocket s futex\nmeasure rate sent\n\
             task waker, cpus 0:\n    forever\n        run 20us\n        send s\n        count sent\n\
             task wakee, cpus {cpu}:\n    forever\n        receive s\n        run 1us\n{beside}"
        );
        1e9 / run(&text, &[], policy, 1).result()
    };
    let hog = "task hog, cpus 1, nice 19:\n    forever\n        run 1ms\n";
    for (policy, cpu, beside, enqueue) in [
        ("eevdf", 1, "", 0.0),
        ("mainline", 1, "", 0.0),
        ("eevdf", 8, "", 0.0),
        ("eevdf", 1, hog, 400.0),
    ] {
        near(runs(policy, cpu, beside), 20_600.0 + enqueue, 0.15);
    }
}
