// SPDX-License-Identifier: GPL-2.0-only
//! Whether a simulated effect is what was published. Where that is above 2 % and two standard errors, the sign must be right and the
//! size near; elsewhere there must be none.

use super::Figure;
use super::rows::{Row, Use};
use serde::Serialize;

/// Percent: less is no effect; and points that a control may be off.
const NO_EFFECT: f64 = 2.0;
/// Standard errors within which nothing is decided.
const ERRORS: f64 = 2.0;
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

    pub fn judge(self, simulated: f64) -> Verdict {
        let (low, high) = self.range();
        let right = (low..=high).contains(&simulated) && simulated != 0.0;
        match self {
            Demand::None if (low..=high).contains(&simulated) => Verdict::Ok,
            Demand::None => Verdict::Effect,
            Demand::Like { .. } if right => Verdict::Ok,
            Demand::Like { effect, .. } if simulated * effect <= 0.0 => Verdict::Sign,
            Demand::Like { .. } => Verdict::Size,
        }
    }

    /// As many seeds as should decide it, where two standard errors of `seeds` runs reach over a limit. None: it is decided, or
    /// nothing is known of the error.
    pub fn undecided(self, simulated: Figure, seeds: u64) -> Option<u64> {
        let (low, high) = self.range();
        let reach = ERRORS * simulated.error?;
        let off = (simulated.value - low)
            .abs()
            .min((simulated.value - high).abs());
        let more = (reach / off).powi(2) * seeds as f64;
        (reach > off).then(|| (more.ceil() as u64).min(MOST_SEEDS).max(seeds + 1))
    }
}
