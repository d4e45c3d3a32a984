// SPDX-License-Identifier: GPL-2.0-only
//! Statistics of paired blocks. Pure: no clock, no files, and randomness comes from a given seed.
//!
//! Begin with `verdict`. `pairs` has the values to compare, `rank` and `shift` the signed-rank test
//! and its estimate. `bootstrap` has the interval of the median, `plan` the times of looks. `holm`
//! corrects many comparisons, and `power` says what can be found at all.

pub mod bootstrap;
pub mod holm;
pub mod pairs;
pub mod plan;
pub mod power;
pub mod rank;
pub mod sample;
pub mod shift;
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
    #[cfg(feature = "internals")]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    pub fn map(self, f: impl Fn(f64) -> f64) -> Interval {
        Interval {
            low: f(self.low),
            high: f(self.high),
        }
    }
}
