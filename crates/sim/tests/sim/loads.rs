// SPDX-License-Identifier: GPL-2.0-only
//! Workloads as text.

use roost_sim::WORKLOADS;
use roost_sim::load::{Load, Measure};

fn error(text: &str) -> String {
    format!(
        "{:#}",
        Load::parse(text, &Default::default()).expect_err(text)
    )
}

#[test]
fn those_of_the_sources_are_read() {
    for (name, text) in WORKLOADS {
        let load =
            Load::parse(text, &Default::default()).unwrap_or_else(|e| panic!("{name}: {e:#}"));
        assert!(!load.groups.is_empty(), "{name}");
        assert!(
            load.duration.is_some() || load.measure == Measure::Time,
            "{name} never ends"
        );
    }
}

#[test]
fn params_are_set_again() {
    let text = "param n = 3\nparam step = 2ms * 2\ntask a x n:\n    run step\n";
    let count = |n: i64| {
        Load::parse(text, &[("n".to_string(), n)].into())
            .unwrap()
            .groups[0]
            .count
    };
    assert_eq!((count(3), count(7)), (3, 7));
    let unknown = Load::parse(text, &[("m".to_string(), 1)].into()).unwrap_err();
    assert_eq!(
        format!("{unknown:#}"),
        "there is no param m: expected one of n, step"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn an_error_is_reported_with_its_line() {
    for (text, told) in [
        ("", "a workload needs a task: 'task NAME:' with steps below"),
        (
            "task a:\n    walk 3ms",
            "line 1: \"task a :\": line 2: \"walk 3ms\": a step was expected",
        ),
        (
            "task a:\n    run 3hours",
            "line 2: \"run 3hours\": \"3hours\" where a name, a number, a time or a size was expected",
        ),
        (
            "task a:\nrun 3ms",
            "line 1: a block was opened, but no indented line follows",
        ),
        (
            "task a:\n   run 3ms",
            "line 2: blocks are indented by 4 spaces, found 3",
        ),
        (
            "task a:\n        run 3ms",
            "is indented too far for the line above",
        ),
        (
            "task a:\n    send b",
            "b where a pipe or socket was expected",
        ),
        ("task a:\n    fork b", "there is no task b"),
        (
            "lock l\nlock l\ntask a:\n    exit",
            "line 2: \"lock l\": l is there already",
        ),
        (
            "pipe p capacity 0\ntask a:\n    exit",
            "capacity 0 is not above 0",
        ),
        (
            "socket s message 1B hold 1us\ntask a:\n    exit",
            "where 'capacity N' or 'futex' was expected",
        ),
        (
            "warmup forever\ntask a:\n    exit",
            "line 1: \"warmup forever\": \"forever\" where a name, a number, a time or a size was expected",
        ),
        (
            "task a, nice 20:\n    exit",
            "a nice level, -20 to 19, was expected",
        ),
        (
            "task a, policy 1:\n    exit",
            "policy 1 where 0, 3 (SCHED_BATCH) or 5 (SCHED_IDLE) was expected",
        ),
        (
            "task a x me:\n    exit",
            "a number that is known from the start was expected",
        ),
        // A measured name that does not occur.
        (
            "measure rate chunks\ntask a:\n    count chnks\n    count b",
            "line 1: \"measure rate chunks\": no task has 'count chunks'; there is 'count' of: chnks b",
        ),
        (
            "task a:\n    run 1ms\nmeasure rate chunks",
            "line 3: \"measure rate chunks\": no task has 'count chunks'",
        ),
        (
            "measure latency a\ntask a:\n    stamp\n    count a\n    latency b",
            "no task has 'latency a'; there is 'latency' of: b",
        ),
        (
            "measure latency a\ntask a:\n    latency a",
            "no task has a 'stamp', where 'latency a' starts",
        ),
        // Wrong values.
        (
            "task a:\n    run 100",
            "line 2: \"run 100\": \"100\" where a time in ns, us, ms or s was expected",
        ),
        (
            "param chunk = 100\ntask a:\n    sleep chunk * 2 exp",
            "line 3: \"sleep chunk * 2 exp\": \"chunk * 2\" where a time",
        ),
        ("task a:\n    run me", "\"me\" where a time"),
        ("task a:\n    run 3kB", "\"3kB\" where a time"),
        ("task a:\n    run 3ms / 1ms", "where a time"),
        (
            "task a:\n    run 1us + 3",
            "adds numbers of different units",
        ),
        (
            "task a, set 100:\n    exit",
            "\"100\" where a size in B, kB or MB was expected",
        ),
        (
            "task a x 3ms:\n    exit",
            "\"3ms\" where a number without a unit was expected",
        ),
        ("warmup 5\ntask a:\n    exit", "\"5\" where a time"),
        (
            "task a:\n    run -5us",
            "line 2: \"run -5us\": \"-5us\" is below 0",
        ),
        ("task a:\n    run 1us - 3us", "\"1us - 3us\" is below 0"),
        (
            "task a:\n    repeat -3\n        exit",
            "line 2: \"repeat -3\": \"-3\" is below 0",
        ),
        ("task a:\n    until 0us", "a period above 0 was expected"),
        (
            "duration 0ms\ntask a:\n    exit",
            "a duration above 0 was expected",
        ),
        (
            "fault timers lost 1001\ntask a:\n    exit",
            "at most 1000 of 1000 timers can be lost",
        ),
        (
            "fault timers\ntask a:\n    exit",
            "\"timers\" where 'timers lost N', 'timers late TIME'",
        ),
        (
            "task a, cpus 3-1:\n    exit",
            "3-1: the first CPU is after the last",
        ),
        (
            "lock l\ntask a:\n    run 1ms\n    unlock l",
            "line 4: \"unlock l\": no task locks l",
        ),
        // Values that are too large or too small.
        (
            "task a x 100000000:\n    exit",
            "line 1: \"task a x 100000000 :\": 100000000 where 1 to 1000000 were expected",
        ),
        (
            "task a x 600000:\n    exit\ntask b x 600000:\n    exit",
            "1200000 tasks, most of them b: expected",
        ),
        (
            "task a x 0:\n    exit",
            "0 where 1 to 1000000 were expected",
        ),
        (
            "pipe p[1000000000]\ntask a:\n    exit",
            "1000000000 where 1 to 1000000",
        ),
        (
            "task b from a:\n    exit\ntask a:\n    fork b x 1000001",
            "1000000 at most were expected",
        ),
        // Wrong words.
        (
            "measure rates chunks\ntask a:\n    exit",
            "\"rates chunks\" where 'time', 'rate NAME' or 'latency NAME' was expected",
        ),
        (
            "task manager\n    exit",
            "line 1: \"task manager\": : was expected at the end",
        ),
        (
            "task a:\n\texit",
            "line 2: blocks are indented by 4 spaces, found a tab",
        ),
    ] {
        let error = error(text);
        assert!(error.contains(told), "{text:?}: {error}");
    }
}

/// Times whose length depends on the task, and quotients.
#[test]
fn units_go_through_expressions() {
    for length in [
        "0",
        "step",
        "step * n",
        "n * 2us",
        "me * 3us",
        "step + me * 1us",
        "step - step / 2",
        "1s / 1ms * 5us",
        "16 * step +- 5%",
    ] {
        let text = format!("param n = 3\nparam step = 2ms\ntask a:\n    run {length}\n");
        let read = Load::parse(&text, &Default::default());
        assert!(read.is_ok(), "{length}: {read:?}");
    }
}
