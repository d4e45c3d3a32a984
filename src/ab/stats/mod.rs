// SPDX-License-Identifier: GPL-2.0-only
//! Statistics of runs in random order. Pure: no clock, no files, no randomness.
//!
//! Begin with `verdict`. `turns` has the values to compare, `rank` and `shift` the signed-rank test
//! with its estimate and interval. `plan` has the times of looks.
//!
//! Every verdict is symmetric: exchange the variants, and `better` becomes `worse` with the same p.

pub mod plan;
pub mod rank;
pub mod sample;
pub mod shift;
pub mod turns;
pub mod verdict;

use serde::{Deserialize, Serialize};

/// From `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether the value is in the interval.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the whole of this interval is in the other one.
    pub fn within(&self, other: Interval) -> bool {
        other.low <= self.low && self.high <= other.high
    }

    pub fn widened(&self, by: f64) -> Interval {
        Interval {
            low: self.low - by,
            high: self.high + by,
        }
    }

    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// The shortest interval that also has this value.
    pub fn and(self, value: f64) -> Interval {
        Interval {
            low: self.low.min(value),
            high: self.high.max(value),
        }
    }

    pub fn map(self, f: impl Fn(f64) -> f64) -> Interval {
        Interval {
            low: f(self.low),
            high: f(self.high),
        }
    }
}
