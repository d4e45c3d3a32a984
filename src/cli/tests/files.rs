// SPDX-License-Identifier: GPL-2.0-only
//! Configuration files and the command line together.

use super::*;
use crate::policy::config::STATS_PATH;

fn printed(args: &[&str], folder: &Path) -> String {
    match parsed_with(args, folder) {
        Ok(Command::Print(text)) => text,
        other => panic!("expected text: {other:?}"),
    }
}

const FIRST: &str = "preset = 'patra'\nslice-us = 1000\nmin-slice-us = 101\nenable = ['wide_idle']\n\
                     exit-dump-len = 1\nfreq-period-ms = 11\nfreeze = true\n";
const DROP_INS: [(&str, &str); 2] = [
    (
        "config.d/10-a.toml",
        "slice-us = 2000\nexit-dump-len = 2\ndisable = ['wide_idle']\nfreeze = false\n",
    ),
    ("config.d/20-b.toml", "slice-us = 3000\nexit-dump-len = 3\n"),
];

#[test]
fn each_level_wins_over_the_one_before() {
    let empty = folder(&[]);
    let first = folder(&[("config.toml", FIRST)]);
    let one = folder(&[("config.toml", FIRST), DROP_INS[0]]);
    let both = folder(&[("config.toml", FIRST), DROP_INS[0], DROP_INS[1]]);
    let seen = |args: &[&str], dir: &tempfile::TempDir| {
        let (config, _) = run_of(args, dir.path());
        let value = |row| config.settings.value(row, 8);
        let (slice, min) = (value(&features::SLICE), value(&features::MIN_SLICE));
        let wide = config.settings.features.has(features::bits::wide_idle);
        (slice, min, config.exit_dump_len, wide, config.freeze)
    };
    assert_eq!(seen(&[], &empty), (2800, 700, 0, true, false));
    assert_eq!(seen(&[], &first), (1000, 101, 1, true, true));
    assert_eq!(seen(&[], &one), (2000, 101, 2, false, false));
    assert_eq!(seen(&[], &both), (3000, 101, 3, false, false));
    let typed = ["--slice-us", "4000", "--exit-dump-len", "4", "--freeze"];
    assert_eq!(seen(&typed, &both), (4000, 101, 4, false, true));
    // As with ctl, a preset replaces the features and keeps the tunables; a profile replaces both.
    assert_eq!(
        seen(&["--preset", "roost"], &both),
        (3000, 101, 3, true, false)
    );
    assert_eq!(
        seen(&["--profile", "gaming"], &both),
        (5000, 700, 3, true, false)
    );
    assert_eq!(
        seen(&["--config", "none"], &both),
        (2800, 700, 0, true, false)
    );
    let file = one.path().join("config.d/10-a.toml");
    let alone = ["--config", file.to_str().unwrap()];
    assert_eq!(seen(&alone, &both), (2000, 700, 2, false, false));
}

#[test]
fn arms_and_rules_of_all_files_count() {
    let dir = folder(&[
        (
            "config.toml",
            "slice-us = 1000\n[arms.games]\npreset = 'mainline'\n[[rules]]\ncomm = 'Game*'\n\
             arm = 'games'\n[[rules]]\ncomm = 'x'\narm = 'games'",
        ),
        (
            "config.d/10.toml",
            "[arms.builds]\n[arms.games]\nmin-slice-us = 300\n[[rules]]\ncomm = 'Game*'\n\
             arm = 'builds'",
        ),
    ]);
    let (config, _) = run_of(&["--slice-us", "1500"], dir.path());
    let [builds, games] = ["builds", "games"].map(|name| &config.arms[name]);
    assert_eq!(*builds, config.settings);
    assert_eq!(games.preset, "mainline");
    assert_eq!(games.value(&features::SLICE, 8), 1500);
    assert_eq!(games.value(&features::MIN_SLICE, 8), 300);
    let rules = config
        .rules
        .iter()
        .map(|rule| format!("{} {}", rule.subject, rule.arm));
    let expected = ["--comm Game* builds", "--comm x games"];
    assert_eq!(rules.collect::<Vec<_>>(), expected);
}

#[test]
fn show_names_the_place_of_each_value() {
    let dir = folder(&[("config.toml", FIRST), DROP_INS[0], DROP_INS[1]]);
    let shown = printed(
        &["--claim-ttl-us", "500", "config", "show", "--json"],
        dir.path(),
    );
    let rows: Vec<serde_json::Value> = serde_json::from_str(&shown).unwrap();
    let place = |name: &str| dir.path().join(name).display().to_string();
    for (key, value, from) in [
        ("profile", "none", place("config.toml")),
        ("preset", "patra", place("config.toml")),
        ("claim", "on", place("config.toml")),
        ("wide_idle", "off", place("config.d/10-a.toml")),
        ("slice-us", "3000", place("config.d/20-b.toml")),
        ("min-slice-us", "101", place("config.toml")),
        ("claim-ttl-us", "500", "the command line".to_string()),
        ("rescue-us", "20000", "built in".to_string()),
        ("freeze", "off", place("config.d/10-a.toml")),
        (
            "stats-path",
            "/var/run/scx/root/stats",
            "built in".to_string(),
        ),
    ] {
        let row = rows.iter().find(|row| row["key"] == key);
        let expected = serde_json::json!({"key": key, "value": value, "from": from});
        assert_eq!(row, Some(&expected));
    }
    let text = printed(&["config", "show"], dir.path());
    assert_eq!(text.lines().count(), rows.len());
    assert!(!text.contains("the command line"), "{text}");
}

/// A file, and what its error has.
const BAD: &[(&str, &str)] = &[
    (
        "presett = 'x'",
        ", line 1: unknown key 'presett': did you mean 'preset'?",
    ),
    (
        "\ncpuperf = 'fast'",
        ", line 2: invalid value 'fast' for '--cpuperf <MODE>'",
    ),
    ("freeze = 'yes'", ", line 1: freeze: expected true or false"),
    (
        "freeq-source = 'off'",
        ", line 1: unknown key 'freeq-source': did you mean 'freq-source'?",
    ),
    ("monitor = 1", ", line 1: unknown key 'monitor': "),
    (
        "slice-us = 900\nmin-slice-us = 901",
        ", line 2: slice-us 900 is below min-slice-us 901",
    ),
    (
        "enable = ['core_claim']\ndisable = ['claim']",
        ", line 2: feature 'core_claim' needs 'claim'",
    ),
    (
        "profile = 'auto'\npreset = 'roost'",
        ", line 2: profile 'auto' and preset 'roost'",
    ),
    (
        "disable = ['claim']\nenable = ['claim']",
        ", line 2: feature 'claim' is given to both",
    ),
    ("[arms.Big]", ", line 1: arm 'Big': a name has 1 to 15"),
    (
        "slice-us = 900\n[arms.x]\nmin-slice-us = 901",
        ", line 3: slice-us 900 is below min-slice-us 901",
    ),
    (
        "[arms.x]\nrescue-us = 9000",
        ", line 2: arm x: rescue-us applies to the whole machine",
    ),
    (
        "[[rules]]\ncomm = 'a'\narm = 'y'",
        ", line 1: the rule --comm a: no arm 'y'",
    ),
    (
        "[[rules]]\ncgroup = 'build'\narm = 'default'",
        ", line 1: cgroup build: expected a path from / on",
    ),
    (
        "freeze = true\n[arms.x]",
        ", line 1: with --freeze there are no arms and no rules, but ",
    ),
    (
        "\nctl-path = 'run/ctl'",
        ", line 2: ctl-path: expected a path from / on",
    ),
    (
        "stats-path = '/a/ctl'",
        ", line 1: --stats-path and --ctl-path are both /a/ctl",
    ),
];

#[test]
fn a_bad_file_is_an_error_with_its_line_and_nothing_runs() {
    for (text, expected) in BAD {
        let dir = folder(&[("config.toml", text)]);
        let told = |args: &[&str]| format!("{:#}", parsed_with(args, dir.path()).unwrap_err());
        let file = dir.path().join("config.toml");
        let check = ["config", "check", file.to_str().unwrap()];
        for args in [&[][..], &["config", "check"], &["config", "show"], &check] {
            let told = told(args);
            assert!(told.contains(expected), "{args:?} {told}");
            assert!(told.starts_with(file.to_str().unwrap()), "{told}");
            assert!(!told.contains('\n'), "{told}");
        }
        // It is not read where nothing is run.
        assert!(parsed_with(&["--version"], dir.path()).is_ok());
        assert!(parsed_with(&["presets"], dir.path()).is_ok());
        assert!(parsed_with(&["--config", "none"], dir.path()).is_ok());
    }
}

#[test]
fn too_many_arms_are_an_error_with_the_line_of_the_first() {
    let mut text = String::new();
    for n in 0..16 {
        text += &format!("[arms.a{n:02}]\n");
    }
    let dir = folder(&[("config.d/10.toml", &text)]);
    let told = format!("{:#}", parsed_with(&[], dir.path()).unwrap_err());
    assert!(
        told.contains("10.toml, line 16: there are 16 arms"),
        "{told}"
    );
}

#[test]
fn a_drop_in_is_checked_with_the_others() {
    let dir = folder(&[
        ("config.toml", "[arms.games]"),
        ("config.d/10.toml", "[[rules]]\ncomm = 'x'\narm = 'games'"),
    ]);
    let file = dir.path().join("config.d/10.toml");
    let told = printed(
        &["config", "check", file.to_str().unwrap()],
        Path::new("/nowhere"),
    );
    assert_eq!(told.lines().count(), 2, "{told}");
    let told = error(&["config"]);
    assert_eq!(
        told,
        "expected a command: one of check, show; see scx_roost config --help"
    );
}

#[test]
fn check_names_what_it_has_read() {
    let dir = folder(&[("config.toml", FIRST), DROP_INS[0]]);
    let told = printed(&["config", "check"], dir.path());
    let at = dir.path().display();
    let expected = format!("{at}/config.toml: good\n{at}/config.d/10-a.toml: good\n");
    assert_eq!(told, expected);
    let none = printed(&["config", "check"], Path::new("/nowhere"));
    assert_eq!(none, "no file: what is built in is used\n");
}

#[test]
fn a_running_scheduler_reads_its_files_again_under_the_same_command_line() {
    let dir = folder(&[("config.toml", FIRST)]);
    let (_, origin) = run_of(&["--slice-us", "4000"], dir.path());
    let read = origin.read.unwrap();
    let write = |text: &str| std::fs::write(dir.path().join("config.toml"), text).unwrap();
    write("slice-us = 900\nrescue-us = 9000\nexit-dump-len = 2\n");
    let Reading { plan, restart, .. } = read(None).unwrap();
    assert_eq!(plan.everybody.value(&features::SLICE, 8), 4000);
    assert_eq!(plan.everybody.value(&features::RESCUE, 8), 9000);
    assert_eq!(restart, ["exit-dump-len", "freeze", "freq-period-ms"]);
    write("slice-us = 1");
    assert!(read(None).is_err());
    let saved = read(Some("slice-us = 2"));
    let told = saved.err().unwrap().to_string();
    assert!(told.contains("config.toml, line 1: slice-us 1"), "{told}");
    write("[arms.x]");
    let now = read(Some("[arms.y]\npreset = 'patra'")).unwrap();
    assert!(now.plan.arms.keys().eq(["x", "y"]));
    assert!(now.saved.arms.keys().eq(["y"]));
    assert!(parsed_with(&[], dir.path()).is_ok());
    assert_eq!(origin.saved, Some(dir.path().join("config.d/90-ctl.toml")));
}

/// A client finds the scheduler that was started with the same files; its options take precedence.
#[test]
fn clients_look_where_the_configuration_says() {
    let dir = folder(&[
        ("config.toml", "stats-path = '/a/stats'"),
        (
            "config.d/20.toml",
            "stats-path = '/b/stats'\nslice-us = 1000",
        ),
    ]);
    let asked = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let command = parsed_with(&words, dir.path()).unwrap();
        command.socket().unwrap().path.display().to_string()
    };
    for (line, expected) in [
        ("status", "/b/stats"),
        ("status --stats-path /x", "/x"),
        ("--monitor 1", "/b/stats"),
        ("--monitor 1 --stats-path /x", "/x"),
        ("--monitor 1 --config none", STATS_PATH),
        #[cfg(feature = "export")]
        ("export", "/b/stats"),
        ("stop", "/b/ctl"),
        ("ctl show", "/b/ctl"),
        ("ctl show --ctl-path /x", "/x"),
        ("exec --arm x -- true", "/b/ctl"),
        ("monitor", "/b/stats"),
        ("monitor --stats-path /x/stats", "/x/stats"),
    ] {
        assert_eq!(asked(line), expected, "{line}");
    }
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("config.d/30.toml", "ctl-path = '/c'");
    assert_eq!(asked("ctl show"), "/c");
    assert_eq!(asked("monitor"), "/b/stats");
    // Sockets count in a file that no start would take.
    write("config.d/20.toml", "stats-path = '/b/stats'\nslice-us = 1");
    write("config.d/30.toml", "ctl-path = '/c'\npresett = 'roost'");
    assert_eq!(asked("ctl show"), "/c");
    assert_eq!(asked("status"), "/b/stats");
}

/// A file without its sockets is named, where no socket is.
#[test]
fn a_client_names_a_file_that_may_have_another_socket() {
    let dir = folder(&[("config.d/20.toml", "stats-path = '/nowhere/stats'")]);
    let file = dir.path().join("config.toml");
    let warning = |args: &[&str]| {
        let command = parsed_with(args, dir.path()).unwrap();
        command.socket().unwrap().warning()
    };
    assert_eq!(warning(&["status"]), None);
    for (text, what) in [
        (
            "stats-path = 'x'",
            ", line 1: stats-path: expected a path from / on",
        ),
        (
            "stats-path = [1]",
            ", line 1: stats-path: expected a text or a number",
        ),
        ("\nstats-path", ", line 2: "),
    ] {
        std::fs::write(&file, text).unwrap();
        let told = warning(&["status"]).unwrap();
        let begin = "there is no socket /nowhere/stats; another one may be configured: ";
        let expected = format!("{begin}{}{what}", file.display());
        assert!(
            told.starts_with(&expected) && !told.contains('\n'),
            "{told}"
        );
        assert_eq!(warning(&["status", "--stats-path", "/nowhere/x"]), None);
        assert_eq!(warning(&["stop", "--ctl-path", "/nowhere/x"]), None);
    }
    let there = dir.path().join("stats");
    std::fs::write(&there, "").unwrap();
    let named = format!("stats-path = '{}'", there.display());
    std::fs::write(dir.path().join("config.d/20.toml"), named).unwrap();
    assert_eq!(warning(&["status"]), None, "it is there");
    assert!(warning(&["ctl", "show"]).is_some());
}

/// As for a start, a configuration that was typed counts.
#[test]
fn a_monitor_reads_the_configuration_that_was_typed() {
    let dir = folder(&[("config.toml", "stats-path = '/a/stats'")]);
    let monitor = |config: &Path| {
        let args = ["--monitor", "1", "--config", config.to_str().unwrap()];
        parsed_with(&args, Path::new("/nowhere"))
    };
    let command = monitor(dir.path()).unwrap();
    assert_eq!(command.socket().unwrap().path, Path::new("/a/stats"));
    let missing = monitor(&dir.path().join("x.toml")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read "), "{missing}");
}

/// The exit status of a bad configuration ends all tries of the service.
#[test]
fn only_an_error_of_files_is_one_of_the_configuration() {
    let dir = folder(&[("config.toml", "slice-us = 900")]);
    for (args, of_files) in [
        (&["--min-slice-us", "901"][..], true),
        (&["--slice-us", "800", "--min-slice-us", "801"], false),
        (&["--ctl-path", "/x", "--stats-path", "/x"], false),
        (&["--preset", "nonsense"], false),
    ] {
        let e = parsed_with(args, dir.path()).unwrap_err();
        assert_eq!(e.is::<BadConfig>(), of_files, "{args:?}: {e:#}");
    }
}

/// The guide shows a whole file; it is one that a start takes.
#[test]
fn the_example_of_the_guide_is_a_good_file() {
    let page = include_str!("../../../docs/guides/configuration.md");
    let example = page
        .split("```toml\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let dir = folder(&[("config.toml", example)]);
    let (config, _) = run_of(&[], dir.path());
    assert!(!config.arms.is_empty() && !config.rules.is_empty());
    assert_ne!(config.settings, Default::default());
}
