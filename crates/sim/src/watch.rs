// SPDX-License-Identifier: GPL-2.0-only
//! What observers see of a run while it happens: checks and drawings. Without an observer it costs
//! nothing.

use super::sched::Scheduler;
use super::task::{Task, Wake};
use scx_roost::native::TaskId;

/// Why a task stops running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Sleeps,
    Ends,
    /// It gives way to another task or to none, though it could go on.
    GivesWay,
}

/// An event of a run. An error lists the last ones.
#[expect(dead_code, reason = "Debug alone reads some fields")]
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// A new task, asleep, that may use the CPUs of a mask. Numbers of tasks that have ended are
    /// used again.
    Begins {
        task: TaskId,
        group: usize,
        mask: usize,
    },
    /// The task may use the CPUs of another group.
    Affine {
        task: TaskId,
        group: usize,
        mask: usize,
    },
    /// The task has other attributes.
    Attr {
        task: TaskId,
    },
    /// The CPU goes away (hotplug), or comes back and is idle.
    Away {
        cpu: usize,
        away: bool,
    },
    /// Another scheduler begins. Runnable tasks wait from now.
    Restarts,
    /// A wakeup or fork: the scheduler chose a CPU. `waker` is None for a timer.
    Placed {
        task: TaskId,
        cpu: usize,
        wake: Wake,
        waker: Option<TaskId>,
    },
    /// The task is on the CPU's run queue, and may run.
    Arrives {
        task: TaskId,
    },
    /// `from`: the CPU on which it last ran.
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
    /// The task gives way (kernel: sched_yield()).
    Yields {
        task: TaskId,
    },
    /// The task's run time on the CPU is accounted for until now, ns.
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
    /// The warm-up is over.
    Warm,
    /// The run is over.
    Over,
}

/// The engine between two events.
pub struct Sight<'a, S> {
    /// ns
    pub now: u64,
    pub tasks: &'a [Task],
    pub sched: &'a S,
}

/// An observer. All times are ns since the start of the run.
pub trait Watch {
    fn happens(&mut self, _now: u64, _what: What) {}
    /// Called when an event and all its consequences are done. Errors end the run.
    fn after<S: Scheduler>(&mut self, _sight: &Sight<'_, S>) -> anyhow::Result<()> {
        Ok(())
    }
}

/// No observer.
impl Watch for () {}
