// SPDX-License-Identifier: GPL-2.0-only
//! Names of control groups.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

/// The names of these groups below `root` by inode, which the kernel calls their id. A group that
/// is not found has been removed meanwhile.
pub fn group_names(root: &Path, ids: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    let mut names = BTreeMap::new();
    let mut ahead = vec![root.to_path_buf()];
    while let Some(dir) = ahead.pop() {
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        for folder in folders {
            let path = folder.path();
            if ids.contains(&folder.ino()) {
                let name = path.strip_prefix(root).unwrap_or(&path).display();
                names.insert(folder.ino(), format!("/{name}"));
            }
            ahead.push(path);
        }
    }
    names
}
