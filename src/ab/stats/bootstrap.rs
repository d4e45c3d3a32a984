// SPDX-License-Identifier: GPL-2.0-only
//! Bootstrap intervals: the distribution of a statistic over resampled blocks (Efron 1979). The
//! interval is that of percentiles, widened as much as Student's t is wider than the normal
//! distribution (Hesterberg 2015). Percentiles alone are too narrow for few blocks.

use super::Interval;
use super::sample::quantile;
use crate::util::distributions::{normal_cdf, t_quantile};
use crate::util::rng::Rng;

/// Fewer blocks cannot bound their median with 95 %: all are on one side of it with chance 2 / 2^n.
pub const MIN_BLOCKS: usize = 6;

/// Covers the true value of `statistic` with a chance of about `level`. None for fewer than
/// `MIN_BLOCKS` values.
pub fn interval(
    values: &[f64],
    statistic: impl Fn(&mut [f64]) -> f64,
    level: f64,
    resamples: usize,
    rng: &mut Rng,
) -> Option<Interval> {
    let n = values.len();
    let tail = tail(n, level)?;
    let mut drawn = vec![0.0; n];
    let mut all: Vec<f64> = (0..resamples)
        .map(|_| {
            let draw = |slot: &mut f64| *slot = values[rng.below(n as u64) as usize];
            drawn.iter_mut().for_each(draw);
            statistic(&mut drawn)
        })
        .collect();
    all.sort_unstable_by(f64::total_cmp);
    Some(Interval {
        low: quantile(&all, tail),
        high: quantile(&all, 1.0 - tail),
    })
}

/// The part beyond each end of the interval for n blocks. None below `MIN_BLOCKS`.
pub fn tail(n: usize, level: f64) -> Option<f64> {
    if n < MIN_BLOCKS {
        return None;
    }
    let t = t_quantile(n - 1, (1.0 - level) / 2.0)?;
    let widened = t * (n as f64 / (n - 1) as f64).sqrt();
    Some(normal_cdf(widened))
}
