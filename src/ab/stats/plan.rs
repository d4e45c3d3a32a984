// SPDX-License-Identifier: GPL-2.0-only
//! When the data may be looked at. Fixed: once, at the end. Auto: at five looks that are declared before the first run; each spends its part
//! of the allowed error, as t^2 of the whole at the part t of the blocks (Kim and DeMets 1987). The parts are tested each by itself and add up,
//! so that the error stays below what is allowed whatever hangs together between looks (Bonferroni's bound).

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Of the most blocks, in eighths.
const LOOKS: [usize; 5] = [2, 3, 4, 6, 8];
/// The first look is at six blocks: fewer can say nothing.
pub const MIN_AUTO: usize = 24;
pub const MAX_AUTO: usize = 40;
/// More blocks than anybody waits for.
pub const MAX_BLOCKS: usize = 10_000;

/// How many blocks there will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    Fixed(usize),
    /// At most so many.
    Auto(usize),
}

/// A look at the first `blocks` of them, which may err with `share` of the allowed error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub blocks: usize,
    pub share: f64,
}

impl Plan {
    /// Errors: there cannot be so many blocks.
    pub fn checked(&self) -> Result<()> {
        let (least, blocks) = match *self {
            Plan::Fixed(n) => (1, n),
            Plan::Auto(n) => (MIN_AUTO, n),
        };
        ensure!(
            (least..=MAX_BLOCKS).contains(&blocks),
            "{least} to {MAX_BLOCKS} blocks, or auto, or auto:{MIN_AUTO} and more are possible"
        );
        Ok(())
    }

    pub fn max(&self) -> usize {
        match *self {
            Plan::Fixed(n) | Plan::Auto(n) => n,
        }
    }

    pub fn looks(&self) -> Vec<Look> {
        match *self {
            Plan::Fixed(blocks) => vec![Look { blocks, share: 1.0 }],
            Plan::Auto(max) => auto(max),
        }
    }

    /// Of a comparison, when all of its blocks agree: no data come to less.
    pub fn least_p(&self) -> f64 {
        let least = |look: Look| 2f64.powi(1 - look.blocks as i32) / look.share;
        self.looks().into_iter().map(least).fold(1.0, f64::min)
    }

    /// One of so many comparisons can tell of a difference, corrected for all of them.
    pub fn can_tell(&self, comparisons: usize, alpha: f64) -> bool {
        self.least_p() * comparisons as f64 <= alpha
    }

    /// Those that so many blocks allow.
    pub fn taken(&self, blocks: usize) -> Vec<Look> {
        let mut looks = self.looks();
        looks.retain(|look| look.blocks <= blocks);
        looks
    }
}

fn auto(max: usize) -> Vec<Look> {
    let mut spent = 0.0;
    let look = |eighths: usize| {
        let blocks = max * eighths / 8;
        let all = (blocks as f64 / max as f64).powi(2);
        let share = all - spent;
        spent = all;
        Look { blocks, share }
    };
    LOOKS.into_iter().map(look).collect()
}
