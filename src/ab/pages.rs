// SPDX-License-Identifier: GPL-2.0-only
//! Pages that a report is also written to. They are separate files, checked before the first run.

use super::report::closing::Closing;
use super::report::html::{html, html_of_suite};
use super::report::markdown::{markdown, markdown_of_suite};
use super::report::{MARK, Report};
use crate::util::user::give_back;
use crate::util::whole_file;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default)]
pub struct Pages {
    pub markdown: Option<PathBuf>,
    pub html: Option<PathBuf>,
}

impl Pages {
    /// `result`: the result file. Fails if a page cannot be written, or is the result or the other
    /// page.
    pub fn check(&self, result: &Path) -> Result<()> {
        let mut others = vec![result];
        for page in self.markdown.iter().chain(&self.html) {
            // Writing would also replace a device.
            let plain = fs::symlink_metadata(page).map_or(true, |there| there.is_file());
            ensure!(
                plain,
                "cannot write {}: it exists and is not a plain file",
                page.display()
            );
            whole_file::probe(page).with_context(|| format!("cannot write {}", page.display()))?;
            if let Some(other) = others.iter().find(|other| same(other, page)) {
                bail!(
                    "{} and {} are the same file, so one would replace the other: give another name",
                    other.display(),
                    page.display()
                );
            }
            ensure!(
                replaceable(page),
                "cannot write {}: it exists and is no page of scx_roost ab: give another name, or remove it",
                page.display()
            );
            others.push(page);
        }
        Ok(())
    }

    /// Call `check` first.
    pub fn write(&self, report: &Report) -> Result<()> {
        write(&self.markdown, || markdown(report))?;
        write(&self.html, || html(report))
    }

    /// Writes the reports of all workloads of a suite, with its table. None: the suite was stopped.
    pub fn write_suite(&self, reports: &[Report], closing: Option<&Closing>) -> Result<()> {
        write(&self.markdown, || markdown_of_suite(reports, closing))?;
        write(&self.html, || html_of_suite(reports, closing))
    }
}

fn write(page: &Option<PathBuf>, text: impl FnOnce() -> String) -> Result<()> {
    let Some(page) = page else {
        return Ok(());
    };
    let written = whole_file::replace(page, &text(), |file| {
        give_back(file, page);
        Ok(())
    });
    written.with_context(|| format!("cannot write {}", page.display()))
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
