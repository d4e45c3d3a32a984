// SPDX-License-Identifier: GPL-2.0-only
//! Runs whose outcome is known: by arithmetic, or by the sign that the sources found.

use roost_sim::load::Load;
use roost_sim::{Measured, Params, Policy, Scenario, WORKLOADS, model};
use scx_roost::native::stat_of;

pub fn run(text: &str, params: &[(&str, i64)], policy: &str, seed: u64) -> Measured {
    let params = params
        .iter()
        .map(|(name, value)| (name.to_string(), *value));
    let load = Load::parse(text, &params.collect()).unwrap();
    scenario(load, policy, seed).unwrap()
}

pub fn scenario(load: Load, policy: &str, seed: u64) -> anyhow::Result<Measured> {
    scenario_with(load, policy, seed, &[])
}

/// The same, with parameters of the machine.
pub fn scenario_with(
    load: Load,
    policy: &str,
    seed: u64,
    params: &[(&str, f64)],
) -> anyhow::Result<Measured> {
    let mut model = model("tr-3970x").unwrap();
    for (name, value) in params {
        model.params.set(name, *value).unwrap();
    }
    let scenario = Scenario {
        model: &model,
        load,
        policy: &Policy::parse(policy).unwrap(),
        seed,
    };
    scenario.checked()
}

pub fn workload(name: &str) -> &'static str {
    WORKLOADS.iter().find(|(n, _)| *n == name).unwrap().1
}

/// The speed of a thread beside a busy one, on this machine.
pub fn smt() -> f64 {
    Params::of("tr-3970x").part("smt_speed")
}

/// Within this many percent.
pub fn near(got: f64, expected: f64, percent: f64) {
    let off = (got / expected - 1.0) * 100.0;
    assert!(
        off.abs() <= percent,
        "{got}, expected {expected}: {off:.2} % off"
    );
}

#[test]
fn one_task_alone_has_a_core_at_full_speed() {
    let m = run("task a:\n    run 1s\n", &[], "mainline", 1);
    near(m.result(), 1e9, 0.2);
    assert_eq!(m.shared_ns, 0);
}

/// The parent forks four tasks, each 30 us after the one before. Each touches 1 MB first, 245 pages
/// of 0.7 us. The last ends last. All but the first wake another CPU, from a shallow idle state.
#[test]
fn tasks_start_one_after_another_and_touch_their_memory() {
    let of = |set: &str, count: u64| {
        let text = format!("task a x {count}, set {set}:\n    run 1ms\n");
        let load = Load::parse(&text, &Default::default()).unwrap();
        let shallow = [("idle_deep", 0.0)];
        scenario_with(load, "eevdf", 1, &shallow).unwrap().result()
    };
    near(of("1MB", 1) - of("0", 1), 245.0 * 700.0, 0.1);
    near(of("0", 4) - of("0", 1), 3.0 * 30_000.0, 5.0);
}

/// The measurement starts and ends exactly on time, not at the event before or at the last one, a
/// tick away.
#[test]
fn what_is_measured_is_all_of_the_duration() {
    for policy in ["mainline", "roost", "eevdf"] {
        let of = |step: &str| {
            let text = format!("warmup 1100us\nduration 3ms\ntask a:\n    {step} 1s\n");
            let m = run(&text, &[], policy, 1);
            (m.ns(), m.busy_ns)
        };
        assert_eq!(of("run"), (3_000_000, 3_000_000), "{policy}");
        assert_eq!(of("sleep"), (3_000_000, 0), "{policy}");
    }
}

/// Tasks still owe their time after they slept. Otherwise they would run one after the other, and
/// the hog would wait.
#[test]
fn sleepers_leave_a_hog_its_share() {
    let text = "duration 2s\ntask sleeper x 9, cpus 0:\n    forever\n        run 536us\n        sleep 849us +- 30%\n\
                measure rate turns\ntask hog, cpus 0:\n    forever\n        run 500us\n        count turns\n";
    for preset in ["mainline", "roost", "eevdf"] {
        // 2,000 turns a second, for one task of ten.
        let turns = run(text, &[], preset, 1).result();
        assert!(turns > 180.0, "{preset}: {turns}");
    }
}

pub fn counted(m: &Measured, name: &str) -> u64 {
    m.counters[stat_of(name).unwrap() as usize]
}

/// The waker itself puts its wakee on the run queue. If it then sleeps, its CPU goes from one to
/// the other.
#[test]
fn a_task_that_sleeps_after_a_wakeup_leaves_its_cpu_to_the_wakee() {
    let text = "duration 50ms\nsocket to\nsocket back\nmeasure rate answers\ntask server:\n    forever\n        receive to\n        \
                run 20us\n        send back\ntask client:\n    forever\n        send to\n        receive back\n        count answers\n";
    let m = run(text, &[], "mainline+sync_local=on", 1);
    let local = counted(&m, "sync_local");
    assert!(local > 1000);
    // It does go idle for a moment where the pair was separated: at first, and when a slice ends.
    assert!(20 * counted(&m, "dispatch_none") < local);
}

/// 100 children, and as many wakeups of the waiting parent. None finds an idle CPU, because the
/// child still runs on the only one (kernel: exit_notify() before do_task_dead()).
#[test]
fn an_exiting_task_wakes_its_parent_while_it_runs() {
    let text = "task child from a, cpus 0:\n    run 1ms\ntask a, cpus 0:\n    repeat 100\n        fork child\n        wait\n";
    let m = run(text, &[], "mainline", 1);
    let queued = counted(&m, "enq_queued");
    // Except for a child that had ended before the parent waited, because a tick came between.
    assert!((190..=200).contains(&queued), "{queued}");
}

/// 32 pairs on as many cores, some of which threads of each CPU have put on a shared core. When one
/// task of a pair is moved, its partner follows.
#[test]
fn pairs_that_wake_each_other_have_a_core_each() {
    let (even, short) = (("16 exp", "16 +- 50%"), ("duration 2s", "duration 300ms"));
    let shipped = workload("pogocache");
    assert!(shipped.contains(even.0) && shipped.contains(short.0));
    let pairs = shipped.replace(even.0, even.1).replace(short.0, short.1);
    let noise = |cpu: u32| {
        format!(
            "task noise{cpu}, cpus {cpu}:\n    forever\n        sleep 50ms exp\n        run 20us\n"
        )
    };
    let text = pairs + &(0..64).map(noise).collect::<String>();
    let m = run(&text, &[], "roost", 1);
    let shared = 100 * m.shared_ns / m.busy_ns;
    assert!(shared <= 8, "{shared} % of the time on a shared core");
}

#[test]
fn two_on_a_core_slow_each_other_down() {
    let m = run(
        "task a, cpus 0:\n    run 1s\ntask b, cpus 32:\n    run 1s\n",
        &[],
        "mainline",
        1,
    );
    near(m.result(), 1e9 / smt(), 0.3);
    near(m.shared_ns as f64, m.busy_ns as f64, 0.1);
}

/// 64 CPUs of 32 full cores.
#[test]
fn tasks_that_never_sleep_fill_the_machine() {
    let hogs = "param n = 128\nwarmup 100ms\nduration 1s\nmeasure rate turns\n\
                task hog x n:\n    forever\n        run 100us\n        count turns\n";
    let full = 64.0 * smt() * 1e4;
    for preset in ["mainline", "roost"] {
        near(run(hogs, &[], preset, 1).result(), full, 3.0);
        near(run(hogs, &[("n", 64)], preset, 1).result(), full, 3.0);
    }
    let half = run(hogs, &[("n", 32)], "roost", 1);
    near(half.result(), 32.0 * 1e4, 3.0);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let of = |seed| {
        let m = run(workload("algorithm3"), &[], "roost", seed);
        (
            m.events,
            m.marks,
            m.busy_ns,
            m.shared_ns,
            m.switches,
            m.moves,
        )
    };
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
}

/// Roy v7 (source 003): algorithm3 with workers for half of the CPUs, and for 31.25 % of them, is
/// faster if prev_core keeps workers on separate cores. Tests the sign and the cause: less time on
/// shared cores.
#[test]
fn prev_core_keeps_workers_apart() {
    for workers in [32, 20] {
        let of = |preset| run(workload("algorithm3"), &[("workers", workers)], preset, 1);
        let (mainline, roy, roost) = (of("mainline"), of("roy-v7"), of("roost"));
        let shared = |m: &Measured| m.shared_ns as f64 / m.busy_ns as f64;
        for better in [&roy, &roost] {
            assert!(
                better.result() > 1.02 * mainline.result(),
                "{workers} workers"
            );
            assert!(
                shared(better) < shared(&mainline) / 2.0,
                "{workers} workers"
            );
        }
    }
}

#[test]
fn a_deadlock_is_reported() {
    let text = "pipe p\ntask a x 2:\n    receive p\n";
    let scenario = Scenario {
        model: &model("tr-3970x").unwrap(),
        load: Load::parse(text, &Default::default()).unwrap(),
        policy: &Policy::parse("roost").unwrap(),
        seed: 1,
    };
    let error = scenario.run().expect_err("no task sends").to_string();
    assert!(
        error.contains("2 tasks wait, and nothing will wake them"),
        "{error}"
    );
}

/// A task that never works or waits is an error, after a while.
#[test]
fn a_loop_without_work_is_reported() {
    for steps in ["count x", "run 0us\n        count x"] {
        let text =
            format!("duration 10ms\ntask a x 2:\n    sleep 2ms\n    forever\n        {steps}\n");
        let run = scenario(
            Load::parse(&text, &Default::default()).unwrap(),
            "mainline",
            1,
        );
        let error = run.expect_err(steps).to_string();
        assert!(
            error.starts_with("a 0 loops without work or a wait: 100000 steps at 2 ms"),
            "{error}"
        );
    }
}

#[test]
fn too_many_forks_are_reported() {
    let text = "task child from parent:\n    sleep 1s\ntask parent:\n    fork child x 9000\n";
    let load = Load::parse(text, &Default::default()).unwrap();
    let error = scenario(load, "mainline", 1).expect_err("8192 at once");
    let told = "the workload has more than 8193 tasks at once";
    assert!(error.to_string().contains(told), "{error}");
}

#[test]
fn missing_cpus_are_reported() {
    let text = "task a, cpus 3, 0-64:\n    run 1ms\n";
    let load = Load::parse(text, &Default::default()).unwrap();
    let error = scenario(load, "mainline", 1).expect_err("it has 64");
    let told = "a may use CPU 64, and the machine has CPUs 0 to 63";
    assert_eq!(error.to_string(), told);
}

/// All of the sources' workloads run and give a result, except hackbench: its 1,280 tasks take half
/// a minute.
#[test]
fn every_workload_runs() {
    for (name, text) in WORKLOADS {
        if name == "hackbench" {
            continue;
        }
        let m = run(text, &[], "roost", 1);
        assert!(m.result() > 0.0, "{name}");
    }
}
