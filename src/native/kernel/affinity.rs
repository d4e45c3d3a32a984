// SPDX-License-Identifier: GPL-2.0-only
//! Which CPUs a task may use.

use super::{Kernel, TaskId, sys};

/// The index of the mask of every CPU.
const EVERY_CPU: usize = 0;

impl Kernel {
    /// Registers a CPU mask, one bit per CPU, and returns its index for `set_affinity`. Index 0 is
    /// every CPU.
    pub fn mask(&mut self, mask: &[u64]) -> usize {
        self.masks.push(mask.into());
        self.masks.len() - 1
    }

    /// Restricts the task to a registered mask. If all CPUs of the mask are offline, the task may
    /// use every CPU.
    pub fn set_affinity(&mut self, task: TaskId, mask: usize) {
        let within = |mask: usize, cpu: usize| self.masks[mask][cpu / 64] >> (cpu % 64) & 1 != 0;
        let some = (0..self.world.nr_cpus()).any(|cpu| self.online(cpu) && within(mask, cpu));
        let mask = if some { mask } else { EVERY_CPU };
        let allowed = &self.masks[mask];
        let within = |&cpu: &usize| within(mask, cpu);
        let online = (0..self.world.nr_cpus()).filter(|&cpu| self.online(cpu));
        let (inside, outside): (Vec<usize>, Vec<usize>) = online.partition(within);
        let first = *inside.first().expect("a task may use some CPU");
        let pointer = allowed.as_ptr();
        let port = self.ports.get_mut(task);
        port.allowed = pointer;
        port.restricted = (!outside.is_empty()).into();
        port.pinned = inside.len() == 1;
        self.first_allowed[task] = first;
    }

    /// That CPU, or the first one that the task may use instead (kernel: select_fallback_rq()).
    pub fn usable(&self, task: TaskId, cpu: usize) -> usize {
        match self.allowed(task, cpu) && self.online(cpu) {
            true => cpu,
            false => self.first_allowed[task],
        }
    }

    fn online(&self, cpu: usize) -> bool {
        self.world.facts().cpus[cpu].online != 0
    }

    /// The task may use the CPU.
    pub fn allowed(&self, task: TaskId, cpu: usize) -> bool {
        allowed(self.ports.get(task), cpu)
    }

    pub fn pinned(&self, task: TaskId) -> bool {
        self.ports.get(task).pinned
    }
}

pub(super) fn allowed(port: &sys::port_task, cpu: usize) -> bool {
    // SAFETY: the mask has a bit for each CPU of the machine, and lives as long as the table.
    unsafe { *port.allowed.add(cpu / 64) >> (cpu % 64) & 1 != 0 }
}
