// SPDX-License-Identifier: GPL-2.0-only
//! Made-up runs of a workload: how they scatter and drift, and the effect of a variant.

use scx_roost::ab::design::{Design, Settle};
use scx_roost::util::rng::Rng;

/// How runs scatter around 1, by about 3 %.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    Normal,
    /// Exponential, with a long tail above.
    Skewed,
    /// One run in ten is disturbed and takes up to a third longer.
    Outliers,
    /// Each run correlates by 0.5 with the one before it.
    Following,
    /// Runs become slower, by a fifth at the end.
    Drifting,
    /// A metric with few values: ties and zeros.
    Coarse,
}

pub const ALL: [Noise; 6] = [
    Noise::Normal,
    Noise::Skewed,
    Noise::Outliers,
    Noise::Following,
    Noise::Drifting,
    Noise::Coarse,
];

pub const CV: f64 = 0.03;

pub fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * rng.part().ln()).sqrt() * (std::f64::consts::TAU * rng.part()).cos()
}

impl Noise {
    /// `count` runs in order.
    pub fn runs(self, count: usize, rng: &mut Rng) -> Vec<f64> {
        let mut before = normal(rng);
        let mut next = |at: usize| {
            let z = normal(rng);
            match self {
                Noise::Normal => 1.0 + CV * z,
                Noise::Skewed => 1.0 - CV * rng.part().ln(),
                Noise::Outliers if rng.below(10) == 0 => 1.0 + rng.part() / 3.0,
                Noise::Outliers => 1.0 + CV * z,
                Noise::Following => {
                    before = 0.5 * before + 0.75f64.sqrt() * z;
                    1.0 + CV * before
                }
                Noise::Drifting => 1.0 + CV * z + 0.2 * at as f64 / count as f64,
                Noise::Coarse => 40.0 + z.round(),
            }
        };
        (0..count).map(&mut next).collect()
    }
}

/// A comparison of variants; a factor is how many times as slow a variant is. Returns values by
/// variant and block.
pub fn compared(noise: Noise, factors: &[f64], blocks: usize, seed: u64) -> Vec<Vec<f64>> {
    let design = Design {
        seed,
        variants: factors.len(),
        warmups: 0,
        settle: Settle::Nowhere,
        boots: None,
    };
    let order = design.order(blocks);
    let runs = noise.runs(order.len(), &mut Rng::stream(seed, 1));
    let mut values = vec![vec![0.0; blocks]; factors.len()];
    for (turn, run) in order.into_iter().zip(runs) {
        if let Some(block) = turn.block {
            values[turn.variant][block] = run * factors[turn.variant];
        }
    }
    values
}
