// SPDX-License-Identifier: GPL-2.0-only
//! Reads files that a user names, or that are part of a tree of theirs. A path may lead to a FIFO,
//! a device or /proc/kmsg. None of them may hold up the program or fill its memory.

use std::fs::{File, OpenOptions, metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The longest text that is read, bytes: no configuration, workload or file of /sys is longer.
pub const TEXT_MAX: u64 = 1 << 20;

/// A plain file, open for reading. A read that would wait is an error.
#[derive(Debug)]
pub struct PlainFile(File);

impl PlainFile {
    /// Errors: there is no file; it is not a plain one.
    pub fn open(path: &Path) -> Result<PlainFile> {
        // Before it is opened: opening a FIFO waits, and a device may act on it.
        if !metadata(path)?.is_file() {
            return Err(wrong("it is not a plain file"));
        }
        // Some files of /proc are plain by their mode, and still wait for something to read.
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(libc::O_NONBLOCK);
        options.open(path).map(PlainFile)
    }

    /// All of it. Errors: it has more than `max` bytes.
    pub fn bytes(self, max: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.take(max + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 <= max {
            true => Ok(bytes),
            false => Err(wrong(&format!("it is longer than {max} bytes"))),
        }
    }
}

impl Read for PlainFile {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        self.0.read(to).map_err(|e| match e.kind() {
            ErrorKind::WouldBlock => wrong("it is not a plain file: a read of it waits"),
            _ => e,
        })
    }
}

/// A whole text of at most `TEXT_MAX` bytes.
pub fn text(path: &Path) -> Result<String> {
    let bytes = PlainFile::open(path)?.bytes(TEXT_MAX)?;
    String::from_utf8(bytes).map_err(|_| wrong("it is not a text in UTF-8"))
}

fn wrong(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir, write};
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn what_may_never_end_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        write(at("most"), "0".repeat(TEXT_MAX as usize)).unwrap();
        assert!(text(&at("most")).is_ok());
        write(at("long"), "0".repeat(TEXT_MAX as usize + 1)).unwrap();
        write(at("binary"), [0xff]).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        create_dir(at("folder")).unwrap();
        let made = Command::new("mkfifo").arg(at("fifo")).status();
        assert!(made.unwrap().success());
        for (name, expected) in [
            ("long", "it is longer than 1048576 bytes"),
            ("binary", "it is not a text in UTF-8"),
            ("zero", "it is not a plain file"),
            ("fifo", "it is not a plain file"),
            ("folder", "it is not a plain file"),
            ("missing", "No such file or directory (os error 2)"),
        ] {
            let error = text(&at(name)).unwrap_err().to_string();
            assert_eq!(error, expected, "{name}");
        }
    }

    /// Only root may open it; its mode is that of a plain file.
    #[test]
    fn a_file_that_waits_for_something_to_read_is_an_error() {
        let error = text(Path::new("/proc/kmsg")).unwrap_err();
        let refused = error.kind() == ErrorKind::PermissionDenied;
        assert!(
            refused || error.to_string().ends_with("a read of it waits"),
            "{error}"
        );
    }
}
