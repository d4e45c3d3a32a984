// SPDX-License-Identifier: GPL-2.0-only
//! What the fair class says of itself, for `check`, and the bounds that it keeps.

use super::Fair;
use crate::sched::{Belief, Bounds};
use crate::task::{Task, TaskState};
use scx_roost::native::TaskId;

/// An IPI, the exit from the deepest idle state, and the way to a queue, ns.
const WAY: u64 = 400_000;

impl Fair {
    /// EEVDF's theory (Stoica, Abdel-Wahab 1995, theorem 1): a runnable task is never further from
    /// its share than the longest request. Here a tick is added, because ticks end requests.
    ///
    /// So a task waits at most until its share has grown by twice that, which takes longer the less
    /// it weighs. The run times of two tasks that share a CPU for a while differ, by weight, by at
    /// most twice that for each.
    ///
    /// If no other CPU becomes idle, a tick of its CPU helps a waiting task: the first tick after
    /// the task is cold.
    pub(super) fn keeps_to(&self) -> Bounds {
        let turn = 2 * (self.longest() + self.tick);
        let weights = self.queues.iter().map(|q| q.load(&self.entities) as u64);
        Bounds {
            idle: 2 * (self.tick + self.balance.hot()) + self.delay() + WAY,
            idle_each: self.tick + WAY,
            turn,
            late: 2 * turn + self.delay() + WAY,
            weight: Some(weights.sum()),
            unfair: 2 * turn,
            yields: true,
            ..Bounds::default()
        }
    }

    /// The longest request of any task, ns.
    fn longest(&self) -> u64 {
        let longest = self.entities.iter().map(|e| e.slice as u64).max();
        longest.unwrap_or(0).max(self.slice)
    }

    fn delay(&self) -> u64 {
        self.kernel.world().policy().arm[0].task.delay_ns.into()
    }

    /// What a task is owed or owes is within the longest request and a tick. The deadline of
    /// a waiting task is within a request.
    fn requests(&self) -> Result<(), String> {
        let longest = self.longest() as i64;
        for (task, e) in self.entities.iter().enumerate() {
            let most = e.virtual_ns(longest + self.tick as i64) + 1;
            if e.lag.abs() > most {
                return Err(format!(
                    "task {task} is owed {} ns, and the bound is {most}",
                    e.lag
                ));
            }
        }
        for &task in self.queues.iter().flat_map(|q| &q.waiting) {
            let e = &self.entities[task];
            let (ahead, most) = (e.deadline - e.vruntime, e.virtual_ns(longest) + 1);
            if !(0..=most).contains(&ahead) {
                return Err(format!(
                    "the deadline of task {task} is {ahead} ns ahead, and the bound is {most}"
                ));
            }
        }
        Ok(())
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

    /// Placement looks at each CPU itself, not at a list.
    fn listed(&self, _cpu: usize) -> bool {
        true
    }

    /// Not comparable as ns: the task is placed again whenever it stops.
    fn vruntime(&self, task: TaskId) -> (u64, bool) {
        (self.entities[task].vruntime as u64, false)
    }

    /// EEVDF's mean may go back.
    fn progress(&self, _cpu: usize) -> u64 {
        0
    }

    /// A queued task is on that CPU, and is delayed if it sleeps.
    fn audit(&self, _now: u64, tasks: &[Task]) -> Result<(), String> {
        self.requests()?;
        for (cpu, q) in self.queues.iter().enumerate() {
            for &task in &q.waiting {
                let e = &self.entities[task];
                let asleep = matches!(tasks[task].state, TaskState::Asleep | TaskState::Coming);
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
