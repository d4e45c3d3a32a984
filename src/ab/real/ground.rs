// SPDX-License-Identifier: GPL-2.0-only
//! What a comparison has of the machine for itself while it lasts: a folder, a cgroup, and that no other comparison runs.

use crate::ab::cgroup::Cgroup;
use crate::host::Host;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsString};
use std::fs::{self, File, TryLockError};
use std::io::Error;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Folder and cgroup; the process that outlives us takes them away when we cannot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// Sockets and log of the scheduler; of nobody else.
    pub folder: PathBuf,
    /// Of all that is started. None where there is no cgroup v2 that we may write.
    pub cgroup: Option<Cgroup>,
}

impl Ground {
    /// And why there is no cgroup, if there is none.
    pub fn new(host: &Host) -> Result<(Ground, Option<String>)> {
        let name = format!("scx_roost-ab-{}", std::process::id());
        let (cgroup, why) = match Cgroup::below_ours(host, &name) {
            Ok(cgroup) => (Some(cgroup), None),
            Err(e) => (None, Some(format!("{e:#}"))),
        };
        let folder = match folder(&std::env::temp_dir()) {
            Ok(folder) => folder,
            Err(e) => {
                cgroup.iter().for_each(Cgroup::remove);
                return Err(e);
            }
        };
        Ok((Ground { folder, cgroup }, why))
    }

    /// Ends what is still there, and takes it away. Errors: something does not end.
    pub fn clear(&self) -> Result<()> {
        let ended = self.cgroup.as_ref().map_or(Ok(()), Cgroup::end);
        let _ = fs::remove_dir_all(&self.folder);
        ended
    }
}

/// One that nobody else has prepared, and nobody else may look into.
fn folder(parent: &Path) -> Result<PathBuf> {
    let template = parent.join("scx_roost-ab-XXXXXX");
    let template = CString::new(template.as_os_str().as_bytes())?.into_raw();
    // SAFETY: the text is alive and ours; mkdtemp() writes into it, and it keeps its length.
    let (made, name) = unsafe {
        let made = !libc::mkdtemp(template).is_null();
        (made, CString::from_raw(template))
    };
    if !made {
        let e = Error::last_os_error();
        bail!("cannot make a folder in {}: {e}", parent.display());
    }
    Ok(OsString::from_vec(name.into_bytes()).into())
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
