// SPDX-License-Identifier: GPL-2.0-only
//! For a caller with queues of its own, instead of enqueue and dispatch: keeps what placement
//! needs.

use super::{Kernel, TaskId, sys};

impl Kernel {
    /// The task became runnable, or was moved, and counts on its CPU from now.
    pub fn joins(&mut self, task: TaskId, arrival: sys::arrival) {
        let (cpu, port) = (self.cpu_of(task), self.port(task));
        let world = self.call(cpu, None);
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_joins(world, port, arrival) }
    }

    /// The CPU has nothing to run.
    pub fn idles(&mut self, cpu: usize) {
        let world = self.call(cpu, None);
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_idles(world, cpu as i32) }
    }

    /// The part of a running task's tick that placement depends on.
    pub fn tick_signals(&mut self, cpu: usize, task: TaskId) {
        let port = self.port(task);
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_tick_signals(world, port) }
    }

    /// The waiting task's delay is over: the CPU to which it moves, if it does.
    pub fn delay_over(&mut self, task: TaskId) -> Option<usize> {
        let (cpu, port) = (self.cpu_of(task), self.port(task));
        let world = self.call(cpu, None);
        // SAFETY: see `select_cpu`.
        let to = unsafe { sys::roost_delay_over(world, port) };
        usize::try_from(to).ok()
    }
}
