// SPDX-License-Identifier: GPL-2.0-only
//! EEVDF as in Linux 7.2: who is owed time is eligible, of these the earliest virtual deadline runs; what is owed is
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

/// The task, which is still there, leaves: what it is owed is kept.
pub fn leave(q: &mut Queue, entities: &mut [Entity], task: TaskId, tick: u64) {
    keep_lag(q, entities, task, tick);
    q.base = q.mean(entities);
}

/// Keeps what the task is owed: no more than the longest slice of the queue and a tick either way; who sleeps and stays gains nothing, and
/// owes no more than before (kernel: update_entity_lag()). True: that is not where it stands.
pub fn keep_lag(q: &Queue, entities: &mut [Entity], task: TaskId, tick: u64) -> bool {
    let mean = q.mean(entities);
    let longest = q.all().map(|t| entities[t].slice).max();
    let e = &mut entities[task];
    let most = e.virtual_ns(longest.unwrap_or(e.slice) + tick as i64);
    let mut lag = (mean - e.vruntime).clamp(-most, most);
    if e.delayed {
        lag = lag.max(e.lag).min(0);
    }
    e.lag = lag;
    mean - lag != e.vruntime
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

/// The task begins to run: it goes on to the end of its slice if it stays eligible; beside shorter slices, until it is not (kernel:
/// set_protect_slice()).
pub fn protect(q: &Queue, entities: &mut [Entity], task: TaskId) {
    let mut until = entities[task].deadline;
    if shortest(q, entities) < entities[task].slice {
        let others = || q.waiting.iter().map(|&t| &entities[t]);
        let load: i64 = others().map(|e| e.weight).sum();
        let sum: i64 = others().map(|e| (e.vruntime - q.base) * e.weight).sum();
        let mean = q.base + sum.checked_div_euclid(load).unwrap_or(0);
        until = until.min(mean + 1);
    }
    entities[task].protected = until;
}

fn shortest(q: &Queue, entities: &[Entity]) -> i64 {
    let slices = q.all().map(|t| entities[t].slice);
    slices.min().unwrap_or(i64::MAX)
}

/// Who shall run (kernel: pick_eevdf()). Who runs and is eligible goes on as long as it is protected (RUN_TO_PARITY).
pub fn pick(q: &Queue, entities: &[Entity], protect: bool) -> Option<TaskId> {
    if q.len() <= 1 {
        return q.all().next();
    }
    if let Some(next) = q.next.filter(|&t| protect && eligible(q, entities, t)) {
        return Some(next);
    }
    let current = q.current.filter(|&t| eligible(q, entities, t));
    if let Some(t) = current
        && protect
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

/// The task wakes, or comes, beside who runs: does it run at once (kernel: wakeup_preempt_fair())? Who asks for less than who runs does
/// if it is eligible, whoever else waits, and then is the next (PREEMPT_SHORT).
pub fn preempts(
    q: &mut Queue,
    entities: &mut [Entity],
    current: TaskId,
    task: TaskId,
    fork: bool,
) -> bool {
    let less = entities[task].slice < entities[current].slice;
    let picked = pick(q, entities, !less) == Some(task);
    // A fork interrupts nobody by its place alone.
    if !less {
        return picked && !fork;
    }
    let goes_first = picked || eligible(q, entities, task);
    let shorter = |next: TaskId| entities[next].slice < entities[task].slice;
    if goes_first && !q.next.is_some_and(shorter) {
        q.next = Some(task);
    }
    goes_first
}

/// What protects who runs after another has come: nothing, if that goes first; else no more than the shortest slice from where it is, or
/// from the mean (kernel: cancel_protect_slice(), update_protect_slice()).
pub fn protects_less(q: &Queue, entities: &mut [Entity], current: TaskId, goes_first: bool) {
    let (mean, slice) = (q.mean(entities), shortest(q, entities));
    let e = &mut entities[current];
    let until = match goes_first {
        true => e.vruntime,
        false => e.vruntime.min(mean) + e.virtual_ns(slice),
    };
    e.protected = e.protected.min(until);
}

/// The running task gives up the rest of its slice, if it is owed it and not alone (kernel: yield_task_fair()).
pub fn yields(q: &Queue, entities: &mut [Entity], task: TaskId) {
    if q.len() > 1 && eligible(q, entities, task) {
        let e = &mut entities[task];
        e.vruntime = e.deadline;
        e.deadline += e.virtual_ns(e.slice);
    }
}

#[cfg(test)]
mod tests;
