// SPDX-License-Identifier: GPL-2.0-only
//! What is done to a machine, and undone. The kernel is a folder and schedulers are shell scripts;
//! processes and cgroups are real.

mod guardian;
mod scheduler;
mod service;

use crate::child::{alone, lives, workload};
use scx_roost::ab::cgroup::Cgroup;
use scx_roost::ab::child::Workload;
use scx_roost::ab::hooks::Hooks;
use scx_roost::ab::machine::Machine;
use scx_roost::ab::real::service::{Call, Service};
use scx_roost::ab::real::{Means, Real};
use scx_roost::ab::variant::{Scope, Variant, parse_all};
use scx_roost::machine::host::Host;
use std::cell::RefCell;
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

/// A kernel with sched_ext, and processes with number, name, command line and cgroup.
struct Played(TempDir);

/// Of a process of this user.
fn status(parent: u32, user: u32) -> String {
    format!("Name:\tx\nPPid:\t{parent}\nUid:\t{user}\t{user}\t{user}\t{user}\n")
}

impl Played {
    fn new(processes: &[(&str, &str, &str, &str)]) -> Played {
        let played = Played(tempfile::tempdir().unwrap());
        played.says("state", "disabled");
        played.says("enable_seq", "4");
        for (pid, comm, cmdline, cgroup) in processes {
            let of = |file: &str| played.0.path().join("proc").join(pid).join(file);
            write(of("comm"), &format!("{comm}\n"));
            write(of("cmdline"), &cmdline.replace(' ', "\0"));
            write(of("cgroup"), &format!("0::{cgroup}\n"));
            write(of("status"), &status(1, 0));
        }
        played
    }

    /// A systemd service has attached a scheduler.
    fn with_service() -> Played {
        let unit = "/system.slice/scx.service";
        let played = Played::new(&[("20", "scx_lavd", "scx_lavd", unit)]);
        played.says("state", "enabled");
        played
    }

    /// What systemctl prints. The files of the kernel change accordingly.
    fn obeys(&self, verb: &str) -> String {
        match verb {
            "stop" => self.says("state", "disabled"),
            "start" => self.says("state", "enabled"),
            _ => return shown(20),
        }
        String::new()
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
    fn real<'a>(
        &self,
        call: Call<'a>,
        stopped: &'a dyn Fn() -> bool,
        workload: Workload,
    ) -> Real<'a> {
        let means = Means {
            host: self.host(),
            program: PROGRAM.into(),
            call,
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

/// What systemctl shows of a service that can be started again and has this main process.
fn shown(main: u32) -> String {
    format!("Transient=no\nCanStart=yes\nCanStop=yes\nMainPID={main}\n")
}

fn scx_service() -> Service {
    Service {
        unit: "scx.service".into(),
    }
}

fn no_call(words: &[&str]) -> anyhow::Result<String> {
    panic!("{words:?}")
}

/// The attached scheduler is stopped, and then that call fails: its service is started again at
/// once.
#[test]
fn a_beginning_that_fails_is_undone() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::with_service();
    let said = RefCell::new(Vec::new());
    let call = |words: &[&str]| {
        said.borrow_mut().push(words.join(" "));
        let printed = played.obeys(words[1]);
        anyhow::ensure!(words[1] != "stop", "no luck");
        Ok(printed)
    };
    let mut real = played.real(&call, &|| false, workload("true"));
    let variants = parse_all(&["mainline", "eevdf"].map(str::to_string)).unwrap();
    let error = format!("{:#}", real.begin(&variants).unwrap_err());
    assert_eq!(error, "no luck");
    assert_eq!(
        said.borrow()[1..],
        [
            "systemctl stop scx.service",
            "systemctl reset-failed scx.service",
            "systemctl start scx.service"
        ]
    );
}

/// What a run lacks is reported before the first run, and before the attached scheduler is stopped.
#[test]
fn what_a_run_lacks_is_found_before_it() {
    let _alone = alone();
    let played = Played::with_service();
    let begin = |names: &[&str]| {
        let mut real = played.real(&no_call, &|| false, workload("true"));
        let variants: Vec<Variant> = names.iter().map(|n| Variant::parse(n).unwrap()).collect();
        format!("{:#}", real.begin(&variants).unwrap_err())
    };
    if !root() {
        return;
    }
    for program in ["/no/such/scx_lavd", "scx_no_such"] {
        let scx = format!("scx:{program} --fast");
        assert_eq!(
            begin(&["mainline", &scx]),
            format!("variant {scx}: there is no executable program {program}")
        );
    }
}

#[test]
fn what_is_attached_comes_back_in_the_end() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::with_service();
    let said = RefCell::new(Vec::new());
    let call = |words: &[&str]| {
        said.borrow_mut().push(words[1].to_string());
        Ok(played.obeys(words[1]))
    };
    let scx = played.scx(ATTACHES);
    let mut real = played.real(&call, &|| false, workload("sleep 0.01"));
    let variants = [
        Variant::parse(&scx).unwrap(),
        Variant::parse("eevdf").unwrap(),
    ];
    real.begin(&variants).unwrap();
    for variant in &variants {
        real.switch(variant).unwrap();
        real.run().unwrap();
    }
    assert_eq!(*said.borrow(), ["show", "stop"]);
    real.switch(&variants[0]).unwrap();
    assert!(soon(|| lives("7660")));
    real.restore().unwrap();
    assert_eq!(*said.borrow(), ["show", "stop", "reset-failed", "start"]);
    assert!(!cgroups() || !lives("7660"));
}

#[test]
fn one_comparison_at_a_time() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new(&[]);
    let never = || false;
    let real = || played.real(&no_call, &never, workload("true"));
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
    let played = Played::new(&[]);
    std::os::unix::fs::symlink("/sys/devices", played.0.path().join("devices")).unwrap();
    let never = || false;
    let says = workload("grep Cpus_allowed_list /proc/self/status");
    let mut real = played.real(&no_call, &never, says);
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
    let played = Played::new(&[]);
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
        let real = played.real(&no_call, &|| false, workload(&command));
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
