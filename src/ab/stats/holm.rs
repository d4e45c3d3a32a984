// SPDX-License-Identifier: GPL-2.0-only
//! Corrects many comparisons (Holm 1979): the chance of any false difference among all stays that
//! of one.

/// p adjusted for `all` comparisons whose other p are not known yet (Bonferroni). Never less than
/// what `adjusted` gives.
pub fn among(p: f64, all: usize) -> f64 {
    (p * all as f64).min(1.0)
}

/// Each p adjusted for all of them, in their order.
pub fn adjusted(ps: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_unstable_by(|a, b| ps[*a].total_cmp(&ps[*b]));
    let mut all = vec![1.0; ps.len()];
    let mut least: f64 = 0.0;
    for (place, i) in order.into_iter().enumerate() {
        least = least.max(ps[i] * (ps.len() - place) as f64).min(1.0);
        all[i] = least;
    }
    all
}
