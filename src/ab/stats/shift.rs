// SPDX-License-Identifier: GPL-2.0-only
//! The shift of differences from 0, and its interval. The estimate is the median of the means of
//! all pairs (Hodges and Lehmann 1963). The interval is that of the shifts that the signed-rank
//! test does not reject.

use super::Interval;
use super::rank::{P, chance_of_sum, critical_sum};
use super::sample::quantile;

/// Means of all pairs of differences, each also paired with itself, sorted.
pub struct Walsh {
    means: Vec<f64>,
    n: usize,
}

impl Walsh {
    pub fn new(differences: &[f64]) -> Walsh {
        let with_rest = |(i, a): (usize, &f64)| {
            let a = *a;
            differences[i..].iter().map(move |b| (a + b) / 2.0)
        };
        let mut means: Vec<f64> = differences.iter().enumerate().flat_map(with_rest).collect();
        means.sort_unstable_by(f64::total_cmp);
        Walsh {
            means,
            n: differences.len(),
        }
    }

    /// None: there is no difference to estimate from.
    pub fn estimate(&self) -> Option<f64> {
        (self.n > 0).then(|| quantile(&self.means, 0.5))
    }

    /// The least error at which the interval excludes 0, on each side. With ties and zeros that is
    /// more than the chance of the signed-rank test, which leaves zeros out.
    pub fn p(&self) -> P {
        let (below, up_to) = (
            self.means.partition_point(|mean| *mean < 0.0),
            self.means.partition_point(|mean| *mean <= 0.0),
        );
        let chance = |sum: usize| chance_of_sum(self.n, sum).min(1.0);
        P {
            greater: chance(up_to),
            less: chance(self.means.len() - below),
        }
    }

    /// Covers the true shift with a chance of at least `level`. None: too few differences.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let outside = critical_sum(self.n, (1.0 - level) / 2.0)?;
        let (low, high) = (outside, self.means.len() - 1 - outside);
        Some(Interval {
            low: self.means[low],
            high: self.means[high],
        })
    }
}
