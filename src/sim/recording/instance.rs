// SPDX-License-Identifier: GPL-2.0-only
//! An instance of ftrace that nobody else uses, and that is removed on every path.
//!
//! Its recorder holds a lock on its folder (flock(2)), which ends with the process. So an instance
//! without a lock is one whose recorder was killed, and the next recorder removes it. A process ID
//! would not show that: others get it again, and containers have their own.

use crate::util::stderr::say;
use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const OURS: &str = "scx_roost_";
/// Names that are tried: containers may have processes of the same ID.
const NAMES: usize = 100;
/// CPUs that an error names.
const SHOWN: usize = 8;

/// Where tracefs is. Errors say how to get it.
pub fn tracefs() -> Result<PathBuf> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    for place in places.map(PathBuf::from) {
        match fs::metadata(place.join("instances")) {
            Ok(_) => return Ok(place),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                bail!("reading {} needs root: use sudo", place.display())
            }
            Err(_) => {}
        }
    }
    bail!(
        "there is no tracefs at {}: mount -t tracefs tracefs {0}, on a kernel with CONFIG_FTRACE",
        places[0]
    )
}

/// Dropping it removes it.
pub struct Instance {
    pub dir: PathBuf,
    /// The folder. Its lock ends with it.
    _locked: File,
}

impl Instance {
    pub fn create(tracefs: &Path) -> Result<Instance> {
        let instances = tracefs.join("instances");
        remove_stale(&instances);
        let instance = Instance::locked(&instances)?;
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    fn locked(instances: &Path) -> Result<Instance> {
        let pid = std::process::id();
        for number in 0..NAMES {
            let dir = instances.join(match number {
                0 => format!("{OURS}{pid}"),
                _ => format!("{OURS}{pid}_{number}"),
            });
            match fs::create_dir(&dir) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
                made => made.with_context(|| match nix::unistd::geteuid().is_root() {
                    true => format!("cannot create {}", dir.display()),
                    false => format!("cannot create {}: this needs root; use sudo", dir.display()),
                })?,
            }
            // Another recorder may have found it without a lock, and removed it.
            let folder = File::open(&dir).ok().filter(|folder| locks(folder, &dir));
            if let Some(folder) = folder {
                return Ok(Instance {
                    dir,
                    _locked: folder,
                });
            }
        }
        bail!(
            "cannot create an instance in {}: try again",
            instances.display()
        )
    }

    pub fn set(&self, file: &str, text: &str) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, text)
            .with_context(|| format!("cannot write '{text}' to {}", path.display()))
    }

    /// Errors: a buffer was full.
    pub fn complete(&self) -> Result<()> {
        let mut lost = Vec::new();
        for entry in fs::read_dir(self.dir.join("per_cpu"))? {
            let entry = entry?;
            let stats = fs::read_to_string(entry.path().join("stats"))?;
            let events = losses(&stats);
            if events > 0 {
                let cpu = entry.file_name().to_string_lossy().into_owned();
                lost.push((events, cpu));
            }
        }
        let kb = fs::read_to_string(self.dir.join("buffer_size_kb")).unwrap_or_default();
        ensure!(lost.is_empty(), "{}", told(lost, kb.trim()));
        Ok(())
    }
}

/// What the statistics of a CPU's buffer count as lost.
fn losses(stats: &str) -> u64 {
    let count = |key: &str| -> u64 {
        let line = stats.lines().find_map(|l| l.strip_prefix(key));
        line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
    };
    count("overrun:") + count("dropped events:")
}

/// The error, with the CPUs that lost most.
fn told(mut lost: Vec<(u64, String)>, kb: &str) -> String {
    lost.sort_by(|a, b| b.cmp(a));
    let all: u64 = lost.iter().map(|(events, _)| events).sum();
    let shown = lost.iter().take(SHOWN);
    let mut cpus: Vec<String> = shown
        .map(|(events, cpu)| format!("{cpu} {events}"))
        .collect();
    if lost.len() > SHOWN {
        cpus.push(format!("and {} other CPUs", lost.len() - SHOWN));
    }
    format!(
        "{all} events were lost ({}), because buffers of {kb} kB were full; so what the tasks did \
         is not known: record for a shorter time, or with a larger --buffer-kb",
        cpus.join(", ")
    )
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A kernel that refuses this refuses the removal as well, and says so.
        let _ = self.set("tracing_on", "0");
        let _ = self.set("events/enable", "0");
        if let Err(e) = fs::remove_dir(&self.dir) {
            say!("scx_roost: cannot remove {}: {e}", self.dir.display());
        }
    }
}

/// Locks a folder. False: another process has the lock, or has removed the folder.
fn locks(folder: &File, path: &Path) -> bool {
    let locked = flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok();
    let number = |of: std::io::Result<fs::Metadata>| of.ok().map(|meta| (meta.dev(), meta.ino()));
    let same = || number(fs::metadata(path)) == number(folder.metadata());
    locked && same()
}

/// Removes instances whose recorder was killed.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let ours = name.to_string_lossy().starts_with(OURS);
        let Some(folder) = File::open(&path).ok().filter(|_| ours) else {
            continue;
        };
        if locks(&folder, &path) {
            let _ = fs::write(path.join("events/enable"), "0");
            let _ = fs::remove_dir(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Not those that a process holds, whatever its ID.
    #[test]
    fn instances_without_a_lock_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let pid = std::process::id();
        let (held, stale) = (format!("{OURS}99999999"), format!("{OURS}{pid}"));
        for name in [&held, &stale, "other"] {
            fs::create_dir(at(name)).unwrap();
        }
        let folder = File::open(at(&held)).unwrap();
        assert!(locks(&folder, &at(&held)));
        remove_stale(dir.path());
        assert!(at(&held).exists() && at("other").exists());
        assert!(!at(&stale).exists());
        drop(folder);
        remove_stale(dir.path());
        assert!(!at(&held).exists());
    }

    #[test]
    fn two_recorders_of_one_id_get_an_instance_each() {
        let dir = tempfile::tempdir().unwrap();
        let first = Instance::locked(dir.path()).unwrap();
        let second = Instance::locked(dir.path()).unwrap();
        assert_ne!(first.dir, second.dir);
        remove_stale(dir.path());
        assert!(first.dir.exists() && second.dir.exists());
    }

    #[test]
    fn lost_events_are_reported() {
        let stats = "entries: 10\noverrun: 2\ncommit overrun: 5\ndropped events: 40\n";
        assert_eq!(losses(stats), 42);
        let lost = (0..11).map(|cpu| (cpu + 1, format!("cpu{cpu}"))).collect();
        let text = told(lost, "64");
        assert!(
            text.starts_with("66 events were lost (cpu10 11, cpu9 10, "),
            "{text}"
        );
        assert!(
            text.contains(", and 3 other CPUs), because buffers of 64 kB"),
            "{text}"
        );
    }
}
