// SPDX-License-Identifier: GPL-2.0-only
//! A file that is whole whenever it is there: written beside its place, and moved there. A link in that place is replaced, and nothing is
//! written through it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Result, Write};
use std::path::{Path, PathBuf};

/// Could it be written? What lies at the path stays as it is.
pub fn probe(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let temporary = temporary(path);
    create(&temporary)?;
    fs::remove_file(&temporary)
}

/// In the place of what is there. `made` is given the file before it has its name.
pub fn replace(path: &Path, text: &str, made: impl FnOnce(&File) -> Result<()>) -> Result<()> {
    let temporary = temporary(path);
    let written = create(&temporary).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        made(&file)?;
        fs::rename(&temporary, path)
    });
    written.inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

fn create(temporary: &Path) -> Result<File> {
    // What lies there is of a process that had our number and was killed.
    let _ = fs::remove_file(temporary);
    File::create_new(temporary)
}

/// In the same folder, and so of the same file system.
fn temporary(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    path.with_file_name(name)
}
