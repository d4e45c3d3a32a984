// SPDX-License-Identifier: GPL-2.0-only
//! Lets a group connect to a socket. Root may change the group of a file, and so may an owner who
//! is a member. A service often may not: it lacks CAP_CHOWN, or its system call filter refuses
//! chown(). It then sets an access control list on the socket, which the owner of a file always
//! may.

use rustix::fs::{XattrFlags, setxattr};
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

/// Lets the owner and the group of this number connect. An error is a sentence that says what to
/// do.
pub fn give_to_group(path: &Path, group: u32) -> Result<(), String> {
    let plain = |e: Error| format!("cannot give it to group {group}: {e}");
    let file = itself(path).map_err(plain)?;
    // fchown(), fchmod() and fsetxattr() do not accept an O_PATH descriptor.
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    match own_group(&file, &itself, group) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            list_group(&itself, group).map_err(|e| refused(path, group, &e))
        }
        Err(e) => Err(plain(e)),
    }
}

/// A descriptor of the socket, without following links: root would otherwise change the target of
/// another user's link.
fn itself(path: &Path) -> Result<File, Error> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW)
        .open(path)?;
    match file.metadata()?.file_type().is_socket() {
        true => Ok(file),
        false => Err(Error::other("it is no longer a socket")),
    }
}

fn own_group(file: &File, itself: &str, group: u32) -> Result<(), Error> {
    // In a folder with the setgid bit the socket has the folder's group from the start.
    if file.metadata()?.gid() != group {
        chown(itself, None, Some(group))?;
    }
    fs::set_permissions(itself, fs::Permissions::from_mode(0o660))
}

/// Sets an access control list with the owner and this group only.
fn list_group(itself: &str, group: u32) -> Result<(), Error> {
    let (name, list) = ("system.posix_acl_access", access_list(group));
    Ok(setxattr(itself, name, &list, XattrFlags::empty())?)
}

/// uapi/linux/posix_acl_xattr.h: a version, then entries of a tag, a mode and an id.
fn access_list(group: u32) -> Vec<u8> {
    const VERSION: u32 = 2;
    const NO_ID: u32 = u32::MAX;
    let entries: [(u16, u16, u32); 5] = [
        (0x01, 0o6, NO_ID), // ACL_USER_OBJ
        (0x04, 0, NO_ID),   // ACL_GROUP_OBJ
        (0x08, 0o6, group), // ACL_GROUP
        (0x10, 0o6, NO_ID), // ACL_MASK
        (0x20, 0, NO_ID),   // ACL_OTHER
    ];
    let mut list = VERSION.to_le_bytes().to_vec();
    for (tag, mode, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(mode.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

fn refused(path: &Path, group: u32, e: &Error) -> String {
    let folder = path.parent().unwrap_or(Path::new("."));
    format!(
        "this process may not give it to group {group} (it lacks CAP_CHOWN, or the service's system call filter forbids it), and its file system supports no access control lists ({e}): let new files in the folder inherit the group with 'chgrp {group} {0} && chmod g+sx {0}', or give a path elsewhere",
        folder.display()
    )
}

/// A sentence about what keeps a user with only this group from reaching the socket, and what to
/// do. It names the first folder above it whose mode does not let the group pass. (An access
/// control list may still do so.)
pub fn kept_out(path: &Path, group: u32) -> Option<String> {
    let dir = fs::canonicalize(path.parent()?).ok()?;
    let mut folders: Vec<&Path> = dir.ancestors().collect();
    folders.reverse();
    folders.into_iter().find_map(|folder| {
        let meta = fs::metadata(folder).ok()?;
        let (bit, subject) = match meta.gid() == group {
            true => (0o010, 'g'),
            false => (0o001, 'o'),
        };
        let mode = meta.mode() & 0o7777;
        (mode & bit == 0).then(|| {
            format!(
                "group {group} cannot reach it, because the folder {0} has mode {mode:04o}: let the group pass with \
                 'chmod {subject}+x {0}', or give a path elsewhere",
                folder.display()
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::privileges;
    use rustix::thread::CapabilitySet;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;
    use tempfile::TempDir;

    const GROUP: u32 = 12345;
    const NOBODY: u32 = 65534;

    fn socket() -> (TempDir, PathBuf, UnixListener) {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        (dir, path, listener)
    }

    fn is_root() -> bool {
        let root = crate::util::user::is_root();
        if !root {
            println!("skip: only root can become another user");
        }
        root
    }

    /// Runs in a thread that gives up its capabilities, which each thread has for itself.
    fn without_chown<T: Send>(body: impl FnOnce() -> T + Send) -> T {
        let run = || {
            privileges::shed(CapabilitySet::empty(), &[]).unwrap();
            body()
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    /// Whether a user whose only group this is can connect. Raw system calls change one thread
    /// only.
    fn connects(path: &Path, group: u32) -> bool {
        let run = || {
            // SAFETY: numbers, and memory that is alive.
            unsafe {
                assert_eq!(libc::syscall(libc::SYS_setgroups, 1, &raw const group), 0);
                assert_eq!(
                    libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY),
                    0
                );
                assert_eq!(
                    libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY),
                    0
                );
            }
            UnixStream::connect(path).is_ok()
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    #[test]
    fn without_cap_chown_the_group_comes_in_by_a_list() {
        if !is_root() {
            return;
        }
        let (_dir, path, _listener) = socket();
        without_chown(|| give_to_group(&path, GROUP)).unwrap();
        assert!(connects(&path, GROUP));
        assert!(!connects(&path, GROUP + 1) && !connects(&path, NOBODY));
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.mode() & 0o777, meta.gid()), (0o660, 0));
    }

    #[test]
    fn in_a_folder_with_the_setgid_bit_it_is_the_groups_already() {
        if !is_root() {
            return;
        }
        let (dir, path, listener) = socket();
        drop(listener);
        fs::remove_file(&path).unwrap();
        chown(dir.path(), None, Some(GROUP)).unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2755)).unwrap();
        let _listener = UnixListener::bind(&path).unwrap();
        without_chown(|| give_to_group(&path, GROUP)).unwrap();
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.mode() & 0o777, meta.gid()), (0o660, GROUP));
        assert!(connects(&path, GROUP) && !connects(&path, GROUP + 1));
    }

    #[test]
    fn with_cap_chown_it_is_given_to_the_group() {
        if !is_root() {
            return;
        }
        let (_dir, path, _listener) = socket();
        give_to_group(&path, GROUP).unwrap();
        let meta = fs::metadata(&path).unwrap();
        assert_eq!((meta.mode() & 0o777, meta.gid()), (0o660, GROUP));
        assert!(connects(&path, GROUP) && !connects(&path, GROUP + 1));
    }

    /// Not every test machine has a file system without access control lists, so only the sentence
    /// is tested.
    #[test]
    fn a_failure_is_reported_with_its_remedy() {
        let e = Error::from_raw_os_error(libc::EOPNOTSUPP);
        let text = refused(Path::new("/run/x/stats"), 7, &e);
        assert!(text.starts_with("this process may not give it to group 7 (it lacks CAP_CHOWN"));
        assert!(
            text.contains("'chgrp 7 /run/x && chmod g+sx /run/x'"),
            "{text}"
        );
    }
}
