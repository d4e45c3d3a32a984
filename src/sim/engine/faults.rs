// SPDX-License-Identifier: GPL-2.0-only
//! What goes wrong while the load runs, as its lines `fault` ask for.

use super::Engine;
use crate::sim::sched::Scheduler;
use crate::sim::task::State;
use crate::sim::watch::{Watch, What};

impl<S: Scheduler, W: Watch> Engine<S, W> {
    pub(super) fn faults_begin(&mut self) {
        let (affinity, hotplug) = {
            let faults = &self.wait.load.faults;
            (faults.affinity, faults.hotplug)
        };
        for (slot, period) in [(self.changes(), affinity), (self.hotplugs(), hotplug)] {
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

    /// Some task is given the CPUs of some group of the workload, unless it is on its way just now.
    pub(super) fn change_affinity(&mut self) {
        let period = self.wait.load.faults.affinity;
        self.clock.set(self.changes(), self.clock.now() + period);
        let task = self.chance.below(self.tasks.len() as u64) as usize;
        let group = self.chance.below(self.wait.load.groups.len() as u64) as usize;
        let kernel = |group: usize| self.wait.kernel(group);
        let fixed = kernel(self.tasks[task].group) || kernel(group);
        if fixed || !matches!(self.tasks[task].state, State::Asleep | State::Runnable) {
            return;
        }
        let on = self.tasks[task].cpu.unwrap_or(0);
        let ran = (self.cpus[on].running == Some(task)).then_some(on);
        if let Some(cpu) = ran {
            self.settle(cpu);
        }
        let mask = self.wait.mask(group);
        self.tasks[task].mask = mask;
        self.see(What::Affine { task, group, mask });
        let leaves = self.sched.set_affinity(task, mask, &mut self.orders);
        self.obey(on);
        if leaves {
            self.pick(on);
        }
    }
}
