// SPDX-License-Identifier: GPL-2.0-only
//! Which variant runs when. A block is one run of each variant, in an order that is drawn again
//! for each block. So any drift affects all variants alike, and the signed-rank test assumes
//! nothing else.
//!
//! The order of a block is a function of the seed and its number, so a resumed comparison continues
//! with the same order.

use crate::util::rng::Rng;

/// Random stream for orders only; other uses have other numbers.
const ORDER: u64 = 0x6f72_6465_7200_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    pub seed: u64,
    pub variants: usize,
    /// Runs of each variant before the first block. They are recorded but do not count.
    pub warmups: usize,
    /// A block is its order and then the reverse (ABBA or BAAB), so each variant runs twice in it.
    pub mirrored: bool,
}

/// A place in the order of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// None: a warm-up.
    pub block: Option<usize>,
    pub variant: usize,
}

impl Design {
    /// Number of runs in one block.
    pub fn block_runs(&self) -> usize {
        self.variants * if self.mirrored { 2 } else { 1 }
    }

    /// The variants in the order of this block.
    pub fn block(&self, block: usize) -> Vec<usize> {
        let mut rng = Rng::stream(self.seed ^ ORDER, block as u64);
        let mut order: Vec<usize> = (0..self.variants).collect();
        for end in (1..order.len()).rev() {
            order.swap(end, rng.below(end as u64 + 1) as usize);
        }
        if self.mirrored {
            order.extend(order.clone().into_iter().rev());
        }
        order
    }

    /// The run with this number, from 0. There is always a next one.
    pub fn turn(&self, number: usize) -> Turn {
        match number.checked_sub(self.warmups * self.variants) {
            None => Turn {
                block: None,
                variant: number % self.variants,
            },
            Some(run) => {
                let block = run / self.block_runs();
                Turn {
                    block: Some(block),
                    variant: self.block(block)[run % self.block_runs()],
                }
            }
        }
    }

    /// Number of runs for this many blocks, including warm-ups.
    pub fn runs(&self, blocks: usize) -> usize {
        self.warmups * self.variants + blocks * self.block_runs()
    }
}
