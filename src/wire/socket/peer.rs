// SPDX-License-Identifier: GPL-2.0-only
//! Who is at the other end of a socket.

use anyhow::{Context, Result};
use nix::unistd::geteuid;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// uapi: getsockopt() for a pidfd of the peer process.
const SO_PEERPIDFD: i32 = 77;

/// Fails if the process that serves the socket belongs neither to root nor to the current user. It
/// could claim anything, and root's clients would believe it.
pub fn check_server(stream: &UnixStream) -> std::io::Result<()> {
    let uid = peer_uid(stream)?;
    match uid == 0 || uid == geteuid().as_raw() {
        true => Ok(()),
        false => Err(Error::other(format!(
            "a process of user {uid} serves it, neither of root nor of this user"
        ))),
    }
}

/// The process at the other end is root's or the current user's.
pub fn is_ours(stream: &UnixStream) -> bool {
    peer_uid(stream).is_ok_and(|uid| uid == 0 || uid == geteuid().as_raw())
}

/// The effective user of the process at the other end when it called listen() or connect().
fn peer_uid(stream: &UnixStream) -> std::io::Result<u32> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes one structure of this length.
    let rc = unsafe {
        let at = (&raw mut peer).cast();
        let socket = stream.as_raw_fd();
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_PEERCRED, at, &mut len)
    };
    match rc {
        0 => Ok(peer.uid),
        _ => Err(Error::last_os_error()),
    }
}

/// A pidfd of the process at the other end. Unlike a pid, it is never reused for another process.
pub fn peer_pidfd(stream: &UnixStream) -> Result<OwnedFd> {
    let mut fd: i32 = -1;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel writes one number of this length; the descriptor is ours then.
    unsafe {
        let at = (&raw mut fd).cast();
        let socket = stream.as_raw_fd();
        if libc::getsockopt(socket, libc::SOL_SOCKET, SO_PEERPIDFD, at, &mut len) < 0 {
            return Err(Error::last_os_error())
                .context("cannot identify the process at the other end of the socket");
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::thread::scope;

    const NOBODY: u32 = 65534;

    /// The server is what it was when it began to listen.
    #[test]
    fn a_server_of_another_user_is_not_believed() {
        if !crate::util::user::is_root() {
            println!("skip: only root can become another user");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(dir.path(), mode).unwrap();
        let serve = |uid: u32| {
            let path = dir.path().join(uid.to_string());
            // SAFETY: plain numbers. The raw system call changes this thread alone.
            assert_eq!(
                unsafe { libc::syscall(libc::SYS_setresuid, uid, uid, uid) },
                0
            );
            UnixListener::bind(path).unwrap()
        };
        for uid in [0, NOBODY] {
            let _listener = scope(|scope| scope.spawn(|| serve(uid)).join().unwrap());
            let path = dir.path().join(uid.to_string());
            let checked = check_server(&UnixStream::connect(path).unwrap());
            match uid {
                0 => checked.unwrap(),
                _ => assert!(checked.unwrap_err().to_string().contains("of user 65534")),
            }
        }
    }
}
