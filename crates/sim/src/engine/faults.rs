// SPDX-License-Identifier: GPL-2.0-only
//! Faults while the load runs, as its `fault` lines ask for.

use super::Engine;
use crate::sched::Scheduler;
use crate::task::TaskState;
use crate::watch::{Watch, What};

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

    /// Arms a timer for `at`; a fault makes it late or loses it.
    pub(super) fn timer_set(&mut self, slot: usize, at: u64) {
        match self.wait.load.faults.timer(&mut self.chance) {
            Some(late) => self.clock.set(slot, at + late),
            None => self.clock.clear(slot),
        }
    }

    /// A random task and a random group of the workload. None: the task is between CPUs.
    fn some(&mut self) -> Option<(usize, usize)> {
        let task = self.chance.below(self.tasks.len() as u64) as usize;
        let group = self.chance.below(self.wait.load.groups.len() as u64) as usize;
        let free = matches!(
            self.tasks[task].state,
            TaskState::Asleep | TaskState::Runnable
        );
        free.then_some((task, group))
    }

    /// The task's CPU, accounted for until now if the task runs.
    fn settled(&mut self, task: usize) -> usize {
        let on = self.tasks[task].cpu.unwrap_or(0);
        if self.cpus[on].running == Some(task) {
            self.settle(on);
        }
        on
    }

    /// Gives a random task the CPUs of a random group of the workload.
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

    /// Gives a random task the attributes of a random group of the workload, if the scheduler
    /// supports that.
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
