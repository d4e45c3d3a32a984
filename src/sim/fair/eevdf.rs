// SPDX-License-Identifier: GPL-2.0-only
//! EEVDF as in Linux 6.12 and later: who is owed time is eligible, of these the earliest virtual deadline runs; what is owed is
//! carried over sleep, and who owes stays in the queue while it sleeps until it is quits (delayed dequeue).

use super::queue::{Entity, Queue};
use crate::native::TaskId;

/// The task joins the queue: placed by what it is owed, so that it still is when it counts in the mean (kernel: place_entity()).
pub fn place(q: &Queue, entities: &mut [Entity], task: TaskId) {
    let (mean, load) = (q.mean(entities), q.load(entities));
    let e = &mut entities[task];
    let owed = match load {
        0 => 0,
        load => e.lag * (load + e.weight) / load,
    };
    e.vruntime = mean - owed;
    if std::mem::take(&mut e.relative) {
        e.deadline += e.vruntime;
        return;
    }
    // Those that are there are halfway through their slices, on average.
    let parts = if std::mem::take(&mut e.new) { 2 } else { 1 };
    e.deadline = e.vruntime + e.virtual_ns(e.slice) / parts;
}

/// The task, which is still there, leaves: what it is owed is kept, no more than a slice and a tick either way (kernel:
/// update_entity_lag()).
pub fn leave(q: &mut Queue, entities: &mut [Entity], task: TaskId, tick: u64) {
    let mean = q.mean(entities);
    let e = &mut entities[task];
    let most = e.virtual_ns(e.slice + tick as i64);
    e.lag = (mean - e.vruntime).clamp(-most, most);
    q.base = mean;
}

/// No more was used than is due (kernel: entity_eligible()).
pub fn eligible(q: &Queue, entities: &[Entity], task: TaskId) -> bool {
    let own = entities[task].vruntime;
    let of = |t| {
        let e: &Entity = &entities[t];
        (e.vruntime - own) * e.weight
    };
    q.all().map(of).sum::<i64>() >= 0
}

/// The running task has run on: a slice that is over is followed by the next. True: it is over.
pub fn charged(e: &mut Entity) -> bool {
    if e.vruntime < e.deadline {
        return false;
    }
    e.deadline = e.vruntime + e.virtual_ns(e.slice);
    true
}

/// Who shall run (kernel: pick_eevdf()). Who runs and is eligible goes on to the end of its slice (RUN_TO_PARITY).
pub fn pick(q: &Queue, entities: &[Entity]) -> Option<TaskId> {
    if q.len() <= 1 {
        return q.all().next();
    }
    let current = q.current.filter(|&t| eligible(q, entities, t));
    if let Some(t) = current
        && entities[t].vruntime < entities[t].protected
    {
        return current;
    }
    let able = q.waiting.iter().filter(|&&t| eligible(q, entities, t));
    let best = able.min_by_key(|&&t| entities[t].deadline).copied();
    match (current, best) {
        (Some(t), Some(b)) if entities[b].deadline <= entities[t].deadline => Some(b),
        (Some(t), _) => Some(t),
        // By rounding nobody may be.
        (None, None) => q.waiting.first().copied(),
        (None, best) => best,
    }
}

/// The task wakes, or comes, beside who runs: does it run at once (kernel: check_preempt_wakeup_fair())?
pub fn preempts(q: &Queue, entities: &mut [Entity], current: TaskId, task: TaskId) -> bool {
    // Who asks for less is let in (PREEMPT_SHORT).
    if entities[task].slice < entities[current].slice {
        entities[current].protected = entities[current].vruntime;
    }
    pick(q, entities) == Some(task)
}

/// The running task gives up its slice: the next is behind it (kernel: yield_task_fair()).
pub fn yields(e: &mut Entity) {
    e.protected = e.vruntime;
    e.deadline += e.virtual_ns(e.slice);
}
