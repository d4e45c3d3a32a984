// SPDX-License-Identifier: GPL-2.0-only
//! Rings when the kernel reports that a sched_ext scheduler or a CPU came or went (uevents over
//! netlink). So nothing has to poll for that. The BPF link does not tell of the scheduler's end.

use crate::util::stop::Bell;
use anyhow::{Context, Result};
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::thread::{Builder, JoinHandle};

/// The kernel's own messages; udev sends to another group.
const KERNEL_GROUP: u32 = 1;
/// A message has at most two pages; the head of a longer one is enough.
const BYTES: usize = 8192;

/// Listens until dropped.
pub struct Uevents {
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Uevents {
    pub fn listen(bell: Bell) -> Result<Uevents> {
        let socket = connect().context("cannot receive the kernel's uevents")?;
        let (end, ended) = UnixStream::pair()?;
        let thread = Builder::new()
            .name("uevents".to_string())
            .spawn(move || follow(&socket, &ended, &bell))
            .context("cannot start the thread that receives the kernel's uevents")?;
        Ok(Uevents {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Uevents {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn connect() -> std::io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: plain calls; the descriptor is ours; zero is a valid value for all of the address.
    unsafe {
        let fd = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_KOBJECT_UEVENT);
        if fd < 0 {
            return Err(Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(fd);
        let mut at: libc::sockaddr_nl = std::mem::zeroed();
        at.nl_family = libc::AF_NETLINK as u16;
        at.nl_groups = KERNEL_GROUP;
        let len = size_of::<libc::sockaddr_nl>() as u32;
        if libc::bind(fd, (&raw const at).cast(), len) < 0 {
            return Err(Error::last_os_error());
        }
        Ok(socket)
    }
}

fn follow(socket: &OwnedFd, ended: &UnixStream, bell: &Bell) {
    let wait_for = |fd: RawFd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut fds = [wait_for(socket.as_raw_fd()), wait_for(ended.as_raw_fd())];
    loop {
        // SAFETY: two entries, which are alive.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
        if fds[1].revents != 0 || !drain(socket, bell) {
            return;
        }
    }
}

/// Reads all pending messages. False: there will be no more.
fn drain(socket: &OwnedFd, bell: &Bell) -> bool {
    let mut message = [0; BYTES];
    loop {
        let to = message.as_mut_ptr().cast();
        // SAFETY: the kernel writes at most `BYTES` bytes.
        let len = unsafe { libc::recv(socket.as_raw_fd(), to, BYTES, 0) };
        if let Ok(len) = usize::try_from(len) {
            if of_interest(&message[..len]) {
                bell.ring();
            }
            continue;
        }
        match Error::last_os_error().raw_os_error() {
            Some(libc::EAGAIN) => return true,
            Some(libc::EINTR) => (),
            // Messages were lost, which may have been relevant.
            Some(libc::ENOBUFS) => bell.ring(),
            _ => return false,
        }
    }
}

/// A message is "remove@/kernel/sched_ext/root", followed by a zero and further text.
fn of_interest(message: &[u8]) -> bool {
    let head = message.split(|b| *b == 0).next().unwrap_or_default();
    let place = head
        .iter()
        .position(|b| *b == b'@')
        .map(|at| &head[at + 1..]);
    let below = |folder: &&str| place.is_some_and(|p| p.starts_with(folder.as_bytes()));
    ["/kernel/sched_ext", "/devices/system/cpu/cpu"]
        .iter()
        .any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_and_cpus_are_of_interest() {
        for (message, expected) in [
            (&b"remove@/kernel/sched_ext/root\0ACTION=remove\0"[..], true),
            (b"offline@/devices/system/cpu/cpu7\0", true),
            (b"change@/devices/virtual/thermal/thermal_zone0\0", false),
            (b"x\0y@/kernel/sched_ext/root", false),
            (b"libudev\0\xfe\xed", false),
            (b"", false),
        ] {
            assert_eq!(of_interest(message), expected, "{message:?}");
        }
    }

    #[test]
    fn who_listens_can_stop() {
        let bell = Bell::default();
        // A sandbox may forbid it.
        if let Ok(uevents) = Uevents::listen(bell) {
            drop(uevents);
        }
    }
}
