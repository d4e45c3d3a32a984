// SPDX-License-Identifier: GPL-2.0-only
//! Locks between processes that no other user can hold against root. A user who may open a file may
//! lock it (flock(2)), and a result or a folder of /sys may be opened by all. So root locks a byte
//! of a file that only root may open: the one that the file's number names.

use crate::util::rng::Rng;
use crate::util::user::is_root;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Error;
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

/// Root's file. It is never written.
const OF_ROOT: &str = "/run/scx_roost.lock";

/// Held until it is dropped, and until processes have ended that inherit the file to which it
/// dereferences.
pub struct Lock {
    file: File,
    of_root: Option<File>,
}

impl Deref for Lock {
    type Target = File;

    fn deref(&self) -> &File {
        self.of_root.as_ref().unwrap_or(&self.file)
    }
}

/// Locks `file`. None: another process has locked it. Root heeds locks of root alone; others heed
/// all.
pub fn take(file: &File) -> Result<Option<Lock>, Error> {
    let file = file.try_clone()?;
    let locked = file.try_lock();
    // A root without /run is as others.
    let Some(of_root) = is_root().then(of_root).and_then(Result::ok) else {
        let lock = Lock {
            file,
            of_root: None,
        };
        return match locked {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        };
    };
    let held = lock_byte(&of_root, byte_of(&file)?)?;
    let of_root = Some(of_root);
    Ok(held.then_some(Lock { file, of_root }))
}

fn of_root() -> Result<File, Error> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let flags = libc::O_NOFOLLOW;
    options.mode(0o600).custom_flags(flags).open(OF_ROOT)
}

fn byte_of(file: &File) -> Result<i64, Error> {
    let meta = file.metadata()?;
    Ok(Rng::stream(meta.dev(), meta.ino()).below(1 << 62) as i64)
}

/// False: another process has locked it.
fn lock_byte(file: &File, at: i64) -> Result<bool, Error> {
    // SAFETY: the structure consists of numbers.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as _;
    lock.l_whence = libc::SEEK_SET as _;
    (lock.l_start, lock.l_len) = (at, 1);
    // SAFETY: a plain call on a descriptor and a structure that are alive.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
        0 => Ok(true),
        _ => match Error::last_os_error() {
            e if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            e => Err(e),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn one_holds_it_and_a_child_holds_it_too() {
        let files = [(); 2].map(|()| tempfile::NamedTempFile::new().unwrap());
        let take = |at: usize| take(&File::open(files[at].path()).unwrap()).unwrap();
        let held = take(0).unwrap();
        assert!(take(0).is_none() && take(1).is_some());
        let inherited = held.try_clone().unwrap();
        let child = Command::new("sleep").arg("7671").stdin(inherited).spawn();
        let mut child = child.unwrap();
        drop(held);
        assert!(take(0).is_none(), "the child has inherited it");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(take(0).is_some());
    }

    /// Any user who can read the file can lock it.
    #[test]
    fn a_lock_of_anybody_does_not_stop_root() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let others = File::open(file.path()).unwrap();
        others.try_lock().unwrap();
        assert_eq!(take(file.as_file()).unwrap().is_some(), is_root());
    }
}
