// SPDX-License-Identifier: GPL-2.0-only
//! Pipes as in the kernel: their pages, their mutex, and which task is woken.

use scx_roost::sim::load::Load;
use scx_roost::sim::{Measured, Policy, Scenario, model};

/// The 3970X without kernel threads, at its highest frequency.
fn run(policy: &str, text: &str) -> Measured {
    run_seed(policy, text, 1)
}

fn run_seed(policy: &str, text: &str, seed: u64) -> Measured {
    let mut model = model("tr-3970x").unwrap();
    for name in ["noise_rate", "governor"] {
        model.params.set(name, 0.0).unwrap();
    }
    let scenario = Scenario {
        model: &model,
        load: Load::parse(text, &Default::default()).unwrap(),
        policy: &Policy::parse(policy).unwrap(),
        seed,
    };
    scenario.checked().unwrap()
}

const WRITER: &str = "task writer, cpus 0:\n    forever\n        send p\n        count sent\n";

/// Four messages of 1,000 bytes fill a page, and a pipe has 16 pages.
#[test]
fn a_pipe_holds_sixteen_pages() {
    for (size, of_page) in [("1000B", 4), ("100B", 40), ("3kB", 1)] {
        let text = format!(
            "pipe p message {size} hold 1us\nduration 10ms\nmeasure rate sent\n{WRITER}\
             task reader, cpus 1:\n    sleep 1s\n    receive p\n"
        );
        assert_eq!(run("mainline", &text).counted(), 16 * of_page, "{size}");
    }
}

/// pipe_read() before 6.14: while the pipe is full, each read wakes a writer. It finds no free
/// page, except after one of 40 reads.
#[test]
fn a_writer_is_woken_in_vain_by_each_read_of_a_full_pipe() {
    let text = |of: &str, warmup: u32| {
        format!(
            "pipe p {of}\nwarmup {warmup}ms\nduration 35ms\nmeasure rate sent\n{WRITER}\
             task reader, cpus 1:\n    sleep 50ms\n    forever\n        receive p\n        sleep 1ms\n"
        )
    };
    let kernels = |warmup| run("mainline", &text("message 100B hold 1us", warmup));
    let (first, then) = (kernels(52), kernels(85));
    // 35 reads of the first page. Then 40 reads, one of which finishes a page, which the writer
    // fills.
    assert_eq!(first.counted(), 0);
    assert!((66..=72).contains(&first.switches), "{}", first.switches);
    assert_eq!(then.counted(), 40);
    // A queue of messages has room after each read.
    let queue = run("mainline", &text("capacity 640", 52));
    assert!((33..=36).contains(&queue.counted()), "{}", queue.counted());
}

/// One task at a time holds the mutex; the others wait on their CPUs.
#[test]
fn a_mutex_is_waited_for_on_the_cpu() {
    let text = "pipe p message 1B hold 10us\nduration 100ms\nmeasure rate sent\n\
        task writer x 3, cpus 0-2:\n    forever\n        send p\n        count sent\n";
    let m = run("mainline", text);
    // Plus three lines of 38 ns.
    let least = 100e6 / (10_000.0 + 3.0 * 38.0);
    assert!(
        (0.97 * least..=least + 1.0).contains(&(m.counted() as f64)),
        "{}",
        m.counted()
    );
    let busy = m.busy_ns as f64 / m.ns() as f64;
    assert!((2.95..=3.0).contains(&busy), "{busy} CPUs");
}

/// The holder waits for the CPU of the task that asks for the mutex. So that task sleeps, and only
/// the switches cost time.
#[test]
fn a_mutex_whose_owner_does_not_run_is_slept_for() {
    let text = "pipe p message 1B hold 5ms\nduration 1s\nmeasure rate sent\n\
        task writer x 3, cpus 0:\n    forever\n        send p\n        count sent\n";
    for policy in ["mainline", "eevdf", "cfs"] {
        let m = run(policy, text);
        assert!(
            (196..=200).contains(&m.counted()),
            "{policy}: {}",
            m.counted()
        );
    }
}

/// A task of the fair class that holds the mutex is in the kernel, and comes out of it before
/// another task gets its CPU: no task sleeps for the mutex.
#[test]
fn the_holder_of_a_mutex_keeps_its_cpu() {
    let text = "pipe p message 1B hold 20us\nwarmup 10ms\nduration 1s\nmeasure rate sent\n\
        task writer x 2, cpus 0-1:\n    forever\n        send p\n        run 50us\n        count sent\n\
        task short, cpus 0:\n    forever\n        sleep 100us\n        run 1us\n        count short\n\
        task short1, cpus 1:\n    forever\n        sleep 100us\n        run 1us\n        count short\n";
    for policy in ["eevdf", "cfs"] {
        let m = run(policy, text);
        // A task that woke up, and then the writer again.
        assert!(
            m.switches <= 2 * m.marks[1] + 10,
            "{policy}: {} switches",
            m.switches
        );
    }
}

/// A task that spins for the mutex gives way to a task that wakes up on its CPU, and then sleeps.
#[test]
fn a_spinner_gives_way() {
    let text = "pipe p message 1B hold 10ms\nduration 1s\nmeasure rate turns\n\
        task writer x 2, cpus 0-1:\n    forever\n        send p\n\
        task other x 2, cpus 0-1:\n    forever\n        run 10us\n        count turns\n";
    for policy in ["eevdf", "cfs"] {
        let turns = run(policy, text).counted();
        // One CPU's time is under the mutex; the rest of the other's is nobody's but the others'.
        assert!((97_000..=100_000).contains(&turns), "{policy}: {turns}");
    }
}

/// A task that slept for the mutex and finds it taken again gets it next. So none of four tasks on
/// two CPUs starves.
#[test]
fn a_waiter_gets_the_mutex_in_the_end() {
    let writer = |at: u32| {
        format!(
            "task writer{at}, cpus {}:\n    forever\n        send p\n        count sent{at}\n",
            at % 2
        )
    };
    let writers: String = (0..4).map(writer).collect();
    let text = format!("pipe p message 1B hold 100us\nduration 1s\nmeasure rate sent0\n{writers}");
    for policy in ["mainline", "eevdf", "roost"] {
        let m = run(policy, &text);
        let all: u64 = m.marks.iter().sum();
        assert!(
            m.marks.iter().all(|&n| n > all / 16),
            "{policy}: {:?}",
            m.marks
        );
    }
}

/// 1,000 messages from writers to readers, whichever side is slower.
#[test]
fn no_message_is_lost() {
    for (writes, reads) in [(1, 20), (20, 1), (5, 5)] {
        let text = format!(
            "pipe p message 200B hold 500ns\nmeasure time\n\
             task writer x 2, cpus 0-1:\n    repeat 500\n        run {writes}us\n        send p\n\
             task reader x 2, cpus 2-3:\n    repeat 500\n        receive p\n        run {reads}us\n        count read\n"
        );
        let m = run("eevdf", &text);
        assert_eq!(m.marks.iter().sum::<u64>(), 1000, "{writes} {reads}");
    }
}

/// A task that releases the mutex and then sleeps, because the pipe is empty, must first wake the
/// task that waits for the mutex. Otherwise no task would ever get it again.
#[test]
fn a_task_that_finds_no_data_wakes_the_mutexs_waiter() {
    let text = "pipe p message 1kB hold 5us\nduration 1s\nmeasure rate got\n\
        task writer, cpus 0-3:\n    forever\n        run 3us\n        send p\n\
        task reader x 2, cpus 0-7:\n    forever\n        receive p\n        run 1us\n        count got\n";
    for policy in ["mainline", "eevdf", "cfs", "roost"] {
        for seed in 1..=3 {
            let got = run_seed(policy, text, seed).counted();
            assert!(got > 20_000, "{policy}, seed {seed}: {got}");
        }
    }
}
