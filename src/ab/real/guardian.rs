// SPDX-License-Identifier: GPL-2.0-only
//! The guardian: a process of ours that survives us. When we are killed, its standard input ends
//! and it restores the machine: it kills the command and the scheduler, and removes our folder and
//! cgroup.

use super::ground::Ground;
use crate::ab::child::reaped_within;
use crate::ab::child::signal_group;
use anyhow::{Context, Result};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, Write, stdin};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The subcommand that runs a guardian.
pub const COMMAND: &str = "ab-guardian";

/// A message to the guardian.
#[derive(Debug, Serialize, Deserialize)]
pub enum Word {
    /// Remove this at the end.
    Owns(Ground),
    /// A command runs in this process group.
    Runs(i32),
    Ended,
    /// A scheduler of ours runs in this process group.
    Schedules(i32),
    ScheduledOut,
    /// The machine is restored: exit.
    Dismissed,
}

/// Our side of the guardian.
pub struct Guardian {
    process: Child,
    program: PathBuf,
    /// The lock of the comparison. The guardian holds it until it has ended.
    alone: File,
    /// All messages, for a new guardian if this one ends before us.
    heard: Heard,
}

/// Time for a dismissed guardian to end. One that was stopped (SIGSTOP) does not.
const END_TIME_DISMISSED: Duration = Duration::from_secs(2);

/// The guardian ended before us.
const LOST: &str = "the process that restores the machine if this one is killed has ended early";

impl Guardian {
    /// `program`: path of scx_roost.
    pub fn start(program: &Path, alone: &File) -> Result<Guardian> {
        let alone = alone.try_clone().context("no descriptor is left")?;
        Ok(Guardian {
            process: spawn(program, &alone)?,
            program: program.to_path_buf(),
            alone,
            heard: Heard::default(),
        })
    }

    /// Call this before the action that `word` announces: otherwise the guardian does not undo the
    /// action if this process is killed in between. Fails if the guardian is gone and a new one
    /// cannot be started.
    pub fn say(&mut self, word: Word) -> Result<()> {
        let said = self.write(&word);
        self.heard.hear(word);
        said.or_else(|_| self.again())
    }

    fn write(&mut self, word: &Word) -> Result<()> {
        let line = serde_json::to_string(word)? + "\n";
        let door = self.process.stdin.as_mut().context("it listens")?;
        // It has ended, or it was stopped and its pipe is full.
        door.write_all(line.as_bytes()).context(LOST)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Call it regularly. Returns a sentence if the guardian was gone and a new one runs. Fails if
    /// there cannot be a new one.
    pub fn look(&mut self) -> Result<Option<String>> {
        let ended = self.process.try_wait();
        let how = match ended {
            Ok(None) => return Ok(None),
            Ok(Some(status)) => status.to_string(),
            Err(e) => e.to_string(),
        };
        self.again().context(LOST)?;
        Ok(Some(format!("{LOST} ({how}): another was started")))
    }

    /// Starts a new guardian with all that the old one knew.
    fn again(&mut self) -> Result<()> {
        // It has ended or does not read.
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.process = spawn(&self.program, &self.alone)?;
        let words: Vec<Word> = self.heard.words().collect();
        words.iter().try_for_each(|word| self.write(word))
    }

    /// As `say`, for messages that may be lost.
    pub fn tell(&mut self, word: Word) {
        let _ = self.say(word);
    }

    pub fn dismiss(mut self) {
        // If it is gone it need not know.
        let _ = self.write(&Word::Dismissed);
        drop(self.process.stdin.take());
        if !reaped_within(self.process.id() as i32, END_TIME_DISMISSED) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

fn spawn(program: &Path, alone: &File) -> Result<Child> {
    // It gets the lock as its stdout, and writes nothing to it.
    let held = alone.try_clone().context("no descriptor is left")?;
    let child = Command::new(program)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(held)
        .process_group(0)
        .spawn();
    let child = child
        .context("cannot start the process that restores the machine if this one is killed")?;
    // One that was stopped does not read: its pipe fills, and a write must fail rather than wait.
    let door = child.stdin.as_ref().context("it listens")?;
    rustix::io::ioctl_fionbio(door, true).context("cannot watch the guardian")?;
    Ok(child)
}

/// State of a guardian.
#[derive(Default)]
struct Heard {
    ground: Option<Ground>,
    command: Option<i32>,
    scheduler: Option<i32>,
}

/// The guardian's main loop: reads messages until it is dismissed or our process ends.
pub fn watch() -> Result<()> {
    // Signals to the whole session must not end the guardian before us.
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let mut heard = Heard::default();
    // A line that was cut off when we were killed is the last one, and is ignored.
    for line in stdin().lock().lines().map_while(Result::ok) {
        let Ok(word) = serde_json::from_str(&line) else {
            break;
        };
        match word {
            Word::Dismissed => return Ok(()),
            word => heard.hear(word),
        }
    }
    heard.restore()
}

impl Heard {
    fn hear(&mut self, word: Word) {
        match word {
            Word::Owns(ground) => self.ground = Some(ground),
            Word::Runs(group) => self.command = Some(group),
            Word::Ended => self.command = None,
            Word::Schedules(group) => self.scheduler = Some(group),
            Word::ScheduledOut => self.scheduler = None,
            Word::Dismissed => (),
        }
    }

    /// Messages that lead to this state.
    fn words(&self) -> impl Iterator<Item = Word> {
        let ground = self.ground.clone().map(Word::Owns);
        let command = self.command.map(Word::Runs);
        let scheduler = self.scheduler.map(Word::Schedules);
        ground.into_iter().chain(command).chain(scheduler)
    }

    fn restore(self) -> Result<()> {
        for group in self.command.into_iter().chain(self.scheduler) {
            signal_group(group, Signal::KILL);
        }
        self.ground.as_ref().map_or(Ok(()), Ground::clear)
    }
}
