// SPDX-License-Identifier: GPL-2.0-only
//! The signed-rank test (Wilcoxon 1945): whether differences are more often, and further, above 0
//! than below. Exact up to `EXACT_MAX` differences, also with ties. Each sign is a fair coin,
//! because a die decided each variant. Where runs heat later ones, ranks depend on earlier signs,
//! and the error is nearly the one that was asked for (docs/explanation/calibration.md).

use crate::util::distributions::{normal_cdf, normal_quantile};

/// Above this the normal approximation is good to three digits, and the exact count is slow.
pub const EXACT_MAX: usize = 100;

/// Sums of ranks. Zeros are left out; ties share the mean of their ranks.
pub struct SignedRank {
    /// Twice the sum of ranks of positive differences: with ties a rank may be a half.
    plus: usize,
    /// Twice the rank of each difference that is not 0.
    ranks: Vec<usize>,
}

/// Chances of a result at least this extreme, if signs were fair coins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct P {
    /// Chance of a sum at least this large. Small: the differences are above 0.
    pub greater: f64,
    /// Chance of a sum at most this large.
    pub less: f64,
}

impl P {
    pub const NOTHING: P = P {
        greater: 1.0,
        less: 1.0,
    };

    /// The larger chance of both in each direction: what two tests agree on.
    pub fn both(self, other: P) -> P {
        P {
            greater: self.greater.max(other.greater),
            less: self.less.max(other.less),
        }
    }

    pub fn two_sided(&self) -> f64 {
        (2.0 * self.greater.min(self.less)).min(1.0)
    }
}

impl SignedRank {
    pub fn new(differences: &[f64]) -> SignedRank {
        let other: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
        let ranks = twice_ranks(&other);
        let above = other.iter().zip(&ranks).filter(|(d, _)| **d > 0.0);
        SignedRank {
            plus: above.map(|(_, rank)| rank).sum(),
            ranks,
        }
    }

    /// The sum of ranks of positive differences.
    pub fn sum(&self) -> f64 {
        self.plus as f64 / 2.0
    }

    pub fn p(&self) -> P {
        match self.ranks.len() {
            0 => P::NOTHING,
            1..=EXACT_MAX => self.exact(),
            _ => self.approximate(),
        }
    }

    /// Both are lower tails, summed in the same order: the distribution is symmetric, and so are
    /// the two chances when all signs change.
    pub fn exact(&self) -> P {
        let chances = null_distribution(&self.ranks);
        let tail = |sum: usize| chances[..=sum].iter().sum::<f64>().min(1.0);
        P {
            greater: tail(chances.len() - 1 - self.plus),
            less: tail(self.plus),
        }
    }

    /// With continuity correction; the correction for ties is in the ranks.
    pub fn approximate(&self) -> P {
        let mean = self.ranks.iter().sum::<usize>() as f64 / 4.0;
        let squares = self.ranks.iter().map(|r| (r * r) as f64).sum::<f64>();
        let deviation = (squares / 16.0).sqrt();
        let z = |sum: f64| (sum - mean) / deviation;
        P {
            greater: normal_cdf(-z(self.sum() - 0.5)),
            less: normal_cdf(z(self.sum() + 0.5)),
        }
    }
}

fn twice_ranks(values: &[f64]) -> Vec<usize> {
    let size = |i: &usize| values[*i].abs();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| size(a).total_cmp(&size(b)));
    let mut ranks = vec![0; values.len()];
    let mut below = 0;
    for tied in order.chunk_by(|a, b| size(a) == size(b)) {
        // Twice the mean of ranks below + 1 to below + len.
        let rank = 2 * below + tied.len() + 1;
        tied.iter().for_each(|i| ranks[*i] = rank);
        below += tied.len();
    }
    ranks
}

/// The chance of each sum of ranks, if each rank is included by a fair coin.
fn null_distribution(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    let mut top = 0;
    for &rank in ranks {
        top += rank;
        for sum in (0..=top).rev() {
            let taken = sum.checked_sub(rank).map_or(0.0, |rest| chances[rest]);
            chances[sum] = (chances[sum] + taken) / 2.0;
        }
    }
    chances
}

/// The chance that a sum of ranks of n differences (no ties, no zeros) is at most this.
pub fn chance_of_sum(n: usize, sum: usize) -> f64 {
    if n > EXACT_MAX {
        let (mean, deviation) = approximate(n as f64);
        return normal_cdf((sum as f64 + 0.5 - mean) / deviation);
    }
    let chances = null_distribution(&(1..=n).collect::<Vec<_>>());
    chances.iter().take(sum + 1).sum()
}

/// Mean and standard deviation of the sum of ranks.
fn approximate(n: f64) -> (f64, f64) {
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
    (n * (n + 1.0) / 4.0, variance.sqrt())
}

/// The largest sum of ranks of n differences (no ties, no zeros) whose lower tail has a chance of
/// at most `tail`. None: not even the sum 0 has.
pub fn critical_sum(n: usize, tail: f64) -> Option<usize> {
    if n > EXACT_MAX {
        return approximate_critical_sum(n as f64, tail);
    }
    let chances = null_distribution(&(1..=n).collect::<Vec<_>>());
    let mut sum = 0.0;
    let within = chances.iter().take_while(|chance| {
        sum += **chance;
        sum <= tail
    });
    within.count().checked_sub(1)
}

fn approximate_critical_sum(n: f64, tail: f64) -> Option<usize> {
    let (mean, deviation) = approximate(n);
    let sum = mean + deviation * normal_quantile(tail) - 0.5;
    (sum >= 0.0).then_some(sum as usize)
}
