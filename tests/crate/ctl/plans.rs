// SPDX-License-Identifier: GPL-2.0-only
//! Configuration files and a running scheduler: what they begin with, reading them again, and
//! saving what ctl has changed.

use super::*;
use scx_roost::cli::{Command as Parsed, parse};
use scx_roost::policy::change::Change;
use scx_roost::policy::features::{FEATURES, TUNABLES, bits, feature};
use scx_roost::policy::profiles::PROFILES;
use scx_roost::policy::rules::Subject;
use scx_roost::util::rng::Rng;
use scx_roost::wire::protocol::Op;
use std::collections::BTreeMap;
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

fn save(dir: &TempDir) -> [&str; 4] {
    ["ctl", "save", "--config", dir.path().to_str().unwrap()]
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
fn reading_again_returns_to_the_files() {
    let (served, dir) = begun(&[("config.toml", GAMES)]);
    served.done(&["ctl", "set", "--disable", "claim", "--set", "slice-us=900"]);
    served.done(&["ctl", "set", "--arm", "games", "--set", "slice-us=9000"]);
    served.done(&["ctl", "arms", "add", "own"]);
    served.done(&["ctl", "rules", "add", "--comm", "cc1", "--arm", "own"]);
    served.done(&["ctl", "rules", "del", "--comm", "Game*"]);
    let told = served.done(&["ctl", "reload"]);
    for line in [
        "default: claim off -> on",
        "default: slice-us 900 -> 1000",
        "games: slice-us 9000 -> 1000",
        "arm own: deleted",
        "rule 1: --comm Game* -> arm games",
        "rule 1: --comm cc1 deleted",
    ] {
        assert!(told.lines().any(|said| said == line), "{line}: {told}");
    }
    assert_eq!(shown(&served), shown(&begun_in(dir.path())));
    let text = "slice-us = 2000\nenable = ['util_fits']\n[arms.builds]\n\
                [[rules]]\ncomm = 'make'\narm = 'builds'\n";
    std::fs::write(dir.path().join("config.toml"), text).unwrap();
    served.done(&["ctl", "reload"]);
    let (show, rules) = shown(&served);
    assert_eq!((show, rules.clone()), shown(&begun_in(dir.path())));
    assert_eq!(rules, "--comm make --arm builds\n");
    assert_ne!(served.features(0) & bits::util_fits.0, 0);
    let told = served.done(&["ctl", "reload"]);
    assert!(told.starts_with("nothing changed: "), "{told}");
}

/// No file can have a rule about a process, so reading files again drops none but with its arm.
#[test]
fn a_process_stays_on_an_arm_that_stays() {
    let (served, dir) = begun(&[("config.toml", "[arms.a]\n[arms.b]\n")]);
    let own = std::process::id().to_string();
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    let other = child.id().to_string();
    served.done(&["ctl", "rules", "add", "--pid", &own, "--arm", "b"]);
    served.done(&["ctl", "rules", "add", "--pid", &other, "--arm", "a"]);
    std::fs::write(dir.path().join("config.toml"), "[arms.b]\n").unwrap();
    served.done(&["ctl", "reload"]);
    let rules = served.done(&["ctl", "rules"]);
    assert_eq!(rules, format!("--pid {own} --arm b\n"));
    child.kill().unwrap();
    child.wait().unwrap();
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
            "slice-us = 900\nmin-slice-us = 5000",
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
    let nothing = served.refused(&save(&dir));
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
    let told = served.done(&save(&dir));
    let file = dir.path().join("config.d/90-ctl.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.starts_with("# Written by scx_roost ctl save."),
        "{text}"
    );
    assert_eq!(told, format!("{}:\n{text}", file.display()));
    let before = shown(&served);
    assert_eq!(shown(&begun_in(dir.path())), before);
    // What comes later is added to it; a reset returns to what was saved.
    served.done(&["ctl", "set", "--set", "claim-ttl-us=700"]);
    served.done(&["ctl", "reset"]);
    assert_eq!(shown(&served), before);
    served.done(&["ctl", "set", "--set", "claim-ttl-us=700"]);
    served.done(&["ctl", "rules", "del", "--comm", "cc1"]);
    served.done(&["ctl", "arms", "del", "own"]);
    let told = served.done(&save(&dir));
    assert!(!told.contains("own"), "{told}");
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
    let told = served.refused(&save(&dir));
    assert!(told.contains("the scheduler reads no drop-ins"), "{told}");
}

fn saved_text(dir: &TempDir) -> String {
    std::fs::read_to_string(dir.path().join("config.d/90-ctl.toml")).unwrap_or_default()
}

/// The next start takes what is saved, whatever was saved before.
#[test]
fn what_is_saved_never_stops_the_next_start() {
    let (served, dir) = begun(&[("config.toml", "preset = 'mainline'\n")]);
    let on = ["--enable", "avg_idle", "--enable", "avg_idle_every"];
    served.done(&[&["ctl", "set"], &on[..]].concat());
    served.done(&save(&dir));
    served.done(&["ctl", "set", "--disable", "avg_idle"]);
    served.done(&save(&dir));
    assert!(
        !saved_text(&dir).contains("avg_idle_every"),
        "{}",
        saved_text(&dir)
    );
    served.done(&["ctl", "set", "--set", "rescue-us=9000"]);
    served.done(&["ctl", "arms", "add", "x"]);
    served.done(&save(&dir));
    assert_eq!(saved_text(&dir).matches("rescue-us").count(), 1);
    begun_in(dir.path());
}

#[test]
fn a_file_that_a_start_would_refuse_is_not_written() {
    let (served, dir) = begun(&[("config.toml", GAMES)]);
    served.done(&["ctl", "arms", "add", "own"]);
    served.done(&save(&dir));
    let before = saved_text(&dir);
    // The rule of this file needs the arm of the other.
    let rule = "[[rules]]\ncomm = 'x'\narm = 'own'\n";
    std::fs::write(dir.path().join("config.d/95.toml"), rule).unwrap();
    served.done(&["ctl", "reload"]);
    served.done(&["ctl", "rules", "del", "--comm", "x"]);
    served.done(&["ctl", "arms", "del", "own"]);
    let told = served.refused(&save(&dir));
    let expected = "95.toml, line 1: the rule --comm x: no arm 'own'";
    assert!(told.contains(expected), "{told}");
    assert_eq!(saved_text(&dir), before);
}

/// The next start has all that is in force, or nothing is saved.
#[test]
fn what_another_file_decides_is_named_and_nothing_is_saved() {
    let later = ("config.d/95.toml", "slice-us = 4000\n");
    let (served, dir) = begun(&[("config.toml", GAMES), later]);
    served.done(&["ctl", "set", "--set", "slice-us=5000", "--disable", "claim"]);
    served.done(&["ctl", "rules", "del", "--comm", "Game*"]);
    let told = served.refused(&save(&dir));
    let expected = "not saved, because another file or the command line decides these: slice-us, \
                    rules: --comm Game* (deleted); change it there";
    assert!(told.contains(expected), "{told}");
    assert_eq!(saved_text(&dir), "");
    // As it says; what a file says now counts, not what it said when it was read.
    std::fs::write(dir.path().join("config.d/95.toml"), "").unwrap();
    let before = shown(&served);
    std::fs::write(
        dir.path().join("config.toml"),
        "[arms.games]\npreset = 'mainline'\n",
    )
    .unwrap();
    let told = served.done(&save(&dir));
    assert!(told.contains("slice-us = 5000\n") && told.contains("disable = [\"claim\"]"));
    assert_eq!(shown(&served), before);
    assert_eq!(shown(&begun_in(dir.path())), before);
}

#[test]
fn of_two_readings_the_one_that_was_begun_last_stays() {
    let (served, dir) = begun(&[("config.toml", "slice-us = 1000\n")]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| served.control.read_again());
        }
        std::fs::write(dir.path().join("config.toml"), "slice-us = 2000\n").unwrap();
        served.control.read_again();
    });
    let (show, _) = shown(&served);
    assert_eq!(show["arms"][0]["tunables"]["slice-us"], 2000);
}

#[test]
fn a_frozen_scheduler_reads_files_that_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.toml"), "slice-us = 1000\n").unwrap();
    let words = ["scx_roost", "--config", dir.path().to_str().unwrap()];
    let Parsed::Run { config, origin, .. } = parse(words).unwrap() else {
        panic!("expected to run")
    };
    let served = serve_as(config.settings.clone(), true);
    let plan = scx_roost::policy::plan::Plan {
        everybody: config.settings,
        ..Default::default()
    };
    served.control.begin(plan, origin).unwrap();
    served.done(&["ctl", "reload"]);
    std::fs::write(dir.path().join("config.toml"), "slice-us = 2000\n").unwrap();
    let told = served.refused(&["ctl", "reload"]);
    assert!(told.contains("runs with --freeze"), "{told}");
}

/// What has an effect: sub-switches without their feature have none.
fn effect(served: &Served) -> BTreeMap<String, Value> {
    let show = served.control.request(Op::Show { arm: None }).unwrap();
    let rules = served.control.request(Op::Rules {}).unwrap();
    let mut all = BTreeMap::new();
    for arm in show["arms"].as_array().unwrap() {
        let on: Vec<&str> = arm["features"].as_str().unwrap().split(' ').collect();
        let acts = |name: &&&str| {
            feature(name).is_none_or(|f| f.parent.is_empty() || on.contains(&f.parent))
        };
        let on: Vec<&str> = on.iter().filter(acts).copied().collect();
        let mut arm = arm.clone();
        arm["features"] = on.join(" ").into();
        all.insert(format!("arm {}", arm["name"]), arm);
    }
    for rule in rules.as_array().unwrap() {
        all.insert(format!("rule {}", rule["subject"]), rule["arm"].clone());
    }
    all
}

/// A request of ctl; it may be refused.
fn any_op(rng: &mut Rng) -> Op {
    let mut below = |end: usize| rng.below(end as u64) as usize;
    let arm = ["default", "default", "games", "own"][below(4)].to_string();
    let subject = Subject::Comm(["Game*", "cc1"][below(2)].to_string());
    let mut change = Change::default();
    match below(10) {
        0 | 1 => {
            let mut said = |name: &str| (below(3) == 0).then(|| name.to_string());
            let (preset, profile) = (said("mainline"), said("server"));
            return Op::ArmAdd {
                arm,
                preset,
                profile,
            };
        }
        2 => return Op::ArmDel { arm },
        3 => return Op::RuleAdd { subject, arm },
        4 => return Op::RuleDel { subject },
        5 => return Op::Reset { arm },
        6 => change.profile = Some(PROFILES[below(PROFILES.len())].name.to_string()),
        7 => change.preset = Some(["mainline", "patra", "roost"][below(3)].to_string()),
        8 => {
            let switch = [&mut change.enable, &mut change.disable];
            let name = FEATURES[below(FEATURES.len())].name.to_string();
            switch.into_iter().nth(below(2)).unwrap().push(name);
        }
        _ => {
            let row = TUNABLES[below(TUNABLES.len())];
            let value = [row.min.max(300), (row.min + 1).max(1200)][below(2)];
            change
                .set
                .insert(row.name.to_string(), value.min(row.max).into());
        }
    }
    Op::Set { arm, change }
}

#[test]
fn whatever_ctl_has_done_the_next_start_is_the_same_after_a_save() {
    for seed in 0..150 {
        let rng = &mut Rng::new(seed);
        let (mut served, dir) = begun(&[("config.toml", GAMES)]);
        let mut done = Vec::new();
        for _ in 0..3 {
            for _ in 0..=rng.below(8) {
                let op = any_op(rng);
                if served.control.request(op.clone()).is_ok() {
                    done.push(op);
                }
            }
            let before = effect(&served);
            let saved = match served.control.request(Op::Save {}) {
                Ok(saved) => saved,
                // Only a deletion is what no file can say. A start may also refuse what ctl did
                // step by step, as a slice below the least one of arm default.
                Err(e) => {
                    let told = format!("{e:#}");
                    let gone = "decides these: ";
                    let deleted = told.split_once(gone).is_some_and(|(_, rest)| {
                        let names = rest.split(';').next().unwrap_or_default();
                        names.split(", ").all(|name| name.ends_with(" (deleted)"))
                    });
                    let refused = told.contains("the next start would fail: ");
                    let nothing = told.contains("nothing to save");
                    assert!(deleted || refused || nothing, "seed {seed}: {told}");
                    continue;
                }
            };
            let file = dir.path().join("config.d/90-ctl.toml");
            std::fs::write(file, saved["text"].as_str().unwrap()).unwrap();
            served.control.request(Op::Reload {}).unwrap();
            let text = saved["text"].as_str().unwrap();
            assert_eq!(effect(&served), before, "seed {seed} {done:#?}\n{text}");
            served = begun_in(dir.path());
            assert_eq!(effect(&served), before, "seed {seed} {done:#?}\n{text}");
        }
    }
}
