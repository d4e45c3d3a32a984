// SPDX-License-Identifier: GPL-2.0-only
//! Texts that others chose, in each output of the binary: none steers a terminal, none becomes a
//! line of its own with a priority, and none names a file that is written. Servers are hostile
//! here.

use crate::support::SMALL_SMT;
use scx_roost::util::escape;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use tempfile::TempDir;

const HOSTILE: &str = "h\u{1b}]0;pwned\u{7}\u{9b}2J\u{7f}\u{202e}\r\n<0>forged";

/// Serves a socket until the test program ends.
fn serves(each: impl Fn(UnixStream) + Send + Clone + 'static) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let each = each.clone();
            thread::spawn(move || each(stream));
        }
    });
    (dir, path)
}

/// Each request gets this answer.
fn answering(errno: i32, resp: Value) -> (TempDir, PathBuf) {
    let answer = json!({"errno": errno, "args": {"resp": resp}}).to_string() + "\n";
    serves(move |stream| {
        let mut writer = &stream;
        for _ in BufReader::new(&stream).lines().map_while(Result::ok) {
            let _ = writer.write_all(answer.as_bytes());
        }
    })
}

fn roost(args: &[&str], path: &Path) -> Output {
    let option = match args[0] {
        "ctl" | "exec" | "stop" => vec!["--ctl-path"],
        "status" | "export" => vec!["--stats-path"],
        _ => vec![],
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
    command.arg(args[0]);
    if let [option] = option[..] {
        command.arg(option).arg(path);
    }
    command.args(&args[1..]).output().expect("the binary runs")
}

fn calm(bytes: &[u8], what: &dyn std::fmt::Debug) -> String {
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let steers = |c: char| escape::steers(c) && !matches!(c, '\n' | '\t');
    assert!(!text.contains(steers), "{what:?}: {text:?}");
    let forged = text.lines().any(|line| line.starts_with("<0>"));
    assert!(!forged, "{what:?}: {text}");
    text
}

/// Checks both outputs; the hostile name has to be in one of them.
fn shown(args: &[&str], path: &Path) -> String {
    let output = roost(args, path);
    let text = calm(&output.stdout, &args) + &calm(&output.stderr, &args);
    assert!(text.contains("pwned"), "{args:?}: {text}");
    text
}

#[test]
fn answers_of_a_control_socket() {
    let arm = json!({"name": HOSTILE, "profile": HOSTILE, "preset": "mainline", "variant": HOSTILE,
        "features": HOSTILE, "tunables": {HOSTILE: HOSTILE}, "rules": 1});
    let (_dir, arms) = answering(0, json!({"generation": 1, "arms": [arm]}));
    let rules =
        json!([{"subject": {"comm": HOSTILE}, "arm": "a"}, {"subject": {"cgroup": HOSTILE}}]);
    let (_dir, rules) = answering(0, rules);
    let (_dir, changes) = answering(0, json!({"generation": 1, "changes": [HOSTILE]}));
    let (_dir, refusal) = answering(22, json!(HOSTILE));
    for (args, path) in [
        (&["ctl", "show"][..], &arms),
        (&["ctl", "show", "--json"], &arms),
        (&["ctl", "arms"], &arms),
        (&["ctl", "rules"], &rules),
        (&["ctl", "rules", "--json"], &rules),
        (&["ctl", "set", "--enable", "claim"], &changes),
        (&["ctl", "set", "--enable", "claim"], &refusal),
        (&["exec", "--arm", "a", "--", HOSTILE], &arms),
        (&["exec", "--arm", "a", "--", "true"], &refusal),
    ] {
        shown(args, path);
    }
    let text = shown(&["ctl", "rules"], &rules);
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn answers_of_a_statistics_socket() {
    let arm = json!({"profile": HOSTILE, "preset": HOSTILE, "features": HOSTILE});
    let totals = json!({"version": HOSTILE, "profile": HOSTILE, "preset": HOSTILE, "running": 1,
        "features": HOSTILE, "arms": {"default": arm, HOSTILE: arm},
        "conditions": {HOSTILE: {"active": 1, "text": HOSTILE}}});
    let (_dir, totals) = answering(0, totals);
    let (_dir, refusal) = answering(22, json!(HOSTILE));
    shown(&["status"], &totals);
    let json = shown(&["status", "--json"], &totals);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["preset"], HOSTILE, "JSON has the name as it is");
    shown(&["status"], &refusal);
    #[cfg(feature = "export")]
    shown(&["export", "--once", "--no-cpus"], &totals);
}

/// The log of a client: a terminal's, and the journal's, where each line has its own priority.
#[test]
fn lines_of_a_log() {
    let (_dir, refusal) = answering(22, json!(HOSTILE));
    for journal in [false, true] {
        let (mut log, stderr) = std::io::pipe().unwrap();
        let of = fs::metadata(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&log)
        ));
        let of = of.unwrap();
        let stream = format!("{}:{}", of.dev(), of.ino());
        let mut client = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
        client
            .args(["--monitor", "1", "--stats-path"])
            .arg(&refusal);
        if journal {
            client.env("JOURNAL_STREAM", stream);
        }
        let mut client = client.stderr(stderr).stdout(Stdio::null()).spawn().unwrap();
        let mut bytes = vec![0; 4096];
        let len = log.read(&mut bytes).unwrap();
        client.kill().unwrap();
        client.wait().unwrap();
        let text = calm(&bytes[..len], &journal);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("pwned"), "{text}");
        assert_eq!(text.starts_with("<6>"), journal, "{text}");
    }
}

#[test]
fn files_of_somebody_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("result.jsonl");
    fs::write(&file, json!({"format": HOSTILE}).to_string() + "\n").unwrap();
    let file = file.to_str().unwrap();
    #[cfg(feature = "ab")]
    for args in [&["ab", "show", file][..], &["ab", "show", "--lkml", file]] {
        shown(args, Path::new(""));
    }
    shown(&["config", "check", HOSTILE], Path::new(""));
    let tree = SMALL_SMT.tree();
    let folder = "devices/system/cpu/cpu0/cpufreq";
    for (name, text) in [
        ("scaling_driver", HOSTILE),
        ("scaling_governor", HOSTILE),
        ("cpuinfo_max_freq", "1000000"),
        ("scaling_max_freq", "1000000"),
        ("cpuinfo_min_freq", "1000000"),
        ("scaling_min_freq", "1000000"),
        ("affected_cpus", "0"),
        ("related_cpus", "0"),
    ] {
        tree.write(&format!("{folder}/{name}"), text);
        tree.write(&format!("devices/system/cpu/cpufreq/policy0/{name}"), text);
    }
    let root = tree.root().to_str().unwrap();
    for args in [
        &["topology", "--sysfs", root][..],
        &["topology", "--sysfs", root, "--json"],
        &["doctor", "--sysfs", root],
    ] {
        let output = roost(args, Path::new(""));
        calm(&output.stdout, &args);
        calm(&output.stderr, &args);
    }
}

/// A server without a newline: the client gives up at its longest line.
#[test]
fn a_line_without_an_end() {
    let (_dir, path) = serves(|mut stream| while stream.write_all(&[b'x'; 1 << 16]).is_ok() {});
    for args in [&["ctl", "show"][..], &["stop"], &["status"]] {
        let output = roost(args, &path);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("a line of more than 8388608 bytes"), "{text}");
    }
}

/// The file is ours, and its text is a configuration, whatever the server says.
#[test]
fn a_file_that_a_server_names_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("config");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("config.toml"), "").unwrap();
    let own = folder.join("config.d/90-ctl.toml");
    let other = dir.path().join("cron.d/pwned");
    let save = |file: &Path, text: &str| {
        let resp = json!({"file": file, "text": text});
        let (_dir, path) = answering(0, resp);
        let args = ["ctl", "save", "--config", folder.to_str().unwrap()];
        let output = roost(&args, &path);
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (status, told) = save(&other, "slice-us = 1000\n");
    assert_eq!(status, Some(1));
    assert!(told.contains("and this command would write"), "{told}");
    for text in [
        "* * * * * root id\n",
        "slice-us = 1\n",
        "[arms.a]\npreset = 'x'\n",
    ] {
        let (status, told) = save(&own, text);
        assert_eq!(status, Some(1), "{text}");
        assert!(told.contains("90-ctl.toml, line "), "{told}");
    }
    assert!(!other.exists() && !other.parent().unwrap().exists() && !own.exists());
    assert_eq!(save(&own, "slice-us = 1000\n").0, Some(0));
    assert_eq!(fs::read_to_string(&own).unwrap(), "slice-us = 1000\n");
}
