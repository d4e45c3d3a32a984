// SPDX-License-Identifier: GPL-2.0-only
//! The cgroup v2 of this process, and the memory limit that applies there.

use super::host::Host;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

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
}
