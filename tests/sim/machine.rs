// SPDX-License-Identifier: GPL-2.0-only
//! The machine around the policy: each mechanism alone, against figures from its parameters.

use scx_roost::sim::load::Load;
use scx_roost::sim::{MACHINES, Measured, Model, Params, Policy, Scenario, model};

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
        (0.55, 0.6, 0.6)
    );
    // 133 us of the machine, in each of its modes; the kworker of one.
    for mode in ["active", "passive", "powersave"] {
        let params = Params::of(&format!("e7-8870v4/{mode}"));
        assert_eq!(params.ns("idle_deep_exit"), 133_000);
        let kworker = if mode == "passive" { 4_000_000 } else { 0 };
        assert_eq!(params.ns("kworker_period"), kworker, "{mode}");
    }
}

#[test]
fn parameters_are_set_within_their_range() {
    let mut params = Params::of("tr-3970x");
    params.change("smt_speed=0.6").unwrap();
    params.set("tick_period", 1.0).unwrap();
    assert_eq!(
        (params.part("smt_speed"), params.ns("tick_period")),
        (0.6, 1_000_000)
    );
    let one = params.get("smt_speed").unwrap();
    assert_eq!((one.default, one.low, one.high), (0.55, 0.5, 0.7));
    for (text, told) in [
        ("smt_speed", "--param smt_speed: NAME=VALUE was expected"),
        (
            "smt_speed=fast",
            "--param smt_speed=fast: fast is no number",
        ),
        (
            "smt_speed=0.71",
            "smt_speed of tr-3970x is from 0.5 to 0.7 part, not 0.71",
        ),
        ("smt_speed=nan", "not NaN"),
        (
            "freq_max=4600",
            "freq_max of tr-3970x is 4500 MHz, and nothing else",
        ),
        ("smt=0.6", "there is no parameter smt; --list shows"),
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
    assert!(any.len() > 50);
    for (machine, _) in MACHINES {
        assert_eq!(names(machine), any, "{machine}");
    }
}

// ---- machines ----

/// HEURISTICS.md 10.
#[test]
fn the_machines_of_the_sources() {
    for (name, nodes, llcs, cores, cpus) in [
        ("tr-3970x", 1, 8, 32, 64),
        ("ryzen-3400g", 1, 1, 4, 8),
        ("e7-8870v4/active", 4, 4, 80, 160),
        ("epyc-9654-2s", 2, 24, 192, 384),
        ("epyc-zen3-2s", 2, 16, 128, 256),
        ("fleming-2x24", 2, 2, 24, 48),
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

/// A task for each CPU, for a second: all are used, and no more than there are.
#[test]
fn every_machine_runs() {
    for (name, _) in MACHINES {
        let model = model(name).unwrap();
        let cpus = model.machine.cpus.len();
        let text = format!(
            "duration 50ms\nmeasure rate turns\ntask a x {cpus}:\n    forever\n        run 1ms\n        count turns\n"
        );
        let m = run_on(&model, &text);
        let used = m.busy_ns as f64 / m.ns() as f64 / cpus as f64;
        assert!((0.9..=1.0).contains(&used), "{name}: {used}");
    }
}
