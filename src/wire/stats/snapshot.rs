// SPDX-License-Identifier: GPL-2.0-only
//! All counters at one time, by arm.

use super::{ArmCounts, ArmMetrics, Counters, Metrics, delta};
use std::collections::BTreeMap;

/// An arm as clients see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArmShown {
    pub slot: usize,
    pub name: String,
    /// Empty: none.
    pub profile: String,
    pub preset: String,
    pub features: String,
}

pub(super) struct Snapshot {
    pub(super) total: Counters,
    /// By arm number.
    pub(super) arms: BTreeMap<u64, (ArmShown, ArmCounts)>,
    /// The fields that are not counters.
    pub(super) rest: Metrics,
}

impl Snapshot {
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

    pub(super) fn since(&self, old: &Snapshot) -> Snapshot {
        let arms = self.arms.iter().map(|(number, (shown, counts))| {
            let counts = match old.arms.get(number) {
                Some((_, old)) => counts.since(old),
                None => counts.clone(),
            };
            (*number, (shown.clone(), counts))
        });
        Snapshot {
            total: delta(&self.total, &old.total),
            arms: arms.collect(),
            rest: Metrics {
                events: self.rest.events.since(&old.rest.events),
                ..self.rest.clone()
            },
        }
    }
}
