// SPDX-License-Identifier: GPL-2.0-only
//! A CPU's run queue as the kernel's fair class keeps it: the running task, the waiting tasks,
//! their virtual times. `eevdf` has the rules over it. Queues are short, so means and
//! minima are computed again each time and nothing can drift.

use super::idle::{Ends, Idle};
use scx_roost::native::{Attr, SchedPolicy, TaskId, nice_weight, sys};

/// The kernel's weight of nice 0. Virtual times are ns at this weight.
pub const NICE0: i64 = 1024;

/// The policy's weights are this many times the kernel's.
const FINER: u32 = sys::NICE0_WEIGHT / NICE0 as u32;

/// The weight of SCHED_IDLE (kernel: WEIGHT_IDLEPRIO).
const IDLE: i64 = (sys::IDLE_WEIGHT / FINER) as i64;

/// The weight of a nice level, -20..=19 (kernel: sched_prio_to_weight[]).
pub fn weight(nice: i32) -> i64 {
    i64::from(nice_weight(nice) / FINER)
}

/// The weight of a task with these attributes.
pub fn weight_of(attr: &Attr) -> i64 {
    match attr.policy {
        SchedPolicy::Idle => IDLE,
        _ => weight(attr.nice),
    }
}

/// What a queue knows of a task (kernel: struct sched_entity).
#[derive(Clone, Debug)]
pub struct Entity {
    pub policy: SchedPolicy,
    pub weight: i64,
    pub vruntime: i64,
    /// EEVDF: virtual. While `relative`, it counts from vruntime.
    pub deadline: i64,
    pub relative: bool,
    /// EEVDF: the time that it was owed when it left, virtual.
    pub lag: i64,
    /// It has never been in a queue.
    pub new: bool,
    /// The slice that it asks for, ns.
    pub slice: i64,
    /// EEVDF: it sleeps, but stays queued until it has waited for what it owes (kernel:
    /// sched_delayed).
    pub delayed: bool,
    /// EEVDF: it runs on until this virtual time while it stays eligible (kernel: vprot).
    pub protected: i64,
    /// When it last ran, ns. 0: not since it came to its CPU.
    pub ran_at: u64,
}

impl Entity {
    pub fn new(slice: u64) -> Entity {
        Entity {
            policy: SchedPolicy::Other,
            weight: NICE0,
            vruntime: 0,
            deadline: 0,
            relative: false,
            lag: 0,
            new: true,
            slice: slice as i64,
            delayed: false,
            protected: 0,
            ran_at: 0,
        }
    }

    /// Sets another weight. The time that is owed and the time left of the slice stay the same
    /// (kernel: reweight_entity()).
    pub fn reweighs(&mut self, weight: i64) {
        let scaled = |virtual_ns: i64| virtual_ns * self.weight / weight;
        self.lag = scaled(self.lag);
        self.deadline = match self.relative {
            true => scaled(self.deadline),
            false => self.vruntime + scaled(self.deadline - self.vruntime),
        };
        self.weight = weight;
    }

    /// Converts ns to virtual time of this task.
    pub fn virtual_ns(&self, ns: i64) -> i64 {
        if self.weight == NICE0 {
            ns
        } else {
            ns * NICE0 / self.weight
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Queue {
    pub current: Option<TaskId>,
    /// In order of arrival. A task that gives way is last.
    pub waiting: Vec<TaskId>,
    /// Virtual: where a task that comes to an empty queue begins. CFS: follows the least of the
    /// queue, and never goes back (kernel: min_vruntime).
    pub base: i64,
    /// The running task is charged up to this time, ns.
    pub charged: u64,
    /// The CPU has been told to pick again already.
    pub told: bool,
    /// The CPU that the running task should go to.
    pub push: Option<usize>,
    /// EEVDF: picked before others while it is eligible (kernel: the next buddy).
    pub next: Option<TaskId>,
    pub idle: Idle,
}

impl Queue {
    pub fn new(ends: Ends) -> Queue {
        Queue {
            idle: Idle::new(ends),
            ..Queue::default()
        }
    }

    /// The running task and the waiting tasks.
    pub fn all(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.current.iter().chain(&self.waiting).copied()
    }

    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.current.is_some())
    }

    pub fn load(&self, entities: &[Entity]) -> i64 {
        self.all().map(|t| entities[t].weight).sum()
    }

    /// The weighted sum of virtual times, from the base on, and the sum of weights.
    pub fn sums(&self, entities: &[Entity]) -> (i64, i64) {
        self.all().fold((0, 0), |(sum, load), t| {
            let e = &entities[t];
            (sum + (e.vruntime - self.base) * e.weight, load + e.weight)
        })
    }

    /// The weighted mean of virtual times (kernel: avg_vruntime()).
    pub fn mean(&self, entities: &[Entity]) -> i64 {
        let (sum, load) = self.sums(entities);
        if load == 0 {
            self.base
        } else {
            self.base + i64::div_euclid(sum, load)
        }
    }

    pub fn remove(&mut self, task: TaskId) {
        let at = self.waiting.iter().position(|&t| t == task);
        self.waiting.remove(at.expect("who is taken waits here"));
        self.next = self.next.filter(|&next| next != task);
    }
}
