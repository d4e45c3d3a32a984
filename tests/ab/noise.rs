// SPDX-License-Identifier: GPL-2.0-only
//! Made-up runs: how they scatter and drift, what they leave behind, and the effect of a variant.

use scx_roost::ab::design::{Design, Turn};
use scx_roost::ab::stats::turns::Point;
use scx_roost::util::rng::Rng;

/// How runs vary, whatever their variant.
#[derive(Clone, Copy, Debug)]
pub enum Noise {
    /// Coefficient of variation.
    Normal(f64),
    /// Each run correlates so with the one before it.
    Following(f64),
    /// Slower by this part at the end.
    Drift(f64),
    /// Slower by a tenth from some run on.
    Throttled,
    /// Every second run is slower by 5 %.
    Alternating,
    /// One run in seven is slower by a fifth.
    TwoModes,
    /// One run in ten takes five times as long.
    Outliers,
    /// Lognormal, as scattered as its mean.
    Wild,
    /// Counts of this mean.
    Poisson(f64),
    /// Nine in ten are 0.
    Zeros,
    /// Others use the machine for a fifth of the time, three runs long.
    Shared,
    /// Few values: ties.
    Coarse,
}

/// What runs of the second variant leave behind: later runs are slower by up to `most`, and of what
/// is left a run leaves the part `decay`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heat {
    pub most: f64,
    pub decay: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    pub noise: Noise,
    pub heat: Heat,
    /// How many times as slow each variant is.
    pub factors: &'a [f64],
}

pub fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * rng.part().ln()).sqrt() * (std::f64::consts::TAU * rng.part()).cos()
}

fn poisson(mean: f64, rng: &mut Rng) -> f64 {
    let (mut count, mut left) = (0.0, (-mean).exp());
    let mut at = rng.part();
    while at > left {
        at -= left;
        count += 1.0;
        left *= mean / count;
    }
    count
}

impl Noise {
    /// `count` runs in order, around 1; `mean`: of counts by run.
    fn runs(self, count: usize, mean: &dyn Fn(usize) -> f64, rng: &mut Rng) -> Vec<f64> {
        let (mut before, mut busy) = (normal(rng), false);
        let from = rng.below(count as u64) as usize;
        let mut next = |at: usize| {
            let z = 1.0 + 0.01 * normal(rng);
            match self {
                Noise::Normal(cv) => 1.0 + cv * normal(rng),
                Noise::Following(part) => {
                    before = part * before + (1.0 - part * part).sqrt() * normal(rng);
                    1.0 + 0.03 * before
                }
                Noise::Drift(part) => {
                    (1.0 + 0.03 * normal(rng)) * (1.0 + part * at as f64 / count as f64)
                }
                Noise::Throttled if at >= from => z * 1.1,
                Noise::Throttled => z,
                Noise::Alternating => z * (1.0 + 0.05 * (at % 2) as f64),
                Noise::TwoModes if rng.below(7) == 0 => z * 1.2,
                Noise::TwoModes => z,
                Noise::Outliers if rng.below(10) == 0 => 5.0,
                Noise::Outliers => 1.0 + 0.03 * normal(rng),
                Noise::Wild => (0.83 * normal(rng)).exp(),
                Noise::Poisson(usual) => poisson(usual * mean(at), rng),
                Noise::Zeros if rng.below(10) == 0 => -rng.part().ln(),
                Noise::Zeros => 0.0,
                Noise::Shared => {
                    if at.is_multiple_of(3) {
                        busy = rng.below(5) == 0;
                    }
                    z * if busy { 1.2 } else { 1.0 }
                }
                Noise::Coarse => 40.0 + normal(rng).round(),
            }
        };
        (0..count).map(&mut next).collect()
    }
}

/// The runs of this order, of which each has a variant.
pub fn runs(workload: Workload, order: &[usize], rng: &mut Rng) -> Vec<f64> {
    let factor = |at: usize| workload.factors[order[at]];
    let noise = workload.noise.runs(order.len(), &factor, rng);
    let counts = matches!(workload.noise, Noise::Poisson(_));
    let Heat { most, decay } = workload.heat;
    let mut left = 0.0;
    let run = |(at, value): (usize, f64)| {
        let effect = if counts { 1.0 } else { factor(at) };
        let value = value * effect * (1.0 + most * left);
        left = decay * left + (1.0 - decay) * f64::from(u8::from(order[at] == 1));
        value
    };
    noise.into_iter().enumerate().map(run).collect()
}

/// The turns of the first variant and another one, for each other.
pub fn points(workload: Workload, rounds: usize, seed: u64) -> Vec<Vec<Point>> {
    let design = Design {
        seed,
        variants: workload.factors.len(),
        warmups: 0,
        boots: None,
        even: false,
    };
    let order = design.order(rounds);
    let variants: Vec<usize> = order.iter().map(|t| t.variant).collect();
    let values = runs(workload, &variants, &mut Rng::stream(seed, 1));
    let of = |other: usize| {
        let both = order.iter().zip(&values);
        let both = both.filter(|(turn, _)| [0, other].contains(&turn.variant));
        both.map(|(turn, value)| point(turn, *value)).collect()
    };
    (1..design.variants).map(of).collect()
}

fn point(turn: &Turn, value: f64) -> Point {
    Point {
        turn: turn.turn.unwrap(),
        value,
        other: turn.variant > 0,
        drawn: turn.drawn,
        failed: 0,
    }
}
