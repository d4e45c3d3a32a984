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
use std::path::{Path, PathBuf};
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
    /// The command runs, or a copy of it, in the process group of this number.
    Runs(i32),
    /// With all copies.
    Ended,
    /// A scheduler of ours runs, in the process group of this number.
    Schedules(i32),
    ScheduledOut,
    /// All is well.
    Dismissed,
}

/// Our side.
pub struct Guardian {
    process: Child,
    program: PathBuf,
    /// What locks others out, which it holds until it has ended.
    alone: File,
    /// For the next one, should it go before us.
    heard: Heard,
}

/// It went before us.
const LOST: &str =
    "the process that restores the machine when this one is killed ended before this one";

impl Guardian {
    /// `program`: scx_roost.
    pub fn start(program: &Path, alone: &File) -> Result<Guardian> {
        let alone = alone.try_clone().context("no descriptor is left")?;
        Ok(Guardian {
            process: spawn(program, &alone)?,
            program: program.to_path_buf(),
            alone,
            heard: Heard::default(),
        })
    }

    /// Before what it is about: else a kill in between is not restored. Errors: it is gone, and there cannot be another one.
    pub fn say(&mut self, word: Word) -> Result<()> {
        let said = self.write(&word);
        self.heard.hear(word);
        said.or_else(|_| self.again())
    }

    fn write(&mut self, word: &Word) -> Result<()> {
        let line = serde_json::to_string(word)? + "\n";
        let door = self.process.stdin.as_mut().context("it listens")?;
        door.write_all(line.as_bytes()).context(LOST)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// To be called now and then. A sentence where it was gone, and another one is there. Errors: there cannot be another one.
    pub fn look(&mut self) -> Result<Option<String>> {
        let ended = self.process.try_wait();
        let how = match ended {
            Ok(None) => return Ok(None),
            Ok(Some(status)) => status.to_string(),
            Err(e) => e.to_string(),
        };
        self.again().context(LOST)?;
        Ok(Some(format!("{LOST} ({how}): another one was started")))
    }

    /// Another one, which hears all that this one has heard.
    fn again(&mut self) -> Result<()> {
        // It does not live, or does not listen.
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.process = spawn(&self.program, &self.alone)?;
        let words: Vec<Word> = self.heard.words().collect();
        words.iter().try_for_each(|word| self.write(word))
    }

    /// The end of something is no news to one that is gone.
    pub fn tell(&mut self, word: Word) {
        let _ = self.say(word);
    }

    pub fn dismiss(mut self) {
        // If it is gone it needs not hear it.
        let _ = self.write(&Word::Dismissed);
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn spawn(program: &Path, alone: &File) -> Result<Child> {
    // A descriptor that it has from its start on, and writes nothing to.
    let held = alone.try_clone().context("no descriptor is left")?;
    let child = Command::new(program)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .stdout(held)
        .process_group(0)
        .spawn();
    child.context("cannot start the process that restores the machine when this one is killed")
}

/// What it has heard.
#[derive(Default)]
struct Heard {
    ground: Option<Ground>,
    former: Option<Former>,
    commands: Vec<i32>,
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
            Word::Restores(former) => self.former = Some(former),
            Word::Runs(group) => self.commands.push(group),
            Word::Ended => self.commands.clear(),
            Word::Schedules(group) => self.scheduler = Some(group),
            Word::ScheduledOut => self.scheduler = None,
            Word::Dismissed => (),
        }
    }

    /// Who hears these has heard the same.
    fn words(&self) -> impl Iterator<Item = Word> {
        let ground = self.ground.clone().map(Word::Owns);
        let former = self.former.clone().map(Word::Restores);
        let commands = self.commands.iter().copied().map(Word::Runs);
        let scheduler = self.scheduler.map(Word::Schedules);
        let ours = ground.into_iter().chain(former);
        ours.chain(commands).chain(scheduler)
    }

    fn restore(self) -> Result<()> {
        for group in self.commands.into_iter().chain(self.scheduler) {
            // SAFETY: plain numbers.
            unsafe { libc::kill(-group, libc::SIGKILL) };
        }
        let cleared = self.ground.as_ref().map_or(Ok(()), Ground::clear);
        let restored = self.former.map_or(Ok(()), |former| former.restore(&call));
        restored.and(cleared)
    }
}
