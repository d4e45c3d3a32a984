// SPDX-License-Identifier: GPL-2.0-only
//! What can be seen of a run while it happens: by who checks it, by who draws it. Who does not look pays nothing.

use super::sched::{Scheduler, Wake};
use super::task::Task;
use crate::native::TaskId;

/// Why a CPU's task stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Sleeps,
    Ends,
    /// It goes on elsewhere, where it arrives later.
    Moves,
    /// Another runs, or none: it still could.
    GivesWay,
}

/// What happens.
#[allow(dead_code)] // Read by whoever looks; in this build that may be nobody.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// There is a new task, asleep, that may use the CPUs of a mask; the number may be that of one that has ended.
    Begins {
        task: TaskId,
        group: usize,
        mask: usize,
    },
    /// It may use the CPUs of another group.
    Affine {
        task: TaskId,
        group: usize,
        mask: usize,
    },
    /// It has other attributes.
    Attr {
        task: TaskId,
    },
    /// The CPU goes away (hotplug), or comes back and is idle.
    Away {
        cpu: usize,
        away: bool,
    },
    /// The scheduler begins anew: whoever is runnable waits from now.
    Restarts,
    /// A wakeup, or a fork: the scheduler chose a CPU. Without `waker` it is the timer of a sleep.
    Placed {
        task: TaskId,
        cpu: usize,
        wake: Wake,
        waker: Option<TaskId>,
    },
    /// It is on the CPU's run queue, and may run.
    Arrives {
        task: TaskId,
    },
    /// `from`: where it ran last.
    Runs {
        task: TaskId,
        cpu: usize,
        from: Option<usize>,
    },
    Stops {
        task: TaskId,
        cpu: usize,
        why: Stop,
    },
    /// It gives way (kernel: sched_yield()).
    Yields {
        task: TaskId,
    },
    /// What ran on the CPU is accounted for until now, ns.
    Ran {
        task: TaskId,
        cpu: usize,
        ns: u64,
    },
    Busy {
        cpu: usize,
    },
    Idle {
        cpu: usize,
    },
    /// Work in a ns of the CPU from now on, of `speed::FULL`.
    Speed {
        cpu: usize,
        rate: u64,
    },
    /// The warm-up is over.
    Warm,
    /// The run is over.
    Over,
}

/// The engine between two events.
#[allow(dead_code)]
pub struct Sight<'a, S> {
    /// ns
    pub now: u64,
    pub tasks: &'a [Task],
    pub sched: &'a S,
}

/// Who looks. All times are ns since the start of the run.
pub trait Watch {
    fn happens(&mut self, _now: u64, _what: What) {}
    /// All that hangs on an event has happened. Errors end the run.
    fn after<S: Scheduler>(&mut self, _sight: &Sight<'_, S>) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Nobody looks.
impl Watch for () {}

impl<A: Watch, B: Watch> Watch for (A, B) {
    fn happens(&mut self, now: u64, what: What) {
        self.0.happens(now, what);
        self.1.happens(now, what);
    }

    fn after<S: Scheduler>(&mut self, sight: &Sight<'_, S>) -> anyhow::Result<()> {
        self.0.after(sight)?;
        self.1.after(sight)
    }
}

impl<W: Watch> Watch for Option<W> {
    fn happens(&mut self, now: u64, what: What) {
        if let Some(watch) = self {
            watch.happens(now, what);
        }
    }

    fn after<S: Scheduler>(&mut self, sight: &Sight<'_, S>) -> anyhow::Result<()> {
        self.as_mut().map_or(Ok(()), |watch| watch.after(sight))
    }
}
