// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost stop`: ends the process behind the control socket, and waits until it has ended. The
//! kernel's own scheduler runs then.

use crate::machine::host::Host;
use crate::util::print;
use crate::util::refusal::Refused;
use crate::wire::client::{Connection, is_absent};
use crate::wire::protocol::Op;
use crate::wire::socket::connect;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;

/// s: an unload waits for grace periods of the kernel, and for tasks on slow CPUs.
const PATIENCE: i64 = 60;
/// A socket whose process does not accept has another message.
const CONNECT_TIME: Duration = Duration::from_secs(5);

pub const EXAMPLES: &str = "Examples:
  sudo scx_roost stop                 the kernel's own scheduler takes over, within a second or two
  sudo systemctl disable scx_roost    do not start it at boot again

Exit status: 0 after the scheduler has ended; 1 if none runs, or it cannot be stopped.";

/// Stops the scheduler whose control socket is at `path`. Errors: there is none; only root may stop
/// it; it does not end in a minute.
pub fn run(path: &Path) -> Result<()> {
    let host = Host::new(Path::new("/sys"));
    let process = scheduler(path, &host)?;
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
    let now = match host.attached_ops() {
        None => "the kernel's own scheduler runs".to_string(),
        Some(ops) => format!("the sched_ext scheduler '{ops}' runs"),
    };
    print::text(&format!("scx_roost has ended; {now}\n")).map(|_| ())
}

/// The process that answers at the socket as scx_roost does: the path may be wrong, and no other
/// process is to be ended. It is that of the connection that has answered, since another one may
/// serve the path a moment later.
fn scheduler(path: &Path, host: &Host) -> Result<OwnedFd> {
    let absent = connect(path, CONNECT_TIME).is_err_and(|e| is_absent(e.kind()));
    if absent {
        let path = path.display();
        match host.attached_ops() {
            Some(ops) if ops.starts_with("roost_") => bail!(
                "scx_roost runs, but its control socket is not {path}: give its --ctl-path; one \
                 that ab or tune has started ends with them"
            ),
            _ => bail!("scx_roost does not run: nothing has its control socket at {path}"),
        }
    }
    let mut connection = Connection::new(path)?;
    match connection.ask(&Op::Show { arm: None }) {
        Err(e) if !e.is::<Refused>() => return Err(e),
        // It refuses while it is being loaded.
        _ => {}
    }
    connection.process()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    /// It listens, and closes what connects: no scheduler does that.
    #[test]
    fn a_process_that_is_no_scheduler_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::in_folder(folder.path());
        let path = folder.path().join("ctl");
        let none = scheduler(&path, &host).unwrap_err().to_string();
        assert!(none.starts_with("scx_roost does not run"), "{none}");
        let listener = UnixListener::bind(&path).unwrap();
        let other = std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2 {
                    drop(listener.accept().unwrap());
                }
            });
            scheduler(&path, &host).unwrap_err().to_string()
        });
        assert!(other.contains("scheduler"), "{other}");
    }

    /// Answers one request with this text, after the socket has lost its name.
    fn scheduler_that_answers(text: &str) -> Result<OwnedFd> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ctl");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(listener.accept().unwrap());
                let (mut stream, _) = listener.accept().unwrap();
                BufReader::new(&stream)
                    .read_line(&mut String::new())
                    .unwrap();
                std::fs::remove_file(&path).unwrap();
                writeln!(stream, "{text}").unwrap();
            });
            scheduler(&path, &Host::in_folder(folder.path()))
        })
    }

    #[test]
    fn the_process_that_has_answered_is_signalled_and_no_other() {
        let own = std::process::id();
        for answer in [
            r#"{"errno":0,"args":{"resp":{}}}"#,
            r#"{"errno":11,"args":{"resp":"it is being loaded"}}"#,
        ] {
            let process = scheduler_that_answers(answer).unwrap();
            let info = format!("/proc/self/fdinfo/{}", process.as_raw_fd());
            let info = std::fs::read_to_string(info).unwrap();
            assert!(info.contains(&format!("Pid:\t{own}\n")), "{info}");
        }
        for other in ["{}", "7", r#"{"errno":"x"}"#] {
            let error = scheduler_that_answers(other).unwrap_err().to_string();
            assert!(error.contains("no scheduler"), "{error}");
        }
    }
}
