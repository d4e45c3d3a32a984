// SPDX-License-Identifier: GPL-2.0-only
//! What a number of blocks can find.

use super::Interval;
use crate::util::distributions::{normal_quantile, t_quantile};

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

/// Quantile `share` of Student's t with n - 1 degrees of freedom. None: n is below 2.
pub fn t(n: usize, share: f64) -> Option<f64> {
    t_quantile(n.checked_sub(1)?, share)
}
