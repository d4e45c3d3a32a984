// SPDX-License-Identifier: GPL-2.0-only
//! The guardian: a process that outlives this one.

use super::{PROGRAM, Played, cgroups, made_cgroup, soon};
use crate::child::{alone, lives, workload};
use scx_roost::ab::machine::Machine;
use scx_roost::ab::real::ground::{self, Ground};
use scx_roost::ab::real::guardian::{COMMAND, Guardian, Word};
use scx_roost::ab::variant::Variant;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn no_other_begins_before_the_machine_is_put_back() {
    let _alone = alone();
    let played = Played::new();
    let host = played.host();
    let lock = ground::alone(&host).unwrap();
    let guardian = Guardian::start(Path::new(PROGRAM), &lock).unwrap();
    // The guardian holds the lock too, so killing either process keeps others out.
    let held = fs::read_link(format!("/proc/{}/fd/1", guardian.pid()));
    let ours = fs::read_link(format!("/proc/self/fd/{}", lock.as_raw_fd()));
    assert_eq!(held.unwrap(), ours.unwrap());
    drop(lock);
    assert!(ground::alone(&host).is_err());
    guardian.dismiss();
    ground::alone(&host).unwrap();
}

#[test]
fn the_guardian_ends_all() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    fs::create_dir(&own).unwrap();
    let cgroup = cgroups().then(|| made_cgroup().unwrap());
    let mut guardian = Command::new(PROGRAM)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let group = |script: &str, child: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0);
        if let Some(cgroup) = &cgroup {
            cgroup.child(child).unwrap().adopt(&mut command).unwrap();
        }
        command.spawn().unwrap()
    };
    let mut command = group("setsid sleep 7663 & sleep 7664", "command");
    let mut scheduler = group("sleep 7665 & wait", "scheduler");
    assert!(soon(|| ["7663", "7664", "7665"].iter().all(|s| lives(s))));
    let words = [
        Word::Owns(Ground {
            folder: own.clone(),
            cgroup: cgroup.clone(),
        }),
        Word::Schedules(scheduler.id() as i32),
        Word::Runs(command.id() as i32),
    ];
    let mut door = guardian.stdin.take().unwrap();
    for word in &words {
        writeln!(door, "{}", serde_json::to_string(word).unwrap()).unwrap();
    }
    assert!(soon(|| lives("7664")));
    // As if this process was killed in the middle of a line.
    write!(door, "{{\"Ru").unwrap();
    drop(door);
    assert!(guardian.wait().unwrap().success());
    for child in [&mut command, &mut scheduler] {
        child.wait().unwrap();
    }
    assert!(!lives("7664") && !lives("7665"));
    assert!(!own.exists());
    if let Some(cgroup) = cgroup {
        assert!(!lives("7663") && !cgroup.path().exists());
    }
}

/// An ended process is not signalled, because its number may be in use again. Only SIGKILL ends the
/// guardian.
#[test]
fn what_has_ended_is_left_alone() {
    let _alone = alone();
    let mut guardian = Command::new(PROGRAM)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let sleeper = |secs: &str| {
        let mut command = Command::new("sleep");
        command.arg(secs).process_group(0).spawn().unwrap()
    };
    let (mut command, mut scheduler) = (sleeper("7667"), sleeper("7668"));
    let mut door = guardian.stdin.take().unwrap();
    for word in [
        Word::Runs(command.id() as i32),
        Word::Schedules(scheduler.id() as i32),
        Word::Ended,
        Word::ScheduledOut,
    ] {
        writeln!(door, "{}", serde_json::to_string(&word).unwrap()).unwrap();
    }
    let ignored = || {
        let status = fs::read_to_string(format!("/proc/{}/status", guardian.id())).unwrap();
        let mask = status
            .lines()
            .find_map(|l| l.strip_prefix("SigIgn:"))
            .unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    };
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
    let all = signals
        .iter()
        .fold(0, |all, signal| all | 1 << (signal - 1));
    let deaf = soon(|| ignored() & all == all);
    drop(door);
    let ended = guardian.wait().unwrap();
    let left = [&mut command, &mut scheduler].map(|child| child.try_wait().unwrap().is_none());
    for child in [&mut command, &mut scheduler] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(deaf && ended.success());
    assert_eq!(left, [true, true]);
}

/// The guardian is killed first. Another one is started, with all that the first one knew.
#[test]
fn a_guardian_that_dies_is_replaced() {
    let _alone = alone();
    let played = Played::new();
    let folder = tempfile::tempdir().unwrap();
    let ground = Ground {
        folder: folder.path().to_path_buf(),
        cgroup: None,
    };
    let mut sleeper = Command::new("sleep")
        .arg("7666")
        .process_group(0)
        .spawn()
        .unwrap();
    let lock = ground::alone(&played.host()).unwrap();
    let mut guardian = Guardian::start(Path::new(PROGRAM), &lock).unwrap();
    drop(lock);
    guardian.say(Word::Owns(ground)).unwrap();
    guardian.say(Word::Runs(sleeper.id() as i32)).unwrap();
    assert_eq!(guardian.look().unwrap(), None);
    let killed = guardian.pid();
    // SAFETY: plain numbers; a child of ours that is not reaped.
    unsafe { libc::kill(killed as i32, libc::SIGKILL) };
    assert!(soon(|| guardian
        .look()
        .unwrap()
        .is_some_and(|told| told.ends_with(
            "has ended early (signal: 9 (SIGKILL)): another was started"
        ))));
    assert_ne!(guardian.pid(), killed);
    assert_eq!(guardian.look().unwrap(), None);
    assert!(ground::alone(&played.host()).is_err());
    // As if this process was killed.
    drop(guardian);
    assert!(soon(|| !folder.path().exists()));
    assert!(!sleeper.wait().unwrap().success());
}

/// Stopped (SIGSTOP), it neither reads nor ends. It is replaced when its pipe is full, and nobody
/// waits for it at the end.
#[test]
fn a_guardian_that_is_stopped_holds_nobody_up() {
    let _alone = alone();
    let played = Played::new();
    let lock = ground::alone(&played.host()).unwrap();
    let mut guardian = Guardian::start(Path::new(PROGRAM), &lock).unwrap();
    let stops = |guardian: &Guardian| {
        // SAFETY: plain numbers; a child of ours that is not reaped.
        unsafe { libc::kill(guardian.pid() as i32, libc::SIGSTOP) };
        guardian.pid()
    };
    let stopped = stops(&guardian);
    for _ in 0..10_000 {
        guardian.say(Word::Ended).unwrap();
    }
    assert_ne!(guardian.pid(), stopped);
    stops(&guardian);
    let begin = Instant::now();
    guardian.dismiss();
    assert!(begin.elapsed() < Duration::from_secs(10));
    drop(lock);
    ground::alone(&played.host()).unwrap();
}

/// The command kills the guardian. The new guardian does not count as a leftover of the command.
#[test]
fn a_guardian_replaced_during_a_run_is_no_leftover() {
    let _alone = alone();
    let played = Played::new();
    let kills = "for at in /proc/[0-9]*; do
            grep -qz '^ab-guardian$' $at/cmdline && grep -q \"^PPid:.$PPID$\" $at/status || continue
            kill -9 ${at#/proc/} && killed=1
        done 2>/dev/null
        [ \"$killed\" ] && sleep 2";
    let mut real = played.real(&|| false, workload(kills));
    let variant = Variant::parse("eevdf").unwrap();
    real.begin(std::slice::from_ref(&variant)).unwrap();
    real.switch(&variant).unwrap();
    real.run().unwrap();
    // The new guardian is running.
    real.run().unwrap();
    real.restore().unwrap();
}

/// The guardian knows what belongs to this process before it exists. An earlier process with the
/// same number may have left something in its place.
#[test]
fn a_ground_is_named_before_it_is_made() {
    let _alone = alone();
    let played = Played::new();
    let (mut ground, _) = Ground::named(&played.host());
    assert!(!ground.folder.exists());
    let mut stale = None;
    if let Some(cgroup) = &ground.cgroup {
        assert!(!cgroup.path().exists());
        cgroup.make().unwrap();
        let mut sleeper = Command::new("sleep");
        sleeper.arg("7667");
        cgroup.adopt(&mut sleeper).unwrap();
        stale = Some(sleeper.spawn().unwrap());
    }
    assert_eq!(ground.make().unwrap(), None);
    let mode = fs::metadata(&ground.folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(ground.cgroup.as_ref().is_none_or(|c| c.path().exists()));
    if let Some(mut stale) = stale {
        assert!(!stale.wait().unwrap().success());
    }
    ground.clear().unwrap();
    assert!(!ground.folder.exists());
    assert!(ground.cgroup.is_none_or(|c| !c.path().exists()));
}

#[test]
fn a_dismissed_guardian_changes_nothing() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut guardian = Command::new(PROGRAM)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut door = guardian.stdin.take().unwrap();
    let ground = Ground {
        folder: folder.path().to_path_buf(),
        cgroup: None,
    };
    for word in [Word::Owns(ground), Word::Dismissed] {
        writeln!(door, "{}", serde_json::to_string(&word).unwrap()).unwrap();
    }
    drop(door);
    assert!(guardian.wait().unwrap().success());
    assert!(folder.path().exists());
}
