// SPDX-License-Identifier: GPL-2.0-only
//! Writes files safely. `replace` never shows a half-written file: it writes beside the place and
//! renames into it. A link in that place is replaced, never written through. `create_new` and
//! `reopen` are for files that grow; they do not follow a link in that place either.

use crate::util::folder;
use rustix::fs::{AtFlags, Mode, OFlags, renameat, unlinkat};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::path::Path;

/// Before the umask applies.
const MODE: Mode = Mode::from_raw_mode(0o666);

/// Tests whether the file could be written. What is at the path stays unchanged.
pub fn probe(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    let spot = Spot::of(path)?;
    spot.create()?;
    spot.remove()
}

/// Replaces what is at the path. `made` gets the file before it has its name.
pub fn replace(path: &Path, text: &str, made: impl FnOnce(&File) -> Result<()>) -> Result<()> {
    let spot = Spot::of(path)?;
    let written = spot.create().and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        made(&file)?;
        spot.finish()
    });
    written.inspect_err(|_| {
        let _ = spot.remove();
    })
}

/// Creates a file to be appended to. Errors: the name exists.
pub fn create_new(path: &Path) -> Result<File> {
    let spot = Spot::of(path)?;
    create(&spot.folder, &spot.name)
}

/// Opens an existing file for reading and appending. Errors: it is a link, or no plain file.
pub fn reopen(path: &Path) -> Result<File> {
    let spot = Spot::of(path)?;
    // Opening a FIFO must not block.
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = folder::at(&spot.folder, &spot.name, flags, Mode::empty())?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(
            ErrorKind::InvalidInput,
            "it is not a plain file",
        )),
    }
}

/// Removes the file or link at the path. Links on the way there are followed as for writing.
pub fn remove(path: &Path) -> Result<()> {
    let spot = Spot::of(path)?;
    unlink(&spot.folder, &spot.name)
}

fn create(folder: &File, name: &OsString) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND;
    folder::at(folder, name, flags, MODE)
}

fn unlink(folder: &File, name: &OsString) -> Result<()> {
    Ok(unlinkat(folder, name, AtFlags::empty())?)
}

/// The final name and the temporary one, in the same folder and so on the same file system.
struct Spot {
    folder: File,
    name: OsString,
    temporary: OsString,
}

impl Spot {
    fn of(path: &Path) -> Result<Spot> {
        let name = path.file_name().ok_or(ErrorKind::InvalidFilename)?;
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}", std::process::id()));
        Ok(Spot {
            folder: folder::of(path)?,
            name: name.to_os_string(),
            temporary,
        })
    }

    fn create(&self) -> Result<File> {
        // A leftover of a killed process that had the same pid.
        let _ = self.remove();
        create(&self.folder, &self.temporary)
    }

    fn remove(&self) -> Result<()> {
        unlink(&self.folder, &self.temporary)
    }

    fn finish(&self) -> Result<()> {
        let folder = &self.folder;
        Ok(renameat(folder, &self.temporary, folder, &self.name)?)
    }
}
