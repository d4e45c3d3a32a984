// SPDX-License-Identifier: GPL-2.0-only
//! What goes wrong while the load runs, as its lines `fault` ask for.

use super::Engine;
use crate::sim::sched::Scheduler;
use crate::sim::task::State;
use crate::sim::watch::{Watch, What};

impl<S: Scheduler, W: Watch> Engine<S, W> {
    pub(super) fn faults_begin(&mut self) {
        let faults = &self.wait.load.faults;
        let slots = [
            (self.changes(), faults.affinity),
            (self.attrs(), faults.attr),
            (self.hotplugs(), faults.hotplug),
        ];
        for (slot, period) in slots {
            if period > 0 {
                self.clock.set(slot, period);
            }
        }
    }

    /// The timer fires at that time, later, or never.
    pub(super) fn timer_set(&mut self, slot: usize, at: u64) {
        match self.wait.load.faults.timer(&mut self.chance) {
            Some(late) => self.clock.set(slot, at + late),
            None => self.clock.clear(slot),
        }
    }

    /// A task and a group of the workload by chance; None: the task is on its way just now, or one of them is the kernel's.
    fn some(&mut self) -> Option<(usize, usize)> {
        let task = self.chance.below(self.tasks.len() as u64) as usize;
        let group = self.chance.below(self.wait.load.groups.len() as u64) as usize;
        let kernel = |group: usize| self.wait.kernel(group);
        let fixed = kernel(self.tasks[task].group) || kernel(group);
        let free = !fixed && matches!(self.tasks[task].state, State::Asleep | State::Runnable);
        free.then_some((task, group))
    }

    /// The CPU that the task is on, accounted for until now if it runs.
    fn settled(&mut self, task: usize) -> usize {
        let on = self.tasks[task].cpu.unwrap_or(0);
        if self.cpus[on].running == Some(task) {
            self.settle(on);
        }
        on
    }

    /// Some task is given the CPUs of some group of the workload.
    pub(super) fn change_affinity(&mut self) {
        let period = self.wait.load.faults.affinity;
        self.clock.set(self.changes(), self.clock.now() + period);
        let Some((task, group)) = self.some() else {
            return;
        };
        let on = self.settled(task);
        let mask = self.wait.mask(group);
        self.tasks[task].mask = mask;
        self.see(What::Affine { task, group, mask });
        let leaves = self.sched.set_affinity(task, mask, &mut self.orders);
        self.obey(on);
        if leaves {
            self.pick(on);
        }
    }

    /// Some task is given the attributes of some group of the workload, by a scheduler that knows how.
    pub(super) fn change_attr(&mut self) {
        let period = self.wait.load.faults.attr;
        self.clock.set(self.attrs(), self.clock.now() + period);
        let Some((task, group)) = self.some() else {
            return;
        };
        let attr = self.wait.load.groups[group].attr;
        let on = self.settled(task);
        if self.sched.change_attr(task, &attr, &mut self.orders) {
            self.tasks[task].attr = attr;
            self.see(What::Attr { task });
        }
        self.obey(on);
    }
}
