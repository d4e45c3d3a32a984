// SPDX-License-Identifier: GPL-2.0-only
//! How to keep what `tune` has found: the printed commands and the file are valid.

use scx_roost::ab::lasting::Lasting;
use scx_roost::ab::variant::Scope;
use scx_roost::cli::{self, Command};
use scx_roost::policy::arms::Arms;
use scx_roost::policy::config::Config;
use scx_roost::policy::features::{RESCUE, SLICE};
use scx_roost::policy::settings::Settings;
use scx_roost::policy::variant;

const BASE: &str = "mainline+rescue-us=9000";
const FOUND: &str = "mainline+prev_core=on+prev_idle=off+slice-us=5600";

fn lasting(scope: Scope, command: &[&str]) -> Lasting {
    let command: Vec<String> = command.iter().map(ToString::to_string).collect();
    Lasting::new(BASE, FOUND, scope, &command).unwrap()
}

/// Parses a line as our own command line. Without the configuration of this machine.
fn read(line: &str) -> Command {
    let line = match line.strip_prefix("scx_roost -") {
        Some(options) if !line.contains("--config") => {
            format!("scx_roost --config none -{options}")
        }
        _ => line.to_string(),
    };
    cli::parse(line.split(' ')).unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn run(line: &str) -> Config {
    match read(line) {
        Command::Run { config, .. } => *config,
        other => panic!("{line}: {other:?}"),
    }
}

/// What a start has that reads this file.
fn configured(lasting: &Lasting) -> Config {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("50-tune.toml");
    std::fs::write(&file, &lasting.config).unwrap();
    run(&format!("scx_roost --config {}", file.display()))
}

/// For all tasks: the scheduler starts with the found settings, also as a service.
#[test]
fn for_the_machine_it_is_a_start() {
    let lasting = lasting(Scope::Machine, &["bash", "x"]);
    let start =
        "scx_roost --preset mainline --enable prev_core --disable prev_idle --slice-us 5600";
    assert_eq!(lasting.now, [start]);
    assert_eq!((&lasting.each_time, &lasting.arm), (&None, &None));
    assert_eq!(configured(&lasting).settings, run(start).settings);
    assert!(matches!(read(start), Command::Run { .. }));
    let set = "scx_roost ctl set --arm default --preset mainline --enable prev_core --disable prev_idle --set slice-us=5600";
    assert_eq!(lasting.otherwise, set);
    assert!(matches!(read(set), Command::Ctl { .. }));
    let text = lasting.text();
    for part in [
        "To apply it now for all tasks, run as root:\n  scx_roost --preset",
        "put this into /etc/scx_roost/config.d/50-tune.toml (mkdir -p its folder), and see what a start then uses: scx_roost config show\n",
        "\n  preset = \"mainline\"\n  slice-us = 5600\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Other files count too: tunables of theirs stay, as after a preset, and a later file wins.
#[test]
fn its_file_is_one_of_several() {
    let lasting = lasting(Scope::Machine, &["x"]);
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    std::fs::create_dir(dir.path().join("config.d")).unwrap();
    write(
        "config.toml",
        "preset = 'roost'\nrescue-us = 9000\nslice-us = 1000\n",
    );
    write("config.d/50-tune.toml", &lasting.config);
    let start = format!("scx_roost --config {}", dir.path().display());
    let settings = run(&start).settings;
    assert_eq!(
        settings.features,
        variant::settings(FOUND).unwrap().features
    );
    assert_eq!(
        (settings.value(&SLICE, 8), settings.value(&RESCUE, 8)),
        (5600, 9000)
    );
    let Command::Print(shown) = read(&format!("{start} config show")) else {
        panic!("expected text")
    };
    let line = shown.lines().find(|l| l.starts_with("rescue-us ")).unwrap();
    assert!(line.ends_with("/config.toml"), "{line}");
    write("config.d/90-ctl.toml", "slice-us = 700\n");
    assert_eq!(run(&start).settings.value(&SLICE, 8), 700);
}

/// All other tasks stay on the base, at each start too.
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
    for line in &lasting.now {
        read(line);
    }
    let config = configured(&lasting);
    let base = run("scx_roost --preset mainline --rescue-us 9000").settings;
    assert_eq!(config.settings, base);
    let arm = &config.arms["game"];
    let found = variant::settings(FOUND).unwrap();
    assert_eq!(arm.features, found.features);
    assert_eq!(arm.value(&SLICE, 8), 5600);
    let text = lasting.text();
    for part in [
        "start the command on it each time:\n  scx_roost ctl arms add",
        "\n  scx_roost exec --arm game -- ",
        "start the base first:\n  scx_roost --preset mainline",
        "put this into /etc/scx_roost/config.d/50-tune-game.toml (",
        "\n  [arms.game]\n",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_value_that_is_no_number_is_one_of_a_file_too() {
    let base = "roost+freq-threshold=+5%";
    let command = ["game".to_string()];
    let lasting = Lasting::new(base, base, Scope::Machine, &command).unwrap();
    assert!(lasting.now[0].contains("+5%"), "{:?}", lasting.now);
    assert_eq!(
        configured(&lasting).settings,
        variant::settings(base).unwrap()
    );
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
        Arms::new(Settings::default())
            .add(&arm, None, None)
            .unwrap();
        assert!(lasting.file.ends_with(&format!("/50-tune-{name}.toml")));
    }
}
