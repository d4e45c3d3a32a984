// SPDX-License-Identifier: GPL-2.0-only
//! CPUs known by name, and what room they have: UTIL_FITS_CAPACITY and SELECT_BIAS_PREV.

use super::{Decision, How, Ladder};

impl Ladder<'_> {
    /// get_actual_cpu_capacity()
    pub(super) fn capacity_of(&self, c: usize) -> u64 {
        u64::from(self.now.machine.cpus[c].capacity - self.now.cpus[c].pressure)
    }

    /// task_fits_remaining_cpu_capacity() of UTIL_FITS_CAPACITY. v2: a margin, and what is left of real-time tasks.
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

    /// A CPU known by name: idle, or with room. Ours: whether there is room is asked of busy CPUs only, so that what
    /// core_first passes over is not taken as one of these.
    pub(super) fn known(
        &self,
        c: usize,
        idle: &'static str,
        fits: &'static str,
    ) -> Option<Decision> {
        if !self.ok(c) {
            None
        } else if self.free(c) {
            self.will_do(c).then(|| self.at(c, idle))
        } else if self.fits_remaining(c) && self.asym_fits(c) {
            Some(Decision {
                how: How::Busy,
                ..self.at(c, fits)
            })
        } else {
            None
        }
    }

    pub(super) fn known_prev(&self, target: usize) -> Option<Decision> {
        if !self.now.share_cache(self.w.prev, target) {
            return None;
        }
        self.known(self.w.prev, "sis_prev", "fits_prev")
    }
}
