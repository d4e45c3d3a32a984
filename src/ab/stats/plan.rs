// SPDX-License-Identifier: GPL-2.0-only
//! When the data may be looked at. Fixed: once, at the end. Auto: at five looks that are declared
//! before the first run.
//!
//! Each look spends a part of the allowed error. After the part t of the rounds, t^2 of it is spent
//! (Kim and DeMets 1987). The looks are tested separately and their errors add up. So the total
//! stays within the bound, however the looks depend on each other (Bonferroni).

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// In eighths of the most rounds.
const LOOKS: [usize; 5] = [2, 3, 4, 6, 8];
/// With fewer the first look could show nothing but the largest differences.
pub const MIN_AUTO: usize = 24;
pub const MAX_AUTO: usize = 40;
/// Upper limit; more would take too long.
pub const MAX_ROUNDS: usize = 1000;

/// The number of rounds: of runs of each variant, on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    Fixed(usize),
    /// At most this many.
    Auto(usize),
}

/// A look at the first rounds, which may spend `share` of the allowed error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub rounds: usize,
    pub share: f64,
}

impl Plan {
    /// Fails if the number of rounds is out of range.
    pub fn checked(&self) -> Result<()> {
        let (least, rounds) = match *self {
            Plan::Fixed(n) => (1, n),
            Plan::Auto(n) => (MIN_AUTO, n),
        };
        ensure!(
            (least..=MAX_ROUNDS).contains(&rounds),
            "{least} to {MAX_ROUNDS} runs, or auto, or auto:{MIN_AUTO} and more are possible"
        );
        Ok(())
    }

    pub fn max(&self) -> usize {
        match *self {
            Plan::Fixed(n) | Plan::Auto(n) => n,
        }
    }

    /// The numbers of rounds after which the data may be looked at.
    pub fn times(&self) -> Vec<usize> {
        match *self {
            Plan::Fixed(rounds) => vec![rounds],
            Plan::Auto(max) => LOOKS.map(|eighths| max * eighths / 8).to_vec(),
        }
    }

    /// The looks of a comparison that may err in the part `alpha`. A look that could show no
    /// difference, whatever is seen, is left out; the next one spends what it would have spent.
    pub fn looks(&self, alpha: f64) -> Vec<Look> {
        let (mut looks, mut spent) = (Vec::new(), 0.0);
        for rounds in self.times() {
            let all = (rounds as f64 / self.max() as f64).powi(2);
            let look = Look {
                rounds,
                share: all - spent,
            };
            if look.can_tell(alpha) || rounds == self.max() {
                spent = all;
                looks.push(look);
            }
        }
        looks
    }
}

impl Look {
    /// True if two variants, of which each has a run per round, differ if all runs agree.
    fn can_tell(&self, alpha: f64) -> bool {
        can_tell(2 * self.rounds, alpha * self.share)
    }
}

/// True if so many differences that all have the same sign are a difference.
pub fn can_tell(differences: usize, alpha: f64) -> bool {
    2_f64.powi(1 - differences as i32) <= alpha
}
