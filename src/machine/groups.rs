// SPDX-License-Identifier: GPL-2.0-only
//! Control groups in their file system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The groups in that group. One that holds none is not opened, only its link count is read: else
/// a user who makes thousands of groups makes a walk through them take a third of a second.
pub fn groups_in(group: &Path) -> Vec<PathBuf> {
    if fs::metadata(group).is_ok_and(|of| of.nlink() == 2) {
        return Vec::new();
    }
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    folders.map(|e| e.path()).collect()
}

/// The names of these groups below `root` by inode, which the kernel calls their id. At most `most`
/// groups are visited. A group without a name has been removed, or is not among those.
pub fn group_names(root: &Path, ids: &BTreeSet<u64>, most: usize) -> BTreeMap<u64, String> {
    let mut names = BTreeMap::new();
    let mut ahead = groups_in(root);
    for _ in 0..most {
        let Some(path) = ahead.pop().filter(|_| names.len() < ids.len()) else {
            break;
        };
        let id = fs::metadata(&path).map_or(0, |of| of.ino());
        if ids.contains(&id) {
            let name = path.strip_prefix(root).unwrap_or(&path).display();
            names.insert(id, format!("/{name}"));
        }
        ahead.extend(groups_in(&path));
    }
    names
}
