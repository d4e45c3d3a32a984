// SPDX-License-Identifier: GPL-2.0-only
//! Round trips: a simulated run is written as ftrace prints it, read and replayed.

use super::story::Act;
use super::*;
use crate::native::TaskId;
use crate::sim::load::Settings;
use crate::sim::sched::Wake;
use crate::sim::watch::{Stop, Watch, What};
use crate::sim::{Policy, Scenario, model};
use std::fmt::Write;

/// Writes what happens, with a resolution of ns. Task n of the run is task n + 1: 0 is idle.
struct Ftrace {
    text: String,
    running: Vec<Option<TaskId>>,
    /// Who stopped since, why, and when.
    left: Vec<Option<(TaskId, char)>>,
}

fn shown(task: Option<TaskId>) -> String {
    match task {
        Some(task) => format!("t{task}"),
        None => "swapper".to_string(),
    }
}

fn number(task: Option<TaskId>) -> usize {
    task.map_or(0, |task| task + 1)
}

impl Ftrace {
    fn new(cpus: usize) -> Ftrace {
        Ftrace {
            text: String::new(),
            running: vec![None; cpus],
            left: vec![None; cpus],
        }
    }

    fn line(&mut self, now: u64, cpu: usize, irq: bool, by: Option<TaskId>, what: &str) {
        let flags = if irq { "d.h2." } else { "d..2." };
        let (s, ns) = (now / 1_000_000_000, now % 1_000_000_000);
        let (name, by) = (shown(by), number(by));
        let _ = writeln!(
            self.text,
            "  {name}-{by} [{cpu:03}] {flags} {s}.{ns:09}: {what}"
        );
    }

    fn switch(&mut self, now: u64, cpu: usize, next: Option<TaskId>) {
        let (prev, state) = match self.left[cpu].take() {
            Some((task, state)) => (Some(task), state),
            None => (None, 'R'),
        };
        if prev.is_none() && next.is_none() {
            return;
        }
        let line = format!(
            "sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state={state} ==> \
             next_comm={} next_pid={} next_prio=120",
            shown(prev),
            number(prev),
            shown(next),
            number(next)
        );
        self.line(now, cpu, false, prev, &line);
    }

    fn placed(&mut self, now: u64, task: TaskId, wake: Wake, waker: Option<TaskId>) {
        let (name, id) = (shown(Some(task)), task + 1);
        let event = match (wake.fork, waker) {
            (true, Some(parent)) => {
                let (of, pid) = (shown(Some(parent)), parent + 1);
                let line = format!(
                    "sched_process_fork: comm={of} pid={pid} child_comm={name} child_pid={id}"
                );
                self.line(now, wake.cpu, false, waker, &line);
                "sched_wakeup_new"
            }
            _ => "sched_waking",
        };
        let line = format!("{event}: comm={name} pid={id} prio=120 target_cpu=000");
        // A timer interrupts what runs.
        let by = waker.or(self.running[wake.cpu]);
        self.line(now, wake.cpu, waker.is_none(), by, &line);
    }
}

impl Watch for Ftrace {
    fn happens(&mut self, now: u64, what: What) {
        match what {
            What::Placed {
                task, wake, waker, ..
            } => self.placed(now, task, wake, waker),
            What::Runs { task, cpu, .. } => {
                self.switch(now, cpu, Some(task));
                self.running[cpu] = Some(task);
            }
            What::Idle { cpu } => self.switch(now, cpu, None),
            What::Stops { task, cpu, why } => {
                let state = match why {
                    Stop::Sleeps => 'S',
                    Stop::Ends => 'X',
                    Stop::Moves | Stop::GivesWay => 'R',
                };
                self.left[cpu] = Some((task, state));
                self.running[cpu] = None;
            }
            _ => {}
        }
    }
}

struct Both {
    before: Measured,
    recorded: Measured,
    after: Measured,
}

/// Runs a workload, records it, and replays the recording under a policy.
fn replayed(text: &str, machine: &str, policy: &str, again: &str) -> Both {
    replayed_by_chance(text, machine, policy, again, 1)
}

fn replayed_by_chance(text: &str, machine: &str, policy: &str, again: &str, seed: u64) -> Both {
    let mut model = model(machine).unwrap();
    // Threads of the kernel run in both, or in none.
    model.params.set("noise_rate", 0.0).unwrap();
    // Recordings do not say how fast CPUs ran.
    model.params.set("governor", 0.0).unwrap();
    let load = Load::parse(text, &Settings::new()).unwrap();
    let scenario = |load: Load, policy: &Policy, watch: Ftrace| {
        let scenario = Scenario {
            model: &model,
            load,
            policy,
            seed,
        };
        scenario.watched(watch).unwrap()
    };
    let ftrace = Ftrace::new(model.machine.nr_cpu_ids.into());
    let (before, ftrace) = scenario(load, &Policy::parse(policy).unwrap(), ftrace);
    let recording = Recording::parse(ftrace.text.as_bytes(), &model, 0).unwrap();
    let ftrace = Ftrace::new(model.machine.nr_cpu_ids.into());
    let load = recording.load.clone();
    let (after, _) = scenario(load, &Policy::parse(again).unwrap(), ftrace);
    Both {
        before,
        recorded: recording.measured,
        after,
    }
}

fn quantiles(of: &Measured) -> [f64; 2] {
    [500, 990].map(|permille| of.wakeups.quantile(permille).unwrap_or(0) as f64)
}

fn shared(of: &Measured) -> f64 {
    of.shared_ns as f64 * 100.0 / of.busy_ns as f64
}

fn moves(of: &Measured) -> f64 {
    (of.moves[1] + of.moves[2] + of.moves[3]) as f64 * 1e9 / of.ns() as f64
}

/// Of the times in a recording.
const RESOLUTION_NS: f64 = 1000.0;

/// What a recording says of the run is what the run measured.
fn same(both: &Both) {
    let (before, recorded) = (&both.before, &both.recorded);
    let ([p50, p99], [r50, r99]) = (quantiles(before), quantiles(recorded));
    for (a, b, what) in [(p50, r50, "p50"), (p99, r99, "p99")] {
        // Both ends of a wait are recorded in whole us.
        about(a, b, 0.01, RESOLUTION_NS, what);
    }
    for (a, b, what) in [
        (shared(before), shared(recorded), "shared"),
        (moves(before), moves(recorded), "moves"),
        (before.busy_ns as f64, recorded.busy_ns as f64, "busy"),
        (before.switches as f64, recorded.switches as f64, "switches"),
    ] {
        near(a, b, 0.01, what);
    }
}

const REQUESTS: &str = "\
duration 300ms
socket ask futex
socket answer[40] futex
socket find futex
socket found[16] futex
task user x 40:
    forever
        sleep 2ms exp
        send ask
        receive answer[me]
task server x 16:
    forever
        receive ask
        keep
        run 150us exp
        send find
        receive found[me]
        run 50us exp
        send answer[kept]
task store x 4:
    forever
        receive find
        run 60us exp
        send found[from]
";
const FORKS: &str = "\
duration 400ms
task make x 6:
    forever
        run 300us
        fork cc
        run 50us
        wait
task cc from make:
    exec
    run 4ms exp
    exit
";
const HOGS: &str = "\
task hog x 12:
    run 40ms exp
    sleep 3ms
    run 20ms exp
";
const PAIRS: &str = "\
duration 100ms
socket to[6] futex
socket back[6] futex
task client x 6:
    forever
        run 8us exp
        send to[me]
        receive back[me]
task server x 6:
    forever
        receive to[me]
        run 20us exp
        send back[me]
";

#[track_caller]
fn near(a: f64, b: f64, part: f64, what: &str) {
    assert!((a - b).abs() <= part * a.max(b) + 0.01, "{what}: {a} {b}");
}

/// As `near`, or at most `by` apart.
#[track_caller]
fn about(a: f64, b: f64, part: f64, by: f64, what: &str) {
    if (a - b).abs() > by {
        near(a, b, part, what);
    }
}

#[test]
fn a_recording_says_what_the_run_measured() {
    for text in [REQUESTS, FORKS, PAIRS] {
        for policy in ["eevdf", "roost", "pinned"] {
            same(&replayed(text, "ryzen-3400g", policy, policy));
        }
    }
}

/// The run of a client of `PAIRS`.
const RUN_NS: f64 = 8000.0;

/// The same machine and policy do the same again. Half of the hogs' wakeups wait for a whole run of
/// another and half for nothing, so that the median of other seeds falls to either half.
#[test]
fn a_replay_repeats_the_run() {
    for (text, machine, seeds) in [
        (FORKS, "ryzen-3400g", SEEDS),
        (FORKS, "odd-17", SEEDS),
        (HOGS, "ryzen-3400g", 1..=1),
    ] {
        for policy in ["eevdf", "roost", "pinned"] {
            let by = |seed| replayed_by_chance(text, machine, policy, policy, seed);
            let all: Vec<Both> = seeds.clone().map(by).collect();
            repeats(&all, &format!("{machine} {policy}"));
        }
    }
}

/// The phases in which pairs begin decide what they do: runs differ as much among themselves as
/// replays do. Pinned pairs keep to their CPUs, two pairs to some, or all move. Of eight seeds one
/// run or replay does what the others do not.
#[test]
fn replays_of_pairs_repeat_most_runs() {
    for machine in ["ryzen-3400g", "odd-17"] {
        for policy in ["eevdf", "roost", "pinned"] {
            let by = |seed| replayed_by_chance(PAIRS, machine, policy, policy, seed);
            let all: Vec<Both> = SEEDS.map(by).collect();
            repeats(&all, &format!("{machine} {policy}"));
            let sum = |of: fn(&Both) -> f64| all.iter().map(of).sum::<f64>();
            // Elsewhere pairs hardly move.
            if (policy, machine) == ("eevdf", "ryzen-3400g") {
                let (before, after) = (sum(|b| moves(&b.recorded)), sum(|b| moves(&b.after)));
                near(before, after, 0.05, "moves");
            }
        }
    }
}

const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

fn middle(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    (of[(of.len() - 1) / 2] + of[of.len() / 2]) / 2.0
}

/// What a replay does, as a part of its run's, is about 1: of eight in six at least.
#[track_caller]
fn repeats(all: &[Both], what: &str) {
    let is = |of: &dyn Fn(&Both) -> bool, name: &str| {
        let far: Vec<u64> = (1..)
            .zip(all)
            .filter(|(_, b)| !of(b))
            .map(|(n, _)| n)
            .collect();
        assert!(
            far.len() <= all.len() / 4,
            "{what}: {name} differs in {far:?}"
        );
    };
    let part = |of: &dyn Fn(&Measured) -> f64, by: f64, name: &str| {
        is(
            &|b| (of(&b.after) / of(&b.recorded) - 1.0).abs() <= by,
            name,
        );
    };
    part(&|m| m.busy_ns as f64, 0.02, "busy");
    part(&|m| m.ns() as f64, 0.06, "time");
    part(&|m| quantiles(m)[0], 0.05, "p50");
    part(&|m| m.switches as f64, 0.02, "switches");
    is(
        &|b| (shared(&b.after) - shared(&b.recorded)).abs() < 3.0,
        "shared",
    );
    let p99 = |b: &Both| [&b.recorded, &b.after].map(|m| quantiles(m)[1]);
    let like = |[before, after]: [f64; 2]| {
        // A wakeup may find its CPU a run earlier or later.
        (after - before).abs() <= RUN_NS || (after / before - 1.0).abs() <= 0.2
    };
    is(&|b| like(p99(b)), "p99");
}

/// A task keeps the requests that it served. So it waits for its next one even if another task of
/// the pool is free, and waits for CPUs are shorter than they were.
#[test]
fn a_pool_of_threads_is_replayed_with_their_shares() {
    for policy in ["eevdf", "roost"] {
        let both = replayed(REQUESTS, "ryzen-3400g", policy, policy);
        let (before, after) = (&both.recorded, &both.after);
        let ([p50, p99], [a50, a99]) = (quantiles(before), quantiles(after));
        near(before.busy_ns as f64, after.busy_ns as f64, 0.04, policy);
        near(before.ns() as f64, after.ns() as f64, 0.05, policy);
        near(p50, a50, 0.05, policy);
        near(p99, a99, 0.3, policy);
        assert!((shared(before) - shared(after)).abs() < 6.0, "{policy}");
    }
}

/// A recording under one scheduler says what another does, as far as that run itself. The middle of
/// eight seeds counts: one of them does what the others do not.
#[test]
fn a_replay_under_another_policy_is_like_a_run_of_that() {
    let by = |seed| {
        let both = replayed_by_chance(PAIRS, "ryzen-3400g", "eevdf", "pinned", seed);
        let pinned = replayed_by_chance(PAIRS, "ryzen-3400g", "pinned", "pinned", seed).before;
        assert_eq!(both.after.shared_ns, 0);
        (both, pinned)
    };
    let all: Vec<(Both, Measured)> = SEEDS.map(by).collect();
    let part = |of: &dyn Fn(&(Both, Measured)) -> f64| middle(all.iter().map(of).collect());
    let p99 = |of: &Measured| quantiles(of)[1];
    let like = part(&|(both, pinned)| p99(&both.after) / p99(pinned));
    near(1.0, like, 0.15, "p99");
    // A replay under eevdf would not do for that.
    let longer = part(&|(both, _)| p99(&both.after) / p99(&both.before));
    let runs = part(&|(both, pinned)| p99(pinned) / p99(&both.before));
    assert!(runs > 4.0, "{runs}");
    near(longer, runs, 0.15, "longer");
    // The work is what one thread of a core does alone.
    let loops = |of: &Measured| of.busy_ns as f64 / of.switches as f64;
    let work = part(&|(both, pinned)| loops(&both.after) / loops(pinned));
    near(1.0, work, 0.03, "work of a run");
}

/// Runs in tens of us, so that the model's own costs do not show.
fn acts(text: &str) -> Vec<(String, Option<u64>, Vec<Act>)> {
    let model = model("odd-17").unwrap();
    let hardware = model.hardware().unwrap();
    let text = parse::parse(text.as_bytes()).unwrap();
    let told = story::tell(&text, &hardware, 0.5, u64::MAX, ());
    let act = |act: &Act| match *act {
        Act::Run(ns) => Act::Run((ns + 5_000) / 10_000),
        act => act,
    };
    let lives = told.lives.iter();
    lives
        .map(|l| (l.name.clone(), l.born, l.acts.iter().map(act).collect()))
        .collect()
}

const LIVES: &str = "\
a-1 [000] d..2. 1.000000: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120
a-1 [000] d..2. 1.000100: sched_waking: comm=b pid=2 prio=120 target_cpu=001
b-2 [001] d..2. 1.000110: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=110
<idle>-0 [002] d.h2. 1.000110: sched_wakeup: comm=b pid=2 prio=120 target_cpu=001
b-2 [001] d..2. 1.000310: sched_switch: prev_comm=b prev_pid=2 prev_prio=110 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
a-1 [000] d..2. 1.000400: sched_waking: comm=b pid=2 prio=110 target_cpu=001
b-2 [001] d..2. 1.000410: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=110
a-1 [000] d..2. 1.000450: sched_waking: comm=b pid=2 prio=110 target_cpu=001
b-2 [001] d..2. 1.000460: sched_switch: prev_comm=b prev_pid=2 prev_prio=110 prev_state=D ==> next_comm=swapper/1 next_pid=0 next_prio=120
a-1 [000] d..2. 1.000465: sched_wakeup: comm=b pid=2 prio=110 target_cpu=001
b-2 [001] d..2. 1.000470: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=110
b-2 [001] d..2. 1.000570: sched_switch: prev_comm=b prev_pid=2 prev_prio=110 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
a-1 [000] d.h2. 1.000600: sched_waking: comm=b pid=2 prio=110 target_cpu=001
b-2 [001] d..2. 1.000605: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=110
b-2 [001] d..2. 1.000705: sched_process_fork: comm=b pid=2 child_comm=b child_pid=9
b-2 [001] d..2. 1.000706: sched_wakeup_new: comm=b pid=9 prio=110 target_cpu=002
b-9 [002] d..2. 1.000710: sched_switch: prev_comm=swapper/2 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=9 next_prio=110
c-9 [002] ..... 1.000810: sched_process_exec: filename=/bin/c pid=9 old_pid=9
c-9 [002] d..2. 1.000910: sched_switch: prev_comm=c prev_pid=9 prev_prio=110 prev_state=Z ==> next_comm=d next_pid=4 next_prio=120
b-2 [001] d..2. 1.000910: sched_switch: prev_comm=b prev_pid=2 prev_prio=110 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
b-2 [001] d..2. 1.001910: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=110
a-1 [000] d..2. 1.002010: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R+ ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

/// A sleeper that is woken by a task, by a timer while another task runs, and before it sleeps; a
/// fork; a wakeup of which nothing is recorded.
#[test]
fn what_tasks_did_is_found() {
    let [a, b, c, d] = [0, 1, 2, 3];
    let (ms, us) = (1_000_000, 1_000);
    let found = acts(LIVES);
    let expected = [
        (
            "a-1",
            Some(0),
            vec![
                Act::Run(40),
                Act::Wake(b),
                Act::Run(6),
                Act::Wake(b),
                Act::Run(154),
            ],
        ),
        (
            "b-2",
            Some(100 * us),
            vec![
                Act::Run(20),
                Act::Wait(a),
                Act::Run(5),
                Act::Wait(a),
                Act::Run(10),
                Act::Sleep(30 * us),
                // The model's fork takes 30 us.
                Act::Run(7),
                Act::Fork(c),
                Act::Run(20),
                Act::Sleep(ms),
                Act::Run(10),
            ],
        ),
        ("c-9", None, vec![Act::Run(10), Act::Exec, Act::Run(10)]),
        ("d-4", Some(0), vec![Act::Run(110)]),
    ];
    for ((name, born, acts), expected) in found.iter().zip(&expected) {
        assert_eq!((name.as_str(), *born), (expected.0, expected.1));
        assert_eq!(acts, &expected.2, "{name}");
    }
    assert_eq!(found.len(), d + 1);
}

#[test]
fn tasks_keep_their_nice_level_and_their_cpus() {
    let text = "# cpus of 2: 3-4,7\n\
        x-1 [000] d..2. 1.000000: sched_switch: prev_comm=x prev_pid=1 prev_prio=125 prev_state=S ==> next_comm=kworker/0:1H next_pid=2 next_prio=100\n\
        x-1 [005] d..2. 1.100000: sched_switch: prev_comm=ksoftirqd/5 prev_pid=3 prev_prio=120 prev_state=S ==> next_comm=r next_pid=4 next_prio=49\n\
        x-1 [005] d..2. 1.200000: sched_switch: prev_comm=r prev_pid=4 prev_prio=49 prev_state=S ==> next_comm=swapper/5 next_pid=0 next_prio=120\n";
    let model = model("odd-17").unwrap();
    let load = Recording::parse(text.as_bytes(), &model, 7).unwrap().load;
    let of = |name: &str| load.groups.iter().find(|g| g.name == name).unwrap();
    assert_eq!((of("x-1").attr.nice, &of("x-1").cpus[..]), (5, &[][..]));
    assert_eq!(of("kworker/0:1H-2").cpus, [(3, 4), (7, 7)]);
    assert_eq!(of("kworker/0:1H-2").attr.nice, -20);
    assert_eq!(of("ksoftirqd/5-3").cpus, [(5, 5)]);
    assert_eq!((of("r-4").attr.nice, of("r-4").set), (-20, 7));
}

#[test]
fn recordings_that_cannot_be_replayed() {
    let model = model("odd-17").unwrap();
    let switch = "sched_switch: prev_comm=x prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=y next_pid=2 next_prio=120";
    for (text, told) in [
        (String::new(), "there is no sched_switch in it"),
        ("# nothing\n".to_string(), "there is no sched_switch in it"),
        (
            format!("x-1 [017] d..2. 1.000000: {switch}"),
            "CPU 17, and the machine has 17 CPUs",
        ),
        (
            format!("x-1 [000] d..2. 1.000000: {switch}\nx-1 [000] d..2. 4000.000000: {switch}"),
            "it is 3999 s long, and at most 3600",
        ),
    ] {
        let error = Recording::parse(text.as_bytes(), &model, 0).unwrap_err();
        assert!(format!("{error:#}").contains(told), "{error:#}");
    }
}

#[test]
fn too_many_tasks_are_refused() {
    let model = model("odd-17").unwrap();
    let mut text = "a-1 [000] d..2. 1.000000: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 \
                    prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n"
        .to_string();
    for child in 3..=MOST_TASKS {
        let _ = writeln!(
            text,
            "b-2 [000] ..... 1.000001: sched_process_fork: comm=b pid=2 child_comm=b child_pid={child}"
        );
    }
    let read = |text: &str| Recording::parse(text.as_bytes(), &model, 0);
    assert_eq!(read(&text).unwrap().load.groups.len(), MOST_TASKS);
    text += "b-2 [000] ..... 1.000001: sched_process_fork: comm=b pid=2 child_comm=b child_pid=4000000\n";
    let error = read(&text).unwrap_err().to_string();
    assert_eq!(
        error,
        "it has 100001 tasks, and at most 100000 are possible: record for a shorter time"
    );
}

/// Events that contradict each other, as after a loss that nobody noticed, end no run and change no
/// sum below zero: a recording is read, or refused.
#[test]
fn any_order_of_events_is_walked_over() {
    let model = model("ryzen-3400g").unwrap();
    let mut rng = crate::sim::Rng::new(7);
    for _ in 0..200 {
        let mut text = String::new();
        for at in 0..60 {
            let [a, b] = [rng.below(5), rng.below(5)];
            let state = ["R", "S", "X", "R+"][rng.below(4) as usize];
            let what = match rng.below(6) {
                0 => format!("sched_waking: comm=x pid={a} prio=120 target_cpu=000"),
                1 => format!("sched_wakeup: comm=x pid={a} prio=120 target_cpu=000"),
                2 => format!("sched_process_fork: comm=x pid={a} child_comm=y child_pid={b}"),
                3 => format!("sched_process_exec: filename=x pid={a} old_pid={a}"),
                _ => format!(
                    "sched_switch: prev_comm=x prev_pid={a} prev_prio=120 prev_state={state} ==> next_comm=y next_pid={b} next_prio=120"
                ),
            };
            let (by, cpu) = (rng.below(5), rng.below(8));
            let _ = writeln!(text, "x-{by} [{cpu:03}] d..2. 1.0000{at:02}: {what}");
        }
        let Ok(recording) = Recording::parse(text.as_bytes(), &model, 0) else {
            continue;
        };
        recording.trace(&model, u64::MAX).unwrap();
        let scenario = Scenario {
            model: &model,
            load: recording.load.clone(),
            policy: &Policy::parse("eevdf").unwrap(),
            seed: 1,
        };
        scenario.checked().unwrap();
    }
}

/// Anybody may give a thread such a name.
#[test]
fn a_name_with_an_arrow_spoils_no_recording() {
    let text = "\
a-1 [000] d..2. 1.000000: sched_switch: prev_comm=x ==> y prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=a ==> b next_pid=1 next_prio=120
";
    let text = parse::parse(text.as_bytes()).unwrap();
    assert_eq!(text.events.len(), 1);
}
