// SPDX-License-Identifier: GPL-2.0-only
//! Workloads as text.

use scx_roost::sim::WORKLOADS;
use scx_roost::sim::load::{Load, Measure};

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
fn params_are_set_anew() {
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
        "there is no param m; there are: n step"
    );
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, told) in [
        ("", "a workload has a task: 'task NAME:' with steps below"),
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
            "line 1: a block was opened, an indented line was expected below",
        ),
        (
            "task a:\n   run 3ms",
            "line 2: blocks are indented by 4 spaces, here are 3",
        ),
        (
            "task a:\n        run 3ms",
            "is indented further than what it is below",
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
            "pipe p message 100B\ntask a:\n    exit",
            "'hold TIME' was expected",
        ),
        (
            "pipe p message 5kB hold 1us\ntask a:\n    exit",
            "a message of 5000 bytes where 1 to 4096, a page, were expected",
        ),
        (
            "pipe p message 0B hold 1us\ntask a:\n    exit",
            "a message of 0 bytes where 1 to 4096",
        ),
        (
            "pipe p message 1B hold 1us - 2us\ntask a:\n    exit",
            "it is below 0",
        ),
        (
            "socket s message 1B hold 1us\ntask a:\n    exit",
            "where 'capacity N', 'futex' or, of a pipe, 'message SIZE hold TIME' was expected",
        ),
        (
            "warmup forever\ntask a:\n    exit",
            "line 1: \"warmup forever\": \"forever\" where a name, a number, a time or a size was expected",
        ),
        (
            "task a, nice 20:\n    exit",
            "a nice level, -20 to 19, was expected",
        ),
        ("task a, memory 101:\n    exit", "memory is at most 100 %"),
        (
            "task a x me:\n    exit",
            "a number that is known from the start was expected",
        ),
    ] {
        let error = error(text);
        assert!(error.contains(told), "{text:?}: {error}");
    }
}
