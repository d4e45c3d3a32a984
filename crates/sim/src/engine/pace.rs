// SPDX-License-Identifier: GPL-2.0-only
//! Time on a CPU: the work done so far, and when the rest will be done at a changing speed. Also
//! what changes speeds.

use super::Engine;
use super::On;
use crate::sched::Scheduler;
use crate::speed::FULL;
use crate::task::TaskState;
use crate::watch::{Watch, What};

impl<S: Scheduler, W: Watch> Engine<S, W> {
    /// Accounts for the work done on the CPU until now.
    pub(super) fn settle(&mut self, cpu: usize) {
        let now = self.clock.now();
        let at = &mut self.cpus[cpu];
        let ns = now - at.settled;
        at.settled = now;
        let Some(task) = at.running else { return };
        if ns == 0 {
            return;
        }
        let rate = at.rate;
        self.sched.ran(task, ns);
        self.watch.happens(now, What::Ran { task, cpu, ns });
        self.measured.ran(ns, self.cores.shared(cpu));
        let left = &mut self.tasks[task].left;
        *left = left.saturating_sub(ns * rate);
    }

    pub(super) fn settle_all(&mut self) {
        (0..self.cpus.len()).for_each(|cpu| self.settle(cpu));
    }

    /// Schedules the end of the segment at the CPU's current speed. The CPU must be settled.
    pub(super) fn time(&mut self, cpu: usize) {
        let slot = self.slot(cpu, On::Segment);
        let Some(task) = self.cpus[cpu].running else {
            self.clock.clear(slot);
            return;
        };
        let rate = self.cores.rate(cpu);
        self.cpus[cpu].rate = rate;
        let ns = self.tasks[task].left.div_ceil(rate);
        self.clock.set(slot, self.clock.now() + ns);
    }

    /// Adds kernel work of `ns` to the task that runs here.
    pub(super) fn pay(&mut self, cpu: usize, ns: u64) {
        // A task that is about to stop has no more work.
        let running = self.cpus[cpu].running;
        let Some(task) = running.filter(|&t| self.tasks[t].state == TaskState::Runnable) else {
            return;
        };
        self.settle(cpu);
        self.tasks[task].left += ns * FULL;
        self.time(cpu);
    }

    /// The CPU becomes busy or idle, so its siblings become slower or faster.
    pub(super) fn turns(&mut self, cpu: usize, busy: bool) {
        let row = self.facts.cpus[cpu];
        let siblings = &row.sib[..usize::from(row.nr_sib)];
        siblings.iter().for_each(|&s| self.settle(s.into()));
        self.cores.turns(cpu, busy, self.clock.now());
        siblings.iter().for_each(|&s| self.time(s.into()));
        self.follows(cpu);
    }

    /// Schedules a step of frequencies if the CPU's core or its neighbours need one.
    pub(super) fn follows(&mut self, cpu: usize) {
        let (slot, now) = (self.steps(), self.clock.now());
        let Some(at) = self.cores.behind(cpu, now).map(|ns| now + ns) else {
            return;
        };
        if self.clock.due(slot).is_none_or(|due| due > at) {
            self.clock.set(slot, at);
        }
    }

    pub(super) fn follow(&mut self) {
        let now = self.clock.now();
        let busy: Vec<usize> = (0..self.cpus.len())
            .filter(|&c| self.cpus[c].running.is_some())
            .collect();
        busy.iter().for_each(|&cpu| self.settle(cpu));
        if let Some(next) = self.cores.follow(now) {
            self.clock.set(self.steps(), next);
        }
        for &cpu in &busy {
            if self.cores.rate(cpu) != self.cpus[cpu].rate {
                self.time(cpu);
            }
        }
    }

    /// The daemon looks at frequencies and idle periods.
    pub(super) fn look(&mut self) {
        self.clock
            .set(self.looks(), self.clock.now() + self.daemon.period);
        if let Some(kernel) = self.sched.kernel() {
            self.daemon.look(kernel);
        }
    }
}
