// SPDX-License-Identifier: GPL-2.0-only
//! The designs that were weighed beside ours, each with the test that is usual for it.

use crate::noise::{Workload, runs};
use scx_roost::ab::stats::rank::SignedRank;
use scx_roost::util::distributions::normal_cdf;
use scx_roost::util::rng::Rng;

/// Blocks of one run of each of two variants, in random order: Wilcoxon's signed ranks. `settled`:
/// before each block an uncounted run of its first variant, unless that ran last.
pub fn blocks(workload: Workload, rounds: usize, settled: bool, seed: u64) -> f64 {
    let mut rng = Rng::stream(seed, 2);
    let (mut order, mut counted) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let first = rng.below(2) as usize;
        if settled && order.last() != Some(&first) {
            order.push(first);
        }
        counted.push(order.len());
        order.extend([first, 1 - first]);
    }
    let values = runs(workload, &order, &mut rng);
    let positive = values.iter().all(|v| *v > 0.0);
    let scaled = |v: f64| if positive { v.ln() } else { v };
    let difference = |at: &usize| {
        let sign = if order[*at] == 0 { 1.0 } else { -1.0 };
        let exact = sign * (scaled(values[at + 1]) - scaled(values[*at]));
        (exact * 1e9).round()
    };
    let differences: Vec<f64> = counted.iter().map(difference).collect();
    SignedRank::new(&differences).p().two_sided()
}

/// All runs in one random order, as many of each of two variants: the rank sum (Mann and Whitney),
/// which benchstat uses.
pub fn shuffled(workload: Workload, rounds: usize, seed: u64) -> f64 {
    let mut rng = Rng::stream(seed, 3);
    let mut order: Vec<usize> = (0..2 * rounds).map(|at| at % 2).collect();
    for end in (1..order.len()).rev() {
        order.swap(end, rng.below(end as u64 + 1) as usize);
    }
    let values = runs(workload, &order, &mut rng);
    let mut sorted: Vec<(f64, usize)> = values.into_iter().zip(order).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (n, all) = (rounds as f64, 2.0 * rounds as f64);
    let (mut below, mut sum, mut ties) = (0.0, 0.0, 0.0);
    for tied in sorted.chunk_by(|a, b| a.0 == b.0) {
        let count = tied.len() as f64;
        let own = tied.iter().filter(|(_, variant)| *variant == 1).count();
        sum += own as f64 * (below + (count + 1.0) / 2.0);
        ties += count.powi(3) - count;
        below += count;
    }
    let spread = (n * n / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)))).sqrt();
    let off = ((sum - n * (all + 1.0) / 2.0).abs() - 0.5).max(0.0);
    2.0 * normal_cdf(-off / spread.max(1e-9))
}
