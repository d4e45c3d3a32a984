// SPDX-License-Identifier: GPL-2.0-only
//! Two samples that were not taken together: the shift of Hodges and Lehmann for them, with the
//! interval that the rank-sum test does not reject (Wilcoxon 1945, Mann and Whitney 1947).

use super::Interval;
use super::sample::quantile;
use crate::util::distributions::normal_quantile;

/// Up to so many values in each sample the distribution is counted, above it is approximated.
const EXACT_MAX: usize = 50;

/// The differences of each value of one sample from each of the other, sorted.
pub struct Unpaired {
    differences: Vec<f64>,
    sizes: [usize; 2],
}

/// More values make the interval hardly shorter, and their pairs are many.
const MOST: usize = 2000;

/// At most so many values, evenly from all.
fn thinned(values: &[f64]) -> Vec<f64> {
    let step = values.len().div_ceil(MOST).max(1);
    values.iter().step_by(step).copied().collect()
}

impl Unpaired {
    pub fn new(base: &[f64], other: &[f64]) -> Unpaired {
        let (base, other) = (thinned(base), thinned(other));
        let from = |o: &f64| {
            let o = *o;
            base.iter().map(move |b| o - b)
        };
        let mut differences: Vec<f64> = other.iter().flat_map(from).collect();
        differences.sort_unstable_by(f64::total_cmp);
        Unpaired {
            sizes: [base.len(), other.len()],
            differences,
        }
    }

    pub fn estimate(&self) -> f64 {
        quantile(&self.differences, 0.5)
    }

    /// Covers the true shift with a chance of at least `level`. None: too few values.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let outside = critical_count(self.sizes, (1.0 - level) / 2.0)?;
        let last = self.differences.len().checked_sub(1)?;
        Some(Interval {
            low: self.differences[outside],
            high: self.differences[last - outside],
        })
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
