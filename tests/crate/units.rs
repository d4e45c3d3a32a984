// SPDX-License-Identifier: GPL-2.0-only
//! The systemd units in contrib/. tests/guest/systemd.sh runs them under a real systemd.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

/// What systemd-analyze calls the exposure of a unit, from 0 to 10; None: it cannot say.
fn exposure(unit: &str) -> Option<f64> {
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=yes", "--no-pager", unit])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/contrib"))
        .env("LC_ALL", "C.UTF-8")
        .output();
    let Ok(output) = output else {
        println!("skip: there is no systemd-analyze");
        return None;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unrecognized option") {
        println!("skip: systemd-analyze is older than 250 and reads no file");
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, last) = text
        .split_once("Overall exposure level for ")
        .expect(&stderr);
    let number = last.split_whitespace().nth(1).expect("a number");
    Some(number.parse().expect("a number"))
}

#[test]
fn the_units_expose_little() {
    for unit in ["scx_roost.service", "scx_roost-export.service"] {
        let Some(exposure) = exposure(unit) else {
            return;
        };
        println!("{unit}: {exposure}");
        assert!(exposure <= 3.0, "{unit}: {exposure}");
    }
}

/// What systemd does for a unit whose stderr goes to the journal.
#[test]
#[cfg(feature = "export")]
fn the_journal_gets_priorities() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log = |stream: &str, args: &[&str]| {
        let stderr = File::create(&path).unwrap();
        let of = stderr.metadata().unwrap();
        let stream = stream.replace("OURS", &format!("{}:{}", of.dev(), of.ino()));
        let mut program = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
        program.args(args).env("JOURNAL_STREAM", stream);
        program.stdout(Stdio::null()).stderr(stderr);
        program.status().unwrap();
        std::fs::read_to_string(&path).unwrap()
    };
    let wrong = &["--json"];
    assert!(log("OURS", wrong).starts_with("<3>scx_roost: --json sets"));
    assert!(log("1:2", wrong).starts_with("scx_roost: --json sets"));
    let export = &["export", "--once", "--stats-path", "/nowhere/stats"];
    let text = "no scheduler serves statistics at /nowhere/stats\n";
    assert_eq!(log("OURS", export), format!("<6>{text}"));
    assert!(log("1:2", export).ends_with(&format!(" [INFO] {text}")));
}

#[test]
fn the_scheduler_conflicts_with_other_services_of_schedulers() {
    let unit = include_str!("../../contrib/scx_roost.service");
    for key in ["Conflicts", "After"] {
        let line = format!("\n{key}=scx.service scx_loader.service\n");
        assert!(unit.contains(&line), "{key}");
    }
}
