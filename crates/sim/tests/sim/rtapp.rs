// SPDX-License-Identifier: GPL-2.0-only
//! The file of rt-app that the guest test `agree` runs, what is refused, and runs whose outcome is
//! arithmetic.

use crate::runs::{near, scenario};
use roost_sim::Measured;
use roost_sim::load::{Load, Step};

const AGREE: &str = include_str!("../../../../tests/guest/agree.json");

fn file(tasks: &str) -> String {
    format!("{{ \"global\" : {{ \"duration\" : 1 }}, \"tasks\" : {{ {tasks} }} }}")
}

fn error(text: &str) -> String {
    format!("{:#}", Load::rtapp(text).expect_err(text))
}

fn run(tasks: &str) -> Measured {
    scenario(Load::rtapp(&file(tasks)).unwrap(), "roost", 1).unwrap()
}

/// 18 threads, each of which goes on to the end.
#[test]
fn the_file_of_agree_runs() {
    let load = Load::rtapp(AGREE).unwrap();
    assert_eq!(load.tasks(), 4 + 10 + 2 + 2);
    let m = scenario(load, "roost", 1).unwrap();
    assert!(m.marks[0] > 3000, "{}", m.marks[0]);
}

/// Events keep the order of the file, and may have a number after their name.
#[test]
fn events_are_in_order() {
    let tasks = "\"a\" : { \"sleep\" : 20, \"runtime\" : 10, \"sleep2\" : 30, \"lock\" : \"l\" }";
    let load = Load::rtapp(&file(tasks)).unwrap();
    let kind = |step: &Step| match step {
        Step::Runtime(_) => Some("runtime"),
        Step::Sleep(..) => Some("sleep"),
        Step::Lock(_) => Some("lock"),
        _ => None,
    };
    let kinds: Vec<&str> = load.groups[0].program.iter().filter_map(kind).collect();
    assert_eq!(kinds, ["sleep", "runtime", "sleep", "lock"]);
}

#[test]
fn an_error_names_task_and_key() {
    for (tasks, told) in [
        ("", "there are no tasks"),
        ("\"a\" : 3", "this is not an rt-app file"),
        (
            "\"a\" : { \"instance\" : 2 }",
            "task a: there are no events",
        ),
        (
            "\"a\" : { \"runtime\" : \"x\" }",
            "task a: runtime: a whole number was expected, not below 0",
        ),
        (
            "\"a\" : { \"phases\" : {} }",
            "task a: phases: it is not modelled; instance, delay and these are: runtime sleep",
        ),
        (
            "\"a\" : { \"instance\" : 100000000, \"sleep\" : 1 }",
            "100000000 tasks, most of them a: expected at most 1000000",
        ),
        (
            "\"a\" : { \"timer\" : { \"ref\" : \"t\", \"period\" : 1 } }",
            "task a: timer: t: only timers of one thread are modelled",
        ),
    ] {
        let error = error(&file(tasks));
        assert!(error.contains(told), "{tasks}: {error}");
    }
    assert!(error("{ \"tasks\" :\n  x }").contains("line 2 column 3"));
}

/// A timer keeps its period whatever runs in it, while a sleep adds to it. Over 1 s. Periods that
/// are over already are lost.
#[test]
fn timers_keep_their_period() {
    let loops = |events: &str| run(&format!("\"a\" : {{ {events} }}")).marks[0] as f64;
    let timer = "\"timer\" : { \"ref\" : \"unique\", \"period\" : 1000 }";
    let sleeps = loops("\"runtime\" : 400, \"sleep\" : 600");
    near(sleeps, 1000.0, 8.0);
    assert!(sleeps < 999.0);
    near(loops(&format!("\"runtime\" : 400, {timer}")), 1000.0, 0.11);
    near(loops(&format!("\"runtime\" : 1990, {timer}")), 500.0, 2.0);
}

/// With five threads for each CPU, work would be done at a fifth of the speed: 4 loops a thread.
/// Time passes as usual. All of them are forked in 10 ms, and spread over the CPUs all the same.
#[test]
fn runtime_is_time() {
    let m = run("\"a\" : { \"instance\" : 320, \"runtime\" : 50000 }");
    assert!(m.marks[0] > 320 * 10, "{}", m.marks[0]);
}

/// Ping and pong in turn, 90 us each plus the wakeup. In parallel they would be twice as fast.
#[test]
fn a_signal_wakes_a_waiter_of_its_condition() {
    let wait = |name: &str| format!("\"wait\" : {{ \"ref\" : \"{name}\", \"mutex\" : \"m\" }},");
    let m = run(&format!(
        "\"a\" : {{ \"lock\" : \"m\", {} \"unlock\" : \"m\", \"runtime\" : 90, \"lock2\" : \"m\", \
         \"signal\" : \"pong\", \"unlock2\" : \"m\" }},\n\
         \"b\" : {{ \"delay\" : 1000, \"lock\" : \"m\", \"signal\" : \"ping\", {} \"unlock\" : \"m\", \"runtime\" : 90 }}",
        wait("ping"),
        wait("pong")
    ));
    assert!((7_000..11_200).contains(&m.marks[0]), "{}", m.marks[0]);
}

/// A task that resumes wakes all threads of the task that suspends itself.
#[test]
fn resume_wakes_all_waiters() {
    let m = run("\"w\" : { \"instance\" : 5, \"suspend\" : \"\" }, \
         \"t\" : { \"timer\" : { \"ref\" : \"unique\", \"period\" : 10000 }, \"resume\" : \"w\" }");
    near(m.marks[0] as f64, 600.0, 2.0);
}
