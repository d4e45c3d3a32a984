// SPDX-License-Identifier: GPL-2.0-only
//! What each client gets: all counters at one time, and their growth since its last request.

use super::source::{ArmShown, CounterSource};
use super::{ArmCounts, ArmMetrics, Counters, Metrics, delta};
use std::collections::BTreeMap;
use std::time::Instant;

/// All counters at one time.
pub(super) struct View {
    pub(super) total: Counters,
    /// By arm number.
    pub(super) arms: BTreeMap<u64, (ArmShown, ArmCounts)>,
    /// The fields that are not counters.
    pub(super) rest: Metrics,
}

impl View {
    pub(super) fn metrics(&self) -> Metrics {
        let mut metrics = self.rest.clone();
        metrics.set_counters(&self.total);
        for (shown, counts) in self.arms.values() {
            let mut arm = ArmMetrics {
                profile: shown.profile.clone(),
                preset: shown.preset.clone(),
                features: shown.features.clone(),
                ..ArmMetrics::default()
            };
            arm.set(counts);
            metrics.arms.insert(shown.name.clone(), arm);
        }
        metrics
    }

    fn since(&self, old: &View) -> View {
        let arms = self.arms.iter().map(|(number, (shown, counts))| {
            let counts = match old.arms.get(number) {
                Some((_, old)) => counts.since(old),
                None => counts.clone(),
            };
            (*number, (shown.clone(), counts))
        });
        View {
            total: delta(&self.total, &old.total),
            arms: arms.collect(),
            rest: Metrics {
                events: self.rest.events.since(&old.rest.events),
                ..self.rest.clone()
            },
        }
    }
}

/// Growth of the counters for one client: since its last request, or since this was created.
pub struct Deltas {
    source: CounterSource,
    last: View,
    at: Instant,
}

impl Deltas {
    pub fn new(source: CounterSource) -> Deltas {
        let last = source.view();
        Deltas {
            source,
            last,
            at: Instant::now(),
        }
    }

    pub fn take(&mut self) -> Metrics {
        let now = self.source.view();
        let mut metrics = now.since(&self.last).metrics();
        metrics.interval_ms = self.at.elapsed().as_millis() as u64;
        self.last = now;
        self.at = Instant::now();
        metrics
    }
}
