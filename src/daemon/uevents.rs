// SPDX-License-Identifier: GPL-2.0-only
//! Rings when the kernel reports that a sched_ext scheduler or a CPU came or went (uevents over
//! netlink). So nothing has to poll for that. The BPF link does not tell of the scheduler's end.

use crate::util::stop::Bell;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{self, Errno};
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::os::fd::OwnedFd;
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

fn connect() -> io::Result<OwnedFd> {
    let (family, kind) = (AddressFamily::NETLINK, SocketType::DGRAM);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, kind, flags, Some(netlink::KOBJECT_UEVENT))?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
    Ok(socket)
}

fn follow(socket: &OwnedFd, ended: &UnixStream, bell: &Bell) {
    let mut fds = [
        PollFd::new(socket, PollFlags::IN),
        PollFd::new(ended, PollFlags::IN),
    ];
    loop {
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() || !drain(socket, bell) {
            return;
        }
    }
}

/// Reads all pending messages. False: there will be no more.
fn drain(socket: &OwnedFd, bell: &Bell) -> bool {
    let mut message = [0; BYTES];
    loop {
        match recv(socket, &mut message, RecvFlags::empty()) {
            Ok((len, _)) if of_interest(&message[..len]) => bell.ring(),
            Ok(_) | Err(Errno::INTR) => (),
            Err(Errno::AGAIN) => return true,
            // Messages were lost, which may have been relevant.
            Err(Errno::NOBUFS) => bell.ring(),
            Err(_) => return false,
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
