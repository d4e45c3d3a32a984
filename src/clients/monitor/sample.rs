// SPDX-License-Identifier: GPL-2.0-only
//! One answer of the socket, made safe: its server may be of another version, or malicious. Texts
//! are short and hold no control characters. There are no more arms and CPUs than a scheduler can
//! have.

use crate::bpf::intf::{MAX_ARMS, MAX_CPUS};
use crate::util::text::tidy;
use crate::wire::stats::Metrics;
use crate::wire::stats::host::{Condition, CpusMetrics};
use std::time::Duration;

const NAME_MAX: usize = 32;
const TEXT_MAX: usize = 600;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Time of arrival, since the monitor's start.
    pub at: Duration,
    /// Counters since the scheduler started.
    pub totals: Metrics,
    pub cpus: CpusMetrics,
}

impl Sample {
    pub fn new(at: Duration, mut totals: Metrics, mut cpus: CpusMetrics) -> Sample {
        for text in [
            &mut totals.preset,
            &mut totals.governor,
            &mut totals.cpuperf,
            &mut totals.freq_source,
        ] {
            *text = tidy(text, NAME_MAX);
        }
        totals.features = tidy(&totals.features, TEXT_MAX);
        let arms = std::mem::take(&mut totals.arms).into_iter();
        let arm = |(name, mut arm): (String, crate::wire::stats::ArmMetrics)| {
            arm.profile = tidy(&arm.profile, NAME_MAX);
            arm.preset = tidy(&arm.preset, NAME_MAX);
            arm.features = tidy(&arm.features, TEXT_MAX);
            (tidy(&name, NAME_MAX), arm)
        };
        totals.arms = arms.take(MAX_ARMS as usize).map(arm).collect();
        let known = |name: &str| Condition::ALL.iter().any(|c| c.name() == name);
        totals.conditions.retain(|name, _| known(name));
        for condition in totals.conditions.values_mut() {
            condition.text = tidy(&condition.text, TEXT_MAX);
        }
        cpus.cpus.retain(|cpu, _| *cpu < u64::from(MAX_CPUS));
        Sample { at, totals, cpus }
    }

    /// Names and texts of the active conditions.
    pub fn active_conditions(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.totals.conditions.iter();
        all.filter(|(_, c)| c.active != 0)
            .map(|(name, c)| (name.as_str(), c.text.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stats::ArmMetrics;
    use crate::wire::stats::host::{ConditionMetrics, CpuMetrics};

    #[test]
    fn a_hostile_sample_is_cut_to_size() {
        let mut totals = Metrics {
            preset: "\x1b[2J".repeat(1000),
            ..Metrics::default()
        };
        for i in 0..1000 {
            let name = format!("{i}{}", "\n".repeat(100));
            totals.arms.insert(name.clone(), ArmMetrics::default());
            totals.conditions.insert(name, ConditionMetrics::default());
        }
        let mut cpus = CpusMetrics::default();
        for cpu in [0, 1023, 1024, u64::MAX] {
            cpus.cpus.insert(cpu, CpuMetrics::default());
        }
        let sample = Sample::new(Duration::ZERO, totals, cpus);
        assert_eq!(sample.totals.preset.len(), NAME_MAX);
        assert!(!sample.totals.preset.contains('\x1b'));
        assert_eq!(sample.totals.arms.len(), MAX_ARMS as usize);
        let calm = |name: &String| !name.contains('\n') && name.len() <= NAME_MAX;
        assert!(sample.totals.arms.keys().all(calm));
        assert!(sample.totals.conditions.is_empty());
        assert_eq!(Vec::from_iter(sample.cpus.cpus.into_keys()), [0, 1023]);
    }
}
