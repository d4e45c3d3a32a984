// SPDX-License-Identifier: GPL-2.0-only
//! New tasks.

use super::Engine;
use crate::sched::Scheduler;
use crate::task::{TaskState, Wake};
use crate::watch::{Watch, What};
use scx_roost::native::TaskId;

/// Bytes of a page.
const PAGE: u64 = 4096;

impl<S: Scheduler, W: Watch> Engine<S, W> {
    /// The tasks that are there from the start. One parent forks those of the workload, one after
    /// the other.
    pub(super) fn start_tasks(&mut self) {
        let mut forked = 0;
        for group in 0..self.wait.load.groups.len() {
            let Some(count) = self.wait.starts(group) else {
                continue;
            };
            for me in 0..count {
                let task = self.new_task(group, me as i64, None);
                let at = forked * self.costs.fork;
                forked += 1;
                self.clock.set(self.sleep(task), at);
            }
        }
    }

    /// ns that the task takes to touch its data for the first time, which begins its first run. A
    /// child that is forked later does so too, as a part of its program.
    pub(super) fn first_touch(&self, task: TaskId) -> u64 {
        let set = self.wait.set_of(self.tasks[task].group);
        match self.tasks[task].parent {
            None => set.div_ceil(PAGE) * self.costs.page_fault,
            Some(_) => 0,
        }
    }

    /// The task that runs on `cpu` forks a task of `group`.
    pub(super) fn forks(&mut self, cpu: usize, task: TaskId, group: usize) {
        if self.free.is_empty() && self.tasks.len() == self.tasks.capacity() {
            self.full = true;
            return;
        }
        let child = self.new_task(group, self.tasks[task].known.me, Some(task));
        self.place(child, Wake::fork(cpu), Some(task));
    }

    pub(super) fn new_task(&mut self, group: usize, me: i64, parent: Option<TaskId>) -> TaskId {
        let mut new = self.wait.task(group, me);
        new.parent = parent;
        new.state = TaskState::Asleep;
        let task = match self.free.pop() {
            Some(task) => {
                self.tasks[task] = new;
                task
            }
            None => {
                assert!(
                    self.tasks.len() < self.tasks.capacity(),
                    "more tasks than the load was said to have"
                );
                self.tasks.push(new);
                self.tasks.len() - 1
            }
        };
        self.alive += 1;
        let cpu = parent.and_then(|p| self.tasks[p].cpu).unwrap_or(0);
        let mask = self.tasks[task].mask;
        self.sched.begin(task, mask, cpu);
        self.sched.set_attr(task, &self.tasks[task].attr);
        self.see(What::Begins { task, group, mask });
        task
    }
}
