// SPDX-License-Identifier: GPL-2.0-only
//! Which variant runs when: a die with as many sides as there are variants decides before each run.
//!
//! A run may leave something behind for later ones: heat, a turbo budget, full caches, and for more
//! than one run. Any order that balances the variants, such as blocks, lets each variant follow the
//! other more often than itself, so what is left behind looks like a difference. A die has no
//! memory: what came before a run says nothing about its variant (`stats::turns`).
//!
//! First each variant runs once, in random order, so that there is something to compare with.
//!
//! The variant of a turn is a function of the seed and its number, so a resumed comparison goes on
//! with the same order.

use crate::util::rng::Rng;

/// Random stream for orders only; other uses have other numbers.
const ORDER: u64 = 0x6f72_6465_7200_0000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    pub seed: u64,
    pub variants: usize,
    /// Runs of each variant before the first turn. They are recorded but do not count.
    pub warmups: usize,
    /// Counted runs of each boot, if a turn is a boot. Each boot has the warm-ups.
    pub boots: Option<usize>,
    /// Each round has each variant once: for runs that get no verdict.
    pub even: bool,
}

/// A run in the order of runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Counts from 0; all counted runs of a boot have the same. None: a warm-up.
    pub turn: Option<usize>,
    pub variant: usize,
    /// The die decided the variant.
    pub drawn: bool,
}

impl Design {
    /// The variant of a turn. The first turns are one of each, in random order.
    fn variant(&self, turn: usize) -> usize {
        let stream = |number: usize| Rng::stream(self.seed ^ ORDER, number as u64);
        if turn >= self.variants && !self.even {
            return stream(turn).below(self.variants as u64) as usize;
        }
        let mut rng = stream(turn / self.variants * self.variants);
        let mut order: Vec<usize> = (0..self.variants).collect();
        for end in (1..order.len()).rev() {
            order.swap(end, rng.below(end as u64 + 1) as usize);
        }
        order[turn % self.variants]
    }

    /// All runs of so many rounds; a round is as many turns as there are variants.
    pub fn order(&self, rounds: usize) -> Vec<Turn> {
        let warm = |variant: usize| {
            let turn = Turn {
                turn: None,
                variant,
                drawn: false,
            };
            std::iter::repeat_n(turn, self.warmups)
        };
        let each_boot = self.boots.is_some();
        let turn = |number: usize| {
            let turn = Turn {
                turn: Some(number),
                variant: self.variant(number),
                drawn: number >= self.variants,
            };
            let counted = std::iter::repeat_n(turn, self.boots.unwrap_or(1));
            let before = each_boot.then(|| warm(turn.variant));
            before.into_iter().flatten().chain(counted)
        };
        let first = (0..self.variants).filter(|_| !each_boot).flat_map(warm);
        let turns = 0..self.turns(rounds);
        first.chain(turns.flat_map(turn)).collect()
    }

    /// The number of turns of so many rounds, with the first of each variant.
    pub fn turns(&self, rounds: usize) -> usize {
        self.variants.saturating_mul(rounds.saturating_add(1))
    }

    /// The number of runs of so many rounds.
    pub fn runs(&self, rounds: usize) -> usize {
        let turns = self.turns(rounds);
        match self.boots {
            None => turns.saturating_add(self.variants.saturating_mul(self.warmups)),
            Some(counted) => turns.saturating_mul(self.warmups.saturating_add(counted)),
        }
    }

    /// The number of whole rounds in so many runs.
    pub fn rounds(&self, runs: usize) -> usize {
        let turns = match self.boots {
            None => runs.saturating_sub(self.variants * self.warmups),
            Some(counted) => runs / (self.warmups + counted),
        };
        (turns / self.variants).saturating_sub(1)
    }
}
