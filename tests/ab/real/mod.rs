// SPDX-License-Identifier: GPL-2.0-only
//! What is done to a machine, and undone. The kernel is a folder and schedulers are shell scripts;
//! processes and cgroups are real.

mod guardian;
mod scheduler;

use crate::child::{alone, lives, workload};
use scx_roost::ab::cgroup::Cgroup;
use scx_roost::ab::child::Workload;
use scx_roost::ab::hooks::Hooks;
use scx_roost::ab::machine::Machine;
use scx_roost::ab::real::{Means, Real};
use scx_roost::ab::variant::{Scope, Variant, parse_all};
use scx_roost::machine::host::Host;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_scx_roost");

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A kernel with sched_ext.
struct Played(TempDir);

impl Played {
    fn new() -> Played {
        let played = Played(tempfile::tempdir().unwrap());
        played.says("state", "disabled");
        played.says("enable_seq", "4");
        played
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("kernel/sched_ext").join(file)
    }

    fn says(&self, file: &str, text: &str) {
        write(self.path(file), &format!("{text}\n"));
    }

    /// The cgroups are the real ones, if there are any.
    fn host(&self) -> Host {
        let real = Host::new(Path::new("/sys"));
        let own = real.proc_text("self/cgroup").unwrap_or_default();
        write(self.0.path().join("proc/self/cgroup"), &own);
        Host {
            cgroup: real.cgroup,
            ..Host::in_folder(self.0.path())
        }
    }

    /// A machine for comparisons.
    fn real<'a>(&self, stopped: &'a dyn Fn() -> bool, workload: Workload) -> Real<'a> {
        let means = Means {
            host: self.host(),
            program: PROGRAM.into(),
            stopped,
            warn: &|text| println!("warning: {text}"),
        };
        Real::new(means, Scope::Machine, workload)
    }

    /// Makes a scheduler of this script, and returns its variant.
    fn scx(&self, script: &str) -> String {
        let path = self.0.path().join("scx_played");
        let state = self.path("state");
        let text = script.replace("STATE", state.to_str().unwrap());
        write(path.clone(), &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        format!("scx:{}", path.display())
    }
}

const ATTACHES: &str = "trap 'echo disabled >STATE; exit 0' INT
setsid sleep 7660 &
echo enabled >STATE
while :; do sleep 0.05 & wait $!; done";

fn root() -> bool {
    // SAFETY: a plain call.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        println!("skip: schedulers are started by root");
    }
    root
}

fn made_cgroup() -> anyhow::Result<Cgroup> {
    let cgroup = Cgroup::below_ours(&Host::new(Path::new("/sys")), "scx_roost-ab-test")?;
    cgroup.make().map(|()| cgroup)
}

fn cgroups() -> bool {
    own_cgroup().map(|c| c.remove()).is_some()
}

/// None: no cgroup can be written here; prints why.
pub fn own_cgroup() -> Option<Cgroup> {
    made_cgroup().inspect_err(|e| println!("skip: {e:#}")).ok()
}

fn soon(mut what: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while !what() {
        if Instant::now() > end {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

/// What a run lacks is reported before the first run.
#[test]
fn what_a_run_lacks_is_found_before_it() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new();
    for program in ["/no/such/scx_lavd", "scx_no_such"] {
        let scx = format!("scx:{program} --fast");
        let variants = parse_all(&["mainline", &scx].map(str::to_string)).unwrap();
        let mut real = played.real(&|| false, workload("true"));
        assert_eq!(
            real.begin(&variants).unwrap_err().to_string(),
            format!("variant {scx}: there is no executable program {program}")
        );
    }
}

/// Nothing of it is touched, and the error names the command that ends it.
#[test]
fn no_comparison_begins_beside_a_scheduler_that_is_attached() {
    let _alone = alone();
    let played = Played::new();
    played.says("state", "enabled");
    let begin = || {
        let mut real = played.real(&|| false, workload("true"));
        real.begin(&[Variant::parse("eevdf").unwrap()])?;
        real.restore()
    };
    for (name, ends) in [
        ("lavd", "by 'systemctl stop' of its service, 'scxctl stop'"),
        ("roost_0.1.0_x86_64", "by 'scx_roost stop'"),
    ] {
        played.says("root/ops", name);
        let told = begin().unwrap_err().to_string();
        let attached = format!("the sched_ext scheduler '{name}' is attached: end it first, ");
        assert!(told.starts_with(&attached) && told.contains(ends), "{told}");
    }
    played.says("state", "disabled");
    begin().unwrap();
}

#[test]
fn a_scheduler_is_attached_for_its_variant_and_ends_with_all_that_it_started() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new();
    let scx = played.scx(ATTACHES);
    let mut real = played.real(&|| false, workload("sleep 0.01"));
    let variants = parse_all(&[&scx, "eevdf"].map(str::to_string)).unwrap();
    real.begin(&variants).unwrap();
    for (variant, state) in variants.iter().zip(["enabled", "disabled"]) {
        real.switch(variant).unwrap();
        real.run().unwrap();
        let now = fs::read_to_string(played.path("state")).unwrap();
        assert_eq!(now.trim(), state);
    }
    real.switch(&variants[0]).unwrap();
    assert!(soon(|| lives("7660")));
    real.restore().unwrap();
    assert!(!cgroups() || !lives("7660"));
}

#[test]
fn one_comparison_at_a_time() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new();
    let never = || false;
    let real = || played.real(&never, workload("true"));
    let (mut first, mut second) = (real(), real());
    first.begin(&[]).unwrap();
    let error = second.begin(&[]).unwrap_err().to_string();
    assert!(error.starts_with("another comparison runs"), "{error}");
    first.restore().unwrap();
    second.begin(&[]).unwrap();
    second.restore().unwrap();
}

/// Under the kernel's own scheduler, which needs none of ours. Afterwards a command may run on all
/// CPUs again.
#[test]
fn a_variant_keeps_the_command_to_its_cpus() {
    let _alone = alone();
    let played = Played::new();
    std::os::unix::fs::symlink("/sys/devices", played.0.path().join("devices")).unwrap();
    let never = || false;
    let says = workload("grep Cpus_allowed_list /proc/self/status");
    let mut real = played.real(&never, says);
    let of = |names: [&str; 2]| parse_all(&names.map(str::to_string)).unwrap();
    let wrong = real.begin(&of(["eevdf", "eevdf@cpus=1023"])).unwrap_err();
    let wrong = format!("{wrong:#}");
    assert!(
        wrong.starts_with("variant eevdf@cpus=1023: CPU 1023 is not online"),
        "{wrong}"
    );
    let variants = of(["eevdf", "eevdf@cpus=0"]);
    real.begin(&variants).unwrap();
    let mut allowed = |variant: &Variant| {
        real.switch(variant).unwrap();
        let output = real.run().unwrap().sample.output;
        output.split_whitespace().last().unwrap().to_string()
    };
    let all = allowed(&variants[0]);
    assert_eq!(allowed(&variants[1]), "0");
    assert_eq!(allowed(&variants[0]), all);
    real.restore().unwrap();
}

/// Cgroups that a command has made inside its own are removed too, from the leaves up.
#[test]
fn a_tree_is_taken_away_from_below() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    fs::create_dir_all(own.join("a/b/c")).unwrap();
    fs::create_dir_all(own.join("a/d")).unwrap();
    let cgroup: Cgroup = serde_json::from_value(serde_json::json!(own)).unwrap();
    cgroup.remove();
    assert!(!own.exists());
}

/// What is done around runs, in its order, also when a run or a preparation fails.
#[test]
fn hooks_run_around_the_runs() {
    let _alone = alone();
    let played = Played::new();
    let log = played.0.path().join("log");
    let says = |word: &str| Some(format!("echo {word} >>{}", log.display()));
    let said = || fs::read_to_string(&log).unwrap().replace('\n', " ");
    let command = says("run").unwrap();
    let hooks = Hooks {
        setup: says("setup"),
        prepare: says("prepare"),
        cleanup: says("cleanup"),
    };
    let variant = Variant::parse("eevdf").unwrap();
    let runs = |hooks: &Hooks, times: usize| {
        let _ = fs::remove_file(&log);
        let real = played.real(&|| false, workload(&command));
        let mut real = real.hooked(hooks.clone());
        real.begin(std::slice::from_ref(&variant))?;
        let mut ran = (0..times).map(|_| {
            real.switch(&variant).map_err(|e| anyhow::anyhow!("{e}"))?;
            real.run().map_err(|e| anyhow::anyhow!("{e}"))
        });
        let ran: anyhow::Result<Vec<_>> = ran.by_ref().collect();
        real.restore()?;
        ran.map(|ran| ran.len())
    };
    assert_eq!(runs(&hooks, 2).unwrap(), 2);
    assert_eq!(said(), "setup prepare run prepare run cleanup ");
    let broken = |change: fn(&mut Hooks)| {
        let mut hooks = hooks.clone();
        change(&mut hooks);
        format!("{:#}", runs(&hooks, 1).unwrap_err())
    };
    let told = broken(|hooks| hooks.prepare = Some("echo no luck; false".to_string()));
    let why = "--prepare 'echo no luck; false': the command failed (exit status: 1); its last output: no luck";
    assert_eq!(told, why);
    assert_eq!(said(), "setup cleanup ");
    let told = broken(|hooks| hooks.setup = Some("false".to_string()));
    assert_eq!(told, "--setup 'false': the command failed (exit status: 1)");
    assert_eq!(said(), "cleanup ");
    // The results are good even if it fails, which is a warning.
    let mut careless = hooks.clone();
    careless.cleanup = Some("sleep 7677 &".to_string());
    assert_eq!(runs(&careless, 1).unwrap(), 1);
    assert!(!lives("7677"));
}
