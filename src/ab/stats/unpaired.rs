// SPDX-License-Identifier: GPL-2.0-only
//! Two samples that were not taken together: the shift of Hodges and Lehmann for them, with the
//! interval that the rank-sum test does not reject (Wilcoxon 1945, Mann and Whitney 1947).

use super::Interval;
use crate::util::distributions::normal_quantile;

/// Up to so many values in each sample the distribution is counted, above it is approximated.
const EXACT_MAX: usize = 50;

/// Both samples, sorted. The differences of each value of one from each of the other may be 10,000
/// times 10,000, so they are counted and never listed.
pub struct Unpaired {
    base: Vec<f64>,
    other: Vec<f64>,
}

impl Unpaired {
    /// Neither is empty.
    pub fn new(base: &[f64], other: &[f64]) -> Unpaired {
        let sorted = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        Unpaired {
            base: sorted(base),
            other: sorted(other),
        }
    }

    /// The median of the differences.
    pub fn estimate(&self) -> f64 {
        let all = self.differences();
        (self.nth((all - 1) / 2) + self.nth(all / 2)) / 2.0
    }

    /// Covers the true shift with a chance of at least `level`. None: too few values.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let sizes = [self.base.len(), self.other.len()];
        let outside = critical_count(sizes, (1.0 - level) / 2.0)?;
        Some(Interval {
            low: self.nth(outside),
            high: self.nth(self.differences() - 1 - outside),
        })
    }

    fn differences(&self) -> usize {
        self.base.len() * self.other.len()
    }

    /// How many differences are at most this one.
    fn up_to(&self, difference: f64) -> usize {
        // The larger a value, the larger the first value of the base that is near enough.
        let mut first = 0;
        let near = |o: &f64| {
            first += self.base[first..].partition_point(|b| o - b > difference);
            self.base.len() - first
        };
        self.other.iter().map(near).sum()
    }

    /// The difference at this place, counted from 0, if they were sorted.
    fn nth(&self, place: usize) -> f64 {
        let (last, end) = (self.base.len() - 1, self.other.len() - 1);
        // No difference is at most `low`; more than `place` are at most `high`.
        let mut low = (self.other[0] - self.base[last]).next_down();
        let mut high = self.other[end] - self.base[0];
        loop {
            let middle = low + (high - low) / 2.0;
            if middle <= low || middle >= high {
                return high;
            }
            match self.up_to(middle) > place {
                true => high = middle,
                false => low = middle,
            }
        }
    }
}

/// The largest number of pairs in the unlikely order whose lower tail has a chance of at most
/// `tail`. None: not even 0 has.
fn critical_count([n, m]: [usize; 2], tail: f64) -> Option<usize> {
    if n.max(m) > EXACT_MAX {
        let (n, m) = (n as f64, m as f64);
        let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
        let count = n * m / 2.0 + deviation * normal_quantile(tail) - 0.5;
        return (count >= 0.0).then_some(count as usize);
    }
    let mut sum = 0.0;
    let chances = chances(n, m);
    let within = chances.iter().take_while(|chance| {
        sum += **chance;
        sum <= tail
    });
    within.count().checked_sub(1)
}

/// The chance of each number of pairs in that order, if all orders are as likely. The largest of
/// all values is of the first sample with the chance n / (n + m), and is then above m others.
fn chances(n: usize, m: usize) -> Vec<f64> {
    // By size of the first sample, for a growing second one.
    let mut all: Vec<Vec<f64>> = vec![vec![1.0]; n + 1];
    for second in 1..=m {
        let mut next = vec![vec![1.0]];
        for first in 1..=n {
            let part = first as f64 / (first + second) as f64;
            let mut now = vec![0.0; first * second + 1];
            for (count, chance) in next[first - 1].iter().enumerate() {
                now[count + second] += part * chance;
            }
            for (count, chance) in all[first].iter().enumerate() {
                now[count] += (1.0 - part) * chance;
            }
            next.push(now);
        }
        all = next;
    }
    all.swap_remove(n)
}
