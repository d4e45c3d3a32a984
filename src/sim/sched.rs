// SPDX-License-Identifier: GPL-2.0-only
//! What the engine asks of a scheduler, whichever it is.

use crate::native::sys::timer_kind;
use crate::native::{Attr, TaskId};

/// A wakeup or fork.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    /// On which CPU it happens, by the task that runs there.
    pub cpu: usize,
    /// The waker said that it is about to sleep.
    pub sync: bool,
    pub fork: bool,
}

/// What a scheduler wants of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The CPU shall pick anew.
    Reschedule(usize),
    /// Started anew, if it was started.
    Timer {
        which: timer_kind,
        cpu: usize,
        ns: u64,
    },
}

/// Each call is an instant; what it wants goes into `orders`. A CPU that runs nothing has nothing runnable in its hand.
pub trait Scheduler {
    /// The time of what follows, ns.
    fn set_now(&mut self, now: u64);
    /// A task that may use the CPUs of a mask; it has run nowhere, and counts as on `cpu`.
    fn begin(&mut self, task: TaskId, mask: usize, cpu: usize);
    /// It is given a nice level, a policy, a slice; right after its beginning, and perhaps again.
    fn set_attr(&mut self, task: TaskId, attr: &Attr);
    /// Which CPU shall the task, which wakes or is new, run on?
    fn place(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>) -> usize;
    /// It is there.
    fn arrive(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>);
    /// The running task has run for so long, until now.
    fn ran(&mut self, task: TaskId, ns: u64);
    /// The running task gives way (kernel: sched_yield()); the CPU picks next.
    fn yields(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// The running task begins a new program: on which CPU (kernel: sched_exec())? If on another, this one picks next, and the
    /// task arrives there.
    fn exec(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) -> usize;
    /// The running task sleeps; the CPU picks next.
    fn sleeps(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// The same for the last time.
    fn ends(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// Who runs on the CPU now.
    fn pick(&mut self, cpu: usize, orders: &mut Vec<Order>) -> Option<TaskId>;
    /// Every tick of a CPU that runs a task.
    fn tick(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// What the policy has counted, as the rows of stats.tbl.h; nothing, if it is none of ours.
    fn counters(&self) -> Vec<u64> {
        Vec::new()
    }
    /// A timer that it started.
    fn timer(&mut self, cpu: usize, which: timer_kind, orders: &mut Vec<Order>);
}
