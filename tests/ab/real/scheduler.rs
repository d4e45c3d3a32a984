// SPDX-License-Identifier: GPL-2.0-only
//! Schedulers that are started, watched and stopped.

use super::{ATTACHES, Played, root};
use crate::child::{alone, lives, workload};
use scx_roost::ab::child::Failure;
use scx_roost::ab::machine::Machine;
use scx_roost::ab::real::needs::versions;
use scx_roost::ab::variant::Variant;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[test]
fn a_command_is_not_blamed_for_its_scheduler() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new();
    let state = played.path("state");
    let fails = workload(&format!("echo disabled >{}; exit 3", state.display()));
    let scx = Variant::parse(&played.scx(ATTACHES)).unwrap();
    let mut real = played.real(&|| false, fails);
    real.begin(std::slice::from_ref(&scx)).unwrap();
    real.switch(&scx).unwrap();
    let told = real.run().unwrap_err().to_string();
    assert!(
        told.contains("the scheduler is no longer attached"),
        "{told}"
    );
    real.restore().unwrap();
}

/// Ctrl-C while a scheduler is loaded.
#[test]
fn a_stopped_load_is_no_failure_and_leaves_nothing() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new();
    let scx = played.scx("sleep 7662 & sleep 7662");
    let mut real = played.real(&|| true, workload("true"));
    let variant = Variant::parse(&scx).unwrap();
    real.begin(std::slice::from_ref(&variant)).unwrap();
    let failure = real.switch(&variant).unwrap_err();
    assert!(matches!(failure, Failure::Stopped), "{failure}");
    real.restore().unwrap();
    assert!(!lives("7662"));
}

#[test]
fn a_scheduler_that_ends_is_reported() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new();
    let scx = played.scx("echo no BTF; exit 5");
    let mut real = played.real(&|| false, workload("true"));
    let variant = Variant::parse(&scx).unwrap();
    real.begin(std::slice::from_ref(&variant)).unwrap();
    let told = real.switch(&variant).unwrap_err().to_string();
    let why = "it ended before it was attached (exit status: 5): its last output: no BTF";
    assert!(told.ends_with(why), "{told}");
    real.restore().unwrap();
}

#[test]
fn a_scheduler_attached_during_a_run_is_noticed() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new();
    let seq = played.path("enable_seq");
    let came_and_went = workload(&format!("echo 5 >{}", seq.display()));
    let mut real = played.real(&|| false, came_and_went);
    let variant = Variant::parse("eevdf").unwrap();
    real.begin(std::slice::from_ref(&variant)).unwrap();
    real.switch(&variant).unwrap();
    let told = real.run().unwrap_err().to_string();
    assert!(told.contains("schedulers were attached again"), "{told}");
    // The count is 5 already.
    real.run().unwrap();
    played.says("state", "enabled");
    played.says("root/ops", "lavd");
    let told = real.run().unwrap_err().to_string();
    assert!(told.contains("lavd was attached in the meantime"), "{told}");
    played.says("state", "disabled");
    real.restore().unwrap();
}

/// Of other schedulers than scx_roost: the first line that they print, if they end soon.
#[test]
fn the_version_of_a_scheduler_is_asked_for() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let scx = |name: &str, script: &str| {
        let program = folder.path().join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Variant::parse(&format!("scx:{} -m all", program.display())).unwrap()
    };
    let known = scx(
        "scx_known",
        "test $1 = --version && echo scx_x 1.2 && echo more",
    );
    let variants = [
        known.clone(),
        scx("scx_mute", "exit 1"),
        scx("scx_wrong", "echo usage: scx_wrong; exit 1"),
        scx("scx_endless", "exec sleep 7663"),
        // What it starts keeps its output open.
        scx("scx_starts", "sleep 7663 & exit 0"),
        // A script of the user's may start its scheduler whatever it is told.
        scx("start", "echo started > $(dirname $0)/started; echo 1"),
        Variant::parse("eevdf").unwrap(),
    ];
    let line = (known.name, "scx_x 1.2".to_string());
    assert_eq!(versions(&variants), BTreeMap::from([line]));
    // What it started was killed, and may take a moment to end.
    let end = Instant::now() + Duration::from_secs(10);
    while lives("7663") {
        assert!(Instant::now() < end, "it lives");
        sleep(Duration::from_millis(10));
    }
    assert!(!folder.path().join("started").exists());
}
