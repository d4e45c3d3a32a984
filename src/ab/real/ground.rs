// SPDX-License-Identifier: GPL-2.0-only
//! What a comparison owns on the machine while it lasts: a folder, a cgroup, and a lock against
//! other comparisons.

use crate::ab::cgroup::Cgroup;
use crate::machine::host::Host;
use crate::util::lock::{self, Lock};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Folder and cgroup. The guardian removes them if we cannot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// Sockets and log of the scheduler. Only we may access it.
    pub folder: PathBuf,
    /// The cgroup of all that is started. None if there is no cgroup v2 that we may write.
    pub cgroup: Option<Cgroup>,
}

impl Ground {
    /// Chooses names, without creating anything yet, so that the guardian can know them first. Also
    /// returns why there will be no cgroup, if so.
    pub fn named(host: &Host) -> (Ground, Option<String>) {
        let name = format!("scx_roost-ab-{}", std::process::id());
        // Random, so that nobody can create it first.
        let random = RandomState::new().build_hasher().finish();
        let folder = std::env::temp_dir().join(format!("{name}-{random:016x}"));
        let (cgroup, why) = or_why(Cgroup::below_ours(host, &name));
        (Ground { folder, cgroup }, why)
    }

    /// Creates both. Also returns why there is no cgroup, if so. Fails if the folder cannot be
    /// created.
    pub fn make(&mut self) -> Result<Option<String>> {
        let made = DirBuilder::new().mode(0o700).create(&self.folder);
        made.with_context(|| format!("cannot make the folder {}", self.folder.display()))?;
        let Some(cgroup) = self.cgroup.take() else {
            return Ok(None);
        };
        let (made, why) = or_why(cgroup.make());
        self.cgroup = made.map(|()| cgroup);
        Ok(why)
    }

    /// Kills all processes in the cgroup, and removes both. Fails if a process does not end.
    pub fn clear(&self) -> Result<()> {
        let ended = self.cgroup.as_ref().map_or(Ok(()), Cgroup::end);
        let _ = fs::remove_dir_all(&self.folder);
        ended
    }
}

fn or_why<T>(result: Result<T>) -> (Option<T>, Option<String>) {
    match result {
        Ok(value) => (Some(value), None),
        Err(e) => (None, Some(format!("{e:#}"))),
    }
}

/// A lock to hold during a comparison: two at once would replace each other's schedulers. Fails if
/// another comparison holds it.
pub fn alone(host: &Host) -> Result<Lock> {
    let place = host.kernel.join("sched_ext");
    let place = if place.exists() { &place } else { &host.kernel };
    let held = File::open(place).with_context(|| format!("cannot open {}", place.display()))?;
    lock::take(&held).context("cannot lock out other comparisons")?.context(
        "another comparison runs on this machine, and the two would disturb each other: wait until it ends",
    )
}
