// SPDX-License-Identifier: GPL-2.0-only
//! Who is at the other end of a socket.

use anyhow::{Context, Result};
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// uapi: getsockopt() for a pidfd of the peer process.
const SO_PEERPIDFD: i32 = 77;

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
