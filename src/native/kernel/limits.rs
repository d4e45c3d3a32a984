// SPDX-License-Identifier: GPL-2.0-only
//! CPU limits of groups, and the queues of parked tasks.

use super::{Kernel, TaskId};
use crate::native::sys;

impl Kernel {
    /// The tasks that are parked because their group has used up its limit.
    pub fn parked(&self) -> impl Iterator<Item = TaskId> {
        let parks = &self.side.get(0).queues[2 * self.runs.0.len()..];
        parks.iter().flatten().map(|w| w.task)
    }

    /// Moves a task that does not run to a group, as the kernel does.
    pub fn set_cgroup(&mut self, task: TaskId, index: usize) {
        let world = self.call(0, None);
        let state = &raw mut *self.states.get_mut(task);
        // SAFETY: see `select_cpu`; C checks the index.
        unsafe { sys::roost_cgroup_move(world, state, index as u32) }
    }

    /// Sets the CPU limit of a group, ns; a quota of 0: none.
    pub fn set_limit(&mut self, index: usize, period: u64, quota: u64, burst: u64) {
        let now = self.raw.clock;
        let world = self.call(0, None);
        // SAFETY: see `select_cpu`; C checks the index.
        unsafe { sys::roost_limit_set(world, index as u32, period, quota, burst, now) }
    }
}
