// SPDX-License-Identifier: GPL-2.0-only
//! Reads the CPUs' frequencies and idle periods again and again, beside the scheduler's loop, which naps for longer.

use crate::control::Control;
use crate::machine::FreqFiles;
use crate::stop::{Stopper, stopper};
use anyhow::{Context, Result};
use log::warn;
use std::thread::Builder;
use std::time::Duration;

/// A thread, until dropped. Nobody waits for it then: a file that is read may hang. By the time that it comes back what was
/// read is too old, or of files that nobody asks any more.
pub struct Sampler {
    _stopper: Stopper,
}

/// Those that run: idle periods wait for no file.
#[derive(Default)]
pub struct Samplers {
    pub frequencies: Option<Sampler>,
    pub idle: Option<Sampler>,
}

impl Sampler {
    pub fn of_frequencies(control: Control, period: Duration) -> Result<Sampler> {
        every(control, period, "freq", |c| c.sample(FreqFiles::read))
    }

    pub fn of_idle_periods(control: Control, period: Duration) -> Result<Sampler> {
        every(control, period, "idle", |c| {
            c.sample_idle();
            Ok(())
        })
    }
}

/// What is told while the machine is idle is told more rarely than it counts: it is not known then, and nothing is delayed or bounded
/// by it. The first failure is told.
fn every(
    control: Control,
    period: Duration,
    name: &str,
    sample: impl Fn(&Control) -> Result<()> + Send + 'static,
) -> Result<Sampler> {
    let (stopper, stop) = stopper();
    let run = move || {
        let mut told = false;
        while stop.sleep(control.sample_nap(period)) {
            let Err(e) = sample(&control) else { continue };
            if !told {
                warn!("frequencies of CPUs are not followed: {e:#}");
            }
            told = true;
        }
    };
    let thread = Builder::new().name(name.to_string()).spawn(run);
    thread.context("cannot start the threads that read frequencies and idle periods")?;
    Ok(Sampler { _stopper: stopper })
}
