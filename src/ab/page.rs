// SPDX-License-Identifier: GPL-2.0-only
//! The HTML page that a report is also written to. It is checked before the first run.

use super::report::MARK;
use crate::util::user::give_back;
use crate::util::whole_file;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where it is written. None: nowhere.
#[derive(Clone, Debug, Default)]
pub struct Page(pub Option<PathBuf>);

impl Page {
    /// `result`: the result file. Fails if the page cannot be written, or is the result.
    pub fn check(&self, result: &Path) -> Result<()> {
        let Some(page) = &self.0 else {
            return Ok(());
        };
        // Writing would also replace a device.
        let plain = fs::symlink_metadata(page).map_or(true, |there| there.is_file());
        ensure!(
            plain,
            "cannot write {}: it exists and is not a plain file",
            page.display()
        );
        whole_file::probe(page).with_context(|| format!("cannot write {}", page.display()))?;
        ensure!(
            !same(result, page),
            "{} and {} are the same file, so one would replace the other: give another name",
            result.display(),
            page.display()
        );
        ensure!(
            replaceable(page),
            "cannot write {}: it exists and is no page of scx_roost ab: give another name, or remove it",
            page.display()
        );
        Ok(())
    }

    /// Call `check` first.
    pub fn write(&self, text: impl FnOnce() -> String) -> Result<()> {
        let Some(page) = &self.0 else {
            return Ok(());
        };
        let written = whole_file::replace(page, &text(), |file| {
            give_back(file, page);
            Ok(())
        });
        written.with_context(|| format!("cannot write {}", page.display()))
    }
}

/// Whether there is no file, or an empty one, or a page of ours.
fn replaceable(page: &Path) -> bool {
    let begin = |mut file: fs::File| {
        let mut bytes = [0; 64];
        let read = file.read(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..read]).into_owned())
    };
    match fs::File::open(page).and_then(begin) {
        Ok(text) => text.is_empty() || text.contains(MARK),
        // `probe` has told of other errors.
        Err(e) => e.kind() != ErrorKind::PermissionDenied,
    }
}

/// True if both name the same file, whether it exists or not.
fn same(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    let place = |path: &Path| {
        let folder = path.parent().filter(|f| !f.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(folder.join(path.file_name()?))
    };
    number(one).is_some_and(|n| Some(n) == number(other))
        || place(one).is_some_and(|p| Some(p) == place(other))
}
