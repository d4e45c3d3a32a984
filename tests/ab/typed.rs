// SPDX-License-Identifier: GPL-2.0-only
//! The arguments of `scx_roost ab`: which are accepted, and which are refused in one sentence.

use crate::child::output;
use clap::Parser;
use scx_roost::ab::args::AbArgs;
use scx_roost::ab::design::Settle;
use scx_roost::ab::stats::plan::{MAX_AUTO, Plan};
use scx_roost::ab::tasks::Task;
use scx_roost::cli;
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
    let tasks = parsed(options)?.args.tasks("roost".into(), BTreeMap::new());
    tasks
        .map(|mut tasks| tasks.remove(0))
        .map_err(|e| format!("{e:#}"))
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
fn blocks_are_n_with_one_dash_or_two() {
    for typed in ["-n auto", "--n auto", "--n=auto", "--blocks auto"] {
        let plan = task(typed).unwrap().header.rule.plan;
        assert_eq!(plan, Plan::Auto(MAX_AUTO), "{typed}");
    }
    cli::parse("scx_roost tune --n auto -- make".split(' ')).unwrap();
}

#[test]
fn runs_settle_unless_that_is_declined() {
    let settle = |options: &str| task(options).unwrap().header.settle;
    let idle = task("--unsettled").unwrap_err();
    assert!(
        idle.starts_with("--unsettled does nothing with two variants"),
        "{idle}"
    );
    assert_eq!(settle(""), Settle::Blocks);
    let three = "--variant mainline+claim=on";
    assert_eq!(settle(three), Settle::Runs);
    assert_eq!(settle(&format!("{three} --unsettled")), Settle::Nowhere);
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let told = task("--metric regex:(").unwrap_err();
    assert_eq!(told, "metric regex:(: unclosed group");
    let told = parsed("-n 0").unwrap_err();
    assert!(
        told.contains("1 to 10000 blocks, or auto, or auto:24 and more are possible"),
        "{told}"
    );
}

/// Tasks with these options and this command.
fn tasks(options: &[&str], command: &[&str]) -> Result<Vec<Task>, String> {
    let begin = ["ab", "--variant", "mainline", "--variant", "roost"];
    let words = [&begin, options, &["--"], command].concat();
    let typed = Typed::try_parse_from(words).map_err(|e| e.to_string())?;
    let tasks = typed.args.tasks("roost".into(), BTreeMap::new());
    tasks.map_err(|e| format!("{e:#}"))
}

/// A parameter makes a comparison for each of its values, or for each combination.
#[test]
fn a_parameter_is_a_suite() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("ab.jsonl").display().to_string();
    let both = ["--parameter", "jobs=4,8", "--parameter", "file=a/b,c"];
    let rest = ["--prepare", "rm {file}", "--result", &result];
    let made = tasks(
        &[&both[..], &rest].concat(),
        &["make", "-j{jobs}", "{file}"],
    )
    .unwrap();
    let of = |task: &Task| {
        let header = &task.header;
        let file = task
            .result
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let prepare = header.hooks.prepare.clone().unwrap();
        assert_eq!(header.rule.suite, 4);
        [header.command.join(" "), prepare, file]
    };
    assert_eq!(
        made.iter().map(of).collect::<Vec<_>>(),
        [
            ["make -j4 a/b", "rm a/b", "ab-jobs=4,file=ab-1.jsonl"],
            ["make -j4 c", "rm c", "ab-jobs=4,file=c.jsonl"],
            ["make -j8 a/b", "rm a/b", "ab-jobs=8,file=ab-3.jsonl"],
            ["make -j8 c", "rm c", "ab-jobs=8,file=c.jsonl"],
        ]
    );
}

#[test]
fn a_parameter_that_is_nowhere_is_refused() {
    let told = tasks(&["--parameter", "jobs=4,8"], &["make"]).unwrap_err();
    assert_eq!(
        told,
        "--parameter jobs: the command has no {jobs}, where its values would be"
    );
    for wrong in [
        "jobs",
        "jobs=",
        "jobs=4",
        "jobs=4,4",
        "=4,8",
        "a b=4,8",
        "jobs=4,,8",
    ] {
        let told = tasks(&["--parameter", wrong], &["make", "{jobs}"]).unwrap_err();
        assert!(
            told.contains("expected NAME=VALUE,VALUE,... with"),
            "{wrong}: {told}"
        );
    }
    let told = tasks(&["--parameter", "size=a!,a-1"], &["make", "{size}"]).unwrap_err();
    assert_eq!(
        told,
        "two combinations of parameters have one name for their result file, size=a-1: give other values"
    );
    let twice = ["--parameter", "jobs=4,8", "--parameter", "jobs=1,2"];
    let told = tasks(&twice, &["make", "{jobs}"]).unwrap_err();
    assert_eq!(told, "--parameter jobs is given twice");
}

#[test]
fn json_is_no_mail_and_no_table() {
    for form in ["--lkml", "--csv"] {
        let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_scx_roost"));
        let output = output(program.args(["ab", "show", form, "--json", "no.jsonl"]));
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(
            told.contains("--json cannot be combined with --lkml or --csv"),
            "{told}"
        );
    }
}
