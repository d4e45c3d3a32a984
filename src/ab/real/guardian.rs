// SPDX-License-Identifier: GPL-2.0-only
//! A process of our own that outlives us: when we are killed, its standard input ends, and it puts the machine back. It ends all that we
//! started, the command and the scheduler, takes our folder and cgroup away, and starts the service that was stopped.

use super::former::Former;
use super::ground::Ground;
use super::service::call;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, Write, stdin};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The subcommand that makes a process one.
pub const COMMAND: &str = "ab-guardian";

/// A line to it.
#[derive(Debug, Serialize, Deserialize)]
pub enum Word {
    /// To be cleared.
    Owns(Ground),
    /// Is to be attached again.
    Restores(Former),
    /// The command runs, in the process group of this number.
    Runs(i32),
    Ended,
    /// A scheduler of ours runs, in the process group of this number.
    Schedules(i32),
    ScheduledOut,
    /// All is well.
    Dismissed,
}

/// Our side.
pub struct Guardian(Child);

impl Guardian {
    /// `program`: scx_roost. `alone`: what locks others out, which it holds until it has ended.
    pub fn start(program: &Path, alone: &File) -> Result<Guardian> {
        // A descriptor that it has from its start on, and writes nothing to.
        let held = alone.try_clone().context("no descriptor is left")?;
        let child = Command::new(program)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(held)
            .process_group(0)
            .spawn();
        Ok(Guardian(child.context(
            "cannot start the process that restores the machine when this one is killed",
        )?))
    }

    /// Before what it is about: else a kill in between is not restored.
    pub fn say(&mut self, word: &Word) -> Result<()> {
        let line = serde_json::to_string(word)? + "\n";
        let door = self.0.stdin.as_mut().context("it listens")?;
        door.write_all(line.as_bytes())
            .context("the process that restores the machine when this one is killed is gone")
    }

    /// If it is gone, the end of something is no news to it.
    pub fn tell(&mut self, word: &Word) {
        let _ = self.say(word);
    }

    pub fn dismiss(mut self) {
        self.tell(&Word::Dismissed);
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// What it has heard.
#[derive(Default)]
struct Heard {
    ground: Option<Ground>,
    former: Option<Former>,
    command: Option<i32>,
    scheduler: Option<i32>,
}

/// Its side: listens until it is dismissed, or alone.
pub fn watch() -> Result<()> {
    // Who ends all that was started from a terminal ends us last.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let mut heard = Heard::default();
    // A line that was cut off when we were killed says nothing, and is the last.
    for line in stdin().lock().lines().map_while(Result::ok) {
        let Ok(word) = serde_json::from_str(&line) else {
            break;
        };
        match word {
            Word::Owns(ground) => heard.ground = Some(ground),
            Word::Restores(former) => heard.former = Some(former),
            Word::Runs(group) => heard.command = Some(group),
            Word::Ended => heard.command = None,
            Word::Schedules(group) => heard.scheduler = Some(group),
            Word::ScheduledOut => heard.scheduler = None,
            Word::Dismissed => return Ok(()),
        }
    }
    heard.restore()
}

impl Heard {
    fn restore(self) -> Result<()> {
        for group in self.command.into_iter().chain(self.scheduler) {
            // SAFETY: plain numbers.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let cleared = self.ground.as_ref().map_or(Ok(()), Ground::clear);
        let restored = self.former.map_or(Ok(()), |former| former.restore(&call));
        restored.and(cleared)
    }
}
