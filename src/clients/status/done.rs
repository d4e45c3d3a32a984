// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler has done since it was started, from its statistics.

use crate::wire::stats::{Histogram, Metrics, NR_BUCKETS, quantile_us};
use serde::Serialize;

/// A 99th percentile of the wakeups' latency above this is not good, us: as the alert
/// RoostSlowWakeups has it.
const SLOW_US: u64 = 100_000;

/// What it has done since it was started. Shares are percent of the wakeups.
#[derive(Debug, Serialize)]
pub struct Done {
    wakeups: u64,
    idle_core_percent: f64,
    same_cpu_percent: f64,
    other_cache_percent: f64,
    no_idle_cpu_percent: f64,
    wakeup_p50_us: u64,
    wakeup_p99_us: u64,
    /// Running tasks that left a shared core for an idle one.
    spread: u64,
    /// Waiting tasks that a CPU without work fetched.
    stolen: u64,
}

impl Done {
    pub fn of(m: &Metrics) -> Done {
        let latency = latencies(m);
        let wakeups = sum(&latency);
        // A task that is placed has not run yet, so a share may be a little too large.
        let share = |n: u64| match wakeups {
            0 => 0.0,
            all => (n as f64 * 100.0 / all as f64).min(100.0),
        };
        Done {
            wakeups,
            idle_core_percent: share(m.placed_idle_core),
            same_cpu_percent: share(m.placed_prev),
            other_cache_percent: share(m.placed_other_llc),
            no_idle_cpu_percent: share(sum(&[m.sis_none, m.bias_prev_last])),
            wakeup_p50_us: quantile_us(&latency, 0.5),
            wakeup_p99_us: quantile_us(&latency, 0.99),
            spread: m.spread_run,
            stolen: sum(&[
                m.dispatch_steal_llc,
                m.dispatch_steal_node,
                m.dispatch_steal_machine,
            ]),
        }
    }

    /// What is wrong with the latency of wakeups.
    pub fn slow(&self) -> Option<String> {
        // The quantile is the upper end of a bucket, whose lower end is half of it.
        let least = self.wakeup_p99_us / 2000;
        (self.wakeup_p99_us > SLOW_US).then(|| {
            format!(
                "since the start one woken task in 100 waited {least} ms or longer: too much work, \
                 or a feature does not suit it (docs/troubleshooting.md#it-is-slow)"
            )
        })
    }

    pub fn lines(&self) -> Vec<(&'static str, String)> {
        if self.wakeups == 0 {
            return vec![("wakeups", "none yet".to_string())];
        }
        let mut lines = vec![
            (
                "wakeups",
                format!(
                    "{}: {:.0} % to a wholly idle core, {:.0} % to the CPU where the task ran last, \
                     {:.1} % to another cache; {:.1} % found no idle CPU",
                    short(self.wakeups),
                    self.idle_core_percent,
                    self.same_cpu_percent,
                    self.other_cache_percent,
                    self.no_idle_cpu_percent
                ),
            ),
            (
                "latency",
                format!(
                    "half of the woken tasks ran within {} us, 99 of 100 within {} us",
                    self.wakeup_p50_us, self.wakeup_p99_us
                ),
            ),
        ];
        if self.spread > 0 || self.stolen > 0 {
            let moved = format!(
                "running tasks from a shared core to an idle one: {}; waiting tasks to a CPU without \
                 work: {}",
                short(self.spread),
                short(self.stolen)
            );
            lines.push(("moved", moved));
        }
        lines
    }
}

/// Of numbers of any server.
fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// Wakeup latencies of all arms.
fn latencies(m: &Metrics) -> Histogram {
    let mut sum = [0u64; NR_BUCKETS];
    for arm in m.arms.values() {
        for (all, n) in sum.iter_mut().zip(&arm.histograms.wakeup_latency) {
            *all = all.saturating_add(*n);
        }
    }
    sum
}

/// '12.3 M'.
fn short(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{} k", n / 1000),
        1_000_000..1_000_000_000 => format!("{:.1} M", n as f64 / 1e6),
        _ => format!("{:.1} G", n as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            (short(9999), short(12_345_678)),
            ("9999".into(), "12.3 M".into())
        );
        assert_eq!(short(20_500), "20 k");
    }
}
