// SPDX-License-Identifier: GPL-2.0-only
//! Whether a simulated effect agrees with the published one. If that is above 2 %, the sign must be
//! right and the size near. Else there must be no effect. If the published error is larger than
//! what the row has to show, it shows nothing. The standard error of few runs is uncertain, so
//! Student's t replaces the factor of two.

use super::Figure;
use super::rows::{Row, Use};
use crate::util::distributions::t_quantile;
use serde::Serialize;

/// An effect of fewer percent is none. Also the points that a control may be off.
const NO_EFFECT: f64 = 2.0;
/// Standard errors within which nothing is decided.
const ERRORS: f64 = 2.0;
/// Points that arithmetic may lose.
const ROUNDED: f64 = 1e-6;
/// The quantile of Student's t: 95 % within both limits.
const SHARE: f64 = 0.975;
/// Points that a size may be off: of the workload that calibrates the model, and of others.
const NEAR_CALIBRATED: f64 = 5.0;
const NEAR: f64 = 8.0;
/// The most seeds that are suggested.
const MOST_SEEDS: u64 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Verdict {
    #[serde(rename = "ok")]
    Ok,
    #[serde(rename = "miss (sign)")]
    Sign,
    #[serde(rename = "miss (size)")]
    Size,
    #[serde(rename = "miss (effect where none)")]
    Effect,
    #[serde(rename = "underpowered")]
    Underpowered,
    #[serde(rename = "not modelled")]
    NotModelled,
    #[serde(rename = "sealed")]
    Sealed,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Sign => "miss (sign)",
            Verdict::Size => "miss (size)",
            Verdict::Effect => "miss (effect where none)",
            Verdict::Underpowered => "underpowered",
            Verdict::NotModelled => "not modelled",
            Verdict::Sealed => "sealed",
        }
    }
}

/// How far the true value may be from the mean of `runs` runs: two standard errors, more for few
/// runs. None: the error of one run is not known.
pub fn reach(figure: Figure, runs: u64) -> Option<f64> {
    Some(figure.error? * t_quantile((runs as usize).checked_sub(1)?, SHARE)?.max(ERRORS))
}

/// What is demanded of an effect, percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// The sign of `effect`, and a size within `near` points.
    Like { effect: f64, near: f64 },
    /// No effect: what was published is small.
    None,
    /// Nothing: what was published is within its own error.
    Nothing,
}

impl Demand {
    pub fn of(row: &Row) -> Demand {
        let effect = row.effect();
        let none = effect.abs() <= NO_EFFECT || row.used == Use::Control;
        let shows = if none { NO_EFFECT } else { effect.abs() };
        if row
            .reach(ERRORS)
            .is_some_and(|reach| reach + ROUNDED >= shows)
        {
            return Demand::Nothing;
        }
        if none {
            return Demand::None;
        }
        let near = match row.workload.starts_with("algorithm3") {
            true => NEAR_CALIBRATED,
            false => NEAR,
        };
        Demand::Like { effect, near }
    }

    /// The range of effects that are right.
    fn range(self) -> (f64, f64) {
        match self {
            Demand::None => (-NO_EFFECT, NO_EFFECT),
            Demand::Nothing => (f64::NEG_INFINITY, f64::INFINITY),
            Demand::Like { effect, near } if effect > 0.0 => {
                ((effect - near).max(0.0), effect + near)
            }
            Demand::Like { effect, near } => (effect - near, (effect + near).min(0.0)),
        }
    }

    /// Judges a simulated effect, the mean of `runs` runs.
    pub fn judge(self, simulated: Figure, runs: u64) -> Verdict {
        let (low, high) = self.range();
        let inside = (low..=high).contains(&simulated.value);
        match self {
            Demand::Nothing => Verdict::Underpowered,
            Demand::None if inside => Verdict::Ok,
            Demand::None => Verdict::Effect,
            Demand::Like { .. } if !self.signed(simulated, runs) => Verdict::Sign,
            Demand::Like { .. } if inside => Verdict::Ok,
            Demand::Like { .. } => Verdict::Size,
        }
    }

    /// True if an effect is demanded.
    pub fn has_sign(self) -> bool {
        matches!(self, Demand::Like { .. })
    }

    /// True if the effect has the demanded sign, and not by chance; or if none is demanded.
    pub fn signed(self, simulated: Figure, runs: u64) -> bool {
        let Demand::Like { effect, .. } = self else {
            return true;
        };
        let chance = reach(simulated, runs).unwrap_or(0.0);
        simulated.value * effect > 0.0 && simulated.value.abs() > chance
    }

    /// How many runs should decide the verdict, if the true effect may be on either side of a
    /// limit. None: it is decided, or the error is not known. It is also decided if there is no
    /// effect where one is demanded.
    pub fn undecided(self, simulated: Figure, runs: u64) -> Option<u64> {
        let (low, high) = self.range();
        let reach = reach(simulated, runs)?;
        if !self.signed(simulated, runs) && simulated.value.abs() + reach <= NO_EFFECT {
            return None;
        }
        let off = [low, high].map(|limit| (simulated.value - limit).abs());
        let off = off[0].min(off[1]);
        (reach > off).then(|| enough(simulated, runs, off))
    }
}

/// How many runs have a mean within `off` of the true value, if they scatter as these do.
fn enough(simulated: Figure, runs: u64, off: f64) -> u64 {
    let known = |&n: &u64| {
        let error = simulated.error.map(|e| e * (runs as f64 / n as f64).sqrt());
        let then = Figure { error, ..simulated };
        reach(then, n).is_some_and(|reach| reach <= off)
    };
    let more = (runs + 1..MOST_SEEDS).find(known);
    more.unwrap_or(MOST_SEEDS.max(runs + 1))
}
