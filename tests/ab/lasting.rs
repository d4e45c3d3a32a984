// SPDX-License-Identifier: GPL-2.0-only
//! How to keep what `tune` has found: the printed commands are valid, and last over a restart.

use scx_roost::ab::lasting::{Lasting, is_script};
use scx_roost::ab::variant::Scope;
use scx_roost::cli::{self, Command};
use scx_roost::policy::arms::{Arms, Settings};
use std::fs;
use std::path::Path;

const BASE: &str = "mainline+rescue-us=9000";
const FOUND: &str = "mainline+prev_core=on+prev_idle=off+slice-us=5600";

fn lasting_of(base: &str, scope: Scope, command: &[&str]) -> Lasting {
    let command: Vec<String> = command.iter().map(ToString::to_string).collect();
    let script = |program: &Path| program == Path::new("./bench");
    Lasting::new(base, FOUND, scope, &command, &script).unwrap()
}

fn lasting(scope: Scope, command: &[&str]) -> Lasting {
    lasting_of("mainline", scope, command)
}

/// Parses a line as our own command line.
fn read(line: &str) -> Command {
    cli::parse(line.split(' ')).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// For all tasks: the scheduler starts with the found settings, also as a service.
#[test]
fn for_the_machine_it_is_a_start() {
    let lasting = lasting_of(BASE, Scope::Machine, &["bash", "x"]);
    let start =
        "scx_roost --preset mainline --enable prev_core --disable prev_idle --slice-us 5600";
    assert_eq!(lasting.now, [start]);
    assert_eq!((&lasting.each_time, &lasting.no_rule), (&None, &None));
    assert_eq!(lasting.arm, None);
    let service = format!("ExecStart=/usr/local/bin/{start}");
    assert_eq!(lasting.drop_in, ["[Service]", "ExecStart=", &service]);
    assert!(matches!(read(start), Command::Run { .. }));
    let set = "scx_roost ctl set --preset mainline --enable prev_core --disable prev_idle --set slice-us=5600";
    assert_eq!(lasting.otherwise, set);
    assert!(matches!(read(set), Command::Ctl { .. }));
    let text = lasting.text();
    for part in [
        "To apply it now for all tasks, as it was measured, run as root:\n  scx_roost --preset",
        "/etc/systemd/system/scx_roost.service.d/tune.conf (mkdir -p its folder), and then: systemctl daemon-reload",
        "add the other options that 'systemctl cat scx_roost' shows",
        "\n  [Service]\n  ExecStart=\n  ExecStart=/usr/local/bin/scx_roost --preset",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// `tune` without options: how to apply the result to this workload alone.
#[test]
fn for_the_machine_the_workload_has_its_rule_too() {
    let of = |command: &str| {
        let words: Vec<&str> = command.split(' ').collect();
        lasting_of("mainline", Scope::Machine, &words)
    };
    let game = of("game --demo");
    let alone = lasting(Scope::Workload, &["game", "--demo"]);
    assert_eq!(game.alone.as_deref(), Some(&alone));
    let text = game.text();
    let (_, text) = text
        .split_once("These commands, not measured, apply it to this workload alone:\n")
        .unwrap();
    for part in [
        "  scx_roost ctl rules add --comm game --arm game\n",
        "To cover everything that the command starts, start it each time by\n  scx_roost exec --arm game -- game --demo\n",
        "/scx_roost.service.d/tune-game.conf",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("as it was measured"), "{text}");
    let rule = "rules add --cgroup /sys/fs/cgroup/tune.slice/tune-make.slice/tune-make-j16.slice --arm make-j16\n";
    assert!(of("make -j16").text().contains(rule));
    for (found, why) in [
        (
            "mainline+migration-cost-us=900",
            "migration-cost-us, which applies to the whole machine",
        ),
        (
            "mainline+avg_idle=off",
            "differ in avg_idle, which applies to the whole machine",
        ),
    ] {
        let command = ["game".to_string()];
        let wide = Lasting::new("mainline", found, Scope::Machine, &command, &|_| false).unwrap();
        assert_eq!(wide.alone, None);
        let text = wide.text();
        assert!(
            text.contains("cannot apply to this workload alone: ") && text.contains(why),
            "{text}"
        );
    }
}

/// All other tasks stay on the base, after a restart too. The commands that make the arm again wait
/// for the scheduler.
#[test]
fn for_a_command_it_is_an_arm_with_a_rule() {
    let lasting = lasting_of(BASE, Scope::Workload, &["/opt/a game/game", "it's"]);
    let calls = [
        "arms add game --preset mainline",
        "set --arm game --enable prev_core --disable prev_idle --set slice-us=5600",
        "rules add --comm game --arm game",
    ];
    assert_eq!(lasting.now, calls.map(|c| format!("scx_roost ctl {c}")));
    assert_eq!(
        lasting.each_time.as_deref(),
        Some(r"scx_roost exec --arm game -- '/opt/a game/game' 'it'\''s'")
    );
    assert_eq!(lasting.no_rule, None);
    let mut drop_in = vec![
        "[Service]".to_string(),
        "ExecStart=".to_string(),
        "ExecStart=/usr/local/bin/scx_roost --preset mainline --rescue-us 9000".to_string(),
    ];
    // If a command fails, the service stays. Together they wait for less than systemd's timeout.
    let post = |(wait, c)| format!("ExecStartPost=-/usr/local/bin/scx_roost ctl {wait}{c}");
    drop_in.extend(["--wait 20 ", "", ""].into_iter().zip(calls).map(post));
    assert_eq!(lasting.drop_in, drop_in);
    for line in lasting.now.iter().chain(&lasting.drop_in[2..]) {
        let begin = line.find("scx_roost").unwrap();
        read(&line[begin..]);
    }
    let text = lasting.text();
    for part in [
        "until the scheduler ends, run as root:\n  scx_roost ctl arms add",
        "The rule applies to threads of that name: not to threads that the program renames, nor to programs of other names that it starts.\n",
        "start the base first; if an arm of that name exists, delete it first, with its rules:\n  scx_roost --preset mainline",
        "\n  scx_roost ctl rules del --comm game\n  scx_roost ctl arms del game\n",
        "start it each time by\n  scx_roost exec --arm game -- ",
        "create this file\n/etc/systemd/system/scx_roost.service.d/tune-game.conf (",
        "Another workload's file may be beside it",
        "  ExecStartPost=",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn an_arm_that_is_its_preset_is_not_changed() {
    let command = ["game".to_string()];
    let lasting = Lasting::new("roost", "mainline", Scope::Workload, &command, &|_| false);
    let now = lasting.unwrap().now;
    assert_eq!(now[0], "scx_roost ctl arms add game --preset mainline");
    assert_eq!(now[1], "scx_roost ctl rules add --comm game --arm game");
}

#[test]
fn a_name_that_many_have_gets_no_rule() {
    for (command, why) in [
        ("bash -c x", "bash is a shell: unrelated"),
        (
            "/usr/bin/env game",
            "env is a program that runs others: unrelated",
        ),
        ("sudo game", "sudo is a program that runs others"),
        ("nice game", "nice is"),
        ("taskset 1 game", "taskset is"),
        ("time game", "time is"),
        ("python3.12 game.py", "python3.12 is an interpreter"),
        ("perl x", "perl is an interpreter"),
        ("make -j16", "make is a program that builds or tests"),
        ("gcc-14 x.c", "gcc-14 is a program that builds or tests"),
        ("./bench", "bench is a script"),
        ("/", "it has none"),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let lasting = lasting(Scope::Workload, &words);
        let no_rule = lasting.no_rule.as_deref().unwrap_or_default();
        assert!(no_rule.starts_with(why), "{command}: {no_rule}");
        let text = lasting.text();
        assert!(!text.contains("--comm"), "{text}");
        assert!(lasting.slice.is_some() && text.contains("\n  systemctl start tune-"));
        assert!(text.contains(&format!("There is no rule for the command's name: {why}")));
        let arm = lasting.arm.as_deref().unwrap();
        let exec = format!("scx_roost exec --arm {arm} -- {command}\n");
        assert!(text.contains(&exec), "{text}");
        // Arm and rule exist again after a restart.
        let end = lasting.drop_in.last().unwrap();
        assert!(end.contains(" rules add --cgroup /sys/fs/cgroup/tune.slice/tune-"));
        assert!(end.ends_with(&format!("-{arm}.slice --arm {arm}")), "{end}");
    }
    for command in ["game", "./sh2048", "nice-game", "7z", "hackbench"] {
        let lasting = lasting(Scope::Workload, &[command]);
        assert_eq!((lasting.no_rule, lasting.slice), (None, None), "{command}");
    }
}

/// A rule for a cgroup is refused if the cgroup does not exist, so the slice is started first, now
/// and after a restart.
#[test]
fn where_the_name_is_of_many_the_rule_is_of_a_slice() {
    let lasting = lasting(Scope::Workload, &["make", "-j16", "a b"]);
    let slice = "tune-make-j16-a-b-";
    let name = lasting.slice.clone().unwrap();
    assert!(name.starts_with(&slice[..12]), "{name}");
    let make = lasting_of("mainline", Scope::Workload, &["make", "-j16"]);
    let path = "/sys/fs/cgroup/tune.slice/tune-make.slice/tune-make-j16.slice";
    let rule = format!("rules add --cgroup {path} --arm make-j16");
    assert_eq!(make.now[0], "systemctl start tune-make-j16.slice");
    assert_eq!(
        make.now[1],
        "scx_roost ctl arms add make-j16 --preset mainline"
    );
    assert_eq!(make.now[3], format!("scx_roost ctl {rule}"));
    assert_eq!(
        make.away[0],
        format!("scx_roost ctl rules del --cgroup {path}")
    );
    let unit = [
        "[Unit]",
        "Wants=tune-make-j16.slice",
        "After=tune-make-j16.slice",
        "[Service]",
    ];
    assert_eq!(make.drop_in[..4], unit);
    assert_eq!(
        make.drop_in.last().unwrap(),
        &format!("ExecStartPost=-/usr/local/bin/scx_roost ctl {rule}")
    );
    for line in make.now[1..].iter().chain(&make.away) {
        read(line);
    }
    let started = "\n  systemd-run --scope --slice=tune-make-j16.slice -- make -j16\n";
    assert!(make.text().contains(started), "{}", make.text());
}

/// Each workload has its own arm and file, so that several can be kept. If the rule is about the
/// program's name, all of its calls share one.
#[test]
fn arm_and_file_are_named_after_the_workload() {
    let arm = |words: &[&str]| {
        let lasting = lasting(Scope::Workload, words);
        println!("{}", lasting.text());
        let arm = lasting.arm.unwrap();
        let file = format!("/etc/systemd/system/scx_roost.service.d/tune-{arm}.conf");
        assert_eq!(lasting.file, file);
        Arms::new(Settings::default()).add(&arm, None).unwrap();
        arm
    };
    for (words, name) in [
        (&["game"][..], "game"),
        (&["/opt/game/Game.x86", "--demo"], "game-x86-"),
        (&["my game!"], "my-game-"),
        (&["/usr/bin/make"], "make-"),
        (&["make", "-j16"], "make-j16"),
        (&["sh", "./bench.sh"], "sh-bench-sh-"),
        (&["game-with-a-long-name"], "game-with-a-lon"),
        (&["default"], "default-"),
        (&["\u{e4}"], ""),
    ] {
        let arm = arm(words);
        let (begin, rest) = arm.split_at(name.len().min(10));
        assert!(name.starts_with(begin), "{words:?}: {arm}");
        let number = rest.trim_start_matches('-');
        assert!(arm == name || number.len() == 4, "{words:?}: {arm}");
    }
    for (one, other) in [
        (&["sh", "a/bench.sh"][..], &["sh", "b/bench.sh"][..]),
        (&["make", "a-long-target-1"], &["make", "a-long-target-2"]),
        (&["make", "\u{e4}"], &["make", "\u{f6}"]),
        (&["make", "a.b"], &["make", "a-b"]),
        (&["a/make"], &["b/make"]),
        (&["Game"], &["game"]),
        (&["my game"], &["my-game"]),
    ] {
        assert_ne!(arm(one), arm(other), "{one:?}");
    }
    for (one, other) in [
        (&["game", "--demo"], &["game", "--other"]),
        // The kernel cuts both names to the same one, so they have one rule.
        (
            &["/opt/game-with-a-long-name", ""],
            &["./game-with-a-long-one", ""],
        ),
    ] {
        assert_eq!(arm(one), arm(other), "{one:?}");
    }
}

/// The kernel cuts names; each reader of the line has its own quotes.
#[test]
fn a_name_is_cut_and_quoted() {
    let rule = |program: &str| {
        let lasting = lasting(Scope::Workload, &[program]);
        let service = lasting.drop_in.last().unwrap();
        let service = service.split_once("--comm ").unwrap().1;
        let now = lasting.now[2].split_once("--comm ").unwrap().1;
        let plain = |text: &str| text.split_once(" --arm ").unwrap().0.to_string();
        (plain(now), plain(service))
    };
    let both = |now: &str, service: &str| (now.to_string(), service.to_string());
    assert_eq!(
        rule("a-name-of-sixteen"),
        both("a-name-of-sixte", "a-name-of-sixte")
    );
    assert_eq!(
        rule("a-name-of-16-b\u{e4}"),
        both("'a-name-of-16-b*'", "\"a-name-of-16-b*\"")
    );
    assert_eq!(rule("my game"), both("'my game'", "\"my game\""));
    assert_eq!(rule("a%b$c"), both("'a%b$c'", "a%%b$$c"));
    assert_eq!(rule("a'\"\\"), both(r#"'a'\''"\'"#, r#""a'\"\\""#));
}

#[test]
fn a_script_names_its_interpreter() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    assert!(is_script(&file("a", "#!/bin/sh\n")));
    assert!(!is_script(&file("b", "\x7fELF")));
    assert!(!is_script(&file("c", "#")));
    assert!(!is_script(folder.path()));
    assert!(!is_script(Path::new("no-such-program")));
    assert!(!is_script(Path::new("cat")));
}
