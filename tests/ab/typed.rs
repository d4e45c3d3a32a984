// SPDX-License-Identifier: GPL-2.0-only
//! The arguments of `scx_roost ab`: which are accepted, and which are refused in one sentence.

use crate::child::output;
use clap::Parser;
use scx_roost::ab::args::AbArgs;
use scx_roost::ab::stats::plan::{MAX_AUTO, Plan};
use scx_roost::ab::tasks::Task;
use scx_roost::cli;
use scx_roost::util::refusal::BadUsage;
use std::collections::BTreeMap;

#[derive(Debug, Parser)]
struct Typed {
    #[command(flatten)]
    args: AbArgs,
}

fn parsed(options: &str) -> Result<Typed, String> {
    let words = format!("ab --variant mainline --variant roost {options} -- true");
    Typed::try_parse_from(words.split_whitespace()).map_err(|e| e.to_string())
}

fn task(options: &str) -> Result<Task, String> {
    let task = parsed(options)?.args.task(BTreeMap::new());
    task.map_err(|e| format!("{e:#}"))
}

#[test]
fn a_run_may_take_days() {
    for secs in ["0.1", "7200", "2592000"] {
        let taken = task(&format!("--timeout {secs}")).unwrap();
        assert_eq!(taken.timeout.as_secs_f64(), secs.parse::<f64>().unwrap());
        assert_eq!(taken.header.timeout_s, taken.timeout.as_secs_f64());
    }
    assert_eq!(task("").unwrap().timeout.as_secs(), 3600);
    for secs in ["0", "2592001", "-1", "NaN", "inf", "soon"] {
        let told = parsed(&format!("--timeout={secs}")).unwrap_err();
        let known = "0.1 to 2592000 seconds, which are 30 days, are possible";
        assert!(told.contains(known), "{secs}: {told}");
    }
}

#[test]
fn the_plan_is_n() {
    for (typed, plan) in [
        ("", Plan::Fixed(15)),
        ("-n 8", Plan::Fixed(8)),
        ("-n auto", Plan::Auto(MAX_AUTO)),
        ("-n auto:24", Plan::Auto(24)),
    ] {
        assert_eq!(task(typed).unwrap().header.rule.plan, plan, "{typed}");
    }
    for gone in ["--n auto", "--blocks auto"] {
        parsed(gone).unwrap_err();
    }
    cli::parse("scx_roost tune -n auto -- make".split(' ')).unwrap();
}

/// Refused before any run, with the number that is enough: with fewer no p is low enough.
#[test]
fn a_plan_that_can_find_nothing_is_refused() {
    let two = "--metric wall --metric user";
    for (options, few, enough) in [("", 2, 3), (two, 3, 4)] {
        let args = parsed(&format!("{options} -n {few}")).unwrap().args;
        let told = args.task(BTreeMap::new()).unwrap_err();
        assert!(told.is::<BadUsage>());
        let why = format!(
            "-n {few}: so few runs find nothing, whatever is measured: give -n {enough} or more"
        );
        assert_eq!(told.to_string(), why);
        task(&format!("{options} -n {enough}")).unwrap();
    }
}

#[test]
fn time_is_compared_unless_something_else_is_asked_for() {
    let metrics = |options: &str| -> Vec<String> {
        let asked = task(options).unwrap().header.metrics;
        asked.into_iter().map(|asked| asked.metric).collect()
    };
    assert_eq!(metrics(""), ["wall"]);
    assert_eq!(metrics("--metric user"), ["user"]);
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let told = task("--metric regex:(").unwrap_err();
    assert_eq!(told, "metric regex:(: unclosed group");
    let told = parsed("-n 0").unwrap_err();
    assert!(
        told.contains("1 to 1000 runs, or auto, or auto:24 and more are possible"),
        "{told}"
    );
}

#[test]
fn json_is_no_mail() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no.jsonl");
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_scx_roost"));
    program.args(["ab", "show", "--lkml", "--json"]).arg(file);
    let output = output(&mut program);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("--json cannot be combined with --lkml"),
        "{told}"
    );
}
