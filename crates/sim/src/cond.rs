// SPDX-License-Identifier: GPL-2.0-only
//! What rt-app's tasks also do: they wait for conditions and timers, and run for a time.

use super::speed::FULL;
use super::task::{Task, TaskState, Then};
use super::wait::{Came, Wait};
use scx_roost::native::TaskId;

/// Work after which rt-app looks at the time again, ns.
const LOOK: u64 = 32_000;

impl Wait {
    pub(super) fn joins(&mut self, cond: usize, task: &mut Task, id: TaskId) {
        task.blocked = true;
        self.conds[cond].push_back(id);
    }

    /// Sleeps, unless the condition has been signalled since `joins`.
    pub(super) fn blocks(task: &Task) -> Option<Came> {
        task.blocked.then_some(Came::Sleeps(None))
    }

    /// Wakes one waiter, or `all`. Without waiters the signal is lost.
    pub(super) fn signals(&mut self, cond: usize, all: bool, tasks: &mut [Task], id: TaskId) {
        let waiting = &mut self.conds[cond];
        let count = if all {
            waiting.len()
        } else {
            waiting.len().min(1)
        };
        for other in waiting.drain(..count) {
            tasks[other].blocked = false;
            if tasks[other].state == TaskState::Asleep {
                tasks[id].todo.push_back(Then::Wake(other, false));
            }
        }
    }

    /// Sleeps until the timer is due. `first`: when its first period begins. Periods that are over
    /// already are lost.
    pub(super) fn timer(
        at: usize,
        first: u64,
        period: u64,
        task: &mut Task,
        now: u64,
    ) -> Option<Came> {
        let due = task.timers[at].unwrap_or(first) + period;
        task.timers[at] = Some(due.max(now));
        (now < due).then_some(Came::Sleeps(Some(due)))
    }

    /// Runs until `ns` have passed, and then until the task next looks at the time.
    pub(super) fn runs_until(ns: u64, task: &mut Task, now: u64) -> Option<Came> {
        let until = *task.until.get_or_insert(now + ns);
        if now >= until {
            task.until = None;
            return None;
        }
        task.pc -= 1;
        task.left += LOOK * FULL;
        Some(Came::Works)
    }
}
