// SPDX-License-Identifier: GPL-2.0-only
//! claim: "per cpu variable that is set as soon as a cpu is selected"; others then do not select it.

use super::{Decision, Ladder};
use crate::topology::CLAIM_LOST;

impl Ladder<'_> {
    /// Ours: not for ever, and with claim_expiry not for long.
    fn stands(&self, age: Option<u64>) -> bool {
        let f = &self.w.features;
        let limit = if f.claim_expiry {
            self.now.claim_ttl
        } else {
            CLAIM_LOST
        };
        f.claim && age.is_some_and(|age| age <= limit)
    }

    pub(super) fn claimed(&self, c: usize) -> bool {
        self.stands(self.now.cpus[c].claim_age)
    }

    pub(super) fn idle_unclaimed(&self, c: usize) -> bool {
        self.now.idle(c) && !self.claimed(c)
    }

    fn first_thread(&self, c: usize) -> usize {
        let threads = self.now.other_threads(c).iter().copied();
        threads.chain([c]).min().unwrap_or(c)
    }

    /// "Sibling of a claimed CPU: no idle core; the thread itself is still free." core_claim, ours: nor is a claimed core.
    pub(super) fn core_claimed(&self, c: usize) -> bool {
        let first = self.now.cpus[self.first_thread(c)];
        self.claimed(c)
            || self.now.other_threads(c).iter().any(|&s| self.claimed(s))
            || (self.w.features.core_claim && self.stands(first.core_claim_age))
    }

    pub(super) fn idle_core(&self, c: usize) -> bool {
        self.now.core_idle(c) && !self.core_claimed(c)
    }

    /// An idle CPU is the answer, and claimed.
    pub(super) fn taken(&self, cpu: usize, rung: &'static str) -> Decision {
        Decision {
            claims: self.w.features.claim.then_some(cpu),
            ..self.at(cpu, rung)
        }
    }

    /// The same, because its core is idle.
    pub(super) fn core_taken(&self, cpu: usize, rung: &'static str) -> Decision {
        let f = &self.w.features;
        Decision {
            claims_core: (f.claim && f.core_claim).then(|| self.first_thread(cpu)),
            ..self.taken(cpu, rung)
        }
    }
}
