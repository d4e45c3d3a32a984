// SPDX-License-Identifier: GPL-2.0-only
//! When a run is over, and when it cannot go on.

use super::Engine;
use crate::sched::Scheduler;
use crate::wait::MOST_IDLE_STEPS;
use crate::watch::{Watch, What};
use anyhow::{Result, bail, ensure};

impl<S: Scheduler, W: Watch> Engine<S, W> {
    /// True if there were tasks and all have ended.
    pub(super) fn ended(&self) -> bool {
        !self.tasks.is_empty() && self.alive == 0
    }

    /// Accounts for the work done until the end of the run. The run ends now if all tasks have
    /// ended.
    pub(super) fn finish(&mut self, end: Option<u64>) {
        if let Some(end) = end.filter(|_| !self.ended()) {
            self.clock.advance(end);
            self.sched.set_now(end);
        }
        self.settle_all();
        let now = self.clock.now();
        let slept = self.cstates.slept(now);
        self.measured.end(now, self.counters(), Some(slept));
        self.see(What::Over);
    }

    /// Errors: a task loops without work; there are too many tasks; all tasks wait for each other.
    pub(super) fn check_moves(&self) -> Result<()> {
        if let Some(task) = self.circles {
            let task = &self.tasks[task];
            bail!(
                "{} {} loops without work or a wait: {MOST_IDLE_STEPS} steps at {} ms; a loop needs a run, a sleep or a wait",
                self.wait.load.groups[task.group].name,
                task.known.me,
                self.clock.now() / 1_000_000
            );
        }
        ensure!(
            !self.full,
            "the workload has more than {} tasks at once, the most that are possible",
            self.tasks.len()
        );
        ensure!(
            self.alive == 0 || self.stuck < self.alive,
            "the workload is deadlocked after {} ms: {} tasks wait, and nothing will wake them",
            self.clock.now() / 1_000_000,
            self.stuck
        );
        Ok(())
    }
}
