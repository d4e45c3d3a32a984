// SPDX-License-Identifier: GPL-2.0-only
//! Workloads: groups of tasks that run, sleep, and wait for each other. `parse` reads the text, `text` its lines, `expr` its numbers, `ranges` what
//! is plausible, `whole` looks at all of it; the text is described in docs/simulator.md. `rtapp` reads rt-app's files, `json` its JSON.

mod expr;
mod faults;
mod json;
mod parse;
mod ranges;
mod rtapp;
mod text;
mod whole;

pub use expr::{Expr, Known, Unit};
pub use faults::Faults;
pub use ranges::{Range, ranges};

use crate::native::{Attr, SchedPolicy};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;

/// That are there at once, of all groups that are forked.
const CHILDREN: usize = 8192;

/// Params of a load that are set anew, by name.
pub type Settings = BTreeMap<String, i64>;

/// A workload.
#[derive(Clone, Debug)]
pub struct Load {
    pub channels: Vec<Channel>,
    pub locks: usize,
    pub conds: usize,
    /// That threads share.
    pub timers: usize,
    pub barriers: Vec<Barrier>,
    pub groups: Vec<Group>,
    /// ns before anything is measured.
    pub warmup: u64,
    /// ns that are measured; None: until the last task has ended.
    pub duration: Option<u64>,
    pub measure: Measure,
    /// Names of what is counted and timed, by number.
    pub marks: Vec<String>,
    /// Nothing waits for anything: an oracle knows how fast that can be.
    pub parallel: bool,
    pub faults: Faults,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// ns until the last task has ended.
    Time,
    /// So many of that mark a second.
    Rate(usize),
    /// ns, as quantiles, from a stamp to that mark.
    Latency(usize),
}

/// Messages on their way, first come, first served.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    /// Who sends one more waits.
    pub capacity: u64,
    /// Who sends tells the kernel that it is about to sleep (kernel: WF_SYNC): pipes and sockets do, futexes do not.
    pub sync: bool,
    /// It is a pipe of the kernel's: `capacity` is that of its pages.
    pub paged: Option<Paged>,
}

/// Of a pipe as the kernel has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paged {
    /// Messages that one page holds.
    pub of_page: u64,
    /// What a read or a write does under the pipe's mutex, ns at full speed.
    pub hold: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Barrier {
    pub tasks: u64,
    /// ns for which who waits spins before it sleeps.
    pub spin: u64,
}

#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    /// Its tasks are the kernel's: the workload does not wait for their end.
    pub kernel: bool,
    /// Its tasks are forked by others; else they are there from the start.
    pub forked: bool,
    pub count: u64,
    /// Bytes that a task uses again and again.
    pub set: u64,
    /// Percent of a run that waits for memory.
    pub memory: u64,
    pub attr: Attr,
    /// First and last CPU of ranges; empty: all.
    pub cpus: Vec<(u16, u16)>,
    /// ns over which the starts of its tasks are spread.
    pub start: u64,
    pub program: Vec<Step>,
}

/// What a task is given anew, of what `Attr` has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub nice: Option<i32>,
    pub policy: Option<SchedPolicy>,
    pub slice_ns: Option<u64>,
}

impl Change {
    pub fn apply(&self, attr: &mut Attr) {
        attr.nice = self.nice.unwrap_or(attr.nice);
        attr.policy = self.policy.unwrap_or(attr.policy);
        attr.slice_ns = self.slice_ns.or(attr.slice_ns);
    }
}

/// Which timer: one of the task's own, or of those that all share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    Own(usize),
    Shared(usize),
}

/// One of some objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    pub first: usize,
    pub count: usize,
    pub at: Expr,
}

/// How the length of a run differs from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    No,
    /// Percent, evenly to both sides.
    Even(u64),
    /// As times between independent events do.
    Exponential,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// ns at the reference frequency, alone on a core, warm.
    Run(Expr, Vary),
    Sleep(Expr, Vary),
    /// Sleeps to the next multiple of so many ns.
    Until(Expr),
    /// Sleeps until `period` ns after the time of the last use, before any of them `first`. Who comes too late goes on; `relative`: that
    /// time counts as the last use then.
    Timer {
        at: Timer,
        first: u64,
        period: u64,
        relative: bool,
    },
    /// Runs until so many ns have passed, however fast.
    Runtime(u64),
    /// Percent of what it runs from now on that waits for memory.
    Memory(u64),
    Attr(Change),
    /// With a word that says what it is about.
    Send(Which, usize),
    Receive(Which),
    Lock(Which),
    Unlock(Which),
    /// Waits for a condition from now on, and sleeps for it, if it has not been signalled since.
    Join(usize),
    Block,
    /// Whoever waited first for the condition, or all who do.
    Signal(usize, bool),
    Barrier(usize),
    Fork(usize, Expr),
    /// Forks, and sleeps until the child has exec'd or ended.
    Vfork(usize),
    /// Sleeps until one of those it forked has ended.
    Wait,
    Exec,
    Exit,
    Yield,
    /// What is sent next carries the time.
    Stamp,
    /// Who sent what was received last is kept.
    Keep,
    Count(usize, Expr),
    Latency(usize),
    Jump(usize),
    /// A loop of so many turns begins; the counter is the task's.
    Turns(usize, Expr),
    /// One turn less is left; back to the step, if any is.
    Again(usize, usize),
    /// To the step, unless what was received last is about that.
    Unless(usize, usize),
    /// To the step, unless it was the last to come to the barrier.
    UnlessFirst(usize),
}

/// A time in ns, a size in bytes or a number, as in the text of a workload.
pub fn number(word: &str) -> Result<(i64, Unit)> {
    let expr = Expr::parse(&[word], &|_| None)?;
    let value = expr.fixed().context("a number was expected")?;
    Ok((value, expr.unit()))
}

/// Errors: a param of the workload, set as NAME=VALUE, is of another unit.
pub fn check_unit(text: &str, name: &str, value: &str) -> Result<()> {
    let (value, unit) = number(value)?;
    let of = parse::params(text)?.get(name).map(|param| param.1);
    ensure!(
        value == 0 || of.is_none_or(|of| of == unit),
        "{} was expected",
        of.unwrap_or_default().expected()
    );
    Ok(())
}

impl Load {
    /// Reads a workload; `settings` are params that are not what the text says.
    pub fn parse(text: &str, settings: &Settings) -> Result<Load> {
        parse::parse(text, settings)?.bounded()
    }

    /// Reads a file of rt-app. Errors: what it asks for is unknown, or is not modelled.
    pub fn rtapp(text: &str) -> Result<Load> {
        rtapp::parse(text)?.bounded()
    }

    /// Timers of its own that a task has, at most.
    pub fn own_timers(&self) -> usize {
        let own = |s: &Step| match s {
            Step::Timer {
                at: Timer::Own(at), ..
            } => at + 1,
            _ => 0,
        };
        let steps = self.groups.iter().flat_map(|g| &g.program);
        steps.map(own).max().unwrap_or(0)
    }

    /// Loops within loops, at most.
    pub fn depth(&self) -> usize {
        let slots = |s: &Step| match s {
            Step::Turns(slot, _) => slot + 1,
            _ => 0,
        };
        let steps = self.groups.iter().flat_map(|g| &g.program);
        steps.map(slots).max().unwrap_or(0)
    }

    /// As many tasks as there can be at once: those of the start, and children.
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
