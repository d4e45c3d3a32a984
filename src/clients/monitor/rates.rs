// SPDX-License-Identifier: GPL-2.0-only
//! Growth between two samples, per second.

use super::sample::Sample;
use crate::wire::stats::{
    ArmMetrics, Counters, HISTS, Histogram, NR_BUCKETS, NR_HISTS, NR_STATS, delta, quantile_us,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Shortest interval between samples, so that rates stay finite.
const SHORTEST: Duration = Duration::from_millis(1);

/// Indexed by enum roost_stat.
pub type PerSecond = [f64; NR_STATS];

#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    pub all: ArmRates,
    pub arms: BTreeMap<String, ArmRates>,
    /// For all arms together.
    pub cpus: BTreeMap<u64, PerSecond>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArmRates {
    pub counters: PerSecond,
    /// Growth over the interval, not per second. Indexed by enum roost_hist.
    pub hists: [Histogram; NR_HISTS],
    seconds: f64,
}

impl Rates {
    pub fn between(old: &Sample, new: &Sample) -> Rates {
        let seconds = new.at.saturating_sub(old.at).max(SHORTEST).as_secs_f64();
        let arm = |(name, arm): (&String, &ArmMetrics)| {
            let none = ArmMetrics::default();
            let before = old.totals.arms.get(name).unwrap_or(&none);
            let counters = delta(&arm.counters(), &before.counters());
            let (now, then) = (histograms(arm), histograms(before));
            let hists = std::array::from_fn(|h| grown(&now[h], &then[h]));
            (name.clone(), ArmRates::new(&counters, hists, seconds))
        };
        let arms: BTreeMap<String, ArmRates> = new.totals.arms.iter().map(arm).collect();
        let counters = delta(&new.totals.counters(), &old.totals.counters());
        let cpu = |(cpu, now): (&u64, &crate::wire::stats::host::CpuMetrics)| {
            let before = old.cpus.cpus.get(cpu)?;
            let grown = delta(&now.counters.counters(), &before.counters.counters());
            Some((*cpu, per_second(&grown, seconds)))
        };
        Rates {
            all: ArmRates::new(&counters, together(arms.values()), seconds),
            cpus: new.cpus.cpus.iter().filter_map(cpu).collect(),
            arms,
        }
    }

    /// Rates of one arm; None: of all together.
    pub fn of(&self, arm: Option<&str>) -> Option<&ArmRates> {
        match arm {
            Some(name) => self.arms.get(name),
            None => Some(&self.all),
        }
    }
}

impl ArmRates {
    fn new(counters: &Counters, hists: [Histogram; NR_HISTS], seconds: f64) -> ArmRates {
        ArmRates {
            counters: per_second(counters, seconds),
            hists,
            seconds,
        }
    }

    /// Events of a histogram per second.
    pub fn events(&self, hist: usize) -> f64 {
        let sum: u128 = self.hists[hist].iter().map(|n| u128::from(*n)).sum();
        sum as f64 / self.seconds
    }

    /// Wakeups per second: tasks that woke, were placed and ran.
    pub fn wakeups(&self) -> f64 {
        self.events(wakeup_latency())
    }

    /// Upper end in us of the bucket that contains quantile `share` (0 to 1); None without events.
    pub fn quantile(&self, hist: usize, share: f64) -> Option<u64> {
        (self.events(hist) > 0.0).then(|| quantile_us(&self.hists[hist], share))
    }

    /// Percentage of the wakeups that this counter counted; None without wakeups.
    pub fn share(&self, counter: usize) -> Option<f64> {
        let wakeups = self.wakeups();
        // The quotient may exceed 100: a task may be placed in one interval and run in the next.
        (wakeups > 0.0).then(|| (self.counters[counter] * 100.0 / wakeups).min(100.0))
    }
}

pub fn wakeup_latency() -> usize {
    HISTS
        .iter()
        .position(|name| *name == "wakeup_latency")
        .unwrap_or(0)
}

fn per_second(counters: &Counters, seconds: f64) -> PerSecond {
    counters.map(|n| n as f64 / seconds)
}

/// Buckets of each histogram. Zeros if their number differs, which another version may send.
fn histograms(arm: &ArmMetrics) -> [Histogram; NR_HISTS] {
    arm.hists()
        .map(|(buckets, _)| buckets.try_into().unwrap_or([0; NR_BUCKETS]))
}

/// Growth of each bucket, limited so that sums of buckets cannot overflow.
fn grown(now: &Histogram, then: &Histogram) -> Histogram {
    let limit = u64::MAX >> 16;
    std::array::from_fn(|b| now[b].saturating_sub(then[b]).min(limit))
}

fn together<'a>(arms: impl Iterator<Item = &'a ArmRates>) -> [Histogram; NR_HISTS] {
    let mut sum = [[0u64; NR_BUCKETS]; NR_HISTS];
    for arm in arms {
        for (sum, hist) in sum.iter_mut().zip(&arm.hists) {
            sum.iter_mut().zip(hist).for_each(|(s, n)| *s += n);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: u64, count: u64) -> Sample {
        let mut arm = ArmMetrics::default();
        arm.counters.placed_prev = count;
        arm.histograms.wakeup_latency = vec![0; NR_BUCKETS];
        arm.histograms.wakeup_latency[3] = count * 2;
        let mut sample = Sample {
            at: Duration::from_secs(seconds),
            ..Sample::default()
        };
        sample.totals.placed_prev = count;
        sample.totals.arms.insert("x".into(), arm);
        sample
    }

    fn placed_prev() -> usize {
        crate::bpf::intf::roost_stat_STAT_placed_prev as usize
    }

    #[test]
    fn rates_are_for_a_second() {
        let rates = Rates::between(&sample(1, 10), &sample(3, 40));
        assert_eq!(rates.all.counters[placed_prev()], 15.0);
        let arm = &rates.arms["x"];
        assert_eq!((arm.counters[placed_prev()], arm.wakeups()), (15.0, 30.0));
        assert_eq!(arm.share(placed_prev()), Some(50.0));
        assert_eq!(arm.quantile(wakeup_latency(), 0.5), Some(16));
        assert_eq!(rates.all.wakeups(), 30.0);
    }

    #[test]
    fn nothing_runs_backwards_and_nothing_is_infinite() {
        let rates = Rates::between(&sample(3, 40), &sample(3, 10));
        let arm = &rates.arms["x"];
        assert_eq!((arm.counters[placed_prev()], arm.wakeups()), (0.0, 0.0));
        assert_eq!(arm.share(placed_prev()), None);
        assert_eq!(arm.quantile(wakeup_latency(), 0.5), None);
        let mut huge = sample(3, u64::MAX / 2);
        huge.totals
            .arms
            .insert("y".into(), huge.totals.arms["x"].clone());
        let rates = Rates::between(&sample(3, 0), &huge);
        assert!(rates.all.wakeups().is_finite() && rates.all.wakeups() > 0.0);
    }

    #[test]
    fn histograms_of_another_length_are_ignored() {
        for length in [0, NR_BUCKETS - 1, NR_BUCKETS + 1] {
            let mut new = sample(2, 5);
            let arm = new.totals.arms.get_mut("x").unwrap();
            arm.histograms.wakeup_latency = vec![7; length];
            assert_eq!(Rates::between(&sample(1, 0), &new).all.wakeups(), 0.0);
        }
    }
}
