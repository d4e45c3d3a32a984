// SPDX-License-Identifier: GPL-2.0-only
//! rt-app files: how they are read, and runs whose outcome is arithmetic.

use crate::runs::{near, scenario};
use roost_sim::Measured;
use roost_sim::load::{Load, Step};

fn error(text: &str) -> String {
    format!("{:#}", Load::rtapp(text).expect_err(text))
}

fn load(load: Load, policy: &str, seed: u64) -> Measured {
    scenario(load, policy, seed).unwrap()
}

fn run(tasks: &str) -> Measured {
    let text = format!("{{ \"global\" : {{ \"duration\" : 1 }}, \"tasks\" : {{ {tasks} }} }}");
    load(Load::rtapp(&text).unwrap(), "roost", 1)
}

/// Comments, an extra comma, and repeated names, which keep their order and number.
#[test]
fn loose_json_is_read_as_rt_app_does() {
    let text = "{ /* a \"comment\", */ \"tasks\" : { // another\n\
                \"a\" : { \"loop\" : 3, \"run\" : 10, \"sleep\" : 20, \"run\" : 30, \"run2\" : 40, \"log/*\" : 5 , }, }, }";
    let named = text.replace("\"log/*\" : 5 ,", "");
    let load = Load::rtapp(&named).unwrap();
    let kinds: Vec<&str> = load.groups[0]
        .program
        .iter()
        .filter_map(|step| match step {
            Step::Run(..) => Some("run"),
            Step::Sleep(..) => Some("sleep"),
            _ => None,
        })
        .collect();
    assert_eq!(kinds, ["run", "sleep", "run", "run"]);
    assert!(
        error(text).contains("unknown key \"log/*\" here"),
        "{}",
        error(text)
    );
    assert!(error("{ \"tasks\" :\n  x }").contains("line 2 column 3"));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn an_error_names_task_phase_and_key() {
    for (tasks, told) in [
        ("", "there are no tasks"),
        ("\"a\" : 3", "task a: an object was expected"),
        ("\"a\" : { \"loop\" : 1 }", "task a: there are no events"),
        (
            "\"a\" : { \"loop\" : 1, \"run\" : \"x\" }",
            "task a: run: a whole number was expected, not below 0",
        ),
        (
            "\"a\" : { \"walk\" : 1 }",
            "task a: unknown key \"walk\" here; known are: loop policy",
        ),
        (
            "\"a\" : { \"phases\" : { \"p\" : { \"run\" : 1, \"instance\" : 2 } } }",
            "task a: phase p: unknown key \"instance\" here",
        ),
        (
            "\"a\" : { \"instance\" : 100000000, \"run\" : 1, \"loop\" : 1 }",
            "100000000 tasks, most of them a: expected at most 1000000",
        ),
        (
            "\"a\" : { \"run\" : 1, \"phases\" : { \"p\" : { \"run\" : 1 } } }",
            "unknown key \"run\" here",
        ),
        (
            "\"a\" : { \"run\" : 1, \"loop\" : 1, \"loop\" : 2 }",
            "loop is given twice; only events may be",
        ),
        (
            "\"a\" : { \"run\" : 1, \"policy\" : \"SCHED_FIFO\" }",
            "policy: SCHED_FIFO: real-time and deadline tasks are not modelled; SCHED_OTHER, SCHED_BATCH and SCHED_IDLE are",
        ),
        (
            "\"a\" : { \"run\" : 1, \"policy\" : \"x\" }",
            "there is no policy x",
        ),
        (
            "\"a\" : { \"run\" : 1, \"priority\" : 20 }",
            "a nice level, -20 to 19, was expected",
        ),
        (
            "\"a\" : { \"run\" : 1, \"util_min\" : 20 }",
            "util_min: utilisation clamps are not modelled",
        ),
        ("\"a\" : { \"memrun\" : {} }", "memrun is not modelled"),
        (
            "\"a\" : { \"run\" : 1 }",
            "task a never ends: set \"duration\" in \"global\"",
        ),
        (
            "\"a\" : { \"loop\" : 1, \"fork\" : \"b\" }",
            "fork: there is no task b",
        ),
        (
            "\"a\" : { \"phases\" : { \"p\" : { \"run\" : 1, \"cpus\" : [0] } } }",
            "phase p: cpus: only a task's are modelled, not a phase's",
        ),
    ] {
        let error = error(&format!("{{ \"tasks\" : {{ {tasks} }} }}"));
        assert!(error.contains(told), "{tasks}: {error}");
    }
    let global = error(
        "{ \"global\" : { \"default_policy\" : \"SCHED_RR\" }, \"tasks\" : { \"a\" : { \"run\" : 1 } } }",
    );
    assert!(global.contains("global: SCHED_RR: real-time"), "{global}");
}

/// The threads of both tasks run exactly this many loops. The second thread of the first task is
/// forked 30 us after the first, and wakes a CPU from its deep idle state in 25 us.
#[test]
fn loops_end() {
    let text = "{ \"tasks\" : { \"a\" : { \"instance\" : 2, \"loop\" : 5, \"run\" : 100 },\n\
                \"b\" : { \"loop\" : 2, \"phases\" : { \"p\" : { \"loop\" : 3, \"run\" : 10 }, \"q\" : { \"run\" : 10 } } },\n\
                \"c\" : { \"instance\" : 0, \"run\" : 100 , \"loop\" : 1} } }";
    let m = load(Load::rtapp(text).unwrap(), "roost", 1);
    assert_eq!(m.marks, [2 * 5 + 2 * (3 + 1)]);
    near(m.result(), 555_000.0, 5.0);
}

/// A timer keeps its period whatever runs in it, while a sleep adds to it. Over 1 s.
#[test]
fn timers_keep_their_period() {
    let loops = |events: &str| run(&format!("\"a\" : {{ {events} }}")).marks[0] as f64;
    near(loops("\"run\" : 400, \"sleep\" : 600"), 1000.0, 5.0);
    assert!(loops("\"run\" : 400, \"sleep\" : 600") < 999.0);
    near(
        loops("\"run\" : 400, \"timer\" : { \"ref\" : \"unique\", \"period\" : 1000 }"),
        1000.0,
        0.11,
    );
    // One period lasts twenty times too long, later ones are short. In mode relative the missed
    // periods are lost.
    let late = |mode: &str| {
        run(&format!(
            "\"a\" : {{ \"phases\" : {{ \"long\" : {{ \"run\" : 20000, \"timer\" : {{ \"ref\" : \"uniqueT\", \"period\" : 1000, \"mode\" : \"{mode}\" }} }},\n\
             \"short\" : {{ \"loop\" : 100000, \"run\" : 100, \"timer\" : {{ \"ref\" : \"uniqueT\", \"period\" : 1000 }} }} }} }}"
        ))
        .marks[0] as f64
    };
    near(late("absolute"), 1000.0, 0.3);
    near(late("relative"), 981.0, 0.3);
}

/// One timer shared by two threads: each takes its own periods from it. Over 1 s.
#[test]
fn a_timer_without_unique_is_shared() {
    let of = |name: &str| {
        run(&format!(
            "\"a\" : {{ \"instance\" : 2, \"run\" : 10, \"timer\" : {{ \"ref\" : \"{name}\", \"period\" : 1000 }} }}"
        ))
        .marks[0] as f64
    };
    near(of("uniqueA"), 2000.0, 0.3);
    near(of("A"), 1000.0, 0.3);
}

/// With five threads on a CPU, work is done at a fifth of the speed, while time passes as usual.
#[test]
fn runtime_is_time_and_run_is_work() {
    let loops = |event: &str| {
        run(&format!(
            "\"a\" : {{ \"instance\" : 5, \"cpus\" : [0], \"{event}\" : 50000 }}"
        ))
        .marks[0]
    };
    assert!((15..=20).contains(&loops("run")), "{}", loops("run"));
    assert!(loops("runtime") > 80, "{}", loops("runtime"));
}

#[test]
fn a_nice_level_holds_from_its_phase_on() {
    let of = |first: i32| {
        let text = format!(
            "\"a\" : {{ \"cpus\" : [0], \"priority\" : {first}, \"phases\" : {{ \"p\" : {{ \"run\" : 10 }}, \"q\" : {{ \"priority\" : 0, \"loop\" : 100000, \"run\" : 1000 }} }} }},\n\
             \"b\" : {{ \"cpus\" : [0], \"phases\" : {{ \"r\" : {{ \"loop\" : -1, \"runtime\" : 100000000 }} }} }}"
        );
        run(&text).marks[0] as f64
    };
    near(of(19), 500.0, 3.0);
    let kept = run(
        "\"a\" : { \"cpus\" : [0], \"priority\" : 5, \"run\" : 1000 },\n\
         \"b\" : { \"cpus\" : [0], \"phases\" : { \"r\" : { \"loop\" : -1, \"runtime\" : 100000000 } } }",
    );
    near(kept.marks[0] as f64, 1000.0 * 335.0 / (1024.0 + 335.0), 4.0);
}

/// Ping and pong in turn, 90 us each plus the wakeup. In parallel they would be twice as fast.
#[test]
fn a_signal_wakes_a_waiter_of_its_condition() {
    let turn = |first: &str, last: &str| {
        format!(
            "{{ \"lock\" : \"m\", {first} \"unlock\" : \"m\", \"run\" : 90, \"lock2\" : \"m\", {last} \"unlock2\" : \"m\" }}"
        )
    };
    let wait = |name: &str| format!("\"wait\" : {{ \"ref\" : \"{name}\", \"mutex\" : \"m\" }},");
    let sends = |name: &str| format!("\"signal\" : \"{name}\",");
    let m = run(&format!(
        "\"a\" : {},\n\"b\" : {}",
        turn(&wait("ping"), &sends("pong")),
        format_args!(
            "{{ \"delay\" : 1000, \"phases\" : {{ \"p\" : {{ \"lock\" : \"m\", {} {} \"unlock\" : \"m\", \"run\" : 90 }} }} }}",
            sends("ping"),
            wait("pong")
        ),
    ));
    assert!((8_000..11_200).contains(&m.marks[0]), "{}", m.marks[0]);
    // A signal without a waiter is lost.
    let lost = "{ \"tasks\" : { \"a\" : { \"loop\" : 1, \"signal\" : \"c\" },\n\
                \"b\" : { \"delay\" : 1000, \"loop\" : 1, \"suspend\" : \"b\" }, \"d\" : { \"loop\" : 1, \"resume\" : \"b\" } } }";
    let stands = scenario(Load::rtapp(lost).unwrap(), "roost", 1);
    assert!(
        stands
            .expect_err("no task resumes")
            .to_string()
            .contains("1 tasks wait, and nothing will wake them")
    );
}

/// With `sync` on both sides they also take turns, written as in the tutorial or as in the
/// examples.
#[test]
fn sync_signals_and_waits() {
    let sync = "\"sync\" : { \"ref\" : \"c\", \"mutex\" : \"m\" }";
    for around in [
        sync.to_string(),
        format!("\"lock\" : \"m\", {sync}, \"unlock\" : \"m\""),
    ] {
        let m = run(&format!(
            "\"a\" : {{ \"run\" : 90, {around} }}, \"b\" : {{ \"delay\" : 5000, \"run\" : 90, {around} }}"
        ));
        assert!(
            (8_000..11_200).contains(&m.marks[0]),
            "{around}: {}",
            m.marks[0]
        );
    }
}

/// `broad` wakes all waiters, `suspend` and `resume` go by the task's name, a semaphore remembers.
#[test]
fn broad_and_resume_wake_all_waiters() {
    let period = "\"timer\" : { \"ref\" : \"unique\", \"period\" : 10000 }";
    let wait =
        "\"lock\" : \"m\", \"wait\" : { \"ref\" : \"c\", \"mutex\" : \"m\" }, \"unlock\" : \"m\"";
    for (waits, wakes) in [
        (wait, "\"broad\" : \"c\""),
        ("\"suspend\" : \"\"", "\"resume\" : \"w\""),
    ] {
        let m = run(&format!(
            "\"w\" : {{ \"instance\" : 5, {waits} }}, \"t\" : {{ {period}, {wakes} }}"
        ));
        near(m.marks[0] as f64, 600.0, 2.0);
    }
    let one = run(&format!(
        "\"w\" : {{ \"instance\" : 5, {wait} }}, \"t\" : {{ {period}, \"signal\" : \"c\" }}"
    ));
    near(one.marks[0] as f64, 200.0, 2.0);
    let text = "{ \"tasks\" : { \"a\" : { \"loop\" : 7, \"sem_post\" : \"s\" },\n\
                \"b\" : { \"delay\" : 1000, \"loop\" : 7, \"sem_wait\" : \"s\" } } }";
    assert_eq!(load(Load::rtapp(text).unwrap(), "roost", 1).marks, [14]);
}

/// Three threads of one task and one of another meet; the slowest one sets the pace.
#[test]
fn a_barrier_is_of_all_threads_that_name_it() {
    let m = run(
        "\"a\" : { \"instance\" : 3, \"run\" : 10, \"barrier\" : \"all\" }, \"b\" : { \"run\" : 1000, \"barrier\" : \"all\" }",
    );
    near(m.marks[0] as f64, 4.0 * 1000.0, 5.0);
}

#[test]
fn what_is_forked_runs_besides() {
    let text = "{ \"tasks\" : { \"a\" : { \"loop\" : 4, \"fork\" : \"b\", \"run\" : 10 },\n\
                \"b\" : { \"instance\" : 0, \"loop\" : 3, \"run\" : 10, \"yield\" : \"\" } } }";
    assert_eq!(
        load(Load::rtapp(text).unwrap(), "roost", 1).marks,
        [4 + 4 * 3]
    );
}

/// 10 bytes a ns. The clock does not slow that down, and a busy sibling hardly does.
#[test]
fn mem_is_work_that_waits_for_memory() {
    let m = run(
        "\"a\" : { \"cpus\" : [0], \"mem\" : 10000000 }, \"b\" : { \"cpus\" : [32], \"mem\" : 10000000 }",
    );
    near(m.marks[0] as f64, 2.0 * 1000.0 * 0.75, 1.0);
    let io = run("\"a\" : { \"iorun\" : 4194304 }");
    near(io.marks[0] as f64, 1e9 / 300.0, 2.0);
}
