// SPDX-License-Identifier: GPL-2.0-only
//! The cgroup v2 of this process, its memory limit, and how the process leaves it for a load. The
//! kernel charges a map, and so the state of each task that is forked, to the group of the process
//! that creates the map (bpf_map_save_memcg()). At a limit of that group, forks of the whole
//! machine would fail.

use super::host::Host;
use anyhow::{Result, bail};
use log::{debug, warn};
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// The folder of the process's group. None: there is no tree, or the group is outside of what is
/// mounted.
fn own_group(host: &Host) -> Option<PathBuf> {
    let groups = host.proc_text("self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(host.cgroup.as_ref()?.join(own)).filter(|group| group.is_dir())
}

/// The first group from `group` up that has a memory limit, and the limit.
fn memory_limit(host: &Host, group: &Path) -> Option<(PathBuf, String)> {
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

/// What a memory limit of the process's own group means to the machine, if that group pays for the
/// states of tasks. None: it has no limit.
pub fn own_limit(host: &Host) -> Option<String> {
    let (group, limit) = memory_limit(host, &own_group(host)?)?;
    Some(format!(
        "{}/memory.max is {limit}: the state of every task of the machine counts against it, and at \
         this limit forks of the whole machine fail",
        group.display()
    ))
}

/// While it lives, the process is in the root group: its own one may get a limit at any time.
pub struct RootPays {
    /// The way back. None: it was not moved.
    home: Option<Home>,
    /// A limit that its own group gets later does no harm.
    pub for_good: bool,
}

impl RootPays {
    /// Errors: there is a limit, and the process cannot leave its group, as in the sandbox of the
    /// unit, or what is mounted is only a container's part of the tree.
    pub fn begin(host: &Host) -> Result<RootPays> {
        let Some((own, root)) = own_group(host).zip(host.cgroup.as_deref()) else {
            return Ok(RootPays {
                home: None,
                for_good: true,
            });
        };
        let home = (own != root).then(|| Home::left(&own, root));
        let home = home.transpose().unwrap_or_else(|e| {
            debug!("it loads in {}: {e}", own.display());
            None
        });
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
        if let Some(home) = &mut self.home
            && let Err(e) = join(&mut home.procs)
        {
            warn!(
                "cannot return to its group, {} refuses: {e}",
                home.path.display()
            );
        }
    }
}

fn refusal(group: &Path, limit: &str) -> String {
    format!(
        "{}/memory.max is {limit}: the kernel charges the state of every task to the group that \
         loads the scheduler, so at this limit forks of the whole machine would fail; start \
         scx_roost in a group without a memory limit (for a unit: MemoryMax=infinity)",
        group.display()
    )
}

/// The group that the process has left.
struct Home {
    path: PathBuf,
    /// Opened before the process left: without privileges it may be closed later.
    procs: File,
    /// Dropped after the way back.
    _stays: Stays,
}

impl Home {
    /// Moves the process from `own` to `root`.
    fn left(own: &Path, root: &Path) -> io::Result<Home> {
        let open = |group: &Path| File::options().write(true).open(group.join("cgroup.procs"));
        let (procs, mut root) = (open(own)?, open(root)?);
        let stays = Stays::new()?;
        join(&mut root)?;
        Ok(Home {
            path: own.join("cgroup.procs"),
            procs,
            _stays: stays,
        })
    }
}

/// A child that waits in the group, until this is dropped: a service manager may remove a group
/// that is empty.
struct Stays {
    child: i32,
    /// While it is open, the child waits; also if this process is killed.
    holds: Option<PipeWriter>,
}

impl Stays {
    fn new() -> io::Result<Stays> {
        let (reader, holds) = io::pipe()?;
        // SAFETY: the child makes only system calls, on descriptors and memory that it has.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => unsafe {
                libc::close(holds.as_raw_fd());
                let mut byte = 0_u8;
                let byte = (&raw mut byte).cast();
                while libc::read(reader.as_raw_fd(), byte, 1) < 0 {}
                libc::_exit(0)
            },
            child => Ok(Stays {
                child,
                holds: Some(holds),
            }),
        }
    }
}

impl Drop for Stays {
    fn drop(&mut self) {
        drop(self.holds.take());
        // SAFETY: a child of ours; nothing else reaps it.
        unsafe { libc::waitpid(self.child, std::ptr::null_mut(), 0) };
    }
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
        let words = "a.slice/memory.max is 1048576: the state of every task";
        assert!(own_limit(&host).unwrap().contains(words));
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
        write(own.join("cgroup.procs"), "7\n").unwrap();
        assert!(RootPays::begin(&host).is_err(), "it may not go to the root");
        write(root.join("cgroup.procs"), "").unwrap();
        let pays = RootPays::begin(&host).unwrap();
        assert_eq!((procs(&root).as_str(), procs(&own).as_str()), ("0", "7\n"));
        assert!(pays.for_good);
        drop(pays);
        assert_eq!(procs(&own), "0\n");
        write(own.join("memory.max"), "max\n").unwrap();
        assert!(RootPays::begin(&host).unwrap().for_good, "a limit may come");
        // A container's root.
        write(root.join("memory.max"), "65000\n").unwrap();
        assert!(RootPays::begin(&host).is_err());
        std::fs::remove_file(root.join("memory.max")).unwrap();
        std::fs::remove_file(root.join("cgroup.procs")).unwrap();
        assert!(!RootPays::begin(&host).unwrap().for_good);
    }
}
