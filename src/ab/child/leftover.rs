// SPDX-License-Identifier: GPL-2.0-only
//! Processes that a command left behind. As a subreaper we become the parent of orphans, so they
//! are children that we did not have before.

use crate::ab::cgroup::Cgroup;
use anyhow::{Context, Result};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, set_child_subreaper,
    waitpid,
};
use std::cell::Cell;
use std::fmt;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(10);
/// Between looks at what still ends after the command: so far off is the end of a run that goes on.
const SHORT_NAP: Duration = Duration::from_millis(2);
/// Generations of processes that are killed: each may leave its children to us.
const GENERATIONS: usize = 100;

/// Time for a killed child to end.
const END_TIME: Duration = Duration::from_secs(15);

/// A process that outlived the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub pid: i32,
    pub name: String,
    /// It has left the command's session, as daemons do.
    pub daemon: bool,
}

impl fmt::Display for Leftover {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let how = if self.daemon {
            "daemonised"
        } else {
            "forked away"
        };
        write!(f, "{} ({}, {how})", self.name, self.pid)
    }
}

/// Makes us the parent of all orphaned descendants from now on.
pub fn become_subreaper() -> Result<()> {
    let set = set_child_subreaper(Some(getpid()));
    set.context("cannot watch what the command leaves behind")
}

/// Our children before the command is started. These helpers stay.
pub struct Household<'a> {
    pids: Vec<i32>,
    cgroup: Option<&'a Cgroup>,
    helper: &'a dyn Fn() -> Option<u32>,
    /// When the last process ended that outlived the command.
    last_ended: Cell<Option<Instant>>,
}

impl<'a> Household<'a> {
    /// `cgroup`: the command's. `helper`: a child that also stays, and is replaced if it ends.
    pub fn now(cgroup: Option<&'a Cgroup>, helper: &'a dyn Fn() -> Option<u32>) -> Household<'a> {
        Household {
            pids: children().map(|(pid, _)| pid).collect(),
            cgroup,
            helper,
            last_ended: Cell::new(None),
        }
    }

    /// The new children that still live after `grace`. They are killed. `meanwhile` is called until
    /// then. `command`: the pid, and the session, of the command.
    pub fn left_behind(
        &self,
        command: i32,
        grace: Duration,
        meanwhile: &mut dyn FnMut(),
    ) -> Vec<Leftover> {
        let end = Instant::now() + grace;
        let mut seen = false;
        loop {
            let left = self.reaped_and_living(command);
            if left.is_empty() {
                self.last_ended.set(seen.then(Instant::now));
                return left;
            }
            if Instant::now() >= end {
                self.end_all(command);
                return left;
            }
            seen = true;
            meanwhile();
            sleep(SHORT_NAP);
        }
    }

    /// When the last of the processes ended that `left_behind` waited for. None: it found none.
    pub fn last_ended(&self) -> Option<Instant> {
        self.last_ended.get()
    }

    /// Kills the command, which is not reaped yet, and all its descendants. False: it does not end
    /// although it was killed.
    pub fn end(&self, command: i32) -> bool {
        signal_group(command, Signal::KILL);
        let ended = reaped_within(command, END_TIME);
        self.end_all(command);
        ended
    }

    fn end_all(&self, command: i32) {
        // All at once, before they fork more.
        self.cgroup.iter().for_each(|c| c.kill());
        for _ in 0..GENERATIONS {
            let left = self.reaped_and_living(command);
            if left.is_empty() {
                return;
            }
            for process in left {
                // A child that is not reaped keeps its number.
                let _ = Pid::from_raw(process.pid).map(|pid| kill_process(pid, Signal::KILL));
            }
            sleep(NAP);
        }
    }

    /// The new children that live. Reaps zombies.
    fn reaped_and_living(&self, command: i32) -> Vec<Leftover> {
        let helper = (self.helper)();
        let stays = |pid: &i32| self.pids.contains(pid) || helper == Some(*pid as u32);
        let strange = children().filter(|(pid, s)| !stays(pid) && !reaped(*pid, s));
        let leftover = |(pid, s): (i32, Stat)| Leftover {
            pid,
            daemon: s.session != command,
            name: s.name,
        };
        strange.map(leftover).collect()
    }
}

/// Sends the signal to a process group. The caller makes sure that the leader runs, or has ended
/// too recently for its number to be reused.
pub fn signal_group(leader: i32, signal: Signal) {
    let _ = Pid::from_raw(leader).map(|group| kill_process_group(group, signal));
}

/// Waits until a child ends, and reaps it. True also if it was reaped before. False: it did not end
/// in that time.
pub fn reaped_within(pid: i32, time: Duration) -> bool {
    let end = Instant::now() + time;
    while matches!(waitpid(Pid::from_raw(pid), WaitOptions::NOHANG), Ok(None)) {
        if Instant::now() >= end {
            return false;
        }
        sleep(NAP);
    }
    true
}

fn children() -> impl Iterator<Item = (i32, Stat)> {
    let me = std::process::id() as i32;
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    let all = pids.filter_map(|pid| Some((pid, stat(pid)?)));
    all.filter(move |(_, s)| s.parent == me)
}

struct Stat {
    name: String,
    state: char,
    parent: i32,
    session: i32,
}

fn stat(pid: i32) -> Option<Stat> {
    // A name may be any bytes, and must not hide its process.
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (head, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    Some(Stat {
        name: head.split_once('(')?.1.to_string(),
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
        // The process group is between them.
        session: fields.nth(1)?.parse().ok()?,
    })
}

fn reaped(pid: i32, stat: &Stat) -> bool {
    // A child of ours; nothing else needs its status.
    let wait = || waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
    stat.state == 'Z' && matches!(wait(), Ok(Some(_)))
}
