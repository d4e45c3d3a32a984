// SPDX-License-Identifier: GPL-2.0-only
//! A CPU's run queue as the kernel's fair class keeps it: who runs, who waits, their virtual times. `eevdf` and `cfs` are the rules
//! over it. Queues are short, so means and minima are computed anew each time and nothing can drift.

use super::idle::{Ends, Idle};
use crate::native::{Attr, SchedPolicy, TaskId, nice_weight, sys};

/// The kernel's weight of nice 0. Virtual times are ns at this weight.
pub const NICE0: i64 = 1024;

/// Weights of the policy are so many times the kernel's.
const FINER: u32 = sys::NICE0_WEIGHT / NICE0 as u32;

/// Of SCHED_IDLE (kernel: WEIGHT_IDLEPRIO).
const IDLE: i64 = (sys::IDLE_WEIGHT / FINER) as i64;

/// The weight of a nice level, -20..=19 (kernel: sched_prio_to_weight[]).
pub fn weight(nice: i32) -> i64 {
    i64::from(nice_weight(nice) / FINER)
}

/// Of a task with these settings.
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
    /// EEVDF: virtual; while `relative`, from vruntime on.
    pub deadline: i64,
    pub relative: bool,
    /// EEVDF: what it was owed when it left, virtual.
    pub lag: i64,
    /// CFS: vruntime counts from the base of the queue it left, not from 0.
    pub based: bool,
    /// It has never been in a queue.
    pub new: bool,
    /// ns that it asks for at a time.
    pub slice: i64,
    /// EEVDF: it sleeps, but stays until it has waited for what it owes (kernel: sched_delayed).
    pub delayed: bool,
    /// EEVDF: it runs on until then, if it stays eligible, virtual (kernel: vprot).
    pub protected: i64,
    /// ns: when it last ran; 0: it has not since it came to its CPU.
    pub ran_at: u64,
    /// ns that it has run since it was picked, and before that since the start.
    pub picked_ran: i64,
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
            based: false,
            new: true,
            slice: slice as i64,
            delayed: false,
            protected: 0,
            ran_at: 0,
            picked_ran: 0,
        }
    }

    /// Another weight: what is owed and what is left of the slice are as much time as before (kernel: reweight_entity()).
    pub fn reweighs(&mut self, weight: i64) {
        let scaled = |virtual_ns: i64| virtual_ns * self.weight / weight;
        self.lag = scaled(self.lag);
        self.deadline = match self.relative {
            true => scaled(self.deadline),
            false => self.vruntime + scaled(self.deadline - self.vruntime),
        };
        self.weight = weight;
    }

    /// ns as virtual time of this task.
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
    /// In the order in which they came; who ran last is last.
    pub waiting: Vec<TaskId>,
    /// Virtual: where who comes to an empty queue begins; CFS: never behind the least of the queue for long (kernel: min_vruntime).
    pub base: i64,
    /// ns: until then the running task is charged.
    pub charged: u64,
    /// It is told to pick anew already.
    pub told: bool,
    /// The running task shall go to that CPU.
    pub push: Option<usize>,
    /// Ticks in a row at which all who waited here were hot, and a CPU was idle (kernel: sd->nr_balance_failed).
    pub failed: u32,
    /// EEVDF: it is picked before others as long as it is eligible (kernel: the next buddy).
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

    /// All that count: who runs and who waits.
    pub fn all(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.current.iter().chain(&self.waiting).copied()
    }

    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.current.is_some())
    }

    pub fn load(&self, entities: &[Entity]) -> i64 {
        self.all().map(|t| entities[t].weight).sum()
    }

    /// The weighted mean of virtual times (kernel: avg_vruntime()).
    pub fn mean(&self, entities: &[Entity]) -> i64 {
        let (sum, load) = self.all().fold((0, 0), |(sum, load), t| {
            let e = &entities[t];
            (sum + (e.vruntime - self.base) * e.weight, load + e.weight)
        });
        if load == 0 {
            self.base
        } else {
            self.base + i64::div_euclid(sum, load)
        }
    }

    /// The least virtual time of all.
    pub fn least(&self, entities: &[Entity]) -> Option<i64> {
        self.all().map(|t| entities[t].vruntime).min()
    }

    pub fn remove(&mut self, task: TaskId) {
        let at = self.waiting.iter().position(|&t| t == task);
        self.waiting.remove(at.expect("who is taken waits here"));
        self.next = self.next.filter(|&next| next != task);
    }
}
