// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler that we started. It ends with us, whatever becomes of us, and the kernel goes back to its own when it ends.

use super::arm;
use super::ground::Ground;
use crate::ab::child::{Failure, Workload, reaped_within};
use crate::ab::variant::{Kind, Variant};
use crate::arms::DEFAULT_ARM;
use crate::control::Op;
use crate::ctl::ask;
use crate::host::Host;
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Error;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The verifier may take its time on a slow machine.
const START_TIME: Duration = Duration::from_secs(120);
const END_TIME: Duration = Duration::from_secs(15);
const NAP: Duration = Duration::from_millis(20);
/// Its cgroup below ours.
const CGROUP: &str = "scheduler";

/// What of sched_ext is attached, by its files.
pub struct Attached<'a>(pub &'a Host);

/// It is another one when any scheduler was attached meanwhile, ours after a restart too.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// None: the kernel's own runs.
    pub name: Option<String>,
    /// How many were attached since the boot, where the kernel counts them.
    enabled: Option<String>,
}

impl Attached<'_> {
    /// The kernel has sched_ext.
    pub fn known(&self) -> bool {
        self.state().is_some()
    }

    fn state(&self) -> Option<String> {
        self.0.kernel_text("sched_ext/state")
    }

    fn enabled(&self) -> bool {
        self.state().is_some_and(|s| s == "enabled")
    }

    /// This one is attached.
    pub fn is(&self, name: &str) -> bool {
        self.enabled() && self.name().is_some_and(|n| n == name)
    }

    fn gone(&self) -> bool {
        self.state().is_none_or(|s| s == "disabled")
    }

    /// Of the scheduler that is attached, or about to be.
    pub fn name(&self) -> Option<String> {
        let name = || self.0.kernel_text("sched_ext/root/ops");
        (!self.gone()).then(|| name().unwrap_or_else(|| "unknown".to_string()))
    }

    pub fn epoch(&self) -> Epoch {
        Epoch {
            name: self.name(),
            enabled: self.0.kernel_text("sched_ext/enable_seq"),
        }
    }

    pub fn wait_until_gone(&self) -> Result<()> {
        let end = Instant::now() + END_TIME;
        while !self.gone() {
            ensure!(
                Instant::now() < end,
                "the scheduler {} is still attached after {} s",
                self.name().unwrap_or_default(),
                END_TIME.as_secs()
            );
            sleep(NAP);
        }
        Ok(())
    }

    pub fn wait_until(&self, name: &str) -> Result<()> {
        let end = Instant::now() + START_TIME;
        while !self.is(name) {
            ensure!(
                Instant::now() < end,
                "the scheduler {name} was started and is not attached after {} s",
                START_TIME.as_secs()
            );
            sleep(NAP);
        }
        Ok(())
    }
}

/// The arm of the command, where it has one, and that of the copy beside it.
pub const ARMS: [&str; 2] = ["ab", "ab-beside"];

/// Dropped, it is killed with all that it started.
pub struct Scheduler {
    child: Child,
    ground: Ground,
    /// One of ours, which changes while it runs.
    ours: bool,
    /// All other tasks are on this one; None: they are where the command is.
    others: Option<Variant>,
    /// As the kernel calls it.
    name: Option<String>,
    /// There is an arm of the copy beside.
    beside: bool,
    /// It was ended.
    over: bool,
}

impl Scheduler {
    /// The group that it runs in.
    pub fn group(&self) -> i32 {
        self.child.id() as i32
    }

    /// As the variant says; None for the kernel's own. `program`: scx_roost. `started` is told its group.
    pub fn start(
        variant: &Variant,
        others: Option<&Variant>,
        program: &Path,
        ground: &Ground,
        started: &mut dyn FnMut(i32),
    ) -> Result<Option<Scheduler>> {
        let mut command = match &variant.kind {
            Kind::Eevdf => return Ok(None),
            Kind::Roost(_) => roost(program, &ground.folder),
            Kind::Scx(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        };
        let scheduler = Scheduler {
            child: spawn(&mut command, ground)?,
            ground: ground.clone(),
            ours: matches!(variant.kind, Kind::Roost(_)),
            others: others.cloned(),
            name: None,
            beside: false,
            over: false,
        };
        started(scheduler.group());
        Ok(Some(scheduler))
    }

    /// Comes back when it is attached and as the variant says.
    pub fn wait_until_ready(
        &mut self,
        variant: &Variant,
        attached: &Attached,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let end = Instant::now() + START_TIME;
        while !(attached.enabled() && self.answers()) {
            if stopped() {
                return Err(Failure::Stopped);
            }
            if let Some(status) = self.ended()? {
                let words = self.last_words();
                return Err(anyhow!("it ended before it was attached ({status}): {words}").into());
            }
            if Instant::now() >= end {
                let (limit, words) = (START_TIME.as_secs(), self.last_words());
                return Err(anyhow!("it was not attached within {limit} s: {words}").into());
            }
            sleep(NAP);
        }
        self.name = attached.name();
        if let Some(others) = self.others.clone() {
            self.set(DEFAULT_ARM, &others)?;
            ask(&self.ctl(), &arm::made(ARMS[0]))?;
        }
        self.become_variant(variant)?;
        Ok(())
    }

    fn ended(&mut self) -> Result<Option<std::process::ExitStatus>> {
        self.child.try_wait().context("cannot watch the scheduler")
    }

    fn answers(&self) -> bool {
        !self.ours || ask(&self.ctl(), &Op::Rules {}).is_ok()
    }

    /// Puts a command on this arm. We are who may ask for it, and whose it is becomes so behind that.
    pub fn puts_on(&self, arm: &str, program: &Path, workload: &mut Workload) {
        let (path, user) = (self.ctl(), workload.user.take());
        let exec = ["exec", "--arm", arm, "--ctl-path"].map(OsStr::new);
        let user = match &user {
            Some(user) => vec![OsStr::new("--user"), user.name()],
            None => vec![OsStr::new("--as-root")],
        };
        let words = [program.as_os_str()].into_iter().chain(exec);
        let words = words.chain([path.as_os_str()]).chain(user);
        let words = words.chain([OsStr::new("--")]);
        let before: Vec<OsString> = words.map(OsStr::to_os_string).collect();
        workload.command.splice(0..0, before);
    }

    /// Where the command is, and of which counters are looked at; None: where all are.
    pub fn own_arm(&self) -> Option<&'static str> {
        self.others.as_ref().map(|_| ARMS[0])
    }

    /// The copy beside the command is under this one.
    pub fn put_beside(&mut self, variant: &Variant) -> Result<()> {
        if !self.beside {
            ask(&self.ctl(), &arm::made(ARMS[1]))?;
            self.beside = true;
        }
        self.set(ARMS[1], variant).map(|_| ())
    }

    fn ctl(&self) -> PathBuf {
        self.ground.folder.join("ctl")
    }

    /// Where one of ours serves its statistics.
    pub fn stats(&self) -> Option<PathBuf> {
        self.ours.then(|| self.ground.folder.join("stats"))
    }

    /// Changes it while it runs. False: it cannot become that.
    pub fn become_variant(&mut self, variant: &Variant) -> Result<bool> {
        match self.ours {
            true => self.set(self.own_arm().unwrap_or(DEFAULT_ARM), variant),
            false => Ok(false),
        }
    }

    fn set(&self, arm: &str, variant: &Variant) -> Result<bool> {
        let Some(ops) = arm::becomes(arm, variant) else {
            return Ok(false);
        };
        for op in &ops {
            ask(&self.ctl(), op)?;
        }
        Ok(true)
    }

    /// It is still there, and it is the one that is attached.
    pub fn check(&mut self, attached: &Attached) -> Result<()> {
        if let Some(status) = self.ended()? {
            bail!("the scheduler ended ({status}): {}", self.last_words());
        }
        ensure!(
            attached.enabled(),
            "the scheduler is not attached any more: {}",
            self.last_words()
        );
        let name = attached.name();
        ensure!(
            name == self.name,
            "the scheduler {} is attached, which is not the one that was started",
            name.unwrap_or_default()
        );
        Ok(())
    }

    /// Comes back when the kernel has its own.
    pub fn stop(mut self, attached: &Attached) -> Result<()> {
        let end = Instant::now() + END_TIME;
        // Whoever wraps it may not pass a signal on.
        self.signal(libc::SIGINT);
        while self.ended()?.is_none() && Instant::now() < end {
            sleep(NAP);
        }
        let ended = self.end();
        drop(self);
        ended.and(attached.wait_until_gone())
    }

    /// With all that it started. Errors: it does not end, killed as it is.
    fn end(&mut self) -> Result<()> {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.signal(libc::SIGKILL);
        let ended = reaped_within(self.group(), END_TIME);
        if let Some(cgroup) = &self.ground.cgroup {
            // What does not end is told of when all is restored.
            let _ = cgroup.end_child(CGROUP);
        }
        ensure!(
            ended,
            "the scheduler, process {}, was killed and does not end",
            self.group()
        );
        Ok(())
    }

    fn signal(&self, signal: i32) {
        // SAFETY: plain numbers. Where its leader has ended already, this is too soon after for the number to be another's.
        unsafe { libc::kill(-self.group(), signal) };
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(log(&self.ground.folder)).unwrap_or_default();
        let last = text.lines().rev().find(|l| !l.trim().is_empty());
        last.map_or("it said nothing".to_string(), |l| {
            format!("it said last: {}", l.trim())
        })
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        // Told where it is ended in order.
        let _ = self.end();
    }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// With sockets of its own.
fn roost(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--stats-path").arg(folder.join("stats"));
    command.arg("--ctl-path").arg(folder.join("ctl"));
    command
}

/// In a group of its own: Ctrl-C is for us, who end it in order.
fn spawn(command: &mut Command, ground: &Ground) -> Result<Child> {
    let log = File::create(log(&ground.folder)).context("cannot write the scheduler's log")?;
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    if let Some(cgroup) = &ground.cgroup {
        cgroup.child(CGROUP)?.takes(command)?;
    }
    // SAFETY: what is called between fork and exec are two system calls with plain numbers.
    unsafe {
        command.pre_exec(|| {
            // Ignored where we run in the background of a script, and a shell could not take it back.
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            }
        })
    };
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .spawn()
        .with_context(|| format!("cannot run {program}"))
}
