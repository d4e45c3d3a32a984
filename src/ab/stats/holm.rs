// SPDX-License-Identifier: GPL-2.0-only
//! Many comparisons at once (Holm 1979): the chance of one false difference among them all stays what it is for one.

/// A p as it counts among so many, whatever the others are, which may not be known yet (Bonferroni). Never less than `adjusted` makes it.
pub fn among(p: f64, all: usize) -> f64 {
    (p * all as f64).min(1.0)
}

/// Each p as it counts among all of them, in their order.
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
