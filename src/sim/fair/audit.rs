// SPDX-License-Identifier: GPL-2.0-only
//! What the fair class believes, for `check`; and what it keeps to.

use super::{Fair, Rules};
use crate::native::TaskId;
use crate::sim::sched::{Belief, Bounds};
use crate::sim::task::{State, Task};

/// An IPI, out of the deepest idle state, and the way to a queue. ns
const WAY: u64 = 400_000;

impl Fair {
    /// Without bound where it has none: an idle CPU looks for work when it goes idle and when a tick elsewhere calls it, unless what waits is
    /// hot or its average idle time does not pay for the look.
    pub(super) fn keeps_to(&self) -> Bounds {
        let longest = self.entities.iter().map(|e| e.slice as u64).max();
        let slice = longest.unwrap_or(self.slice).max(self.times.latency as u64);
        Bounds {
            turn: 2 * (slice + self.tick),
            late: 4 * (slice + self.tick) + WAY,
            // A task of nice 19 beside one of nice -20 waits for 6,000 of its slices.
            hungry: u64::MAX,
            ..Bounds::default()
        }
    }
}

impl Belief for Fair {
    fn waiting(&self, cpu: usize, to: &mut Vec<TaskId>) {
        let waiting = self.queues[cpu].waiting.iter().copied();
        to.extend(waiting.filter(|&task| !self.entities[task].delayed));
    }

    fn nr_running(&self, cpu: usize) -> usize {
        self.cpus.nr_running[cpu] as usize
    }

    fn idle(&self, cpu: usize) -> bool {
        self.cpus.idle(cpu)
    }

    /// Placement looks at each CPU itself.
    fn listed(&self, _cpu: usize) -> bool {
        true
    }

    /// It is placed anew at each end of a run.
    fn vruntime(&self, task: TaskId) -> (u64, bool) {
        (self.entities[task].vruntime as u64, false)
    }

    /// CFS keeps a least virtual time, which never goes back; EEVDF's mean may.
    fn progress(&self, cpu: usize) -> u64 {
        match self.rules {
            Rules::Cfs => self.queues[cpu].base as u64,
            Rules::Eevdf => 0,
        }
    }

    /// Who is in a queue counts there, and is delayed if it sleeps.
    fn audit(&self, _now: u64, tasks: &[Task]) -> Result<(), String> {
        for (cpu, q) in self.queues.iter().enumerate() {
            for &task in &q.waiting {
                let e = &self.entities[task];
                let asleep = matches!(tasks[task].state, State::Asleep | State::Coming);
                if e.delayed != asleep {
                    return Err(format!(
                        "task {task} waits on CPU {cpu}, delayed: {}, and it is {:?}",
                        e.delayed, tasks[task].state
                    ));
                }
                if self.kernel.cpu_of(task) != cpu {
                    return Err(format!(
                        "task {task} waits on CPU {cpu}, and counts on another"
                    ));
                }
            }
        }
        Ok(())
    }
}
