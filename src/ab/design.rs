// SPDX-License-Identifier: GPL-2.0-only
//! Which variant runs when. A block is one run of each variant, in an order that is drawn again
//! for each block. So any drift affects all variants alike, and the signed-rank test assumes
//! nothing else.
//!
//! A run may leave something behind for the next one: heat, a turbo budget, full caches. In a block
//! of two the second run always follows the other variant, and in a longer one no run follows its
//! own variant, so random order does not even that out. Uncounted runs do (`Settle`).
//!
//! The order of a block is a function of the seed and its number, so a resumed comparison continues
//! with the same order.

use crate::util::rng::Rng;
use serde::{Deserialize, Serialize};

/// Random stream for orders only; other uses have other numbers.
const ORDER: u64 = 0x6f72_6465_7200_0000;

/// Where an uncounted run is made, so that counted runs do not follow different variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settle {
    #[default]
    Nowhere,
    /// Before a block of two, unless the run before was of its first variant: both of its runs then
    /// follow the same variant. That is a quarter more runs.
    Blocks,
    /// Before each run one of the first variant, unless that ran just before: all runs follow it.
    /// That is two thirds more runs of three variants, and twice the runs of many.
    Runs,
}

impl Settle {
    /// The least that makes all runs of a block follow the same variant.
    pub fn usual(variants: usize) -> Settle {
        match variants {
            0..=2 => Settle::Blocks,
            _ => Settle::Runs,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    pub seed: u64,
    pub variants: usize,
    /// Runs of each variant before the first block. They are recorded but do not count.
    pub warmups: usize,
    pub settle: Settle,
    /// Counted runs of each boot, if each variant has boots of its own. Each boot has the warm-ups.
    pub boots: Option<usize>,
}

/// A place in the order of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// None: it does not count.
    pub block: Option<usize>,
    pub variant: usize,
}

impl Design {
    /// Number of counted runs in one block.
    pub fn block_runs(&self) -> usize {
        self.variants * self.boots.unwrap_or(1)
    }

    /// The variants in the order of this block.
    pub fn block(&self, block: usize) -> Vec<usize> {
        let mut rng = Rng::stream(self.seed ^ ORDER, block as u64);
        let mut order: Vec<usize> = (0..self.variants).collect();
        for end in (1..order.len()).rev() {
            order.swap(end, rng.below(end as u64 + 1) as usize);
        }
        order
    }

    /// All runs, up to the last one of this many blocks.
    pub fn order(&self, blocks: usize) -> Vec<Turn> {
        if let Some(counted) = self.boots {
            return self.order_of_boots(blocks, counted);
        }
        let turn = |block: Option<usize>| move |variant: usize| Turn { block, variant };
        let mut order: Vec<Turn> = Vec::new();
        for _ in 0..self.warmups {
            order.extend((0..self.variants).map(turn(None)));
        }
        for block in 0..blocks {
            for (place, now) in self.block(block).into_iter().enumerate() {
                let before = order.last().map(|turn| turn.variant);
                let settled = self.settled(place, now).filter(|v| Some(*v) != before);
                order.extend(settled.map(turn(None)));
                order.push(turn(Some(block))(now));
            }
        }
        order
    }

    fn order_of_boots(&self, blocks: usize, counted: usize) -> Vec<Turn> {
        let boot = |(block, variant): (usize, usize)| {
            let turn = move |block| Turn { block, variant };
            let warm = std::iter::repeat_n(turn(None), self.warmups);
            warm.chain(std::iter::repeat_n(turn(Some(block)), counted))
        };
        let each = |block: usize| self.block(block).into_iter().map(move |v| (block, v));
        (0..blocks).flat_map(each).flat_map(boot).collect()
    }

    /// The variant that the run `now`, at this place of its block, follows. None: any.
    fn settled(&self, place: usize, now: usize) -> Option<usize> {
        match self.settle {
            Settle::Blocks if place == 0 => Some(now),
            Settle::Runs => Some(0),
            _ => None,
        }
    }

    /// The number of runs in the order of so many blocks, or more, without making it.
    pub fn runs_at_most(&self, blocks: usize) -> usize {
        let warm = self.variants.saturating_mul(self.warmups);
        let warm = warm.saturating_mul(self.boots.map_or(1, |_| blocks));
        let each = match self.settle {
            Settle::Nowhere => self.block_runs(),
            Settle::Blocks | Settle::Runs => self.block_runs().saturating_mul(2),
        };
        blocks.saturating_mul(each).saturating_add(warm)
    }
}
