// SPDX-License-Identifier: GPL-2.0-only
//! The machine around the policy: each mechanism alone, against values computed from its
//! parameters.

use crate::runs::counted;
use crate::support;
use roost_sim::load::Load;
use roost_sim::{MACHINES, Measured, Model, Params, Policy, Scenario, model};
use scx_roost::machine::Cpu;

fn run_on(model: &Model, text: &str) -> Measured {
    let scenario = Scenario {
        model,
        load: Load::parse(text, &Default::default()).unwrap(),
        policy: &Policy::parse("mainline").unwrap(),
        seed: 1,
    };
    scenario.run().unwrap()
}

// ---- parameters ----

#[test]
fn a_machine_has_what_its_row_says_and_else_what_any_has() {
    let smt = |machine| Params::of(machine).part("smt_speed");
    assert_eq!(
        (smt("tr-3970x"), smt("ryzen-3400g"), smt("*")),
        (0.6, 0.6, 0.6)
    );
    let params = Params::of("e7-8870v4");
    assert_eq!(params.ns("idle_deep_exit"), 133_000);
    assert_eq!(params.ns("freq_step"), 4_000_000);
}

#[test]
fn parameters_are_set_within_their_range() {
    let mut params = Params::of("tr-3970x");
    params.change("smt_speed=0.55").unwrap();
    params.set("tick_period", 1.0).unwrap();
    assert_eq!(
        (params.part("smt_speed"), params.ns("tick_period")),
        (0.55, 1_000_000)
    );
    let one = params.get("smt_speed").unwrap();
    assert_eq!((one.default, one.low, one.high), (0.6, 0.5, 0.7));
    for (text, told) in [
        ("smt_speed", "--param smt_speed: NAME=VALUE was expected"),
        (
            "smt_speed=fast",
            "--param smt_speed=fast: fast is not a number",
        ),
        (
            "smt_speed=0.71",
            "smt_speed of tr-3970x must be 0.5 to 0.7 part, not 0.71",
        ),
        ("smt_speed=nan", "not NaN"),
        ("freq_max=4600", "freq_max of tr-3970x must be 4500 MHz"),
        (
            "smt_sped=0.6",
            "there is no parameter smt_sped: did you mean 'smt_speed'?",
        ),
        ("x=0.6", "there is no parameter x: --list shows"),
    ] {
        let error = format!("{:#}", params.change(text).expect_err(text));
        assert!(error.contains(told), "{text}: {error}");
    }
}

/// Every machine has every parameter, with a range and a source.
#[test]
fn every_parameter_has_a_range_and_a_source() {
    let names = |machine: &str| -> Vec<&str> {
        let params = Params::of(machine);
        for p in params.all() {
            assert!(!p.what.is_empty() && !p.source.is_empty(), "{}", p.name);
            assert!((p.low..=p.high).contains(&p.default), "{}", p.name);
        }
        params.all().iter().map(|p| p.name).collect()
    };
    let any = names("*");
    assert!(any.len() > 40);
    for (machine, _) in MACHINES {
        assert_eq!(names(machine), any, "{machine}");
    }
}

// ---- machines ----

#[test]
fn the_machines_have_their_topologies() {
    for (name, nodes, llcs, cores, cpus) in [
        ("tr-3970x", 1, 8, 32, 64),
        ("ryzen-3400g", 1, 1, 4, 8),
        ("e7-8870v4", 4, 4, 80, 160),
        ("epyc-9654-2s", 2, 24, 192, 384),
        ("epyc-zen3-2s", 2, 16, 128, 256),
        ("fleming-2x24", 2, 2, 24, 48),
        ("tr-7980x", 1, 8, 64, 128),
        ("ryzen-9950x3d", 1, 2, 16, 32),
        ("core-13900k", 1, 1, 24, 32),
        ("laptop-8", 1, 1, 4, 8),
        ("epyc-12-nodes", 12, 12, 96, 192),
        ("arm-128", 1, 1, 128, 128),
        ("uneven-20", 1, 2, 20, 20),
        ("odd-17", 1, 1, 17, 17),
    ] {
        let facts = model(name).unwrap().machine.facts().unwrap();
        let m = facts.machine;
        assert_eq!(
            (m.nr_nodes, m.nr_llcs, m.nr_online),
            (nodes, llcs, cpus),
            "{name}"
        );
        assert_eq!(
            facts.cpus.iter().map(|c| c.core).max(),
            Some(cores - 1),
            "{name}"
        );
    }
}

#[test]
fn small_cores_are_the_last_and_have_their_own_threads() {
    let machine = model("core-13900k").unwrap().machine;
    for cpu in &machine.cpus {
        let kind = (cpu.capacity, cpu.siblings.len());
        let wanted = if cpu.core < 8 { (1024, 1) } else { (600, 0) };
        assert_eq!(kind, wanted, "CPU {}", cpu.id);
        for &other in &cpu.siblings {
            let other = &machine.cpus[usize::from(other)];
            assert!(other.core == cpu.core && other.siblings == [cpu.id]);
        }
    }
    let positions: Vec<u16> = machine.cpus.iter().map(|c| c.pos).collect();
    assert_eq!(positions, (0..32).collect::<Vec<u16>>());
    let uneven = model("uneven-20").unwrap().machine;
    let small = |cpu: &&Cpu| cpu.capacity < 1024;
    assert!(uneven.cpus.iter().filter(small).all(|cpu| cpu.llc == 1));
    assert_eq!(uneven.cpus.iter().filter(small).count(), 10);
}

#[test]
fn the_first_cache_may_be_larger() {
    let llcs = model("ryzen-9950x3d").unwrap().machine.llcs;
    let sizes: Vec<_> = llcs.iter().map(|llc| llc.size_kb).collect();
    assert_eq!(sizes, [Some(96_000), Some(32_000)]);
}

/// A task for each CPU, for 50 ms: all CPUs are used, and no more than there are.
#[test]
fn every_machine_runs() {
    for (name, _) in MACHINES {
        let model = model(name).unwrap();
        let cpus = model.machine.cpus.len();
        let text = format!(
            "warmup 20ms\nduration 50ms\nmeasure rate turns\ntask a x {cpus}:\n    forever\n        run 1ms\n        count turns\n"
        );
        let m = run_on(&model, &text);
        let used = m.busy_ns as f64 / m.ns() as f64 / cpus as f64;
        assert!((0.9..=1.0).contains(&used), "{name}: {used}");
    }
}

// ---- caches ----

/// The mean time between counts, ns.
fn each(model: &Model, text: &str) -> f64 {
    let text = format!("warmup 10ms\nduration 2s\nmeasure rate turns\n{text}");
    1e9 / run_on(model, &text).result()
}

fn within(got: f64, expected: f64, off: f64) {
    assert!(
        (got - expected).abs() <= off,
        "{got:.1}, expected {expected:.1}"
    );
}

/// Tasks that take turns on CPU 0, and run for `run` each time.
/// By SCHED_BATCH none preempts another, so each runs once in each round.
fn ring(set: &str, tasks: usize, run: &str) -> String {
    let mut text = String::new();
    for at in 0..tasks {
        text += &format!("pipe p{at}\n");
    }
    for at in 0..tasks {
        let next = (at + 1) % tasks;
        let counts = if at == 0 { "        count turns\n" } else { "" };
        let steps = match at {
            0 => format!("run {run}\n        send p{next}\n        receive p{at}"),
            _ => format!("receive p{at}\n        run {run}\n        send p{next}"),
        };
        text += &format!(
            "task t{at}, cpus 0, set {set}, policy 3:\n    forever\n        {steps}\n{counts}"
        );
    }
    text
}

/// Two sets of 200 kB fit into an L2 of 512 kB together. Of three, each finds 112 kB of its own.
/// Loading takes 30 us a MB. In 100 us a task touches all of its set, at 130 us a MB.
#[test]
fn a_working_set_that_does_not_fit_is_loaded_again() {
    let model = model("tr-3970x").unwrap();
    let turns = |set: &str, tasks: usize| each(&model, &ring(set, tasks, "100us"));
    within(turns("200kB", 2) - turns("0", 2), 0.0, 30.0);
    within(turns("200kB", 3) - turns("0", 3), 3.0 * 88.0 * 30.0, 80.0);
    // 400 kB and 400 kB: each finds 112 kB of its own.
    within(turns("400kB", 2) - turns("0", 2), 2.0 * 288.0 * 30.0, 80.0);
}

/// In 10 us of work, and some for the message, a task touches 90 kB. Each of two tasks of 400 kB
/// that share 512 kB loads the part x of these that the other has pushed out since:
/// x = 90 / 400 * (400 - 512 / 2 + x / 2).
#[test]
fn a_short_run_loads_only_what_it_touches() {
    let model = model("tr-3970x").unwrap();
    let turns = |set: &str| each(&model, &ring(set, 2, "10us"));
    let x = 90.0 / 400.0 * 144.0 / (1.0 - 90.0 / 400.0 / 2.0);
    within(turns("400kB") - turns("0"), 2.0 * x * 30.0, 300.0);
}

/// 100 tasks of 100 kB in an LLC of 30 MB. Each finds all of its data there, and loads an L2 of 256
/// kB at 30 us a MB.
#[test]
fn a_cache_holds_of_as_many_as_fit() {
    let model = model("fleming-2x24").unwrap();
    let of = |set: &str| each(&model, &ring(set, 100, "20us"));
    within(of("100kB") - of("0"), 100.0 * 100.0 * 30.0, 2e4);
}

/// After 900 us of idling the L2 is empty, so 400 kB are loaded again. With C2 disabled it stays
/// full. The time in which CPUs run is compared, since exits from idle states depend on when ticks
/// are due. A few ns are the first touch of the pages, and ticks.
#[test]
fn a_deep_idle_state_empties_the_l2() {
    let turn = |model: &Model, set: &str, sleep: &str| {
        let text = format!(
            "task a, cpus 0, set {set}:\n    repeat 10000\n        sleep {sleep}\n        run 100us\n"
        );
        run_on(model, &text).busy_ns as f64 / 10_000.0
    };
    let cost = |model: &Model, sleep: &str| turn(model, "400kB", sleep) - turn(model, "0", sleep);
    let model = model("tr-3970x").unwrap();
    within(cost(&model, "50us"), 0.0, 30.0);
    within(cost(&model, "900us"), 400.0 * 30.0, 30.0);
    let mut shallow = model.clone();
    shallow.params.set("idle_deep", 0.0).unwrap();
    within(cost(&shallow, "900us"), 0.0, 30.0);
}

/// A task of 1 MB moves between CPU 0 and another one, because other tasks keep one of them busy.
/// Within a cache it loads an L2 of 512 kB at 30 us a MB. From another cache it loads all at 270 us
/// a MB, from another node at 400.
#[test]
fn a_move_costs_by_its_distance() {
    let model = model("epyc-zen3-2s").unwrap();
    let run = |cpu: usize, set: &str| {
        let text = format!(
            "duration 200ms\nmeasure rate turns\n\
             task m, cpus 0, {cpu}, set {set}:\n    forever\n        until 10ms\n        sleep 2500us\n        run 200us\n        count turns\n\
             task even, cpus 0:\n    forever\n        until 20ms\n        run 9ms\n\
             task odd, cpus {cpu}:\n    forever\n        until 20ms\n        sleep 10ms\n        run 8ms\n"
        );
        run_on(&model, &text)
    };
    for (cpu, moved, us) in [(1, 1, 15.36), (8, 2, 270.0), (64, 3, 400.0)] {
        let (with, without) = (run(cpu, "1MB"), run(cpu, "0"));
        assert!(
            with.moves[moved] > 0 && with.moves == without.moves,
            "{:?}",
            with.moves
        );
        // It also touched its 245 pages for the first time.
        let more = with.busy_ns as f64 - without.busy_ns as f64 - 245.0 * 700.0;
        // Longer runs see a few more ticks, of 1.5 us each.
        within(more / with.moves[moved] as f64 / 1e3, us, 0.8 + us / 100.0);
    }
}

// ---- frequencies ----

/// schedutil goes where it is asked to, with a quarter added. A new task is estimated to use half
/// of its CPU, so speed s is 0.625 from the first tick. Utilisation u refers to the highest
/// frequency and approaches s with a half-life of 32 ms. It passes a half after 74 ms. From there s
/// = 1.25 u grows by e in 185 ms, and reaches 1 within 87. That loses 0.375 * 74 and about 0.2 * 87
/// ms, 45 in all. Steps, ticks of 4 ms and the lag of u add some.
#[test]
fn schedutil_follows_utilisation() {
    let model = model("e7-8870v4").unwrap();
    for policy in ["mainline", "eevdf"] {
        let lost = counts(policy, &model, "task a, cpus 0:\n    run 1s\n").result() - 1e9;
        within(lost, 55e6, 12e6);
    }
}

/// 3 ms of work and 1 ms of sleep. On a slow CPU that is busy most of the time, so schedutil is
/// asked for small steps. It settles where the CPU is busy for four fifths, one fifth being the
/// headroom. That is at three quarters of the highest frequency, in turns of 4 and 1 ms. Without
/// C6, which would make each sleep 0.13 ms longer.
#[test]
fn schedutil_is_asked_for_small_steps() {
    let mut model = model("e7-8870v4").unwrap();
    model.params.set("idle_deep", 0.0).unwrap();
    let text = "warmup 2s\nduration 2s\nmeasure rate turns\n\
        task a, cpus 0:\n    forever\n        run 3ms\n        sleep 1ms\n        count turns\n";
    within(counts("mainline", &model, text).result(), 200.0, 10.0);
}

/// A sched_ext scheduler that restarts when a CPU goes offline or comes back also has the highest
/// frequency. This lasts until it asks itself, at its first tick, for its guess of an unknown task:
/// 0.625 with the headroom. It restarts every 3 ms, and ticks are 4 ms apart: of 12 ms it has asked
/// for 2 and for 1. A step down comes at once, and one up too, since the restart stops the task,
/// and a step is due as the core becomes busy again. The first 0.5 of 100 ms it has 0.4. Without
/// restarts it would have 0.625 all the time.
#[test]
fn a_restarted_scheduler_has_the_highest_frequency() {
    let mut model = model("e7-8870v4").unwrap();
    // With steps of 0.5 ms, of any size.
    model.params = Params::of("*");
    for (name, value) in [("governor", 1.0), ("freq_step", 0.5)] {
        model.params.set(name, value).unwrap();
    }
    let text = "fault hotplug 3ms\ntask a, cpus 0:\n    run 100ms\n";
    let slower = counts("mainline", &model, text).result() / 100e6;
    let expected = 12.0 / (12.0 - 3.0 * 0.375) + 0.5 * 0.6 / 100.0;
    assert!((slower - expected).abs() < 0.005, "{slower}");
}

/// A core is as fast as the busy thread that asks for most.
#[test]
fn a_light_thread_does_not_slow_its_sibling_down() {
    let model = model("e7-8870v4").unwrap();
    let hog = "warmup 2s\nduration 2s\nmeasure rate turns\n\
        task a, cpus 0:\n    forever\n        run 1ms\n        count turns\n";
    let light = "task b, cpus 80:\n    forever\n        run 30us\n        sleep 5ms\n";
    let alone = counts("mainline", &model, hog).result();
    let beside = counts("mainline", &model, &format!("{hog}{light}")).result();
    within(beside, alone, alone / 50.0);
}

/// HWP: a core starts at 0.49 of the highest frequency and reaches that in ten steps of 1 ms. An
/// idle core goes down as fast. A step and a ramp lose 0.51 ms of each of ten, nine and so on
/// tenths.
#[test]
fn hardware_goes_up_while_a_core_is_busy_and_down_while_it_idles() {
    let mut model = model("tr-3970x").unwrap();
    for (name, value) in [("governor", 2.0), ("freq_ramp", 10.0), ("freq_step", 1.0)] {
        model.params.set(name, value).unwrap();
    }
    let text = |ms: u32| format!("task a, cpus 0:\n    run 1s\n    sleep {ms}ms\n    run 1s\n");
    let lost = |ms: u32| run_on(&model, &text(ms)).result() - 2e9 - f64::from(ms) * 1e6;
    let ramp = 5.5 * 0.51e6;
    let ticks = 0.75e6;
    within(lost(20) - ticks, 2.0 * ramp, 0.5e6);
    within(lost(1000) - ticks, 2.0 * ramp, 0.5e6);
    // In 3 ms it goes down by three of ten steps.
    within(lost(3) - ticks, ramp + 0.51e6 * (0.3 + 0.2 + 0.1), 0.3e6);
}

/// A CPU of half the capacity takes twice the time.
#[test]
fn a_small_cpu_is_slow() {
    let mut model = model("tr-3970x").unwrap();
    for cpu in model.machine.cpus.iter_mut().filter(|c| c.core == 1) {
        cpu.capacity = 512;
    }
    let time = |cpu: u16| run_on(&model, &format!("task a, cpus {cpu}:\n    run 100ms\n")).result();
    within(time(1) / time(0), 2.0, 0.01);
}

// ---- what userspace publishes ----

fn counts(preset: &str, model: &Model, text: &str) -> Measured {
    let scenario = Scenario {
        model,
        load: Load::parse(text, &Default::default()).unwrap(),
        policy: &Policy::parse(preset).unwrap(),
        seed: 1,
    };
    scenario.run().unwrap()
}

/// A machine whose cores take 30 ms from their lowest frequency, 0.4 of the highest, to that.
fn slow() -> Model {
    let mut model = model("e7-8870v4").unwrap();
    model.params = Params::of("*");
    for (name, value) in [("governor", 2.0), ("freq_ramp", 30.0), ("freq_step", 1.0)] {
        model.params.set(name, value).unwrap();
    }
    model
}

/// If every core idles at its lowest frequency, each fork is delayed whose child goes to another
/// CPU. If none is ever slow, userspace finds that all are fast, as soon as a tick has seen them.
/// The same in the kernel's fair class as in sched_ext.
#[test]
fn slow_cpus_delay_moves() {
    let text = "param run = 100us\nwarmup 2s\nduration 500ms\nmeasure rate forks\n\
        task child from a:\n    run run * 3\n\
        task a:\n    forever\n        fork child x 1\n        run run * 2\n        wait\n        sleep 5ms +- 20%\n        count forks\n";
    // So short that no step of a frequency comes meanwhile.
    let short = text.replace("100us", "20us");
    for class in ["", "eevdf:"] {
        let forks = |model: &Model, text: &str| {
            let policy = format!("{class}mainline+delay_migration");
            let m = counts(&policy, model, text);
            ["delay_fork", "delay_fast"].map(|name| counted(&m, name))
        };
        let fast = model("tr-3970x").unwrap();
        let (slow, fast) = (forks(&slow(), &short), forks(&fast, text));
        assert!(slow[0] > 50 && slow[1] == 0, "{class} {slow:?}");
        assert!(fast[0] == 0 && fast[1] > 50, "{class} {fast:?}");
    }
}

// ---- a machine of files ----

#[test]
fn a_machine_of_files_runs() {
    let tree = support::SMALL_SMT.tree();
    let model = Model::read(tree.root()).unwrap();
    assert_eq!(model.machine.cpus.len(), 8);
    let m = run_on(&model, "task a x 4:\n    run 100ms\n");
    within(m.result(), 100e6, 1e6);
    assert_eq!(m.shared_ns, 0);
    let error = format!(
        "{:#}",
        Model::read(std::path::Path::new("/nowhere")).unwrap_err()
    );
    assert!(error.contains("/nowhere"), "{error}");
}
