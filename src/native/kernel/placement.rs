// SPDX-License-Identifier: GPL-2.0-only
//! For who queues by rules of its own, which come in the place of enqueue and dispatch: what placement asks for is kept.

use super::{Kernel, TaskId, sys};

impl Kernel {
    /// The task is runnable, or was moved, and counts on its CPU from now.
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

    /// A tick of a running task, as far as placement hangs on it.
    pub fn tick_signals(&mut self, cpu: usize, task: TaskId) {
        let port = self.port(task);
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_tick_signals(world, port) }
    }

    /// The waiting task's delay is over: where it goes, if it does.
    pub fn delay_over(&mut self, task: TaskId) -> Option<usize> {
        let (cpu, port) = (self.cpu_of(task), self.port(task));
        let world = self.call(cpu, None);
        // SAFETY: see `select_cpu`.
        let to = unsafe { sys::roost_delay_over(world, port) };
        usize::try_from(to).ok()
    }

    /// That CPU was chosen for a fork by the task that runs `here`, or for that task, which execs (`exec`): where it goes, after the
    /// last stage of placement, which may delay it. `idle`: it was chosen as idle.
    pub fn descended(
        &mut self,
        here: usize,
        current: Option<TaskId>,
        task: TaskId,
        cpu: usize,
        idle: bool,
    ) -> usize {
        let exec = current == Some(task);
        let port = self.port(task);
        let world = self.call(here, current);
        // SAFETY: see `select_cpu`.
        let to = unsafe { sys::roost_descended(world, port, cpu as i32, idle, exec) };
        to as usize
    }
}
