// SPDX-License-Identifier: GPL-2.0-only
//! Two variants, block by block: the differences of their values.

use super::sample::median;
use serde::{Deserialize, Serialize};

/// How differences are expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// ln(other) - ln(base). All values are above 0.
    Ratio,
    /// other - base, in the unit of the metric: some value is 0 or less.
    Difference,
}

/// Differences are rounded to this part of the largest value, a power of two. Those that are equal
/// by their decimal numbers (12.4 - 12.3 and 0.2 - 0.1; 2 / 1 and 8 / 4) then are equal, and the
/// mean of a difference and its opposite is 0.
const STEP: f64 = 1.0 / (1_u64 << 40) as f64;

/// The least power of two that is at least as large as all values. 1 if all are 0.
fn power_of_two<'a>(values: impl Iterator<Item = &'a f64>) -> f64 {
    let most = values.fold(0.0_f64, |most, v| most.max(v.abs()));
    if most > 0.0 {
        most.log2().ceil().exp2()
    } else {
        1.0
    }
}

/// The differences of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    pub scale: Scale,
    pub differences: Vec<f64>,
    /// The smaller median of the two variants, without its sign. Not that of the first variant: a
    /// part of it would then change when the variants are exchanged.
    pub size: f64,
    /// Differences are multiples of it.
    grid: f64,
}

impl Pairs {
    /// One value per block; both lists have the same length.
    pub fn new(base: &[f64], other: &[f64]) -> Pairs {
        let positive = base.iter().chain(other).all(|v| *v > 0.0);
        let scale = match positive {
            true => Scale::Ratio,
            false => Scale::Difference,
        };
        Pairs::on(scale, base, other)
    }

    /// `Scale::Ratio` needs values above 0.
    pub fn on(scale: Scale, base: &[f64], other: &[f64]) -> Pairs {
        // Not ln(o / b): rounding makes ln(41 / 40) larger than -ln(40 / 41), so equal ranks would
        // not be equal, and one sign would always be above the other.
        let difference: fn(f64, f64) -> f64 = match scale {
            Scale::Ratio => |b, o| o.ln() - b.ln(),
            Scale::Difference => |b, o| o - b,
        };
        let both = base.iter().zip(other);
        let grid = STEP
            * match scale {
                Scale::Ratio => 1.0,
                Scale::Difference => power_of_two(base.iter().chain(other)),
            };
        let exact = both.map(|(b, o)| difference(*b, *o));
        Pairs {
            scale,
            differences: exact.map(|d| (d / grid).round() * grid).collect(),
            grid,
            size: median(base).abs().min(median(other).abs()),
        }
    }

    /// A part of the smaller value (0.02: 2 %), as a difference.
    pub fn part(&self, part: f64) -> f64 {
        self.bound(match self.scale {
            Scale::Ratio => part.ln_1p(),
            Scale::Difference => part * self.size,
        })
    }

    /// A number in the unit of the values, as a difference.
    pub fn unit(&self, unit: f64) -> f64 {
        self.bound(match self.scale {
            Scale::Ratio => (unit / self.size).ln_1p(),
            Scale::Difference => unit,
        })
    }

    /// A bound of differences, never below one that equals it by its decimal numbers.
    fn bound(&self, exact: f64) -> f64 {
        (exact / self.grid).ceil() * self.grid
    }

    /// A difference as it is shown: the ratio other / base, or other - base.
    pub fn shown(&self, difference: f64) -> f64 {
        match self.scale {
            Scale::Ratio => difference.exp(),
            Scale::Difference => difference,
        }
    }
}
