// SPDX-License-Identifier: GPL-2.0-only
//! Claims of idle CPUs, and wakeups of several threads in one world.

use super::{Task, Wakeup, World, no_counters, sys};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

impl World {
    /// The CPU switched to something other than the task with the claim: ends a plain claim; `how`
    /// counts it.
    pub fn plain_claim_clear(&mut self, cpu: usize, how: sys::roost_stat) {
        // SAFETY: C checks the CPU.
        self.run(|w| unsafe { sys::roost_plain_claim_clear(w, cpu as i32, how) });
    }

    /// The task was placed on `cpu` as idle; `looked_at` is a time before the CPU was checked, ns.
    pub fn placed_idle(&mut self, task: &mut Task, cpu: usize, looked_at: u64) {
        // SAFETY: the task lives through the call.
        self.run(|w| unsafe {
            sys::roost_placed_idle(w, &mut task.state, cpu as i32, looked_at);
        });
    }

    /// The task runs on `cpu`.
    pub fn placed_runs(&mut self, task: &mut Task, cpu: usize, now: u64) {
        // SAFETY: see `placed_idle`; C checks the CPU.
        self.run(|w| unsafe { sys::roost_placed_runs(w, &mut task.state, cpu as i32, now) });
    }

    /// The task is queued again before it ran, or leaves.
    pub fn placed_nowhere(&mut self, task: &mut Task) {
        // SAFETY: the task lives through the call.
        self.run(|w| unsafe { sys::roost_placed_nowhere(w, &mut task.state) });
    }

    /// A view of the world for one more thread, which places tasks. Each thread needs a waker's CPU
    /// of its own.
    pub fn placer(&self) -> Placer<'_> {
        Placer {
            world: self,
            counters: no_counters(),
        }
    }
}

/// One of several threads that wake tasks at the same time.
pub struct Placer<'a> {
    world: &'a World,
    counters: Vec<u64>,
}

impl Placer<'_> {
    /// As `World::place`, but other threads run between the check of an idle CPU and what follows.
    /// The waker must be a task of this thread.
    pub fn place(&mut self, wakeup: Wakeup<'_>) -> sys::placement {
        let mut port = wakeup.port();
        let raw = wakeup.raw();
        let task = &raw mut wakeup.task.state;
        let waker = wakeup.waker.map_or(ptr::null_mut(), |w| &raw mut w.state);
        let mut world = self.world.raw(self.counters.as_mut_ptr());
        world.yields = true;
        // SAFETY: the world and the tasks live through the call; C changes shared state by atomics
        // only.
        unsafe { sys::roost_place(&mut world, &mut port, task, waker, &raw) }
    }

    /// Puts a task on the CPU. Returns how many were there before.
    pub fn insert(&mut self, cpu: usize) -> u32 {
        let (idle, nr_running) = self.view(cpu);
        idle.store(0, Ordering::SeqCst);
        nr_running.fetch_add(1, Ordering::SeqCst)
    }

    /// The task was placed on `cpu` at `now`, and runs.
    pub fn run(&mut self, task: &mut Task, cpu: usize, now: u64) {
        let mut world = self.world.raw(self.counters.as_mut_ptr());
        // SAFETY: C checks the CPU; the task is this thread's, and claims change by atomics only.
        unsafe {
            sys::roost_placed_idle(&mut world, &mut task.state, cpu as i32, now);
            sys::roost_placed_runs(&mut world, &mut task.state, cpu as i32, now);
        }
    }

    /// The CPU is idle again.
    pub fn drain(&mut self, cpu: usize) {
        let (idle, nr_running) = self.view(cpu);
        nr_running.store(0, Ordering::SeqCst);
        idle.store(1, Ordering::SeqCst);
    }

    /// The value of this thread's counter, over all arms.
    pub fn count(&self, stat: sys::roost_stat) -> u64 {
        let rows = self.counters.chunks(sys::ROOST_NR_STATS as usize);
        rows.map(|row| row[stat as usize]).sum()
    }

    fn view(&self, cpu: usize) -> (&AtomicU32, &AtomicU32) {
        self.world.check(cpu);
        // SAFETY: the CPU exists, and its view lives as long as the world; Rust changes it by
        // atomics, C only reads it.
        unsafe {
            let view = self.world.views.ptr().add(cpu);
            (
                AtomicU32::from_ptr(&raw mut (*view).idle),
                AtomicU32::from_ptr(&raw mut (*view).nr_running),
            )
        }
    }
}
