// SPDX-License-Identifier: GPL-2.0-only
//! Smove: "place threads on the local core [...] if the chosen core runs at a low frequency, and
//! migrate them after a delay".

use super::{Decision, How, Ladder};

/// A frequency that was read longer ago counts as unknown.
pub const STALE_MS: u32 = 60_000;

impl Ladder<'_> {
    /// The last stage: decides whether the move to the chosen CPU is delayed.
    pub(super) fn delay(&self, chosen: Decision) -> Decision {
        let (w, f) = (self.w, &self.w.features);
        let (new, this) = (chosen.cpu, w.this);
        let moves = new != w.prev && new != this && chosen.how != How::Next;
        // Ours: the source does not check that the task may run on its waker's CPU.
        if !f.delay_migration || !moves || !self.ok(this) || !self.low(new) {
            return chosen;
        }
        // Ours: the waker's CPU is idle (an interrupt woke the task), so there is nothing to wait
        // for.
        if self.idle_unclaimed(this) {
            return Decision {
                cpu: this,
                how: How::Idle,
                claims: f.claim.then_some(this),
                claims_core: None,
                ..chosen
            };
        }
        Decision {
            cpu: this,
            how: How::Busy,
            delayed: Some(new),
            claims: None,
            claims_core: None,
            ..chosen
        }
    }

    /// "if (cpu_rq(new)->freq <= lowfreq)"; 0 switches it off.
    fn low(&self, c: usize) -> bool {
        let now = self.now.cpus[c];
        let known = now.khz > 0 && now.khz_age_ms <= STALE_MS;
        self.w.threshold > 0 && known && now.khz <= self.w.threshold
    }
}
