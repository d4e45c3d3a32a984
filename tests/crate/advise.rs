// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost advise` on described machines.

use crate::support::{SMALL_SMT, Tree};
use serde_json::Value;
use std::process::{Command, Output};

fn advise(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
    command.arg("advise").args(args).output().unwrap()
}

#[test]
fn it_answers_with_what_was_simulated_and_how_sure_that_is() {
    let tree = SMALL_SMT.tree();
    let sysfs = tree.root().to_str().unwrap();
    let out = advise(&["messages", "workers", "--sysfs", sysfs]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{text}");
    let progress = String::from_utf8(out.stderr).unwrap();
    assert!(
        progress.contains("simulating 'workers', 2 of 2\n"),
        "{progress}"
    );
    let said = [
        "8 CPUs of 8 online, 4 cores, 2 LLCs, 1 node",
        "  messages ",
        "  workers ",
        "What to expect ",
        "What to start ",
        "Profile        server for messages, workers. ",
        "How sure ",
        "Here           ",
    ];
    let at = |what: &&str| {
        text.find(*what)
            .unwrap_or_else(|| panic!("no {what}: {text}"))
    };
    assert!(said.iter().map(at).is_sorted(), "{text}");
    let choice = text
        .lines()
        .find(|l| l.starts_with("What to start"))
        .unwrap();
    let measured = text.lines().find(|l| l.contains("YOUR COMMAND")).unwrap();
    let preset = match choice.split_once(" preset ") {
        Some((_, rest)) => rest.split(' ').next().unwrap(),
        None => "roost",
    };
    assert!(
        measured.contains(&format!("--variant eevdf --variant {preset} ")),
        "{text}"
    );
    assert!(text.lines().count() <= 32, "{text}");
    let prose = text
        .lines()
        .filter(|line| !line.starts_with("  scx_roost sim "));
    assert!(prose.map(str::len).max() <= Some(100), "{text}");
}

#[test]
fn its_json_has_every_preset_and_the_command_that_repeats_a_load() {
    let tree = SMALL_SMT.tree();
    let sysfs = tree.root().to_str().unwrap();
    let out = advise(&["messages", "--sysfs", sysfs, "--json"]);
    let advice: Value = serde_json::from_slice(&out.stdout).unwrap();
    let load = &advice["loads"][0];
    let presets = load["effects"].as_array().unwrap().iter();
    let presets: Vec<&str> = presets.filter_map(|e| e["preset"].as_str()).collect();
    assert_eq!(presets.len(), 6, "{advice}");
    assert_eq!(
        (presets[0], &load["unit"]),
        ("roost", &"messages a second".into())
    );
    let repeat = load["command"].as_str().unwrap();
    let repeat = format!("{repeat} --variant eevdf --variant roost --seeds 8 --json");
    let words = repeat.split(' ').skip(1);
    let again = Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(words)
        .output()
        .unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(
        again["rows"][1]["gain_percent"],
        load["effects"][0]["gain_percent"]
    );
}

#[test]
fn one_cpu_has_an_answer() {
    let tree = Tree::new(&[0], &[0]);
    tree.core(0, &[0]);
    tree.cache(0, 0, "Unified", 3, &[0], "16384K");
    let sysfs = tree.root().to_str().unwrap();
    let out = advise(&["--sysfs", sysfs]);
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(
        out.status.success() && text.contains("1 CPU of 1"),
        "{text}"
    );
    assert!(
        !text.contains("NaN") && !text.contains("inf") && !text.contains("-0.0"),
        "{text}"
    );
    // The option may come before the command.
    let mut before = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
    let before = before.args(["--sysfs", sysfs, "advise", "game", "--json"]);
    let advice: Value = serde_json::from_slice(&before.output().unwrap().stdout).unwrap();
    assert!(
        advice["machine"]
            .as_str()
            .unwrap()
            .starts_with("1 CPU of 1"),
        "{advice}"
    );
}

#[test]
fn bad_input_is_one_sentence() {
    for (args, said, status) in [
        (
            &["biuld"][..],
            "there is no load 'biuld': did you mean 'build'?",
            2,
        ),
        (&["game", "game"], "is named twice", 2),
        (&[""], "there is no load ''", 2),
        (&["game", "--params", "/nowhere"], "--params /nowhere: ", 1),
        (&["--sysfs", "/nowhere"], "/nowhere/", 1),
        (
            &["./nothing.load"],
            "cannot read the workload ./nothing.load",
            1,
        ),
        (&["--measure", "--json"], "cannot be used with", 2),
    ] {
        let out = advise(args);
        let error = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(status), "{args:?}: {error}");
        assert!(error.contains(said), "{args:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    }
}
