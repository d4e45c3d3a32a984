// SPDX-License-Identifier: GPL-2.0-only
//! The effects of single steps and words of a workload, in runs whose outcome is arithmetic.

use crate::runs::{near, run, smt};

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

/// Half of its work waits for memory, at 0.75 of the speed beside a busy sibling. The other half
/// has the machine's SMT speed.
#[test]
fn memory_bound_tasks_share_a_core_better() {
    for (memory, time) in [
        (0, 1.0 / smt()),
        (50, 0.5 / smt() + 0.5 / 0.75),
        (100, 1.0 / 0.75),
    ] {
        let text = format!(
            "task a, cpus 0, memory {memory}:\n    run 1s\ntask b, cpus 32, memory {memory}:\n    run 1s\n"
        );
        near(run(&text, &[], "mainline", 1).result(), 1e9 * time, 0.3);
    }
}

/// With all 32 cores busy, clocks are at 0.9433 of the highest.
#[test]
fn no_clock_makes_memory_slower() {
    for (memory, part) in [(0, 0.9433), (100, 1.0)] {
        let text = format!(
            "warmup 100ms\nduration 500ms\nmeasure rate turns\ntask hog x 32, memory {memory}:\n    forever\n        run 100us\n        count turns\n"
        );
        near(run(&text, &[], "roost", 1).result(), 32.0 * part * 1e4, 1.0);
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

/// A lock in user space: the loser never sleeps. It leaves its CPU to the holder, or polls on
/// another.
#[test]
fn the_loser_of_a_lock_yields() {
    for (cpus, step) in [
        ("0", "lock it yield"),
        ("0-1", "lock it yield"),
        ("0-1", "lock it"),
    ] {
        let text = format!(
            "warmup 10ms\nduration 100ms\nmeasure rate turns\nlock it\ntask a x 2, cpus {cpus}:\n    forever\n        {step}\n        \
             run 100us\n        unlock it\n        count turns\n"
        );
        let m = run(&text, &[], "mainline", 1);
        near(m.result(), 1e4, 3.0);
        assert_eq!(m.wakeups.quantile(500).is_none(), step.ends_with("yield"));
    }
}

#[test]
fn exec_continues_the_task() {
    let m = run(
        "task a:\n    run 10ms\n    exec\n    run 10ms\n",
        &[],
        "roost",
        1,
    );
    near(m.result(), 20e6, 0.5);
    assert_eq!(m.moves, [0; 4]);
}

/// The task that comes 50 us late is waited for by spinning, or asleep. With one CPU it cannot come
/// while the other spins.
#[test]
fn a_spinning_waiter_of_a_barrier_needs_no_wakeup() {
    let of = |spin: &str, cpus: &str| {
        let text = format!(
            "warmup 1ms\nduration 100ms\nmeasure rate turns\nbarrier all 2 spin {spin}\n\
             task early, cpus 0:\n    forever\n        run 50us\n        barrier all\n\
             task late, cpus {cpus}:\n    forever\n        run 100us\n        barrier all\n        count turns\n"
        );
        run(&text, &[], "mainline", 1)
    };
    let (spins, sleeps, one) = (of("80us", "1"), of("20us", "1"), of("80us", "0"));
    assert_eq!(spins.wakeups.quantile(500), None);
    near(spins.result(), 1e4, 0.5);
    near(spins.busy_ns as f64, 2.0 * 100e6, 0.5);
    assert!(sleeps.wakeups.quantile(500).is_some());
    assert!(one.wakeups.quantile(500).is_some());
}

/// The parent sleeps for the 10 ms until the child execs or ends. After a plain fork it goes on at
/// once.
#[test]
fn a_vforking_parent_waits_for_its_memory() {
    let time = |fork: &str, end: &str| {
        let text = format!(
            "task child from a:\n    run 10ms\n    {end}\n    run 20ms\n\
             task a:\n    {fork} child\n    run 50ms\n"
        );
        run(&text, &[], "mainline", 1).result()
    };
    near(time("vfork", "exec"), 60e6, 0.5);
    near(time("vfork", "exit"), 60e6, 0.5);
    near(time("fork", "exec"), 50e6, 0.5);
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

/// Three workers wait for a messenger that is busy for 10 ms. It answers all of them in one batch,
/// the newest first, with one stamp: each on a CPU of its own, each later than the one before by
/// what a wakeup costs the messenger. Answers one by one have a stamp each.
#[test]
fn answers_of_a_batch_have_one_stamp() {
    let latencies = |answers: &str| {
        let text = format!(
            "warmup 1ms\nduration 1s\nsocket idle\nsocket go[4]\nmeasure latency go\n\
             task messenger, cpus 0:\n    forever\n        run 10ms\n        {answers}\n\
             task worker x 3, cpus 2-8:\n    forever\n        send idle\n        receive go[me]\n        latency go\n"
        );
        let m = run(&text, &[], "mainline", 1);
        [100, 900].map(|permille| m.quantile(permille).unwrap())
    };
    let [first, last] = latencies("stamp\n        answer idle on go[from]");
    assert!(last > first + 1000, "{first} to {last} ns");
    let one = "receive idle\n        stamp\n        send go[from]";
    let [first, last] = latencies(one);
    assert!(last < first + 1000, "{first} to {last} ns");
}

/// An answer on the channel that it comes from is a message for later.
#[test]
fn an_answer_may_go_back() {
    let text = "duration 10ms\nsocket s\nmeasure rate turns\ntask a, cpus 0:\n    send s\n    forever\n        run 100us\n        answer s on s\n        count turns\n";
    let turns = run(text, &[], "mainline", 1).counted();
    assert!((80..=100).contains(&turns), "{turns}");
}

/// A waker works for a wakeup on an idle CPU, or one of another LLC, only until that CPU's list
/// has the task: one line. A busy CPU of its LLC gets the task on its run queue by the waker. On
/// the 3970X a line takes 38 ns within an LLC, and 92 from another.
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
    let line = |cpu| if cpu < 8 { 38.0 } else { 92.0 };
    let hog = "task hog, cpus 1, nice 19:\n    forever\n        run 1ms\n";
    for (policy, cpu, beside, lines, enqueue) in [
        ("eevdf", 1, "", 1.0, 0.0),
        ("mainline", 1, "", 1.0, 0.0),
        ("eevdf", 8, "", 1.0, 0.0),
        ("eevdf", 1, hog, 6.0, 400.0),
    ] {
        // The placement takes 600 ns, the message ten lines.
        let takes = 20_600.0 + (10.0 + lines) * line(cpu) + enqueue;
        near(runs(policy, cpu, beside), takes, 0.15);
    }
}
