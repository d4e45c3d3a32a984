// SPDX-License-Identifier: GPL-2.0-only
//! What runs need of the machine. `real` is the one there is; tests play another.

use super::child::{Failure, Sample};
use super::condition::Seen;
use super::metric::Measured;
use super::variant::Variant;
use anyhow::Result;
use std::collections::BTreeMap;

/// A run, with what the scheduler says of it.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    pub sample: Sample,
    /// By how much they grew, by name. Empty where no scheduler of ours runs.
    pub counters: BTreeMap<String, u64>,
    pub seen: Seen,
}

impl Taken {
    pub fn value(&self, which: Measured) -> Option<f64> {
        self.sample.values.get(&which).copied()
    }
}

pub trait Machine {
    /// Before the first run. Errors: the machine cannot be switched between these, or is in use; then nothing was changed.
    fn begin(&mut self, variants: &[Variant]) -> Result<()>;

    /// The scheduler is as the variant says when it comes back.
    fn switch(&mut self, variant: &Variant) -> Result<(), Failure>;

    /// One run of the command.
    fn run(&mut self) -> Result<Taken, Failure>;

    /// Two runs at once, each under its variant and on its side.
    fn run_beside(&mut self, variants: [&Variant; 2]) -> Result<[Taken; 2], Failure>;

    /// As it was found. Called once, also after an error.
    fn restore(&mut self) -> Result<()>;
}
