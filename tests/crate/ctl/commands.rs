// SPDX-License-Identifier: GPL-2.0-only
//! The client commands: what they print, and what they refuse.

use super::*;
use scx_roost::policy::features::bits;

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn wrong_names_and_values_are_one_sentence_and_change_nothing() {
    let served = serve();
    served.done(&["ctl", "arms", "add", "x", "--preset", "mainline"]);
    served.done(&["ctl", "rules", "add", "--comm", "a*", "--arm", "x"]);
    for (args, expected) in [
        (
            &["ctl", "set", "--enable", "magic"][..],
            "unknown feature 'magic': expected one of prev_idle",
        ),
        (
            &["ctl", "set", "--preset", "fast", "--enable", "wide_idle"],
            "unknown preset 'fast': expected one of roost",
        ),
        (
            &["ctl", "set", "--set", "slice-us=5"],
            "slice-us 5: 100 to 100000 us are possible",
        ),
        (
            &["ctl", "set", "--set", "slices=5"],
            "unknown tunable 'slices': did you mean 'slice-us'?",
        ),
        (
            &["ctl", "set", "--set", "slice-us"],
            "expected a tunable, = and its value",
        ),
        (&["ctl", "set"], "nothing to change"),
        (
            &["ctl", "set", "--arm", "y", "--enable", "wide_idle"],
            "no arm 'y': expected one of default, x",
        ),
        (
            &["ctl", "set", "--arm", "x", "--set", "rescue-us=2000"],
            "set it on arm default",
        ),
        (
            &["ctl", "set", "--arm", "defualt", "--enable", "wide_idle"],
            "no arm 'defualt': did you mean 'default'?",
        ),
        (&["ctl", "reset", "--arm", "y"], "no arm 'y'"),
        (&["ctl", "show", "--arm", "y"], "no arm 'y'"),
        (&["ctl", "arms", "add", "x"], "arm 'x' exists already"),
        (&["ctl", "arms", "add", "X"], "a name has 1 to 15 of a-z"),
        (&["ctl", "arms", "del", "default"], "cannot be deleted"),
        (
            &["ctl", "arms", "del", "x"],
            "arm 'x' has 1 rules: delete them first",
        ),
        (
            &["ctl", "rules", "add", "--comm", "b", "--arm", "y"],
            "no arm 'y'",
        ),
        (
            &["ctl", "rules", "add", "--comm", "a*", "--arm", "x"],
            "rule --comm a* exists already",
        ),
        (
            &["ctl", "rules", "add", "--pid", "4194304", "--arm", "x"],
            "no process 4194304",
        ),
        (
            &["ctl", "rules", "add", "--cgroup", "/nowhere", "--arm", "x"],
            "no cgroup /nowhere",
        ),
        (&["ctl", "rules", "del", "--pid", "1"], "no rule --pid 1"),
        (
            &[
                "ctl", "rules", "add", "--comm", "a", "--pid", "1", "--arm", "x",
            ],
            "cannot be used with",
        ),
        (&["ctl", "rules", "add", "--arm", "x"], "--cgroup <PATH>"),
        (&["ctl", "explode"], "unrecognized subcommand 'explode'"),
        (
            &["exec", "--arm", "y", "--", "true"],
            "no arm 'y': expected one of default, x",
        ),
    ] {
        let error = served.refused(args);
        assert!(error.contains(expected), "{args:?}: {error}");
    }
}

#[test]
fn an_arm_may_begin_with_a_profile() {
    let served = serve();
    served.done(&["ctl", "arms", "add", "game", "--profile", "gaming"]);
    let shown = served.done(&["ctl", "show", "--arm", "game"]);
    assert!(shown.contains("profile gaming"), "{shown}");
    for (choice, expected) in [
        (&["--profile", "gamin"][..], "did you mean 'gaming'?"),
        (
            &["--profile", "gaming", "-p", "roost"],
            "cannot be used with",
        ),
    ] {
        let said = served.refused(&[&["ctl", "arms", "add", "x"], choice].concat());
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn what_is_frozen_can_be_seen_and_not_changed() {
    let served = serve_with(true);
    assert!(
        served
            .done(&["ctl", "show"])
            .starts_with("generation 0, frozen\n")
    );
    for change in [
        &["ctl", "set", "--enable", "claim"][..],
        &["ctl", "reset"],
        &["ctl", "arms", "add", "x"],
        &["ctl", "rules", "add", "--comm", "x", "--arm", "default"],
        &["exec", "--arm", "default", "--", "true"],
    ] {
        let said = served.refused(change);
        assert!(said.contains("--freeze"), "{change:?}: {said}");
    }
    let stream = UnixStream::connect(served.path()).unwrap();
    let answers = raw(&stream, &[&set("default", "")]);
    assert_eq!(answers[0]["errno"], libc::EROFS);
    assert_eq!(served.publications(), 0);
}

#[test]
fn no_scheduler_answers() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve();
    let args = ["ctl", "show", "--ctl-path"];
    let output = Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(args)
        .arg(dir.path().join("ctl"))
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr.contains("no scheduler has its control socket at"),
        "{stderr}"
    );
    drop(served);
}

#[test]
fn arms_are_shown_changed_and_reset() {
    let served = serve();
    served.done(&["ctl", "arms", "add", "x", "--preset", "mainline"]);
    served.done(&[
        "ctl",
        "set",
        "--arm",
        "x",
        "--enable",
        "wide_idle",
        "--set",
        "slice-us=900",
    ]);
    assert_eq!(served.features(1) & bits::wide_idle.0, bits::wide_idle.0);
    let text = served.done(&["ctl", "show", "--arm", "x"]);
    let head = "arm x: preset mainline+wide_idle+slice-us=900, 0 rules\n";
    assert!(text.contains(head), "{text}");
    let on = text.lines().find(|l| l.starts_with("  on ")).unwrap();
    assert!(on.contains("wide_idle"), "{text}");
    assert!(
        text.contains("slice-us 900") && !text.contains("rescue-us"),
        "{text}"
    );
    let json: Value = serde_json::from_str(&served.done(&["ctl", "show", "--json"])).unwrap();
    assert_eq!(json["generation"], 2);
    assert_eq!(json["arms"][1]["tunables"]["slice-us"], 900);
    assert_eq!(json["arms"][0]["tunables"]["rescue-us"], 20_000);
    served.done(&["ctl", "reset", "--arm", "x"]);
    assert_eq!(served.features(1) & bits::wide_idle.0, 0);
    let list = served.done(&["ctl", "arms"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    served.done(&["ctl", "arms", "del", "x"]);
    assert_eq!(served.done(&["ctl", "arms", "list"]).lines().count(), 1);
}

#[test]
fn a_change_says_what_it_changes_and_for_whom() {
    let served = serve();
    for (args, said) in [
        (
            &["set", "--disable", "smt_spread"][..],
            "default: smt_spread on -> off\ngeneration 1 is in force\n",
        ),
        (
            &["set", "--disable", "smt_spread"],
            "nothing changed: generation 2 is in force\n",
        ),
        (
            &["arms", "add", "a", "--preset", "mainline"],
            "arm a: new, preset mainline\ngeneration 3 is in force\n",
        ),
        (
            &["arms", "add", "b"],
            "arm b: new, preset roost+smt_spread=off\ngeneration 4 is in force\n",
        ),
        (
            &["rules", "add", "--comm", "make", "--arm", "a"],
            "rule 1: --comm make -> arm a\ngeneration 4 is in force\n",
        ),
        (
            &["rules", "del", "--comm", "make"],
            "rule 1: --comm make deleted\ngeneration 4 is in force\n",
        ),
        (
            &["arms", "del", "a"],
            "arm a: deleted\ngeneration 5 is in force\n",
        ),
        (
            &["reset"],
            "default: smt_spread off -> on\ngeneration 6 is in force\n",
        ),
    ] {
        assert_eq!(served.done(&[&["ctl"], args].concat()), said, "{args:?}");
    }
    let json = served.done(&["ctl", "set", "--set", "slice-us=900", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["changes"][0], "default: slice-us 2800 -> 900");
    let shown = &served.source.totals().arms["default"].preset;
    assert_eq!(shown, "roost+slice-us=900");
}

/// The default slice of a machine of one CPU, which is not that of eight.
#[test]
fn what_differs_from_a_preset_is_that_of_this_machine() {
    let short = scx_roost::policy::settings::Settings::of_variant("roost+slice-us=700").unwrap();
    let served = serve_as(short, false);
    let shown = &served.source.totals().arms["default"].preset;
    assert_eq!(shown, "roost+slice-us=700");
}

#[test]
fn groups_with_a_limit_are_shown() {
    let served = serve();
    let json = served.done(&["ctl", "show", "--limits", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["used_us"], 100_500);
    assert_eq!(json[0]["cgroup"], format!("cgroup {}", u64::MAX));
    let text = served.done(&["ctl", "show", "--limits"]);
    for part in [
        ": 20 of 100 ms, burst 0 ms",
        "without budget 5 times in 0 periods, for 400 ms",
        "2 tasks parked now, 9 parked so far",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn an_audit_is_the_best_of_a_few() {
    let served = serve();
    let with = |drifts: &[u64]| {
        let mut told = served.told.0.lock().unwrap();
        (told.drifts, told.audits) = (drifts.to_vec(), 0);
    };
    with(&[0, 5]);
    let json = served.done(&["ctl", "show", "--audit", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&json["util_drift"], &json["tasks"]),
        (&0.into(), &70.into())
    );
    assert_eq!(served.told.0.lock().unwrap().audits, 2);
    with(&[1, 2, 9, 7, 4, 8]);
    let text = served.done(&["ctl", "show", "--audit"]);
    assert_eq!(
        text,
        "70 tasks, 2 of them counted by CPUs with a util_est of 300\ndrift 2\n  CPU 3    off by -2\n"
    );
    assert!(
        served
            .refused(&["ctl", "show", "--audit", "--arm", "default"])
            .contains("cannot be used with")
    );
}
