// SPDX-License-Identifier: GPL-2.0-only
//! The shift of the mean: ln of the ratio of both means, or their difference. Ranks do not see how
//! far off a slow run is; the mean does.

use super::Interval;
use super::pairs::Scale;
use super::power::t;

/// The shift of the mean of one variant from that of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanShift {
    pub value: f64,
    /// Its standard error: of a ratio by its linear approximation (Cochran 1977, 6.4).
    error: f64,
    n: usize,
}

impl MeanShift {
    /// `Scale::Ratio` needs values above 0. One block has no interval.
    pub fn new(scale: Scale, base: &[f64], other: &[f64]) -> MeanShift {
        let (b, o) = (base.iter().sum::<f64>(), other.iter().sum::<f64>());
        if o < b {
            // Symmetric: the same sums in the same order for both directions.
            let swapped = MeanShift::new(scale, other, base);
            return MeanShift {
                value: -swapped.value,
                ..swapped
            };
        }
        let n = base.len() as f64;
        // The value of a run of the base that would make no difference, plus `center`.
        let (value, factor, center, whole) = match scale {
            Scale::Ratio => (o.ln() - b.ln(), o / b, 0.0, o),
            Scale::Difference => ((o - b) / n, 1.0, (o - b) / n, n),
        };
        let left = base.iter().zip(other).map(|(b, o)| o - factor * b - center);
        let squares: f64 = left.map(|l| l * l).sum();
        MeanShift {
            value,
            error: (squares * n / (n - 1.0)).sqrt() / whole,
            n: base.len(),
        }
    }

    /// By Student's t. None for fewer than two blocks.
    pub fn interval(&self, level: f64) -> Option<Interval> {
        let around = t(self.n, (1.0 + level) / 2.0)? * self.error;
        Some(Interval {
            low: self.value - around,
            high: self.value + around,
        })
    }
}
