// SPDX-License-Identifier: GPL-2.0-only
//! Finds programs by name, as execvp(3) does.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// `path`: the value of PATH. None: no executable of that name. A name with a slash is a path.
pub fn program(name: &Path, path: &OsStr) -> Option<PathBuf> {
    if name.to_string_lossy().contains('/') {
        return is_executable(name).then(|| name.to_path_buf());
    }
    let all = std::env::split_paths(path).map(|folder| folder.join(name));
    all.into_iter().find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    let meta = std::fs::metadata(file);
    meta.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
