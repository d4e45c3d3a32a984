// SPDX-License-Identifier: GPL-2.0-only
//! Configuration files and a running scheduler: what they begin with, reading them again, and
//! saving what ctl has changed.

use super::*;
use scx_roost::cli::{Command as Parsed, parse};
use scx_roost::policy::features::bits;
use std::path::Path;

/// A scheduler that has begun with the files of this folder, and its folder.
fn begun(files: &[(&str, &str)]) -> (Served, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("config.d")).unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    (begun_in(dir.path()), dir)
}

fn begun_in(folder: &Path) -> Served {
    let words = ["scx_roost", "--config", folder.to_str().unwrap()];
    let Parsed::Run { config, origin, .. } = parse(words).unwrap() else {
        panic!("expected to run")
    };
    let served = serve();
    let plan = scx_roost::policy::plan::Plan {
        everybody: config.settings.clone(),
        arms: config.arms.clone(),
        rules: config.rules.clone(),
    };
    served.control.begin(plan, origin).unwrap();
    served.control.publish().unwrap();
    served
}

const GAMES: &str = "slice-us = 1000\n[arms.games]\npreset = 'mainline'\n\
                     [[rules]]\ncomm = 'Game*'\narm = 'games'\n";

fn shown(served: &Served) -> (Value, String) {
    let show = served.done(&["ctl", "show", "--json"]);
    let mut show: Value = serde_json::from_str(&show).unwrap();
    show["generation"] = Value::Null;
    (show, served.done(&["ctl", "rules"]))
}

#[test]
fn files_give_arms_and_rules_at_the_start() {
    let (served, _dir) = begun(&[("config.toml", GAMES)]);
    let (show, rules) = shown(&served);
    assert_eq!(show["arms"][0]["tunables"]["slice-us"], 1000);
    assert_eq!(show["arms"][1]["name"], "games");
    assert_eq!(show["arms"][1]["preset"], "mainline");
    assert_eq!(show["arms"][1]["tunables"]["slice-us"], 1000);
    assert_eq!(rules, "--comm Game* --arm games\n");
}

#[test]
fn reading_again_keeps_what_ctl_has_changed() {
    let (served, dir) = begun(&[("config.toml", GAMES)]);
    served.done(&[
        "ctl",
        "set",
        "--disable",
        "claim",
        "--set",
        "min-slice-us=150",
    ]);
    served.done(&["ctl", "set", "--arm", "games", "--set", "slice-us=9000"]);
    served.done(&["ctl", "arms", "add", "own"]);
    served.done(&["ctl", "rules", "add", "--comm", "cc1", "--arm", "own"]);
    let text = "slice-us = 2000\nmin-slice-us = 200\nenable = ['util_fits', 'claim']\n\
                [arms.games]\n[arms.builds]\n\
                [[rules]]\ncomm = 'make'\narm = 'builds'\n[[rules]]\ncomm = 'cc1'\narm = 'games'\n";
    std::fs::write(dir.path().join("config.toml"), text).unwrap();
    served.done(&["ctl", "reload"]);
    let (show, rules) = shown(&served);
    let arm = |name: &str| {
        let arms = show["arms"].as_array().unwrap().iter();
        arms.clone()
            .find(|arm| arm["name"] == name)
            .unwrap()
            .clone()
    };
    let everybody = arm("default");
    assert_eq!(everybody["tunables"]["slice-us"], 2000);
    assert_eq!(everybody["tunables"]["min-slice-us"], 150);
    let features = everybody["features"].as_str().unwrap();
    assert!(
        features.contains("util_fits") && !features.contains(" claim"),
        "{features}"
    );
    assert_eq!(arm("games")["tunables"]["slice-us"], 9000);
    assert_eq!(arm("games")["preset"], "roost");
    assert_eq!(arm("builds")["tunables"]["slice-us"], 2000);
    assert_eq!(arm("own")["tunables"]["slice-us"], 1000);
    assert_eq!(rules, "--comm make --arm builds\n--comm cc1 --arm own\n");
    assert_ne!(served.features(0) & bits::util_fits.0, 0);
    // The file alone decides what a reset returns to.
    served.done(&["ctl", "reset"]);
    let (show, _) = shown(&served);
    assert_eq!(show["arms"][0]["tunables"]["min-slice-us"], 200);
}

#[test]
fn arms_that_a_file_no_longer_has_go_unless_a_rule_of_ctl_needs_them() {
    let (served, dir) = begun(&[("config.toml", "[arms.a]\n[arms.b]\n")]);
    served.done(&["ctl", "rules", "add", "--comm", "x", "--arm", "b"]);
    std::fs::write(dir.path().join("config.toml"), "").unwrap();
    served.done(&["ctl", "reload"]);
    let arms = served.done(&["ctl", "arms"]);
    assert!(!arms.contains("\na ") && arms.contains("\nb "), "{arms}");
}

#[test]
fn a_bad_file_changes_nothing() {
    let (served, dir) = begun(&[("config.toml", GAMES)]);
    served.done(&["ctl", "set", "--set", "slice-us=900"]);
    for (text, expected) in [
        ("slice-us = 1", "config.toml, line 1: slice-us 1: 100 to"),
        (
            "[arms.x]\nenable = ['claims']",
            "config.toml, line 2: unknown feature 'claims'",
        ),
        (
            "min-slice-us = 5000",
            "slice-us 900 is below min-slice-us 5000",
        ),
        (
            "[[rules]]\ncgroup = '/tmp/x'\narm = 'default'",
            "cgroup /tmp/x: ",
        ),
    ] {
        std::fs::write(dir.path().join("config.toml"), text).unwrap();
        let told = served.refused(&["ctl", "reload"]);
        assert!(told.contains(expected), "{told}");
        let before = shown(&served);
        served.control.read_again();
        assert_eq!(shown(&served), before);
    }
    let frozen = serve_with(true);
    assert!(
        frozen
            .refused(&["ctl", "reload"])
            .contains("without a configuration")
    );
}

#[test]
fn what_is_saved_is_there_after_a_restart() {
    let (served, dir) = begun(&[("config.toml", GAMES)]);
    let nothing = served.refused(&["ctl", "save"]);
    assert!(nothing.contains("nothing to save"), "{nothing}");
    served.done(&[
        "ctl",
        "set",
        "--profile",
        "server",
        "--disable",
        "core_claim",
    ]);
    served.done(&["ctl", "set", "--arm", "games", "--set", "slice-us=900"]);
    served.done(&["ctl", "arms", "add", "own", "--preset", "patra"]);
    served.done(&["ctl", "rules", "add", "--comm", "cc1", "--arm", "own"]);
    let told = served.done(&["ctl", "save"]);
    let file = dir.path().join("config.d/90-ctl.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("# Written by scx_roost ctl save."),
        "{text}"
    );
    let written = text.split_once('\n').unwrap().1;
    assert_eq!(told, format!("{}:\n{written}", file.display()));
    let before = shown(&served);
    assert_eq!(shown(&begun_in(dir.path())), before);
    // What comes later is added to it; a reset returns to what was saved.
    served.done(&["ctl", "set", "--set", "claim-ttl-us=700"]);
    served.done(&["ctl", "reset"]);
    assert_eq!(shown(&served), before);
    served.done(&["ctl", "set", "--set", "claim-ttl-us=700"]);
    served.done(&["ctl", "rules", "del", "--comm", "Game*"]);
    served.done(&["ctl", "rules", "del", "--comm", "cc1"]);
    served.done(&["ctl", "arms", "del", "own"]);
    let told = served.done(&["ctl", "save"]);
    let elsewhere =
        "rule --comm Game* is deleted now, but another file has it: delete it there too";
    assert!(told.contains(elsewhere) && !told.contains("own"), "{told}");
    assert!(told.contains("profile = \"server\"\n") && told.contains("claim-ttl-us = 700"));
    let left = std::fs::read_dir(dir.path().join("config.d"))
        .unwrap()
        .count();
    assert_eq!(left, 1, "no temporary file is left");
}

#[test]
fn without_drop_ins_nothing_can_be_saved() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("one.toml"), "slice-us = 1000\n").unwrap();
    let served = begun_in(&dir.path().join("one.toml"));
    served.done(&["ctl", "set", "--set", "slice-us=900"]);
    let told = served.refused(&["ctl", "save"]);
    assert!(told.contains("the scheduler reads no drop-ins"), "{told}");
}
