// SPDX-License-Identifier: GPL-2.0-only
//! The command line of `roost-sim`.

use roost_sim::{Asked, Policy, Wanted, parse, run};
use scx_roost::policy::features::{FITS_MARGIN, FITS_RT, bits};
use scx_roost::policy::settings::Settings;
use std::process::Command;

fn wanted(args: &str) -> anyhow::Result<Wanted> {
    let words = format!("roost-sim {args}");
    match parse(words.split_whitespace().map(String::from))? {
        Asked::Run { wanted, .. } => Ok(*wanted),
        other @ Asked::Text(_) => panic!("{other:?}"),
    }
}

#[test]
fn what_is_typed_is_run() {
    let args = "primesieve --set threads=2 --variant mainline --variant roost+claim=off --seeds 2 --seed 5";
    let Wanted::Compare(plan) = wanted(args).unwrap() else {
        panic!("{args}");
    };
    assert_eq!(plan.seeds, 5..7);
    let report = run(&plan).unwrap();
    let names: Vec<&str> = report.rows.iter().map(|r| r.variant.as_str()).collect();
    assert_eq!(names, ["mainline", "roost+claim=off"]);
    assert_eq!(report.rows[0].results.len(), 2);
    // 2 s of work each, on separate cores.
    assert!((report.rows[1].mean / 2e9 - 1.0).abs() < 0.01);
    assert!(report.text().contains("A model, not a measurement"));
    // Two tasks begin, and find idle CPUs.
    let counters = &report.rows[0].counters;
    assert_eq!((counters["fork_idle"], counters["enq_idle"]), (2.0, 2.0));
    assert!(report.counters().contains("\nfork_idle "));
}

/// Four jobs on 16 cores of two threads: powersave lets one more core sleep deeply.
#[test]
fn powersave_lets_cores_sleep() {
    let args = "desktop --machine ryzen-9950x3d --set jobs=4 --variant roost --variant powersave";
    let Wanted::Compare(plan) = wanted(args).unwrap() else {
        panic!("{args}");
    };
    let report = run(&plan).unwrap();
    let deep: Vec<f64> = report
        .rows
        .iter()
        .filter_map(|row| row.deep_cores)
        .collect();
    assert!(deep[0] > 11.0 && deep[1] > deep[0] + 0.8, "{deep:?}");
    assert!(deep[1] + report.rows[1].busy_cpus / 2.0 < 16.0, "{deep:?}");
    assert!(report.counters().contains("\ndeep_cores "));
}

#[test]
fn what_is_wrong_is_one_sentence() {
    for (args, told) in [
        ("", "WORKLOAD"),
        (
            "nope",
            "there is no workload nope: --list shows the workloads",
        ),
        ("./nope.load", "cannot read the workload ./nope.load"),
        (
            "nas --machine x",
            "there is no machine x: expected one of tr-3970x",
        ),
        ("nas --variant x", "variant x: unknown preset 'x'"),
        (
            "nas --variant roost+x=off",
            "variant roost+x=off: there is no feature or tunable x",
        ),
        (
            "nas --variant eevdf:x",
            "variant eevdf:x: unknown preset 'x'",
        ),
        ("nas --variant roost+fits-margin=100", "fits-margin 100: "),
        (
            "nas --variant roost+claim=maybe",
            "claim must be on or off, not maybe",
        ),
        ("nas --set ranks", "--set ranks: PARAM=VALUE was expected"),
        (
            "nas --set rank=3",
            "there is no param rank: did you mean 'ranks'?",
        ),
        (
            "nas --set step=3",
            "--set step=3: a time in ns, us, ms or s was expected",
        ),
        (
            "nas --set ranks=3ms",
            "--set ranks=3ms: a number without a unit was expected",
        ),
        (
            "nas --window 500",
            "a time above 0 was expected, such as 500us",
        ),
        ("nas --seeds 0", "0 is not in 1..=1000"),
    ] {
        let error = wanted(args).map(|_| ()).expect_err(args);
        let error = format!("{error:#}");
        assert!(error.contains(told), "{args}: {error}");
    }
    assert!(matches!(wanted("--list").unwrap(), Wanted::List));
}

/// Errors of the command line, of names, and of a file: the exit status, and one line.
#[test]
fn an_error_is_one_line_with_its_status() {
    for (args, status, told) in [
        ("tbenc", 2, "'tbench'"),
        ("tbench --machine tr-3970", 2, "'tr-3970x'"),
        ("tbench --variant mainlin", 2, "'mainline'"),
        ("tbench --param smt=1", 2, "there is no parameter smt"),
        ("tbench --param smt_spee=1", 2, "'smt_speed'"),
        ("tbench --set clents=1", 1, "'clients'"),
        ("tbench --seed -1", 2, "expected a whole number from 0 on"),
        (
            "tbench --seed 99999999999999999999999",
            2,
            "expected a smaller number",
        ),
        ("fork --seeds 0", 2, "see roost-sim --help"),
        ("/dev/zero", 1, "/dev/zero"),
        ("/dev/null/x.json", 1, "/dev/null/x.json"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_roost-sim"))
            .args(args.split(' '))
            .output()
            .expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args}: {stderr}");
        assert!(stderr.starts_with("roost-sim: "), "{args}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args}: {stderr}");
        assert!(stderr.contains(told), "{args}: {stderr}");
        assert!(output.stdout.is_empty(), "{args}");
    }
    let help = parse(["roost-sim", "--help"]).expect("help is no error");
    assert!(matches!(help, Asked::Text(text) if text.contains("--matrix")));
}

#[test]
fn a_report_is_read_at_a_glance() {
    let Wanted::Compare(plan) =
        wanted("primesieve --set threads=2 --variant roost --variant roost --seeds 1").unwrap()
    else {
        panic!("it is a plan");
    };
    let mut report = run(&plan).unwrap();
    report.rows[1].gain_percent = -0.04;
    let text = report.text();
    assert!(
        text.contains("; s until the last task has ended\n"),
        "{text}"
    );
    let second = text.lines().nth(4).unwrap();
    let cells: Vec<&str> = second.split_whitespace().collect();
    assert!(cells[1].starts_with("2.0") && cells[2] == "0.0%", "{text}");
    // --json keeps the unit.
    assert_eq!(report.unit, "ns until the last task has ended");
}

/// Every option has an effect or is refused.
#[test]
fn options_that_would_be_ignored_are_refused() {
    let of_runs = [
        "nas",
        "--machine ryzen-3400g",
        "--sysfs /sys",
        "--variant roost",
        "--set ranks=3",
        "--counters",
        "--svg x",
        "--window 1ms",
        "--check",
    ];
    for mode in ["--matrix", "--swarm 1", "--list"] {
        for option in of_runs {
            assert!(
                wanted(&format!("{mode} {option}")).is_err(),
                "{mode} {option}"
            );
        }
    }
    for mode in ["--swarm 1", "--list"] {
        for option in ["--seeds 5", "--seed 5", "--param smt_speed=0.6"] {
            assert!(
                wanted(&format!("{mode} {option}")).is_err(),
                "{mode} {option}"
            );
        }
    }
    for option in ["--short", "--swarm-count 2", "--window 1ms"] {
        assert!(wanted(&format!("nas {option}")).is_err(), "nas {option}");
    }
    for args in [
        "--matrix --short --seeds 2 --seed 7 --param smt_speed=0.6",
        "--swarm 3 --swarm-count 2",
        "nas --svg x --window 1ms",
    ] {
        assert!(wanted(args).is_ok(), "{args}: {:?}", wanted(args));
    }
}

#[test]
fn a_variant_is_a_policy() {
    let features = |preset: &str| Settings::of_preset(preset).unwrap().features;
    let fair = |name: &str| match Policy::parse(name).unwrap() {
        Policy::Fair(settings) => settings.features,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(fair("eevdf"), features("mainline"));
    assert_eq!(fair("eevdf:roy-v7"), features("roy-v7"));
    let claims = features("mainline").with(bits::claim);
    assert_eq!(fair("eevdf+claim=on"), claims);
    assert_eq!(fair("eevdf:mainline+claim"), claims);
    let Policy::Ext(settings) = Policy::parse("desnoyers+fits-margin=20+fits-rt=1").unwrap() else {
        panic!("a preset is the policy in sched_ext");
    };
    assert_eq!(settings.value(&FITS_MARGIN, 64), 20);
    assert_eq!(settings.value(&FITS_RT, 64), 1);
}
