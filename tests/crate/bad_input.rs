// SPDX-License-Identifier: GPL-2.0-only
//! The binary and bad input: one sentence, exit status 1, nothing left behind.

use std::path::Path;
use std::process::{Command, Output};

fn roost(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(args)
        .output()
        .expect("the binary runs")
}

/// The last line on stderr, after exit status 1.
fn refusal(args: &[&str]) -> String {
    let output = roost(args);
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
    let last = stderr.lines().last().unwrap_or_default().to_string();
    assert!(last.starts_with("scx_roost: "), "{args:?}: {stderr}");
    last
}

#[test]
fn unknown_names() {
    assert!(
        refusal(&["--preset", "fast"])
            .contains("unknown preset 'fast': expected one of roost, mainline")
    );
    assert!(
        refusal(&["--enable", "magic"])
            .contains("unknown feature 'magic': expected one of prev_idle")
    );
    assert!(refusal(&["--disable", "magic"]).contains("unknown feature 'magic'"));
    assert!(refusal(&["--fast"]).contains("unexpected argument '--fast' found"));
    assert!(refusal(&["toplogy"]).contains("unrecognized subcommand 'toplogy'"));
}

#[test]
fn a_sysfs_that_is_none() {
    for command in ["topology", "doctor"] {
        let output = roost(&[command, "--sysfs", "/nonexistent"]);
        assert_eq!(output.status.code(), Some(1));
        let text =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(
            text.contains("/nonexistent/devices/system/cpu is not a folder"),
            "{text}"
        );
    }
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

#[test]
fn a_start_without_sched_ext() {
    if Path::new("/sys/kernel/sched_ext").exists() {
        println!("skipped: this kernel has sched_ext; the guest tests cover it");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("stats");
    let sentence = refusal(&["--stats-path", socket.to_str().unwrap()]);
    assert!(
        sentence.contains("this kernel has no sched_ext: boot a kernel of 6.12 or later"),
        "{sentence}"
    );
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

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let script = format!("{} --help | head -n 1", env!("CARGO_BIN_EXE_scx_roost"));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
