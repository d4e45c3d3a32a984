// SPDX-License-Identifier: GPL-2.0-only
//! A process of our own that outlives us: when we are killed, its standard input ends, and it puts the machine back. Schedulers need it
//! least: they die with us, and the kernel takes over. It ends the command, and starts the service that was stopped.

use super::scheduler::Attached;
use super::service::{Service, call};
use crate::host::Host;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Write, stdin};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The subcommand that makes a process one.
pub const COMMAND: &str = "ab-guardian";

/// A line to it.
#[derive(Debug, Serialize, Deserialize)]
enum Word {
    /// Is to be started again.
    Restores(Service),
    /// The command runs, in the group of this number.
    Runs(i32),
    Ended,
    /// All is well.
    Dismissed,
}

/// Our side.
pub struct Guardian(Child);

impl Guardian {
    pub fn start() -> Result<Guardian> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(program)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn();
        Ok(Guardian(child.context(
            "cannot start the process that restores the machine when this one is killed",
        )?))
    }

    fn say(&mut self, word: &Word) -> Result<()> {
        let line = serde_json::to_string(word)? + "\n";
        let door = self.0.stdin.as_mut().context("it listens")?;
        door.write_all(line.as_bytes())
            .context("the process that restores the machine when this one is killed is gone")
    }

    pub fn restores(&mut self, service: &Service) -> Result<()> {
        self.say(&Word::Restores(service.clone()))
    }

    /// If it is gone, `ended` and `dismiss` have nothing to tell it.
    pub fn runs(&mut self, group: i32) {
        let _ = self.say(&Word::Runs(group));
    }

    pub fn ended(&mut self) {
        let _ = self.say(&Word::Ended);
    }

    pub fn dismiss(mut self) {
        let _ = self.say(&Word::Dismissed);
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Its side: listens until it is dismissed, or alone.
pub fn watch() -> Result<()> {
    // Who ends all that was started from a terminal ends us last.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let (mut service, mut group) = (None, None);
    for line in stdin().lock().lines() {
        match serde_json::from_str(&line?)? {
            Word::Restores(stopped) => service = Some(stopped),
            Word::Runs(pid) => group = Some(pid),
            Word::Ended => group = None,
            Word::Dismissed => return Ok(()),
        }
    }
    if let Some(group) = group {
        // SAFETY: plain numbers.
        unsafe { libc::kill(-group, libc::SIGKILL) };
    }
    match service {
        Some(service) => {
            let host = Host::new(Path::new("/sys"));
            Attached(&host).wait_until_gone()?;
            service.start(&call)
        }
        None => Ok(()),
    }
}
