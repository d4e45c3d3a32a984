// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler that we started. It dies with us, whatever becomes of us, and the kernel goes back to its own when it dies.

use crate::ab::variant::{Kind, Variant};
use crate::arms::DEFAULT_ARM;
use crate::control::Op;
use crate::ctl::ask;
use crate::host::Host;
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, DirBuilder, File};
use std::io::Error;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The verifier may take its time on a slow machine.
const START_TIME: Duration = Duration::from_secs(120);
const END_TIME: Duration = Duration::from_secs(15);
const NAP: Duration = Duration::from_millis(20);

/// What of sched_ext is attached, by its files.
pub struct Attached<'a>(pub &'a Host);

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

    fn gone(&self) -> bool {
        self.state().is_none_or(|s| s == "disabled")
    }

    /// Of the scheduler that is attached, or about to be.
    pub fn name(&self) -> Option<String> {
        let name = || self.0.kernel_text("sched_ext/root/ops");
        (!self.gone()).then(|| name().unwrap_or_else(|| "unknown".to_string()))
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
}

pub struct Scheduler {
    child: Child,
    folder: PathBuf,
    /// One of ours, which changes while it runs.
    ours: bool,
}

impl Scheduler {
    /// As the variant says; None for the kernel's own.
    pub fn start(
        variant: &Variant,
        attached: &Attached,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Scheduler>> {
        let folder = std::env::temp_dir().join(format!("scx_roost-ab-{}", std::process::id()));
        let ours = matches!(variant.kind, Kind::Roost(_));
        let mut command = match &variant.kind {
            Kind::Eevdf => return Ok(None),
            Kind::Roost(_) => roost(&folder)?,
            Kind::Scx(words) => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
        };
        if !folder.exists() {
            let made = DirBuilder::new().mode(0o700).create(&folder);
            made.with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let child = spawn(&mut command, &folder)?;
        let mut scheduler = Scheduler {
            child,
            folder,
            ours,
        };
        match scheduler.wait_until_enabled(attached, stopped) {
            Ok(()) => (),
            Err(e) => {
                let words = scheduler.last_words();
                let _ = scheduler.stop(attached);
                return Err(e.context(words));
            }
        }
        scheduler.become_variant(variant)?;
        Ok(Some(scheduler))
    }

    fn wait_until_enabled(
        &mut self,
        attached: &Attached,
        stopped: &dyn Fn() -> bool,
    ) -> Result<()> {
        let end = Instant::now() + START_TIME;
        while !(attached.enabled() && self.answers()) {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended before it was attached ({status})");
            }
            ensure!(!stopped(), "stopped");
            ensure!(
                Instant::now() < end,
                "it was not attached within {} s",
                START_TIME.as_secs()
            );
            sleep(NAP);
        }
        Ok(())
    }

    fn answers(&self) -> bool {
        !self.ours || ask(&self.ctl(), &Op::Rules {}).is_ok()
    }

    fn ctl(&self) -> PathBuf {
        self.folder.join("ctl")
    }

    /// Where one of ours serves its statistics.
    pub fn stats(&self) -> Option<PathBuf> {
        self.ours.then(|| self.folder.join("stats"))
    }

    /// Changes it while it runs. False: it cannot become that.
    pub fn become_variant(&mut self, variant: &Variant) -> Result<bool> {
        let Kind::Roost(roost) = &variant.kind else {
            return Ok(false);
        };
        if !self.ours {
            return Ok(false);
        }
        let arm = || DEFAULT_ARM.to_string();
        ask(&self.ctl(), &Op::Reset { arm: arm() })?;
        let change = roost.0.clone();
        ask(&self.ctl(), &Op::Set { arm: arm(), change })?;
        Ok(true)
    }

    /// It is still there.
    pub fn check(&mut self, attached: &Attached) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the scheduler ended ({status}): {}", self.last_words());
        }
        ensure!(
            attached.enabled(),
            "the scheduler is not attached any more: {}",
            self.last_words()
        );
        Ok(())
    }

    /// Comes back when the kernel has its own.
    pub fn stop(mut self, attached: &Attached) -> Result<()> {
        let pid = self.child.id() as i32;
        // SAFETY: plain numbers; it is not reaped yet, or has no such number any more.
        unsafe { libc::kill(pid, libc::SIGINT) };
        let end = Instant::now() + END_TIME;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > end {
                self.child.kill()?;
                self.child.wait()?;
            }
            sleep(NAP);
        }
        let _ = fs::remove_dir_all(&self.folder);
        attached.wait_until_gone()
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(log(&self.folder)).unwrap_or_default();
        let last = text.lines().rev().find(|l| !l.trim().is_empty());
        last.map_or("it said nothing".to_string(), |l| {
            format!("it said last: {}", l.trim())
        })
    }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// This very program, with sockets of its own.
fn roost(folder: &Path) -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.arg("--stats-path").arg(folder.join("stats"));
    command.arg("--ctl-path").arg(folder.join("ctl"));
    Ok(command)
}

/// In a group of its own: Ctrl-C is for us, who end it in order.
fn spawn(command: &mut Command, folder: &Path) -> Result<Child> {
    let log = File::create(log(folder)).context("cannot write the scheduler's log")?;
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    // SAFETY: what is called between fork and exec is one system call with plain numbers.
    unsafe {
        command.pre_exec(
            || match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            },
        )
    };
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .spawn()
        .with_context(|| format!("cannot run {program}"))
}
