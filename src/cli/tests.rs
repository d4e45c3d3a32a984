// SPDX-License-Identifier: GPL-2.0-only
mod files;

use super::*;
use crate::policy::features;

fn parsed_with(args: &[&str], folder: &Path) -> Result<Command> {
    parse_with(std::iter::once(&"scx_roost").chain(args), folder)
}

fn parsed(args: &[&str]) -> Result<Command> {
    parsed_with(args, Path::new("/nowhere"))
}

/// A folder as /etc/scx_roost.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("config.d")).unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn run_of(args: &[&str], folder: &Path) -> (Config, Origin) {
    match parsed_with(args, folder) {
        Ok(Command::Run { config, origin, .. }) => (*config, origin),
        other => panic!("expected to run: {other:?}"),
    }
}

fn error(args: &[&str]) -> String {
    parsed(args).unwrap_err().to_string()
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn switches_may_be_repeated() {
    let Command::Run {
        config,
        level,
        run_id,
        ..
    } = parsed(&[
        "--preset",
        "mainline",
        "--enable",
        "wide_idle",
        "--enable",
        "sync_local",
        "-v",
    ])
    .unwrap()
    else {
        panic!("expected to run")
    };
    assert_eq!(
        config.settings.features.to_string(),
        "prev_idle sis_util wide_idle sync_local avg_idle"
    );
    assert_eq!((level, run_id), (LevelFilter::Debug, None));
}

#[test]
fn switches_may_be_a_list_with_commas() {
    let features = |args: &[&str]| run_of(args, Path::new("/nowhere")).0.settings.features;
    for (option, a, b) in [
        ("--enable", "pack", "util_fits"),
        ("--disable", "wide_idle", "claim"),
    ] {
        let list = features(&[option, &format!("{a},{b}")]);
        assert_eq!(list, features(&[option, a, option, b]));
        assert_ne!(list, features(&[]));
    }
    let set = parsed(&["ctl", "set", "--enable", "pack,util_fits"]).unwrap();
    let told = format!("{set:?}");
    assert!(told.contains(r#"enable: ["pack", "util_fits"]"#), "{told}");
}

/// What users of other sched_ext schedulers have in SCX_FLAGS, and what fleets pass to them.
#[test]
fn options_of_other_schedulers_are_understood() {
    let run = |args: &[&str]| match parsed(args).unwrap() {
        Command::Run {
            config,
            level,
            run_id,
            ..
        } => (config.settings.value(&features::SLICE, 8), level, run_id),
        other => panic!("expected to run, not {other:?}"),
    };
    assert_eq!(run(&["-s", "700"]).0, 700);
    assert_eq!(run(&["-v", "-v"]).1, LevelFilter::Trace);
    assert_eq!(run(&["-vvv"]).1, LevelFilter::Trace);
    let (_, level, run_id) = run(&["--log-level", "warn", "--run-id", "7"]);
    assert_eq!((level, run_id), (LevelFilter::Warn, Some(7)));
    assert!(
        error(&["--log-level", "loud"]).contains("expected one of error, warn, info, debug, trace")
    );
}

#[test]
fn subcommands_take_root_and_json() {
    let command = parsed(&["topology", "--json", "--sysfs", "/x"]).unwrap();
    let Command::Topology { sysfs, json } = command else {
        panic!("expected topology")
    };
    assert!(json && sysfs.as_os_str() == "/x");
}

#[test]
fn global_options_may_stand_before_the_subcommand() {
    let command = parsed(&["--json", "--sysfs", "/x", "topology"]).unwrap();
    let Command::Topology { sysfs, json } = command else {
        panic!("expected topology")
    };
    assert!(json && sysfs.as_os_str() == "/x");
    for (behind, expected) in [
        (&["--sysfs", "/sys"][..], "/sys"),
        (&["--sysfs", "/y"], "/y"),
    ] {
        let command = parsed(&[&["--sysfs", "/x", "topology"], behind].concat()).unwrap();
        let Command::Topology { sysfs, .. } = command else {
            panic!("expected topology")
        };
        assert_eq!(sysfs.as_os_str(), expected);
    }
    let command = parsed(&["--sysfs", "/x", "doctor", "--json"]).unwrap();
    let Command::Doctor { sysfs, json } = command else {
        panic!("expected doctor")
    };
    assert!(json && sysfs.as_os_str() == "/x");
}

/// A subcommand has --sysfs or --json only where it has a meaning, and refuses the other.
#[test]
fn json_and_sysfs_are_where_they_mean_something() {
    let has = |path: &[&str], option: &str| {
        let Command::Print(help) = parsed(&[path, &["--help"]].concat()).unwrap() else {
            panic!("expected help")
        };
        help.contains(&format!("--{option}"))
    };
    for (path, json, sysfs) in [
        (&["topology"][..], true, true),
        (&["doctor"], true, true),
        (&["ctl", "show"], true, false),
        (&["ctl", "rules", "add"], true, false),
        (&["monitor"], true, false),
        #[cfg(feature = "export")]
        (&["export"], false, false),
        (&["exec"], false, false),
    ] {
        assert_eq!(
            (has(path, "json"), has(path, "sysfs")),
            (json, sysfs),
            "{path:?}"
        );
    }
    for args in [
        &["exec", "--json", "--arm", "x", "true"][..],
        #[cfg(feature = "export")]
        &["export", "--json"],
        &["monitor", "--sysfs", "/x"],
        &["ctl", "show", "--sysfs", "/x"],
    ] {
        let error = error(args);
        assert!(error.starts_with("unexpected argument '--"), "{error}");
    }
    for (args, option, name) in [
        (&["--sysfs", "/x", "monitor"][..], "sysfs", "monitor"),
        #[cfg(feature = "export")]
        (&["--json", "export"], "json", "export"),
    ] {
        let expected = format!("the option '--{option}' cannot be used with '{name}'; see");
        assert!(error(args).starts_with(&expected), "{}", error(args));
    }
    for args in [&["--json", "monitor"][..], &["monitor", "--json"]] {
        assert!(
            matches!(parsed(args), Ok(Command::View { options, .. }) if options.json),
            "{args:?}"
        );
    }
    for args in [
        &["--json", "ctl", "arms"][..],
        &["ctl", "--json", "arms"],
        &["ctl", "arms", "--json"],
    ] {
        assert!(
            matches!(parsed(args), Ok(Command::Ctl { json: true, .. })),
            "{args:?}"
        );
    }
    assert!(error(&["--json"]).contains("give --stats or --monitor as well"));
}

#[test]
fn ctl_waits_for_the_given_time() {
    for (args, secs) in [
        (&["ctl", "show"][..], 0.0),
        (&["ctl", "--wait", "60", "show"], 60.0),
        (&["ctl", "arms", "add", "x", "--wait", "0.5"], 0.5),
    ] {
        let Command::Ctl { wait, .. } = parsed(args).unwrap() else {
            panic!("expected ctl")
        };
        assert_eq!(wait.as_secs_f64(), secs, "{args:?}");
    }
}

#[test]
fn a_wrong_name_is_refused_whatever_else_is_asked_for() {
    for asked in [&["--monitor", "1"][..], &["--help-stats"], &["--version"]] {
        for wrong in [["--preset", "nonsense"], ["--enable", "gibberish"]] {
            let error = error(&[asked, &wrong[..]].concat());
            assert!(error.starts_with("unknown "), "{asked:?}: {error}");
        }
    }
}

#[test]
fn every_error_is_one_sentence() {
    for args in [
        &["--presett", "roost"][..],
        &["--slice-us", "5"],
        &["--stats", "0"],
        &["--stats", "x"],
        &["--stats", "1", "--monitor", "1"],
        &["--cpuperf", "fast"],
        &["--freq-threshold", "fast"],
        &["--freq-source", "fast"],
        &["--freq-period-ms", "4"],
        &["--slice-us", "1000", "topology"],
        &["--monitor", "1", "--json", "doctor"],
        &["doctor", "--preset", "roost"],
        &["--preset"],
        &["nonsense"],
        &["ctl", "nonsense"],
        &["--stats-path", "/x", "export"],
        &["export", "--listen", "10849"],
        &["export", "--interval", "1"],
        &["export", "--public"],
        &["export", "--once", "--listen", "127.0.0.1:1"],
    ] {
        let error = error(args);
        assert!(!error.contains('\n'), "{args:?}: {error}");
        assert!(error.ends_with(" --help"), "{args:?}: {error}");
        assert!(!error.starts_with("error"), "{args:?}: {error}");
    }
}

/// The help of all options is long, and does not have those of a subcommand.
#[test]
fn an_error_leads_to_the_help_of_its_command() {
    for (line, command) in [
        ("--presett roost", ""),
        ("nonsense", ""),
        // A value is no command.
        ("--slice-us status", ""),
        ("nonsense ctl set", ""),
        ("ctl nonsense", " ctl"),
        ("ctl set --nonsense", " ctl set"),
        ("--json ctl arms add", " ctl arms add"),
        ("ctl", " ctl"),
        ("status --interval 1", " status"),
        ("--slice-us 1000 topology", " topology"),
        ("config show --all", " config show"),
        #[cfg(feature = "export")]
        ("export --interval 1", " export"),
        #[cfg(feature = "ab")]
        ("ab --variant x show", " ab"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let told = error(&words);
        let end = format!("; see scx_roost{command} --help");
        assert!(told.ends_with(&end), "{line}: {told}");
    }
}

#[test]
fn an_unknown_command_is_unknown_with_all_options_too() {
    for (line, expected) in [
        (
            "statsu --help-all",
            "unrecognized subcommand 'statsu'; tip: a similar",
        ),
        (
            "--help-all statsu",
            "unrecognized subcommand 'statsu'; tip: a similar",
        ),
        ("ctl bogus --help-all", "unrecognized subcommand 'bogus'"),
        (
            "--slice-us 5 --help-all",
            "invalid value '5' for '--slice-us",
        ),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(error(&words).starts_with(expected), "{}", error(&words));
    }
    let help = parsed(&["--help-all", "ctl", "set"]).unwrap();
    assert!(matches!(help, Command::Print(text) if text.contains("Usage: scx_roost ctl set")));
}

#[test]
fn ranges_are_named() {
    for wrong in ["5", "100001", "fast", "-1", "1.5", "99999999999"] {
        let error = error(&[&format!("--slice-us={wrong}")]);
        assert!(
            error.contains(&format!(
                "invalid value '{wrong}' for '--slice-us <US>': 100 to 100000 us are possible"
            )),
            "{error}"
        );
    }
    assert!(error(&["--stats", "0"]).contains("0.1 to 3600"));
    let spaced = error(&["--slice-us", "-5"]);
    assert!(spaced.contains("invalid value '-5'"), "{spaced}");
    #[cfg(feature = "ab")]
    assert!(error(&["ab", "-n", "-1"]).contains("invalid value '-1'"));
}

/// clap tells how to give an unknown option as a value; nobody means that.
#[test]
fn an_unknown_option_is_no_value() {
    for line in ["config check --json", "exec --jsom"] {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(!error(&words).contains("as a value"), "{}", error(&words));
    }
}

#[test]
fn help_is_a_command_too() {
    let print = |line: &str| match parsed(&line.split(' ').collect::<Vec<_>>()) {
        Ok(Command::Print(text)) => text,
        other => panic!("{line}: expected help: {other:?}"),
    };
    for (command, option) in [
        ("help", "--help"),
        ("help status", "status --help"),
        ("help ctl set", "ctl set --help"),
        ("ctl help arms add", "ctl arms add --help"),
    ] {
        assert_eq!(print(command), print(option), "{command}");
    }
    let all = print("help ctl set --help-all");
    assert_eq!(all, print("ctl set --help-all"));
}

#[cfg(feature = "ab")]
#[test]
fn a_command_has_all_its_options_too() {
    let all = parsed(&["ab", "--help-all"]).unwrap();
    assert!(matches!(all, Command::Print(text) if text.contains("Usage: scx_roost ab")));
    // Behind the dashes it is the command's own.
    let own = parsed(&["ab", "--variant", "roost", "--", "x", "--help-all"]).unwrap();
    assert!(matches!(own, Command::Ab { .. }));
}

#[test]
fn help_lists_the_commands_of_this_build_alone() {
    let Command::Print(help) = parsed(&["--help"]).unwrap() else {
        panic!("expected help")
    };
    let lists = |name: &str| help.lines().any(|l| l.starts_with(&format!("  {name} ")));
    for (name, there) in [
        ("ctl", true),
        ("monitor", true),
        ("ab", cfg!(feature = "ab")),
        ("tune", cfg!(feature = "ab")),
        ("export", cfg!(feature = "export")),
    ] {
        assert_eq!(lists(name), there, "{name}");
    }
}

#[test]
fn all_help_has_the_rare_options() {
    let print = |option: &str| match parsed(&[option]).unwrap() {
        Command::Print(help) => help,
        other => panic!("expected help: {other:?}"),
    };
    let (usual, help) = (print("--help"), print("--help-all"));
    assert!(usual.lines().count() < 80, "{usual}");
    assert!(!usual.contains("--stats-group") && help.contains("--stats-group"));
    assert!(!usual.contains("--pin-root-path") && help.contains("--pin-root-path"));
    for tunable in features::TUNABLES {
        assert!(
            help.contains(&format!("--{}", tunable.name)),
            "{}",
            tunable.name
        );
    }
}

#[cfg(feature = "export")]
#[test]
fn only_loopback_is_listened_at() {
    let output = |args: &[&str]| match parsed(&[&["export"], args].concat()) {
        Ok(Command::Export { output, .. }) => Ok(output),
        Ok(other) => panic!("expected export: {other:?}"),
        Err(e) => Err(e.to_string()),
    };
    let tcp = |address: &str| {
        Ok(Output::Served {
            tcp: address.parse().ok(),
            textfile: None,
        })
    };
    assert_eq!(output(&[]), tcp("127.0.0.1:10849"));
    for own in ["127.8.0.1:1", "[::1]:10849", "[::ffff:127.0.0.1]:10849"] {
        assert_eq!(output(&["--listen", own]), tcp(own));
    }
    for open in ["0.0.0.0:10849", "[::]:10849", "192.0.2.1:10849"] {
        let error = output(&["--listen", open]).unwrap_err();
        assert!(
            error.ends_with("give a loopback address, and put a proxy before it"),
            "{error}"
        );
    }
    // One explicit output is enough.
    let file = output(&["--textfile", "/x.prom"]);
    assert!(
        matches!(file, Ok(Output::Served { tcp: None, .. })),
        "{file:?}"
    );
}

/// The help that the error names has a line with the dashes.
#[test]
fn a_command_without_dashes_is_an_error_with_the_help_to_read() {
    for words in ["exec --arm x game", "ab make -j16", "tune make"] {
        let words: Vec<&str> = words.split(' ').collect();
        if matches!(words[0], "ab" | "tune") && !cfg!(feature = "ab") {
            continue;
        }
        let told = error(&words);
        let help = format!("; see scx_roost {} --help", words[0]);
        assert!(told.ends_with(&help) && !told.contains('\n'), "{told}");
    }
}
