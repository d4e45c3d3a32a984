// SPDX-License-Identifier: GPL-2.0-only
//! CFS as in Linux 4.15 to 6.5: the task with the least virtual time runs, sleepers are credited
//! half a latency, and each task runs for its part of the latency. Without buddies.

use super::queue::{Entity, Queue};
use crate::native::TaskId;
use crate::sim::params::Params;

/// With more tasks than this, the latency grows (kernel: sched_nr_latency).
const MANY: usize = 8;

/// ns; see params.tsv.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub latency: i64,
    pub min_granularity: i64,
    pub wakeup_granularity: i64,
}

impl Times {
    pub fn new(params: &Params) -> Times {
        let ns = |name| params.ns(name) as i64;
        Times {
            latency: ns("cfs_latency"),
            min_granularity: ns("cfs_min_granularity"),
            wakeup_granularity: ns("cfs_wakeup_granularity"),
        }
    }

    /// The task's part of the latency among `tasks` of that load (kernel: sched_slice()).
    fn slice(&self, tasks: usize, load: i64, weight: i64) -> i64 {
        let period = match tasks {
            0..=MANY => self.latency,
            _ => tasks as i64 * self.min_granularity,
        };
        period * weight / load.max(1)
    }
}

/// Kernel: place_entity(). The task is not in the queue yet.
pub fn place(q: &Queue, entities: &mut [Entity], task: TaskId, times: &Times, wakes: bool) {
    let (tasks, load) = (q.len() + 1, q.load(entities) + entities[task].weight);
    let e = &mut entities[task];
    if std::mem::take(&mut e.based) {
        e.vruntime += q.base;
    }
    if std::mem::take(&mut e.new) {
        let slice = times.slice(tasks, load, e.weight);
        e.vruntime = q.base + e.vruntime.max(e.virtual_ns(slice));
    } else if wakes {
        e.vruntime = e.vruntime.max(q.base - times.latency / 2);
    }
}

/// A new task is placed no earlier than its parent, which runs there (kernel: task_fork_fair()).
pub fn forks(q: &Queue, entities: &mut [Entity], task: TaskId) {
    let ahead = q.current.map(|parent| entities[parent].vruntime - q.base);
    entities[task].vruntime = ahead.unwrap_or(0);
}

/// The task, which is in no queue of this CPU, goes to another CPU. Its time then counts from the
/// base there.
pub fn rebase(q: &Queue, e: &mut Entity) {
    if !e.new && !e.based {
        e.vruntime -= q.base;
        e.based = true;
    }
}

/// The base never goes back (kernel: update_min_vruntime()).
pub fn follow(q: &mut Queue, entities: &[Entity]) {
    if let Some(least) = q.least(entities) {
        q.base = q.base.max(least);
    }
}

/// True if the task has used its part of the latency, or is too far ahead of the next (kernel:
/// check_preempt_tick()). Asked at ticks.
pub fn slice_over(q: &Queue, entities: &[Entity], times: &Times) -> bool {
    let Some(task) = q.current else {
        return false;
    };
    let e = &entities[task];
    let ideal = times.slice(q.len(), q.load(entities), e.weight);
    if q.waiting.is_empty() || e.picked_ran > ideal {
        return !q.waiting.is_empty();
    }
    let least = q.waiting.iter().map(|&t| entities[t].vruntime).min();
    e.picked_ran >= times.min_granularity && least.is_some_and(|v| e.vruntime - v > ideal)
}

pub fn pick(q: &Queue, entities: &[Entity]) -> Option<TaskId> {
    q.all().min_by_key(|&t| entities[t].vruntime)
}

/// Kernel: wakeup_preempt_entity().
pub fn preempts(entities: &[Entity], current: TaskId, task: TaskId, times: &Times) -> bool {
    let e = &entities[task];
    entities[current].vruntime - e.vruntime > e.virtual_ns(times.wakeup_granularity)
}
