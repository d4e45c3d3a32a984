// SPDX-License-Identifier: GPL-2.0-only
//! Whether a simulated effect is what was published. Where that is above 2 % and two standard errors, the sign must be right and the
//! size near; elsewhere there must be none. Of few runs a standard error is little known: Student's t takes the place of the two.

use super::Figure;
use super::rows::{Row, Use};
use crate::ab::stats::power::t;
use serde::Serialize;

/// Percent: less is no effect; and points that a control may be off.
const NO_EFFECT: f64 = 2.0;
/// Standard errors within which nothing is decided.
const ERRORS: f64 = 2.0;
/// The chance that a mean is not above its true value by more than so many of few runs.
const SHARE: f64 = 0.975;
/// Points that a size may be off: of the workload on which the model is calibrated, and of others.
const NEAR_CALIBRATED: f64 = 5.0;
const NEAR: f64 = 8.0;
/// More seeds than that are not suggested.
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
    #[serde(rename = "not modelled")]
    NotModelled,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Sign => "miss (sign)",
            Verdict::Size => "miss (size)",
            Verdict::Effect => "miss (effect where none)",
            Verdict::NotModelled => "not modelled",
        }
    }
}

/// How far the true value may be from a mean of so many runs: two standard errors, of few runs more. One run knows none.
pub fn reach(figure: Figure, runs: u64) -> Option<f64> {
    Some(figure.error? * t(runs as usize, SHARE)?.max(ERRORS))
}

/// What is demanded of an effect, percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Demand {
    /// The sign of it, and so near.
    Like { effect: f64, near: f64 },
    /// None: what was published is small, or lost in its own error.
    None,
}

impl Demand {
    pub fn of(row: &Row) -> Demand {
        let effect = row.effect.unwrap_or(0.0);
        let lost = row.error.is_some_and(|e| effect.abs() <= ERRORS * e);
        if effect.abs() <= NO_EFFECT || lost || row.used == Use::Control {
            return Demand::None;
        }
        let near = match row.workload.starts_with("algorithm3") {
            true => NEAR_CALIBRATED,
            false => NEAR,
        };
        Demand::Like { effect, near }
    }

    /// Effects that are right.
    fn range(self) -> (f64, f64) {
        match self {
            Demand::None => (-NO_EFFECT, NO_EFFECT),
            Demand::Like { effect, near } if effect > 0.0 => {
                ((effect - near).max(0.0), effect + near)
            }
            Demand::Like { effect, near } => (effect - near, (effect + near).min(0.0)),
        }
    }

    /// Of a simulated effect of so many runs.
    pub fn judge(self, simulated: Figure, runs: u64) -> Verdict {
        let (low, high) = self.range();
        let inside = (low..=high).contains(&simulated.value);
        match self {
            Demand::None if inside => Verdict::Ok,
            Demand::None => Verdict::Effect,
            Demand::Like { .. } if !self.signed(simulated, runs) => Verdict::Sign,
            Demand::Like { .. } if inside => Verdict::Ok,
            Demand::Like { .. } => Verdict::Size,
        }
    }

    /// It has the sign that is demanded, if any is, and not by chance.
    fn signed(self, simulated: Figure, runs: u64) -> bool {
        let Demand::Like { effect, .. } = self else {
            return true;
        };
        let chance = reach(simulated, runs).unwrap_or(0.0);
        simulated.value * effect > 0.0 && simulated.value.abs() > chance
    }

    /// As many runs as should decide it, where the true effect may be on either side of a limit. None: it is decided, also that there
    /// is no effect where one is demanded; or nothing is known of the error.
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

/// Runs whose mean is known to be less than `off` from the true value, if they scatter as these do.
fn enough(simulated: Figure, runs: u64, off: f64) -> u64 {
    let known = |&n: &u64| {
        let error = simulated.error.map(|e| e * (runs as f64 / n as f64).sqrt());
        let then = Figure { error, ..simulated };
        reach(then, n).is_some_and(|reach| reach <= off)
    };
    let more = (runs + 1..MOST_SEEDS).find(known);
    more.unwrap_or(MOST_SEEDS.max(runs + 1))
}
