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
        let file = options.open(path).map_err(|e| match e.kind() {
            ErrorKind::WouldBlock => wrong("another process has a lease on it: try again"),
            _ => e,
        })?;
        PlainFile::of(file)
    }

    /// Another file may have taken the name before it was opened.
    fn of(file: File) -> Result<PlainFile> {
        match file.metadata()?.is_file() {
            true => Ok(PlainFile(file)),
            false => Err(wrong("it is not a plain file")),
        }
    }

    /// All of it. Errors: it has more than `max` bytes.
    pub fn bytes(self, max: u64) -> Result<Vec<u8>> {
        at_most(self, max)
    }
}

/// All that is left to read. Errors: that is more than `max` bytes.
pub fn at_most(from: impl Read, max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= max {
        true => Ok(bytes),
        false => Err(wrong(&format!("it is longer than {max} bytes"))),
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

    #[test]
    fn what_was_opened_counts_and_not_what_was_there_before() {
        let error = PlainFile::of(File::open("/dev/null").unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "it is not a plain file");
    }

    /// As /proc/kmsg, whose mode is that of a plain file.
    #[test]
    fn a_file_that_waits_for_something_to_read_is_an_error() {
        let (pipe, _open) = std::io::pipe().unwrap();
        rustix::io::ioctl_fionbio(&pipe, true).unwrap();
        let mut waits = PlainFile(File::from(std::os::fd::OwnedFd::from(pipe)));
        let error = waits.read(&mut [0]).unwrap_err().to_string();
        assert_eq!(error, "it is not a plain file: a read of it waits");
    }

    /// A file server holds leases. Opening the file asks for the lease back.
    #[test]
    fn a_leased_file_is_an_error_and_not_a_wait() {
        use std::os::fd::AsRawFd;
        /// include/uapi/asm-generic/fcntl.h
        const F_SETSIG: libc::c_int = 10;
        let file = tempfile::NamedTempFile::new().unwrap();
        let fd = file.as_file().as_raw_fd();
        // SAFETY: plain numbers. The default signal would end the test; SIGWINCH is ignored.
        let leased = unsafe {
            libc::fcntl(fd, F_SETSIG, libc::SIGWINCH);
            libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK)
        };
        // Not every file system has leases.
        if leased == 0 {
            let error = text(file.path()).unwrap_err().to_string();
            assert_eq!(error, "another process has a lease on it: try again");
        }
    }
}
