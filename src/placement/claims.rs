// SPDX-License-Identifier: GPL-2.0-only
//! claim: "per cpu variable that is set as soon as a cpu is selected". Other wakeups then skip that
//! CPU.

use super::{Decision, Ladder};

impl Ladder<'_> {
    /// Ours: a claim older than `claim_ttl` does not count. No claim of a case is plain.
    fn stands(&self, age: Option<u64>) -> bool {
        self.w.features.claim && age.is_some_and(|age| age <= self.now.claim_ttl)
    }

    pub(super) fn claimed(&self, c: usize) -> bool {
        self.stands(self.now.cpus[c].claim_age)
    }

    pub(super) fn idle_unclaimed(&self, c: usize) -> bool {
        self.now.idle(c) && !self.claimed(c)
    }

    pub(super) fn first_thread(&self, c: usize) -> usize {
        let threads = self.now.other_threads(c).iter().copied();
        threads.chain([c]).min().unwrap_or(c)
    }

    /// A core with a claimed thread is no idle core, though its other threads are still free.
    /// core_claim, ours: a claimed core is no idle core either.
    pub(super) fn core_claimed(&self, c: usize) -> bool {
        let first = self.now.cpus[self.first_thread(c)];
        self.claimed(c)
            || self.now.other_threads(c).iter().any(|&s| self.claimed(s))
            || (self.w.features.core_claim && self.stands(first.core_claim_age))
    }

    pub(super) fn idle_core(&self, c: usize) -> bool {
        self.now.core_idle(c) && !self.core_claimed(c)
    }

    /// An idle CPU that is chosen, and claimed if claims are on.
    pub(super) fn taken(&self, cpu: usize, rung: &'static str) -> Decision {
        Decision {
            claims: self.w.features.claim.then_some(cpu),
            ..self.at(cpu, rung)
        }
    }

    /// The same for a CPU chosen because its core is idle: core_claim claims the core too.
    pub(super) fn core_taken(&self, cpu: usize, rung: &'static str) -> Decision {
        let f = &self.w.features;
        Decision {
            claims_core: (f.claim && f.core_claim).then(|| self.first_thread(cpu)),
            ..self.taken(cpu, rung)
        }
    }
}
