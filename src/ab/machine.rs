// SPDX-License-Identifier: GPL-2.0-only
//! What runs need from the machine. `real` is the real one; tests use a simulated one.

use super::boot::Boot;
use super::child::{Failure, Sample};
use super::condition::Seen;
use super::metric::Measured;
use super::variant::Variant;
use anyhow::Result;
use std::collections::BTreeMap;

/// A run, with the scheduler's counters.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    pub sample: Sample,
    /// Growth of counters during the run, by name. Empty if no scx_roost runs.
    pub counters: BTreeMap<String, u64>,
    pub seen: Seen,
}

impl Taken {
    pub fn value(&self, which: Measured) -> Option<f64> {
        self.sample.values.get(&which).copied()
    }
}

pub trait Machine {
    /// Called before the first run. Fails if the machine is in use, or cannot switch between these
    /// variants; then nothing was changed.
    fn begin(&mut self, variants: &[Variant]) -> Result<()>;

    /// The boot of the machine.
    fn boot(&self) -> Result<Boot>;

    /// Switches to a variant. It is in force on return.
    fn switch(&mut self, variant: &Variant) -> Result<(), Failure>;

    /// One run of the command.
    fn run(&mut self) -> Result<Taken, Failure>;

    /// Restores the machine to its earlier state. Called once, also after an error.
    fn restore(&mut self) -> Result<()>;
}
