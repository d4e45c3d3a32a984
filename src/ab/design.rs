// SPDX-License-Identifier: GPL-2.0-only
//! Which variant runs when. A block is one run of each variant, in an order that chance gives to each block anew: whatever drifts, and
//! however it does, meets all variants alike, and that is all the signed-rank test takes for granted. The order of a block is a function of the
//! seed and its number, so that a run that was broken off goes on as it would have.

use crate::rng::Rng;

/// Chance is drawn from here for orders alone; each other use has a number of its own.
const ORDER: u64 = 0x6f72_6465_7200_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    pub seed: u64,
    pub variants: usize,
    /// Of each variant, before the first block. They are kept, and count for nothing.
    pub warmups: usize,
}

/// A place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// None: a warm-up.
    pub block: Option<usize>,
    pub variant: usize,
}

impl Design {
    /// All variants, in the order of this block.
    pub fn block(&self, block: usize) -> Vec<usize> {
        let mut rng = Rng::stream(self.seed ^ ORDER, block as u64);
        let mut order: Vec<usize> = (0..self.variants).collect();
        for end in (1..order.len()).rev() {
            order.swap(end, rng.below(end as u64 + 1) as usize);
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
                let block = run / self.variants;
                Turn {
                    block: Some(block),
                    variant: self.block(block)[run % self.variants],
                }
            }
        }
    }

    /// Runs that it takes to have so many blocks, warm-ups too.
    pub fn runs(&self, blocks: usize) -> usize {
        (self.warmups + blocks) * self.variants
    }
}
