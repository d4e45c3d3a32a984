// SPDX-License-Identifier: GPL-2.0-only
//! What a comparison has of the machine for itself while it lasts: a folder, a cgroup, and that no other comparison runs.

use crate::ab::cgroup::Cgroup;
use crate::host::Host;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Folder and cgroup; the process that outlives us takes them away when we cannot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// Sockets and log of the scheduler; of nobody else.
    pub folder: PathBuf,
    /// Of all that is started. None where there is no cgroup v2 that we may write.
    pub cgroup: Option<Cgroup>,
}

impl Ground {
    /// Nothing is made yet, so that somebody knows of it before it is there. And why there will be no cgroup, if there will be none.
    pub fn named(host: &Host) -> (Ground, Option<String>) {
        let name = format!("scx_roost-ab-{}", std::process::id());
        // That nobody else can prepare: the system's random numbers.
        let random = RandomState::new().build_hasher().finish();
        let folder = std::env::temp_dir().join(format!("{name}-{random:016x}"));
        let (cgroup, why) = or_why(Cgroup::below_ours(host, &name));
        (Ground { folder, cgroup }, why)
    }

    /// And why there is no cgroup, as above. Errors: there can be no folder.
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

    /// Ends what is still there, and takes it away. Errors: something does not end.
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

/// Held while a comparison runs: schedulers of two would take turns.
pub fn alone(host: &Host) -> Result<File> {
    let place = host.kernel.join("sched_ext");
    let place = if place.exists() { &place } else { &host.kernel };
    let held = File::open(place).with_context(|| format!("cannot open {}", place.display()))?;
    match held.try_lock() {
        Ok(()) => Ok(held),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another comparison runs on this machine, and they would disturb each other: wait until it is over"
            )
        }
        Err(TryLockError::Error(e)) => Err(e).context("cannot lock out other comparisons"),
    }
}
