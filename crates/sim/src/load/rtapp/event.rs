// SPDX-License-Identifier: GPL-2.0-only
//! The events of a phase, as steps of a task's program.

use super::{Names, Reader, Task, US, int, known, object, positive, string, text};
use crate::load::json::Node;
use crate::load::{Expr, Step, Timer, Vary, Which};
use anyhow::{Result, bail};

/// What memset() writes, bytes per ns; and the time of a write() to /dev/null, ns.
const MEMSET: i64 = 10;
const WRITE_NS: i64 = 300;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Lock,
    Unlock,
    Wait,
    Signal,
    Broad,
    Sync,
    Sleep,
    Runtime,
    Run,
    Timer,
    Suspend,
    Resume,
    Memrun,
    Mem,
    Iorun,
    Yield,
    Barrier,
    Fork,
    SemPost,
    SemWait,
}

/// A key is the first of them whose name it begins with.
pub(super) const EVENTS: [(&str, Event); 20] = [
    ("lock", Event::Lock),
    ("unlock", Event::Unlock),
    ("wait", Event::Wait),
    ("signal", Event::Signal),
    ("broad", Event::Broad),
    ("sync", Event::Sync),
    ("sleep", Event::Sleep),
    ("runtime", Event::Runtime),
    ("run", Event::Run),
    ("timer", Event::Timer),
    ("suspend", Event::Suspend),
    ("resume", Event::Resume),
    ("memrun", Event::Memrun),
    ("mem", Event::Mem),
    ("iorun", Event::Iorun),
    ("yield", Event::Yield),
    ("barrier", Event::Barrier),
    ("fork", Event::Fork),
    ("sem_post", Event::SemPost),
    ("sem_wait", Event::SemWait),
];

impl Event {
    /// The event that a key stands for.
    pub(super) fn of(key: &str) -> Option<Event> {
        let found = EVENTS.iter().find(|(name, _)| key.starts_with(name));
        found.map(|(_, event)| *event)
    }
}

/// The lock or semaphore of that number.
fn one(number: usize) -> Which {
    Which {
        first: number,
        count: 1,
        at: Expr::number(0),
    }
}

fn run(ns: i64) -> Step {
    Step::Run(Expr::number(ns), Vary::No)
}

/// The number of the thing that the event names.
fn named(names: &mut Names, node: &Node) -> Result<usize> {
    Ok(names.number(string(node)?))
}

impl Reader {
    /// Adds the steps of an event to the task's program.
    pub(super) fn event(&mut self, task: &mut Task, event: Event, node: &Node) -> Result<()> {
        let steps = match event {
            Event::Run => vec![run(positive(node)? * US)],
            Event::Runtime => vec![Step::Runtime(positive(node)? as u64 * US as u64)],
            Event::Sleep => vec![Step::Sleep(Expr::number(positive(node)? * US), Vary::No)],
            Event::Timer => vec![self.timer(task, node)?],
            Event::Yield => vec![Step::Yield],
            Event::Mem => vec![
                Step::Memory(100),
                run(positive(node)? / MEMSET),
                Step::Memory(0),
            ],
            Event::Iorun => vec![self.iorun(node)?],
            Event::Memrun => bail!("memrun is not modelled"),
            Event::Lock => {
                task.held.push(string(node)?.to_string());
                vec![Step::Lock(one(named(&mut self.locks, node)?))]
            }
            Event::Unlock => {
                let name = string(node)?;
                task.held.retain(|held| held != name);
                vec![Step::Unlock(one(self.locks.number(name)))]
            }
            Event::Wait => self.waits(node)?.0,
            Event::Sync => self.sync(task, node)?,
            Event::Signal => vec![Step::Signal(named(&mut self.conds, node)?, false)],
            Event::Broad | Event::Resume => {
                vec![Step::Signal(named(&mut self.conds, node)?, true)]
            }
            Event::Suspend => vec![Step::Join(self.conds.number(task.name)), Step::Block],
            Event::SemPost => vec![Step::Send(one(named(&mut self.sems, node)?), usize::MAX)],
            Event::SemWait => vec![Step::Receive(one(named(&mut self.sems, node)?))],
            Event::Barrier => vec![self.barrier(task, string(node)?)],
            Event::Fork => {
                let forked = named(&mut self.forks, node)?;
                vec![Step::Fork(forked, Expr::number(1))]
            }
        };
        task.program.extend(steps);
        Ok(())
    }

    /// Writes to /dev/null, a buffer at a time.
    fn iorun(&self, node: &Node) -> Result<Step> {
        if self.device {
            bail!("only writing to /dev/null is modelled, no other device");
        }
        let writes = (positive(node)? + self.buffer - 1) / self.buffer;
        Ok(run(writes * WRITE_NS))
    }

    /// A timer whose name begins with "unique" is the thread's own.
    fn timer(&mut self, task: &mut Task, node: &Node) -> Result<Step> {
        let members = object(node)?;
        known(members, &["ref", "period", "mode"], &[])?;
        let name = text(members, "ref")?.unwrap_or("unknown");
        let relative = !self.absolute.iter().any(|a| a == name);
        let period = int(members, "period")?.unwrap_or(0).max(0);
        let at = match name.starts_with("unique") {
            true => Timer::Own(task.timers.number(name)),
            false => Timer::Shared(self.timers.number(name)),
        };
        Ok(Step::Timer {
            at,
            first: task.delay as u64,
            period: (period * US) as u64,
            relative,
        })
    }

    /// pthread_cond_wait(), with the lock that it is called with.
    fn waits(&mut self, node: &Node) -> Result<(Vec<Step>, usize, String)> {
        let members = object(node)?;
        known(members, &["ref", "mutex"], &[])?;
        let cond = self
            .conds
            .number(text(members, "ref")?.unwrap_or("unknown"));
        let mutex = text(members, "mutex")?.unwrap_or("unknown");
        let lock = one(self.locks.number(mutex));
        let steps = vec![
            Step::Join(cond),
            Step::Unlock(lock.clone()),
            Step::Block,
            Step::Lock(lock),
        ];
        Ok((steps, cond, mutex.to_string()))
    }

    /// If the task holds the lock, it keeps it. Else the lock is taken for this event alone, as in
    /// the tutorial's text, but not in its examples.
    fn sync(&mut self, task: &Task, node: &Node) -> Result<Vec<Step>> {
        let (waits, cond, mutex) = self.waits(node)?;
        let lock = waits.last().cloned();
        let mut steps = vec![Step::Signal(cond, false)];
        steps.extend(waits);
        if let Some(Step::Lock(lock)) = lock.filter(|_| !task.held.contains(&mutex)) {
            steps.insert(0, Step::Lock(lock.clone()));
            steps.push(Step::Unlock(lock));
        }
        Ok(steps)
    }

    fn barrier(&mut self, task: &Task, name: &str) -> Step {
        let number = self.barriers.len();
        let (number, tasks) = self.barriers.entry(name.to_string()).or_insert((number, 0));
        *tasks += task.instances;
        Step::Barrier(*number)
    }
}
