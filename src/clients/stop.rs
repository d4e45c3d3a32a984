// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost stop`: ends the process behind the control socket, and waits until it has ended. The
//! kernel's own scheduler runs then.

use crate::util::print;
use crate::wire::client;
use crate::wire::socket::peer_pidfd;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::path::Path;

/// s: an unload waits for grace periods of the kernel, and for tasks on slow CPUs.
const PATIENCE: i64 = 60;

pub const EXAMPLES: &str = "Examples:
  sudo scx_roost stop                 the kernel's own scheduler takes over, within a second or two
  sudo systemctl disable scx_roost    do not start it at boot again

Exit status: 0 if it has ended, and ended before this command does; 1 if none runs, or it could not
be stopped.";

/// Stops the scheduler whose control socket is at `path`. Errors: there is none; only root may stop
/// it; it does not end in a minute.
pub fn run(path: &Path) -> Result<()> {
    let stream = client::connect(path)?;
    let process = peer_pidfd(&stream).context("cannot tell which process serves the socket")?;
    drop(stream);
    match pidfd_send_signal(&process, Signal::TERM) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(Errno::PERM) => bail!("only its owner and root may stop the scheduler: use sudo"),
        Err(e) => return Err(e).context("cannot signal the scheduler"),
    }
    if !ended(&process)? {
        bail!(
            "the scheduler has not ended after {PATIENCE} s: see its log; SysRq-S makes the kernel \
             end it (echo s >/proc/sysrq-trigger)"
        );
    }
    print::text("scx_roost has ended; the kernel's own scheduler runs\n").map(|_| ())
}

/// A pidfd is readable when its process has ended.
fn ended(process: &OwnedFd) -> Result<bool> {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    let patience = Timespec {
        tv_sec: PATIENCE,
        tv_nsec: 0,
    };
    Ok(poll(&mut fds, Some(&patience))? > 0)
}
