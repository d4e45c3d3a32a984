// SPDX-License-Identifier: GPL-2.0-only
//! What is read of a run, and how much better one policy is than another.

use crate::Measured;
use anyhow::{Context, Result, bail};
use scx_roost::util::distributions::t_quantile;
use serde::Serialize;
use std::fmt;

/// Standard errors within which nothing is decided. With few runs Student's t replaces it.
const ERRORS: f64 = 2.0;
/// The quantile of Student's t: 95 % within both limits.
const SHARE: f64 = 0.975;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Counted items per second.
    Rate,
    /// us that this many of a thousand of the workload's latencies do not exceed.
    Quantile(u64),
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Metric::Rate => f.pad("rate"),
            Metric::Quantile(permille) => f.pad(&format!("p{}", *permille as f64 / 10.0)),
        }
    }
}

impl Metric {
    /// Reads `rate`, `p99.5` and so on. Errors: there is no such metric.
    pub fn parse(name: &str) -> Result<Metric> {
        let quantile = name.strip_prefix('p').and_then(|p| p.parse::<f64>().ok());
        match (name, quantile) {
            ("rate", _) => Ok(Metric::Rate),
            (_, Some(percent)) => Ok(Metric::Quantile((percent * 10.0).round() as u64)),
            _ => bail!("there is no metric {name}"),
        }
    }

    pub fn of(self, m: &Measured) -> Result<f64> {
        Ok(match self {
            Metric::Rate => 1e9 / m.time_of_one(),
            Metric::Quantile(permille) => {
                let ns = m.quantile(permille).context("it measures no latency")?;
                ns as f64 / 1e3
            }
        })
    }

    /// How much better `variant` is than `base`, percent. Runs with the same seed are a pair.
    pub fn gain(self, base: &[f64], variant: &[f64]) -> Gain {
        match self {
            Metric::Rate => change(base, variant),
            Metric::Quantile(_) => change(variant, base),
        }
    }
}

/// How much better a policy is than the base, percent, and the standard error. One run has none.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Gain {
    pub value: f64,
    pub error: Option<f64>,
    /// Pairs of runs.
    pub runs: u64,
}

/// The change of the mean, percent. Runs with the same seed are a pair, so what the seed does to
/// both is no error.
fn change(from: &[f64], to: &[f64]) -> Gain {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (before, after) = (mean(from), mean(to));
    let ratio = after / before;
    let n = from.len() as f64;
    let off = from.iter().zip(to).map(|(f, t)| t / after - f / before);
    let spread: f64 = off.map(|off| off * off).sum();
    let error = (spread / (n - 1.0) / n).sqrt() * ratio * 100.0;
    Gain {
        value: (ratio - 1.0) * 100.0,
        error: (from.len() > 1).then_some(error),
        runs: from.len() as u64,
    }
}

/// How far ours is behind the base.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Behind {
    pub points: f64,
    /// The error of the gain may explain all of it. One run has no error, so it decides nothing.
    pub undecided: bool,
}

impl Gain {
    /// How far it is below 0. None: by no more points than `limit`.
    pub fn behind(&self, limit: f64) -> Option<Behind> {
        let points = -self.value;
        let reach = self.error.and_then(|error| reach(error, self.runs));
        (points > limit).then_some(Behind {
            points,
            undecided: self.runs < 2 || reach.is_some_and(|reach| points < reach),
        })
    }
}

/// How far the true value may be from the mean of `runs` runs: two standard errors, more for few
/// runs.
fn reach(error: f64, runs: u64) -> Option<f64> {
    Some(error * t_quantile((runs as usize).checked_sub(1)?, SHARE)?.max(ERRORS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_is_what_errors_do_not_explain() {
        let of = |value: f64, error: Option<f64>, runs: u64| {
            let gain = Gain { value, error, runs };
            gain.behind(1.5).map(|b| b.undecided)
        };
        assert_eq!(of(-50.0, None, 1), Some(true));
        assert_eq!(of(-1.5, None, 100), None);
        assert_eq!(of(-1.6, None, 100), Some(false));
        assert_eq!(of(-10.0, Some(5.0), 100), Some(false));
        assert_eq!(of(-9.9, Some(5.0), 100), Some(true));
        assert_eq!(of(9.0, None, 100), None);
    }
}
