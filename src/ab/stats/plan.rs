// SPDX-License-Identifier: GPL-2.0-only
//! When the data may be looked at. Fixed: once, at the end. Auto: at five looks that are declared
//! before the first run.
//!
//! Each look spends a part of the allowed error. After the part t of the blocks, t^2 of it is spent
//! (Kim and DeMets 1987). The looks are tested separately and their errors add up. So the total
//! stays within the bound, however the looks depend on each other (Bonferroni).

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// In eighths of the most blocks.
const LOOKS: [usize; 5] = [2, 3, 4, 6, 8];
/// With this the first look is at six blocks; fewer cannot show anything.
pub const MIN_AUTO: usize = 24;
pub const MAX_AUTO: usize = 40;
/// Upper limit; more would take too long.
pub const MAX_BLOCKS: usize = 10_000;

/// The number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    Fixed(usize),
    /// At most this many.
    Auto(usize),
}

/// A look at the first `blocks` blocks, which may spend `share` of the allowed error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    pub blocks: usize,
    pub share: f64,
}

impl Plan {
    /// Fails if the number of blocks is out of range.
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

    /// The numbers of blocks after which the data may be looked at.
    pub fn times(&self) -> Vec<usize> {
        match *self {
            Plan::Fixed(blocks) => vec![blocks],
            Plan::Auto(max) => LOOKS.map(|eighths| max * eighths / 8).to_vec(),
        }
    }

    /// The looks of a comparison that may err in the part `alpha`. A look that could show no
    /// difference, whatever is seen, is left out; the next one spends what it would have spent.
    pub fn looks(&self, alpha: f64) -> Vec<Look> {
        let (mut looks, mut spent) = (Vec::new(), 0.0);
        for blocks in self.times() {
            let all = (blocks as f64 / self.max() as f64).powi(2);
            let look = Look {
                blocks,
                share: all - spent,
            };
            if look.can_tell(alpha) || blocks == self.max() {
                spent = all;
                looks.push(look);
            }
        }
        looks
    }

    /// True if one of this many comparisons can show a difference, corrected for all of them.
    pub fn can_tell(&self, comparisons: usize, alpha: f64) -> bool {
        let alpha = alpha / comparisons as f64;
        self.looks(alpha).iter().any(|look| look.can_tell(alpha))
    }
}

impl Look {
    /// True if blocks that all agree are a difference.
    fn can_tell(&self, alpha: f64) -> bool {
        2_f64.powi(1 - self.blocks as i32) <= alpha * self.share
    }
}
