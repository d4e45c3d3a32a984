// SPDX-License-Identifier: GPL-2.0-only
//! The binary and bad input: one sentence, exit status 1 or 2, nothing left behind.

use scx_roost::wire::note;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn roost(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(args)
        .output()
        .expect("the binary runs")
}

/// The same as an unprivileged user: the one who runs the test, or nobody if that is root.
fn unprivileged(args: &[&str]) -> Output {
    // A copy that every user can reach: the build folder may be closed to user nobody.
    let bin = tempfile::tempdir().unwrap();
    std::fs::set_permissions(bin.path(), Permissions::from_mode(0o755)).unwrap();
    let exe = bin.path().join("scx_roost");
    std::fs::copy(env!("CARGO_BIN_EXE_scx_roost"), &exe).unwrap();
    let mut command = Command::new(&exe);
    if unsafe { libc::geteuid() } == 0 {
        command.uid(65534).gid(65534);
    }
    command.args(args);
    // Another test's child may still have the copy open for writing: a fork copies all descriptors.
    loop {
        match command.output() {
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            output => return output.expect("the binary runs"),
        }
    }
}

/// The one line on stderr, after exit status 1.
fn refusal(args: &[&str]) -> String {
    refused(args, roost(args), 1)
}

/// The same after exit status 2: the command line is wrong.
fn misuse(args: &[&str]) -> String {
    refused(args, roost(args), 2)
}

fn refused(args: &[&str], output: Output, status: i32) -> String {
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(status), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
    let line = stderr.strip_suffix('\n').unwrap_or_default();
    assert!(!line.contains('\n'), "{args:?}: {stderr}");
    assert!(line.starts_with("scx_roost: "), "{args:?}: {stderr}");
    line.to_string()
}

#[test]
fn unknown_names() {
    assert!(
        misuse(&["--preset", "fast"])
            .contains("unknown preset 'fast': expected one of roost, mainline")
    );
    assert!(
        misuse(&["--enable", "magic"])
            .contains("unknown feature 'magic': expected one of prev_idle")
    );
    assert!(misuse(&["--disable", "magic"]).contains("unknown feature 'magic'"));
    assert!(
        misuse(&["--monitor", "1", "--preset", "nonsense"]).contains("unknown preset 'nonsense'")
    );
    assert!(misuse(&["--help-stats", "--enable", "magic"]).contains("unknown feature 'magic'"));
    assert!(misuse(&["--fast"]).contains("unexpected argument '--fast' found"));
    assert!(misuse(&["toplogy"]).contains("unrecognized subcommand 'toplogy'"));
}

/// clap's own errors, ours of names and options, and names that only `ab` knows.
#[test]
fn a_wrong_command_line_is_exit_status_2() {
    let mut lines = vec![
        "ctl",
        "ctl set --enabel claim",
        "--slice-us 5",
        "--json",
        "--preset roost topology",
        "features claims",
        "help nonsense",
        "--preset rost config show",
    ];
    if cfg!(feature = "export") {
        lines.push("export --listen 0.0.0.0:1");
    }
    if cfg!(feature = "ab") {
        lines.push("ab --variant rost --variant eevdf -- true");
        lines.push("ab --variant roost --variant eevdf --metric wal -- true");
        lines.push("ab --variant roost --variant eevdf");
        lines.push("tune --base rost -- true");
    }
    for line in lines {
        misuse(&line.split(' ').collect::<Vec<_>>());
    }
}

/// Wherever a name is chosen from a set. What the scheduler itself answers is in ctl/commands.rs.
#[test]
fn a_mistyped_name_is_answered_with_the_nearest() {
    let mut cases = vec![
        ("statu", "'status'"),
        ("ctl sett", "'set'"),
        ("--verison", "'--version'"),
        ("--stats-grup x", "'--stats-group'"),
        ("completions fishh", "'fish'"),
        ("--preset rost", "'roost'"),
        ("--profile sever", "'server'"),
        ("--enable claims", "'claim'"),
        ("--slice-u 3", "'--slice-us'"),
        ("--log-level inof", "'info'"),
        ("--freq-source cpufrq", "'cpufreq'"),
        ("--cpuperf aut", "'auto'"),
        ("help statu", "'status'"),
    ];
    if cfg!(feature = "ab") {
        cases.extend([
            ("ab --variant rost --variant eevdf -- true", "'roost'"),
            ("ab --variant roost+clam --variant eevdf -- true", "'claim'"),
            ("ab --variant roost --variant eevd -- true", "'eevdf'"),
            (
                "ab --variant roost --variant eevdf --metric wal -- true",
                "'wall'",
            ),
            ("ab --scope machin", "'machine'"),
        ]);
    }
    for (line, meant) in cases {
        let output = roost(&line.split(' ').collect::<Vec<_>>());
        let said = String::from_utf8_lossy(&output.stderr);
        let asks = said.contains("did you mean") || said.contains("tip: a similar");
        assert!(asks && said.contains(meant), "{line}: {said}");
    }
}

#[test]
fn a_fifo_in_a_tree_holds_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let cpu = dir.path().join("devices/system/cpu");
    std::fs::create_dir_all(cpu.join("cpu0/topology")).unwrap();
    for file in ["possible", "online", "cpu0/topology/core_cpus_list"] {
        std::fs::write(cpu.join(file), "0").unwrap();
    }
    let made = Command::new("mkfifo").arg(cpu.join("isolated")).status();
    assert!(made.unwrap().success());
    let output = Command::new("timeout")
        .args(["10", env!("CARGO_BIN_EXE_scx_roost"), "doctor", "--sysfs"])
        .arg(dir.path())
        .output()
        .expect("timeout runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 CPU of 1 online"), "{text}");
}

/// 78 is for files: a service is not started again then.
#[test]
fn contradictions_of_the_command_line() {
    for (line, expected) in [
        (
            "--slice-us 900 --min-slice-us 2000",
            "slice-us 900 is below",
        ),
        ("--enable claim --disable claim", "is given to both"),
        ("--stats-path /x --ctl-path /x", "are both /x"),
    ] {
        let line = format!("--config none {line}");
        let sentence = misuse(&line.split(' ').collect::<Vec<_>>());
        assert!(sentence.contains(expected), "{sentence}");
    }
}

/// By hand or by a service, and however early it fails.
#[test]
fn a_start_that_fails_is_noted_with_its_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (bad, stats) = (path("bad.toml"), path("run/stats"));
    std::fs::write(&bad, "slice-us = 1\n").unwrap();
    let noted = |words: &str| {
        let last = note::last(Path::new(&stats)).expect("a note");
        assert!(last.why.contains(words), "{}", last.why);
    };
    let started = |config: &str, more: &[&str]| {
        let options = ["--config", config, "--stats-path", &stats];
        roost(&[&options, more].concat()).status.code()
    };
    assert_eq!(started(&bad, &[]), Some(78));
    noted("slice-us 1: ");
    assert_eq!(started("none", &["--sysfs", "/nonexistent"]), Some(1));
    noted("/nonexistent");
    // This is no start that fails.
    assert_eq!(started(&bad, &["--version"]), Some(78));
    assert_eq!(started("none", &["--preset", "x"]), Some(2));
    noted("/nonexistent");
    let limited = Command::new("sh")
        .args(["-c", "ulimit -n 24 && exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_scx_roost"), "--config", "none"])
        .args(["--stats-path", &stats])
        .output()
        .expect("sh runs");
    assert_eq!(limited.status.code(), Some(1));
    noted("the limit of open files is 24");
}

#[test]
fn a_sysfs_that_is_none() {
    for command in ["topology", "doctor"] {
        let output = roost(&[command, "--sysfs", "/nonexistent"]);
        assert_eq!(output.status.code(), Some(1));
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("cannot read /nonexistent/devices/system/cpu: No such file or directory"),
            "{text}"
        );
        assert!(
            text.contains("give --sysfs a folder with the content of /sys"),
            "{text}"
        );
    }
}

#[test]
fn each_kind_of_unreadable_sysfs_has_its_own_advice() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_str().unwrap();
    let system = dir.path().join("devices/system");
    std::fs::create_dir_all(&system).unwrap();
    std::fs::write(system.join("cpu"), "").unwrap();
    let sentence = refusal(&["--sysfs", root, "topology"]);
    assert!(
        sentence.contains("devices/system/cpu: not a directory: give --sysfs a folder"),
        "{sentence}"
    );
    std::fs::remove_file(system.join("cpu")).unwrap();
    std::fs::create_dir(system.join("cpu")).unwrap();
    std::fs::write(system.join("cpu/possible"), "x").unwrap();
    let sentence = refusal(&["--sysfs", root, "topology"]);
    assert!(
        sentence.contains("reads 'x'") && sentence.ends_with("report this with a copy of the file"),
        "{sentence}"
    );
}

#[test]
fn a_sysfs_that_may_not_be_read() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o000)).unwrap();
    let args = ["topology", "--sysfs", dir.path().to_str().unwrap()];
    let sentence = refused(&args, unprivileged(&args), 1);
    assert!(
        sentence
            .ends_with("Permission denied (os error 13): run as a user with permission to read it"),
        "{sentence}"
    );
    // So that the folder can be removed.
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
}

/// Each place that takes a file of the user's, and what may hold up a reader.
#[test]
fn what_is_no_text_is_refused_wherever_a_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let made = Command::new("mkfifo").arg(path("fifo")).status();
    assert!(made.unwrap().success());
    std::fs::write(path("long"), "#".repeat((1 << 20) + 1)).unwrap();
    std::fs::write(path("binary"), [0xff, 0xfe]).unwrap();
    let files = ["fifo", "long", "binary", "missing"].map(path);
    let devices = ["/dev/zero", "/dev/tty", "/dev/null/x"].map(String::from);
    for file in files.iter().chain(&devices) {
        let mut lines = vec![
            format!("--config {file}"),
            format!("config check {file}"),
            format!("--config {file} config show"),
        ];
        if cfg!(feature = "ab") {
            lines.push(format!("ab show {file}"));
        }
        for line in lines {
            let args: Vec<&str> = line.split(' ').collect();
            let output = Command::new("timeout")
                .args(["10", env!("CARGO_BIN_EXE_scx_roost")])
                .args(&args)
                .output()
                .expect("timeout runs");
            let stderr = String::from_utf8_lossy(&output.stderr);
            let status = output.status.code();
            assert!(status == Some(1) || status == Some(78), "{line}: {stderr}");
            assert!(stderr.contains(file.as_str()), "{line}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{line}: {stderr}");
        }
    }
}

#[test]
fn global_options_before_a_subcommand() {
    let before = roost(&["--json", "topology"]);
    assert!(before.status.success());
    assert_eq!(before.stdout, roost(&["topology", "--json"]).stdout);
}

#[test]
fn a_monitor_of_what_is_no_socket() {
    assert_eq!(
        refusal(&["--monitor", "1", "--stats-path", "/etc/passwd"]),
        "scx_roost: /etc/passwd exists and is not a socket: give the scheduler's --stats-path"
    );
}

#[test]
fn a_start_that_fails_leaves_no_socket() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("stats");
    refusal(&[
        "--sysfs",
        "/nonexistent",
        "--stats-path",
        socket.to_str().unwrap(),
    ]);
    assert!(!socket.exists());
}

/// A kernel without sched_ext refuses it, and one with sched_ext refuses this user.
#[test]
fn a_start_without_permission() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    let socket = dir.path().join("stats");
    let args = ["--stats-path", socket.to_str().unwrap()];
    let sentence = refused(&args, unprivileged(&args), 1);
    let why = if Path::new("/sys/kernel/sched_ext").exists() {
        "this user may not load a scheduler: run as root or with sudo"
    } else {
        "this kernel has no sched_ext: Linux "
    };
    assert!(sentence.contains(why), "{sentence}");
    assert!(!socket.exists());
}

#[test]
fn printing_commands_succeed() {
    for args in [
        &["--help"][..],
        &["-h"],
        &["-V"],
        &["--version"],
        &["--help-stats"],
        &["topology"],
        &["topology", "--json"],
    ] {
        let output = roost(args);
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(!output.stdout.is_empty(), "{args:?}");
    }
}

/// The reader is gone before the first byte, so that every write meets a broken pipe.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [
        &["--help"][..],
        &["--version"],
        &["--help-stats"],
        &["topology"],
        &["topology", "--json"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_scx_roost"))
            .args(args)
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .and_then(Child::wait_with_output)
            .expect("the binary runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        assert!(stderr.is_empty(), "{args:?}: {stderr}");
    }
}
