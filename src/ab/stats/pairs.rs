// SPDX-License-Identifier: GPL-2.0-only
//! Two variants, block by block: the differences of their values.

use super::sample::median;
use serde::{Deserialize, Serialize};

/// How differences are expressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// ln(other / base). All values are above 0.
    Ratio,
    /// other - base, in the unit of the metric: some value is 0 or less.
    Difference,
}

/// The differences of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    pub scale: Scale,
    pub differences: Vec<f64>,
    /// Median of the base variant.
    pub base: f64,
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
        let difference: fn(f64, f64) -> f64 = match scale {
            Scale::Ratio => |b, o| (o / b).ln(),
            Scale::Difference => |b, o| o - b,
        };
        let both = base.iter().zip(other);
        Pairs {
            scale,
            differences: both.map(|(b, o)| difference(*b, *o)).collect(),
            base: median(base),
        }
    }

    /// A part of the base (0.02: 2 %), as a difference.
    pub fn margin(&self, part: f64) -> f64 {
        match self.scale {
            Scale::Ratio => part.ln_1p(),
            Scale::Difference => part * self.base.abs(),
        }
    }

    /// A difference as it is shown: the ratio other / base, or other - base.
    pub fn shown(&self, difference: f64) -> f64 {
        match self.scale {
            Scale::Ratio => difference.exp(),
            Scale::Difference => difference,
        }
    }
}
