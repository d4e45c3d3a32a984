// SPDX-License-Identifier: GPL-2.0-only
//! Tasks that share a CPU get equal time, by weight.

use super::{Check, Seen, TaskPhase};
use crate::fair::{NICE0, weight_of};
use crate::sched::Bounds;
use crate::task::Task;
use scx_roost::native::{Attr, TaskId};

/// Run times are compared over this long, ns.
pub(super) const WINDOW: u64 = 200_000_000;

/// What is compared of the tasks that shared a CPU.
#[derive(Clone, Copy, Debug)]
struct Shared {
    attr: Attr,
    /// The most that a task ran for certain, and the least that another one may have run, in ns of
    /// a task of weight NICE0; each with its task.
    most: (i128, TaskId),
    least: (i128, TaskId),
}

impl Shared {
    fn new(attr: Attr) -> Shared {
        Shared {
            attr,
            most: (i128::MIN, 0),
            least: (i128::MAX, 0),
        }
    }

    /// Adds a task that ran for `ran`, which may be `off` from its share.
    fn add(&mut self, task: TaskId, ran: u64, off: u64, weight: i64) {
        let of_nice0 = |ns: i128| ns * i128::from(NICE0) / i128::from(weight);
        let (ran, off) = (i128::from(ran), i128::from(off));
        self.most = self.most.max((of_nice0(ran - off), task));
        self.least = self.least.min((of_nice0(ran + off), task));
    }
}

impl Check {
    /// Tasks that shared a CPU through the window must have run equally long, by weight, apart from
    /// what each was owed at either end. If the scheduler does not say that weights count, only
    /// tasks of equal attributes are compared.
    pub(super) fn shares(&mut self, bounds: Bounds, tasks: &[Task]) -> Result<(), String> {
        if self.now < self.window_ends {
            return Ok(());
        }
        let off = bounds.unfair.saturating_add(4 * self.slice) / 2;
        let mut shared: Vec<Option<Shared>> = vec![None; self.lanes.len()];
        for (task, (seen, of)) in self.tasks.iter().zip(tasks).enumerate() {
            let whole = seen.whole && seen.attr == of.attr && !(bounds.yields && seen.yielded);
            let Some(home) = seen.home.filter(|_| whole) else {
                continue;
            };
            let there = shared[home].get_or_insert_with(|| Shared::new(of.attr));
            match bounds.weight {
                Some(_) => there.add(task, seen.window, off, weight_of(&of.attr)),
                None if there.attr == of.attr => there.add(task, seen.window, off, NICE0),
                None => {}
            }
        }
        let wrong = shared.iter().flatten().find(|s| s.most.0 > s.least.0);
        let told = wrong.map(|s| self.unshared(s.most.1, s.least.1));
        self.window_begins(tasks);
        told.map_or(Ok(()), Err)
    }

    fn unshared(&self, more: TaskId, less: TaskId) -> String {
        let (more, less) = (&self.tasks[more], &self.tasks[less]);
        let weight = |seen: &Seen| weight_of(&seen.attr);
        format!(
            "of tasks that shared CPU {} for {WINDOW} ns one of weight {} ran {} ns and one of {} ran {}",
            more.home.unwrap_or_default(),
            weight(more),
            more.window,
            weight(less),
            less.window
        )
    }

    fn window_begins(&mut self, tasks: &[Task]) {
        self.window_ends = self.now + WINDOW;
        for (seen, task) in self.tasks.iter_mut().zip(tasks) {
            seen.whole = matches!(seen.place, TaskPhase::Waits { .. } | TaskPhase::Runs { .. });
            (seen.window, seen.yielded, seen.attr) = (0, false, task.attr);
            seen.home = match seen.place {
                TaskPhase::Runs { cpu } => Some(cpu),
                _ => None,
            };
        }
    }
}
