// SPDX-License-Identifier: GPL-2.0-only
//! How to keep what `tune` has found: the printed commands are valid, and last over a restart.

use scx_roost::ab::lasting::Lasting;
use scx_roost::ab::variant::Scope;
use scx_roost::cli::{self, Command};
use scx_roost::policy::arms::Arms;
use scx_roost::policy::settings::Settings;

const BASE: &str = "mainline+rescue-us=9000";
const FOUND: &str = "mainline+prev_core=on+prev_idle=off+slice-us=5600";

fn lasting(scope: Scope, command: &[&str]) -> Lasting {
    let command: Vec<String> = command.iter().map(ToString::to_string).collect();
    Lasting::new(BASE, FOUND, scope, &command).unwrap()
}

/// Parses a line as our own command line.
fn read(line: &str) -> Command {
    cli::parse(line.split(' ')).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// For all tasks: the scheduler starts with the found settings, also as a service.
#[test]
fn for_the_machine_it_is_a_start() {
    let lasting = lasting(Scope::Machine, &["bash", "x"]);
    let start =
        "scx_roost --preset mainline --enable prev_core --disable prev_idle --slice-us 5600";
    assert_eq!(lasting.now, [start]);
    assert_eq!((&lasting.each_time, &lasting.arm), (&None, &None));
    let service = format!("ExecStart={start}");
    assert_eq!(lasting.drop_in, ["[Service]", "ExecStart=", &service]);
    assert!(matches!(read(start), Command::Run { .. }));
    let set = "scx_roost ctl set --arm default --preset mainline --enable prev_core --disable prev_idle --set slice-us=5600";
    assert_eq!(lasting.otherwise, set);
    assert!(matches!(read(set), Command::Ctl { .. }));
    let text = lasting.text();
    for part in [
        "To apply it now for all tasks, run as root:\n  scx_roost --preset",
        "/etc/systemd/system/scx_roost.service.d/tune.conf (mkdir -p its folder), and then: systemctl daemon-reload",
        "add the other options that 'systemctl cat scx_roost' shows",
        "\n  [Service]\n  ExecStart=\n  ExecStart=scx_roost --preset",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// All other tasks stay on the base, after a restart too. The commands that make the arm again wait
/// for the scheduler.
#[test]
fn for_a_command_it_is_an_arm() {
    let lasting = lasting(Scope::Workload, &["/opt/a game/game", "it's"]);
    let calls = [
        "arms add game",
        "set --arm game --preset mainline --enable prev_core --disable prev_idle --set slice-us=5600",
    ];
    assert_eq!(lasting.now, calls.map(|c| format!("scx_roost ctl {c}")));
    assert_eq!(
        lasting.each_time.as_deref(),
        Some(r"scx_roost exec --arm game -- '/opt/a game/game' 'it'\''s'")
    );
    let mut drop_in = vec![
        "[Service]".to_string(),
        "ExecStart=".to_string(),
        "ExecStart=scx_roost --preset mainline --rescue-us 9000".to_string(),
    ];
    // If a command fails, the service stays. Together they wait for less than systemd's timeout.
    let post = |(wait, c)| format!("ExecStartPost=-scx_roost ctl {wait}{c}");
    drop_in.extend(["--wait 20 ", ""].into_iter().zip(calls).map(post));
    assert_eq!(lasting.drop_in, drop_in);
    for line in lasting.now.iter().chain(&lasting.drop_in[2..]) {
        let begin = line.find("scx_roost").unwrap();
        read(&line[begin..]);
    }
    let text = lasting.text();
    for part in [
        "start the command on it each time:\n  scx_roost ctl arms add",
        "\n  scx_roost exec --arm game -- ",
        "start the base first:\n  scx_roost --preset mainline",
        "create this file\n/etc/systemd/system/scx_roost.service.d/tune-game.conf (",
        "  ExecStartPost=",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// In a unit a percent sign has another meaning.
#[test]
fn a_value_in_percent_is_one_in_the_unit_too() {
    let base = "roost+freq-threshold=+5%";
    let command = ["game".to_string()];
    let lasting = Lasting::new(base, base, Scope::Machine, &command).unwrap();
    assert!(lasting.now[0].contains("+5%"), "{:?}", lasting.now);
    let start = lasting.drop_in.last().unwrap();
    assert!(start.ends_with("--freq-threshold +5%%"), "{start}");
}

#[test]
fn the_arm_is_named_after_the_program() {
    for (program, name) in [
        ("game", "game"),
        ("/opt/game/Game.x86", "game-x86"),
        ("my game!", "my-game"),
        ("game-with-a-long-name", "game-with-a-lon"),
        ("default", "tuned"),
        ("\u{e4}", "tuned"),
        ("/", "tuned"),
    ] {
        let lasting = lasting(Scope::Workload, &[program, "--demo"]);
        let arm = lasting.arm.unwrap();
        assert_eq!(arm, name, "{program}");
        Arms::new(Settings::default()).add(&arm, None).unwrap();
        assert!(lasting.file.ends_with(&format!("/tune-{name}.conf")));
    }
}
