// SPDX-License-Identifier: GPL-2.0-only
//! EEVDF as in Linux 7.2. A task that is owed time is eligible; of these the one with the earliest
//! virtual deadline runs. What a task is owed is carried over sleep. A task that owes time stays
//! queued while it sleeps until it owes nothing (delayed dequeue).

use super::queue::{Entity, Queue};
use scx_roost::native::TaskId;

/// The task joins the queue. It is placed so that it is owed the same time once it counts in the
/// mean (kernel: place_entity()).
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
    // A new task begins with half a slice: the others are halfway through theirs, on average.
    let parts = if std::mem::take(&mut e.new) { 2 } else { 1 };
    e.deadline = e.vruntime + e.virtual_ns(e.slice) / parts;
}

/// The task, which is still in the queue, leaves it. What it is owed is kept.
pub fn leave(q: &mut Queue, entities: &mut [Entity], task: TaskId, tick: u64) {
    keep_lag(q, entities, task, tick);
    q.base = q.mean(entities);
}

/// Keeps what the task is owed or owes, at most the longest slice of the queue and a tick. A
/// delayed task gains nothing, and owes no more than before (kernel: update_entity_lag()). True:
/// its virtual time does not match that any more.
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

/// True if the task has used no more than its share (kernel: entity_eligible()).
pub fn eligible(q: &Queue, entities: &[Entity], task: TaskId) -> bool {
    eligible_in(q, entities)(task)
}

/// The same for many tasks.
fn eligible_in(q: &Queue, entities: &[Entity]) -> impl Fn(TaskId) -> bool {
    let (sum, load) = q.sums(entities);
    move |task| sum >= (entities[task].vruntime - q.base) * load
}

/// The running task has run on. If its slice is over, the next one begins. True: it was over.
pub fn charged(e: &mut Entity) -> bool {
    if e.vruntime < e.deadline {
        return false;
    }
    e.deadline = e.vruntime + e.virtual_ns(e.slice);
    true
}

/// The task begins to run. It is protected to the end of its slice while it stays eligible; beside
/// shorter slices, only until it is ahead of the others (kernel: set_protect_slice()).
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

/// Chooses the task to run (kernel: pick_eevdf()). A running task that is eligible goes on while it
/// is protected (RUN_TO_PARITY).
pub fn pick(q: &Queue, entities: &[Entity], protect: bool) -> Option<TaskId> {
    if q.len() <= 1 {
        return q.all().next();
    }
    let eligible = eligible_in(q, entities);
    if let Some(next) = q.next.filter(|&t| protect && eligible(t)) {
        return Some(next);
    }
    let current = q.current.filter(|&t| eligible(t));
    if let Some(t) = current
        && protect
        && entities[t].vruntime < entities[t].protected
    {
        return current;
    }
    let able = q.waiting.iter().filter(|&&t| eligible(t));
    let best = able.min_by_key(|&&t| entities[t].deadline).copied();
    match (current, best) {
        (Some(t), Some(b)) if entities[b].deadline <= entities[t].deadline => Some(b),
        (Some(t), _) => Some(t),
        // Because of rounding, it may be that no task is eligible.
        (None, None) => q.waiting.first().copied(),
        (None, best) => best,
    }
}

/// True if a task that wakes or comes preempts the running one; else it only shortens its
/// protection (kernel: wakeup_preempt_fair()). With a shorter slice than that, it preempts if it is
/// eligible, and becomes the next buddy (PREEMPT_SHORT). `fork`: it is new.
pub fn preempts(
    q: &mut Queue,
    entities: &mut [Entity],
    current: TaskId,
    task: TaskId,
    fork: bool,
) -> bool {
    if entities[task].slice < entities[current].slice {
        return short_preempts(q, entities, task);
    }
    // The place of a forked task alone interrupts nothing.
    !fork && pick(q, entities, true) == Some(task)
}

fn short_preempts(q: &mut Queue, entities: &[Entity], task: TaskId) -> bool {
    let picked = pick(q, entities, false) == Some(task);
    let goes_first = picked || eligible(q, entities, task);
    let shorter = |next: TaskId| entities[next].slice < entities[task].slice;
    if goes_first && !q.next.is_some_and(shorter) {
        q.next = Some(task);
    }
    goes_first
}

/// Shortens the protection of the running task after another has come. If that goes first, none is
/// left. Else at most the shortest slice is left, from its virtual time or from the mean (kernel:
/// cancel_protect_slice(), update_protect_slice()).
pub fn protects_less(q: &Queue, entities: &mut [Entity], current: TaskId, goes_first: bool) {
    let (mean, slice) = (q.mean(entities), shortest(q, entities));
    let e = &mut entities[current];
    let until = match goes_first {
        true => e.vruntime,
        false => e.vruntime.min(mean) + e.virtual_ns(slice),
    };
    e.protected = e.protected.min(until);
}

/// The running task gives up the rest of its slice, if it is eligible and not alone (kernel:
/// yield_task_fair()).
pub fn yields(q: &Queue, entities: &mut [Entity], task: TaskId) {
    if q.len() > 1 && eligible(q, entities, task) {
        let e = &mut entities[task];
        e.vruntime = e.deadline;
        e.deadline += e.virtual_ns(e.slice);
    }
}

#[cfg(test)]
mod tests;
