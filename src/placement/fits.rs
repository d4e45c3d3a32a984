// SPDX-License-Identifier: GPL-2.0-only
//! CPUs known by name (target, previous, recent) and their spare capacity: UTIL_FITS_CAPACITY and
//! SELECT_BIAS_PREV.

use super::{Decision, How, Ladder};

impl Ladder<'_> {
    /// get_actual_cpu_capacity()
    pub(super) fn capacity_of(&self, c: usize) -> u64 {
        u64::from(self.now.machine.cpus[c].capacity - self.now.cpus[c].pressure)
    }

    /// task_fits_remaining_cpu_capacity() of UTIL_FITS_CAPACITY. v2 has a margin, and subtracts the
    /// utilisation of real-time tasks.
    fn fits_remaining(&self, c: usize) -> bool {
        let total = self.now.cpus[c].est + self.w.task.util;
        let mut capacity = self.capacity_of(c);
        if self.w.fits_rt {
            capacity = capacity.saturating_sub(self.now.cpus[c].rt.into()).max(1);
        }
        let fits = match self.w.fits_margin {
            0 => total <= capacity,
            20 => total * 1280 < capacity * 1024,
            other => panic!("no version of the patch has a margin of {other} %"),
        };
        self.w.features.util_fits && fits
    }

    /// A CPU known by name, if it is idle or has room. Ours: only busy CPUs are tested for room, so
    /// that a CPU which core_first passes over is not taken for its room.
    pub(super) fn known(
        &self,
        c: usize,
        idle: &'static str,
        fits: &'static str,
    ) -> Option<Decision> {
        if !self.ok(c) {
            None
        } else if self.free(c) {
            self.will_do(c).then(|| self.taken(c, idle))
        } else {
            self.beside(c, fits)
        }
    }

    /// A CPU that is busy, or claimed by another wakeup, and has room.
    pub(super) fn beside(&self, c: usize, fits: &'static str) -> Option<Decision> {
        let room = !self.free(c) && self.fits_remaining(c) && self.asym_fits(c);
        room.then(|| Decision {
            how: How::Busy,
            ..self.at(c, fits)
        })
    }

    /// The source of sync_core replaces the test of the idle target by a test of its core.
    pub(super) fn known_target(&self, target: usize) -> Option<Decision> {
        if !self.w.features.sync_core {
            return self.known(target, "sis_target", "fits_target");
        }
        if !self.ok(target) {
            return None;
        }
        if self.w.sync && self.is_idle_core(target) && self.asym_fits(target) {
            return Some(self.core_taken(target, "sync_core"));
        }
        self.beside(target, "fits_target")
    }

    pub(super) fn known_prev(&self, target: usize) -> Option<Decision> {
        if !self.now.share_cache(self.w.prev, target) {
            return None;
        }
        self.known(self.w.prev, "sis_prev", "fits_prev")
    }
}
