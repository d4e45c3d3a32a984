// SPDX-License-Identifier: GPL-2.0-only
//! The cgroup v2 of this process, its memory limit, and how the process leaves it for a load. The
//! kernel charges a map, and so the state of each task that is forked, to the group of the process
//! that creates the map (bpf_map_save_memcg()). At a limit of that group, forks of the whole
//! machine would fail.

use super::host::Host;
use anyhow::{Result, bail};
use log::{debug, warn};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The folder of the process's group. None: there is no tree, or the group is outside of what is
/// mounted.
pub fn own_group(host: &Host) -> Option<PathBuf> {
    let groups = host.proc_text("self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(host.cgroup.as_ref()?.join(own)).filter(|group| group.is_dir())
}

/// The first group from `group` up that has a memory limit, and the limit.
pub fn memory_limit(host: &Host, group: &Path) -> Option<(PathBuf, String)> {
    let tree = group.ancestors().take_while(|up| {
        host.cgroup
            .as_deref()
            .is_some_and(|root| up.starts_with(root))
    });
    tree.filter_map(|group| {
        let limit = std::fs::read_to_string(group.join("memory.max")).ok()?;
        Some((group.to_path_buf(), limit.trim().to_string()))
    })
    .find(|(_, limit)| limit != "max")
}

/// While it lives, a process whose group has a memory limit is in the root group.
pub struct RootPays {
    /// The file that takes it back. None: it was not moved.
    home: Option<(PathBuf, File)>,
    /// A limit that its own group gets later does no harm.
    pub for_good: bool,
}

impl RootPays {
    /// Errors: there is a limit, and the process cannot leave its group, or what is mounted is only
    /// a container's part of the tree.
    pub fn begin(host: &Host) -> Result<RootPays> {
        let Some((own, root)) = own_group(host).zip(host.cgroup.as_deref()) else {
            return Ok(RootPays {
                home: None,
                for_good: true,
            });
        };
        let home = match memory_limit(host, &own) {
            Some(_) if own != root => leave(&own, root),
            _ => None,
        };
        let pays = RootPays {
            for_good: own == root || home.is_some(),
            home,
        };
        let payer = if pays.for_good { root } else { &own };
        match memory_limit(host, payer) {
            None => Ok(pays),
            Some((group, limit)) => bail!(refusal(&group, &limit)),
        }
    }
}

impl Drop for RootPays {
    fn drop(&mut self) {
        if let Some((path, home)) = &mut self.home
            && let Err(e) = join(home)
        {
            warn!(
                "cannot return to its group, {} refuses: {e}",
                path.display()
            );
        }
    }
}

fn refusal(group: &Path, limit: &str) -> String {
    format!(
        "{}/memory.max is {limit}: the kernel charges the state of every task to the group that \
         loads the scheduler, so at this limit forks of the whole machine would fail; start \
         scx_roost in a group without a memory limit (for a unit: MemoryMax=infinity), or beside \
         another process in a group that it may leave",
        group.display()
    )
}

/// Moves the process to `root`. None: it may not, as in the sandbox of the unit, or no other
/// process stays: a service manager may remove a group that is empty.
fn leave(own: &Path, root: &Path) -> Option<(PathBuf, File)> {
    let moved = away(own, root);
    if let Err(e) = &moved {
        debug!("it loads in {}: {e}", own.display());
    }
    moved.ok().map(|home| (own.join("cgroup.procs"), home))
}

/// The way back is opened first: without privileges it may be closed.
fn away(own: &Path, root: &Path) -> io::Result<File> {
    let procs = own.join("cgroup.procs");
    if std::fs::read_to_string(&procs)?.lines().count() < 2 {
        return Err(io::Error::other("it is alone there"));
    }
    let open = |procs: &Path| File::options().write(true).open(procs);
    let home = open(&procs)?;
    join(&mut open(&root.join("cgroup.procs"))?)?;
    Ok(home)
}

fn join(procs: &mut File) -> io::Result<()> {
    procs.write_all(b"0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, read_to_string, write};

    #[test]
    fn the_nearest_limit_up_to_the_root() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("fs/cgroup");
        let own = tree.join("a.slice/b.service");
        create_dir_all(&own).unwrap();
        create_dir_all(root.path().join("proc/self")).unwrap();
        let host = Host::in_folder(root.path());
        assert_eq!(own_group(&host), None);
        let groups = "4:cpu:/other\n0::/a.slice/b.service\n";
        write(root.path().join("proc/self/cgroup"), groups).unwrap();
        assert_eq!(own_group(&host).as_deref(), Some(own.as_path()));

        assert_eq!(memory_limit(&host, &own), None);
        write(own.join("memory.max"), "max\n").unwrap();
        write(tree.join("a.slice/memory.max"), "1048576\n").unwrap();
        let found = memory_limit(&host, &own);
        assert_eq!(found, Some((tree.join("a.slice"), "1048576".to_string())));
        assert_eq!(memory_limit(&host, &tree), None);
    }

    #[test]
    fn it_leaves_and_returns_or_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("fs/cgroup");
        let own = root.join("box");
        create_dir_all(&own).unwrap();
        create_dir_all(folder.path().join("proc/self")).unwrap();
        write(folder.path().join("proc/self/cgroup"), "0::/box\n").unwrap();
        write(own.join("memory.max"), "64000\n").unwrap();
        let host = Host::in_folder(folder.path());

        let refused = RootPays::begin(&host).map(drop).unwrap_err().to_string();
        assert!(refused.contains("box/memory.max is 64000"), "{refused}");
        let procs = |group: &Path| read_to_string(group.join("cgroup.procs")).unwrap();
        write(root.join("cgroup.procs"), "").unwrap();
        write(own.join("cgroup.procs"), "7\n").unwrap();
        assert!(RootPays::begin(&host).is_err(), "it is alone");
        write(own.join("cgroup.procs"), "7\n8\n").unwrap();
        let pays = RootPays::begin(&host).unwrap();
        assert_eq!(
            (procs(&root).as_str(), procs(&own).as_str()),
            ("0", "7\n8\n")
        );
        assert!(pays.for_good);
        drop(pays);
        assert_eq!(procs(&own), "0\n8\n");
        write(own.join("memory.max"), "max\n").unwrap();
        assert!(
            !RootPays::begin(&host).unwrap().for_good,
            "a limit may come"
        );
        // A container's root.
        write(root.join("memory.max"), "65000\n").unwrap();
        assert!(RootPays::begin(&host).is_err());
    }
}
