// SPDX-License-Identifier: GPL-2.0-only
//! What a number of blocks can find, and how many are needed.

use super::Interval;
#[cfg(feature = "internals")]
use super::rank::critical_sum;
use crate::util::distributions::{normal_quantile, t_quantile};

/// Blocks that the signed-rank test needs per block of the t test, for normal differences
/// (efficiency 3/pi; Hodges and Lehmann 1956).
#[cfg(feature = "internals")]
const RANKS_COST: f64 = std::f64::consts::PI / 3.0;

/// How much more than the quantiles of t say, for one block (`FEW` / n for n of them) and one
/// standard deviation of the bound: a scatter that was seen in few blocks may be too small. Fitted
/// to normal differences of 6 to 60 blocks; `the_least_effect_is_one_that_is_found` tests it.
const FEW: f64 = 0.58;

/// The least shift that is found with chance `power`. `interval`: of the shift of n differences, at
/// level 1 - `alpha`.
pub fn least_shift(interval: Interval, n: usize, alpha: f64, power: f64) -> Option<f64> {
    let (bound, beyond) = (t(n, 1.0 - alpha / 2.0)?, t(n, power)?);
    let few = 1.0 + FEW * normal_quantile(1.0 - alpha / 2.0) / n as f64;
    Some(interval.half_width() * few * (bound + beyond) / bound)
}

/// Blocks needed to find `effect` (0.05: 5 % slower) with chance `power`, if runs of a variant have
/// a coefficient of variation `cv` (0.03: 3 %).
#[cfg(feature = "internals")]
pub fn blocks_needed(cv: f64, effect: f64, alpha: f64, power: f64) -> usize {
    let shift = effect.ln_1p().abs();
    let variance = 2.0 * cv * cv * RANKS_COST;
    let enough = |n: &usize| {
        let known = t(*n, 1.0 - alpha / 2.0).zip(t(*n, power));
        known.is_some_and(|(bound, beyond)| {
            (bound + beyond).powi(2) * variance <= *n as f64 * shift * shift
        }) && critical_sum(*n, alpha / 2.0).is_some()
    };
    (2..100_000).find(enough).unwrap_or(100_000)
}

/// Quantile `share` of Student's t with n - 1 degrees of freedom. None: n is below 2.
pub fn t(n: usize, share: f64) -> Option<f64> {
    t_quantile(n.checked_sub(1)?, share)
}
