// SPDX-License-Identifier: GPL-2.0-only
//! A cgroup (v2) for what a comparison starts. cgroup.kill ends all of it, whatever sessions and
//! process groups it moves to. The cgroup is below our own and enables no controller, so its tasks
//! get the same resources as ours.

use crate::machine::host::Host;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A killed process may have much memory to free.
const END_TIME: Duration = Duration::from_secs(5);
const NAP: Duration = Duration::from_millis(5);
/// Kills each process of a cgroup and of its descendants (Linux 5.14).
const KILL: &str = "cgroup.kill";

/// Path of a cgroup. The cgroup stays until it is removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// A cgroup below our own, not created yet. Fails if there is no cgroup v2.
    pub fn below_ours(host: &Host, name: &str) -> Result<Cgroup> {
        let mount = host.cgroup.as_ref().context("no cgroup v2 is mounted")?;
        let own = host.proc_text("self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|l| l.strip_prefix("0::/"));
        let own = mount.join(own.context("this process is in no cgroup v2")?);
        Ok(Cgroup(own.join(name)))
    }

    /// Creates it. First ends what an earlier run left in it. Fails if it cannot be written or has
    /// no cgroup.kill.
    pub fn make(&self) -> Result<()> {
        if self.0.exists() {
            self.end()?;
        }
        let made = fs::create_dir(&self.0);
        made.with_context(|| format!("cannot make the cgroup {}", self.0.display()))?;
        if !self.0.join(KILL).exists() {
            self.remove();
            bail!("{} has no {KILL}", self.0.display());
        }
        Ok(())
    }

    /// A child cgroup, which is created unless it exists.
    pub fn child(&self, name: &str) -> Result<Cgroup> {
        let child = self.named(name);
        if !child.0.exists() {
            child.make()?;
        }
        Ok(child)
    }

    fn named(&self, name: &str) -> Cgroup {
        Cgroup(self.0.join(name))
    }

    /// As `end`, for a child cgroup.
    pub fn end_child(&self, name: &str) -> Result<()> {
        self.named(name).end()
    }

    #[cfg(feature = "internals")]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes `command` join the cgroup before exec. Fails if cgroup.procs cannot be opened.
    pub fn adopt(&self, command: &mut Command) -> Result<()> {
        let path = self.0.join("cgroup.procs");
        let procs = OpenOptions::new().write(true).open(&path);
        let procs = procs.with_context(|| format!("cannot write {}", path.display()))?;
        // SAFETY: between fork and exec it makes one system call, on a descriptor that the closure
        // owns.
        unsafe { command.pre_exec(move || enter(&procs)) };
        Ok(())
    }

    /// Kills all processes in it and below it.
    pub fn kill(&self) {
        // If the cgroup is gone there is nothing to kill.
        let _ = fs::write(self.0.join(KILL), "1");
    }

    /// Threads that are in it now, without those of child cgroups.
    pub fn threads(&self) -> Vec<i32> {
        let threads = fs::read_to_string(self.0.join("cgroup.threads")).unwrap_or_default();
        threads.lines().filter_map(|id| id.parse().ok()).collect()
    }

    fn empty(&self) -> bool {
        let events = fs::read_to_string(self.0.join("cgroup.events"));
        events.is_ok_and(|e| e.lines().any(|l| l == "populated 0"))
    }

    /// Kills all processes in it, and removes it with its children. Fails if some process does not
    /// end.
    pub fn end(&self) -> Result<()> {
        let end = Instant::now() + END_TIME;
        loop {
            self.kill();
            if self.empty() || !self.0.exists() {
                self.remove();
                return Ok(());
            }
            ensure!(
                Instant::now() < end,
                "processes in {} do not exit",
                self.0.display()
            );
            sleep(NAP);
        }
    }

    /// Removes it and its children, as far as they are empty.
    pub fn remove(&self) {
        remove(&self.0);
    }
}

/// Children first: a cgroup with children cannot be removed.
fn remove(cgroup: &Path) {
    let below = fs::read_dir(cgroup).into_iter().flatten().flatten();
    let is_cgroup = |e: &fs::DirEntry| e.file_type().is_ok_and(|t| t.is_dir());
    below.filter(is_cgroup).for_each(|e| remove(&e.path()));
    let _ = fs::remove_dir(cgroup);
}

fn enter(procs: &File) -> std::io::Result<()> {
    // "0" means the process that writes it.
    match rustix::io::write(procs, b"0")? {
        0 => Err(ErrorKind::WriteZero.into()),
        _ => Ok(()),
    }
}
