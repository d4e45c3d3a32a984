// SPDX-License-Identifier: GPL-2.0-only
//! Workloads: groups of tasks that run, sleep, and wait for each other. docs/simulator.md describes
//! the text. `parse` reads it, `text` its lines, `expr` its numbers;
//! `whole` checks all of it. `rtapp` reads rt-app's files.

mod expr;
mod faults;
mod parse;
mod rtapp;
mod text;
mod whole;

pub use expr::{Expr, Known, Unit};
pub use faults::Faults;

use anyhow::{Context, Result, ensure};
use scx_roost::native::Attr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most children at once, of all forked groups together.
const CHILDREN: usize = 8192;

/// Params of a load that are set to other values, by name.
pub type Settings = BTreeMap<String, i64>;

/// A workload.
#[derive(Clone, Debug)]
pub struct Load {
    pub channels: Vec<Channel>,
    pub locks: usize,
    pub conds: usize,
    /// How many tasks meet at each barrier.
    pub barriers: Vec<u64>,
    pub groups: Vec<Group>,
    /// ns before anything is measured.
    pub warmup: u64,
    /// ns that are measured; None: until the last task has ended.
    pub duration: Option<u64>,
    pub measure: Measure,
    /// Names of what is counted and timed, by number.
    pub marks: Vec<String>,
    pub faults: Faults,
    /// ns of work in which a task touches a MB of its set. None: that of the machine's parameters.
    pub touch: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// ns until the last task has ended.
    Time,
    /// Counts of a mark, per second.
    Rate(usize),
    /// Quantiles of the time from a stamp to a mark, ns.
    Latency(usize),
}

/// Messages in flight, first in, first out.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// A task that sends one more waits.
    pub capacity: u64,
    /// The sender tells the kernel that it is about to sleep (kernel: WF_SYNC). Pipes and sockets
    /// do, futexes do not.
    pub sync: bool,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    /// Other tasks fork its tasks; else they are there from the start.
    pub forked: bool,
    pub count: u64,
    /// Bytes that a task uses again and again.
    pub set: u64,
    pub attr: Attr,
    /// First and last CPU of each range. Empty: all CPUs.
    pub cpus: Vec<(u16, u16)>,
    /// Shared by all runs.
    pub program: Arc<Vec<Step>>,
}

/// One of `count` objects of a kind, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    pub first: usize,
    pub count: usize,
    pub at: Expr,
}

/// How the length of a run varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    No,
    /// By up to this many percent, evenly to both sides.
    Even(u64),
    /// Exponentially, as times between independent events do.
    Exponential,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// ns at the reference frequency, alone on a core, with warm caches.
    Run(Expr, Vary),
    Sleep(Expr, Vary),
    /// Sleeps until the next multiple of this many ns.
    Until(Expr),
    /// Sleeps until `period` ns after the last use of a timer of the task; the first time, `period`
    /// ns after `first`. If that has passed, the task goes on, and the current time counts as the
    /// last use.
    Timer {
        at: usize,
        first: u64,
        period: u64,
    },
    /// Runs until this many ns have passed, at any speed.
    Runtime(u64),
    /// Sends a message with a tag.
    Send(Which, usize),
    Receive(Which),
    Lock(Which),
    Unlock(Which),
    /// `Join` waits for a condition from now on. `Block` sleeps until it is signalled, unless that
    /// has happened since.
    Join(usize),
    Block,
    /// Wakes the first task that waits for the condition; true: all of them.
    Signal(usize, bool),
    Barrier(usize),
    Fork(usize, Expr),
    /// Sleeps until one of its children has ended.
    Wait,
    Exit,
    Yield,
    /// Notes the time, which later messages carry.
    Stamp,
    /// Keeps the sender of the last message received.
    Keep,
    Count(usize, Expr),
    Latency(usize),
    Jump(usize),
    /// Begins a loop of this many turns. The counter is the task's.
    Turns(usize, Expr),
    /// Ends a turn. If any are left, goes back to the step.
    Again(usize, usize),
    /// Goes to the step, unless the last message received has this tag.
    Unless(usize, usize),
}

/// Reads a time in ns, a size in bytes or a number, as in the text of a workload.
pub fn number(word: &str) -> Result<(i64, Unit)> {
    let expr = Expr::parse(&[word], &|_| None)?;
    let value = expr.fixed().context("a number was expected")?;
    Ok((value, expr.unit()))
}

/// What every workload has, besides its params.
const TIMES: [&str; 2] = ["warmup", "duration"];

/// Checks the unit of a param of the workload that is set as NAME=VALUE.
pub fn check_unit(text: &str, name: &str, value: &str) -> Result<()> {
    let (value, unit) = number(value)?;
    let of = match TIMES.contains(&name) {
        true => Some(Unit::Time),
        false => parse::params(text)?.get(name).map(|param| param.1),
    };
    ensure!(
        value == 0 || of.is_none_or(|of| of == unit),
        "{} was expected",
        of.unwrap_or_default().expected()
    );
    Ok(())
}

impl Load {
    /// Reads a workload. `settings`: params, `warmup` and `duration` with other values than in the
    /// text.
    pub fn parse(text: &str, settings: &Settings) -> Result<Load> {
        let mut params = settings.clone();
        let [warmup, duration] = TIMES.map(|name| params.remove(name));
        let mut load = parse::parse(text, &params)?;
        if let Some(warmup) = warmup {
            load.warmup = u64::try_from(warmup).context("warmup: a time was expected")?;
        }
        if let Some(duration) = duration {
            let duration = u64::try_from(duration).ok().filter(|ns| *ns > 0);
            load.duration = Some(duration.context("duration: a time above 0 was expected")?);
        }
        load.bounded()
    }

    /// Reads a file of rt-app. Errors: it asks for something that is unknown or not modelled.
    pub fn rtapp(text: &str) -> Result<Load> {
        rtapp::parse(text)?.bounded()
    }

    /// The most timers that a task has.
    pub fn timers(&self) -> usize {
        let own = |s: &Step| match s {
            Step::Timer { at, .. } => at + 1,
            _ => 0,
        };
        let steps = self.groups.iter().flat_map(|g| g.program.iter());
        steps.map(own).max().unwrap_or(0)
    }

    /// How deep loops are nested at most.
    pub fn depth(&self) -> usize {
        let slots = |s: &Step| match s {
            Step::Turns(slot, _) => slot + 1,
            _ => 0,
        };
        let steps = self.groups.iter().flat_map(|g| g.program.iter());
        steps.map(slots).max().unwrap_or(0)
    }

    /// The most tasks at once: those of the start, and children.
    pub fn tasks(&self) -> usize {
        let (forked, start): (Vec<&Group>, Vec<&Group>) =
            self.groups.iter().partition(|g| g.forked);
        let start: u64 = start.iter().map(|g| g.count).sum();
        let children = if forked.is_empty() { 0 } else { CHILDREN };
        start as usize + children
    }
}

impl Group {
    /// The step behind a loop whose body begins at `body`.
    pub fn behind(&self, slot: usize, body: usize) -> usize {
        let mut steps = (body..).zip(&self.program[body..]);
        let end = steps.find(|(_, step)| **step == Step::Again(slot, body));
        end.map_or(self.program.len(), |(at, _)| at + 1)
    }

    /// The CPUs that its tasks may use, one bit each; None: all.
    pub fn mask(&self, words: usize) -> Option<Vec<u64>> {
        let mut mask = vec![0; words];
        let cpus = self.cpus.iter().flat_map(|&(first, last)| first..=last);
        cpus.filter(|&cpu| usize::from(cpu) < words * 64)
            .for_each(|cpu| mask[usize::from(cpu) / 64] |= 1 << (cpu % 64));
        (!self.cpus.is_empty()).then_some(mask)
    }
}
