// SPDX-License-Identifier: GPL-2.0-only
//! Two variants, in the order of their runs. Each drawn run is compared with the latest runs of
//! both before it.
//!
//! A die decided the variant of a drawn run, so whatever came before (drift, heat that decays over
//! several runs, a throttled CPU) cannot tell it. If the variant makes no difference, a run is then
//! as likely above the usual value before it as below, under either variant: with the sign of the
//! variant, the distance is a fair coin. If it makes one, that is half the effect away from 0: the
//! usual value lies between both variants.

use super::Interval;
use super::sample::{mean, median};
use crate::util::distributions::t_quantile;
use serde::{Deserialize, Serialize};

/// Runs of each variant before a run whose median it is compared with. Three bear one outlier, and
/// average as much noise out as the mean of two. More follow a drift later.
const LATEST: usize = 3;

/// A turn of one of the two variants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub turn: usize,
    pub value: f64,
    /// It is of the other variant, not of the base.
    pub other: bool,
    /// A die decided its variant.
    pub drawn: bool,
    /// How often it was made again, because the command failed.
    pub failed: usize,
}

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
/// Smaller numbers are 0 beside what computers measure, and have no such part.
const LEAST: f64 = 1e-200;

/// The least power of two that is at least as large as all values. 1 if all are 0.
fn power_of_two(values: impl Iterator<Item = f64>) -> f64 {
    let most = values.fold(0.0_f64, |most, v| most.max(v.abs()));
    if most > 0.0 {
        most.log2().ceil().exp2()
    } else {
        1.0
    }
}

/// The differences of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Differences {
    pub scale: Scale,
    /// One for each drawn run: an estimate of other - base.
    pub values: Vec<f64>,
    /// The same, where a failed run counts as the worst.
    pub with_failed: Vec<f64>,
    /// The smaller median of the two variants, without its sign. Not that of the base: a part of it
    /// would then change when the variants are exchanged.
    pub size: f64,
    /// Differences are multiples of it.
    grid: f64,
}

impl Differences {
    /// `worst`: the value of a failed run, which is infinite.
    pub fn new(points: &[Point], worst: f64) -> Differences {
        let scale = match points.iter().all(|p| p.value > 0.0) {
            true => Scale::Ratio,
            false => Scale::Difference,
        };
        Differences::on(scale, points, worst)
    }

    /// `Scale::Ratio` needs values above 0.
    pub fn on(scale: Scale, points: &[Point], worst: f64) -> Differences {
        let of = |other: bool| points.iter().filter(move |p| p.other == other);
        let usual = |other: bool| median(&of(other).map(|p| p.value).collect::<Vec<_>>()).abs();
        let grid = STEP
            * match scale {
                Scale::Ratio => 1.0,
                Scale::Difference => power_of_two(points.iter().map(|p| p.value)),
            }
            .max(LEAST);
        let mut differences = Differences {
            scale,
            values: Vec::new(),
            with_failed: Vec::new(),
            size: usual(false).min(usual(true)),
            grid,
        };
        let mut before = [Vec::new(), Vec::new()];
        for point in points {
            let value = match scale {
                Scale::Ratio => point.value.ln(),
                Scale::Difference => point.value,
            };
            let known = before.iter().all(|values| !values.is_empty());
            if point.drawn && known {
                let [base, other] = before.each_ref().map(|values| latest(values));
                differences.add(point, 2.0 * value - (base + other), worst);
            }
            before[usize::from(point.other)].push(value);
        }
        differences
    }

    /// `above`: twice the distance of the run from what is usual before it.
    fn add(&mut self, point: &Point, above: f64, worst: f64) {
        let sign = if point.other { 1.0 } else { -1.0 };
        let value = sign * (above / self.grid).round() * self.grid;
        self.values.push(value);
        let failed = (point.failed > 0).then_some(sign * worst);
        self.with_failed.push(failed.unwrap_or(value));
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

fn latest(values: &[f64]) -> f64 {
    median(&values[values.len().saturating_sub(LATEST)..])
}

/// The interval of the mean difference, as a part of the size, by Student's t. Ranks do not see how
/// far off a slow run is; the mean does. None: fewer than two differences.
pub fn mean_interval(points: &[Point], level: f64) -> Option<Interval> {
    let differences = Differences::on(Scale::Difference, points, 0.0);
    let values = &differences.values;
    let (n, center) = (values.len() as f64, mean(values));
    let quantile = t_quantile(values.len().checked_sub(1)?, (1.0 + level) / 2.0)?;
    let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
    let around = quantile * (squares / (n - 1.0) / n).sqrt();
    let whole = Interval {
        low: center - around,
        high: center + around,
    };
    let size = if differences.size > 0.0 {
        differences.size
    } else {
        1.0
    };
    Some(whole.map(|value| value / size))
}
