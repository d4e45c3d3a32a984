// SPDX-License-Identifier: GPL-2.0-only
//! Reads the CPUs' frequencies and idle periods again and again, beside the scheduler's loop, which naps for longer.

use crate::control::Control;
use crate::machine::FreqFiles;
use crate::stop::{Stopper, stopper};
use anyhow::{Context, Result};
use log::warn;
use std::thread::Builder;
use std::time::Duration;

/// Until dropped. Nobody waits for its threads then: a file that is read may hang. By the time that it comes back what was
/// read is too old, or of files that nobody asks any more.
pub struct Sampler {
    _stoppers: [Stopper; 2],
}

impl Sampler {
    /// A thread each: idle periods wait for no file. What is told while the machine is idle is told more rarely than it counts: it is
    /// not known then, and nothing is delayed or bounded by it.
    pub fn start(control: Control, period: Duration) -> Result<Sampler> {
        let nap = |control: &Control| {
            let control = control.clone();
            move || control.sample_nap(period)
        };
        let idle = control.clone();
        let idle = every(nap(&control), "idle", move || {
            idle.sample_idle();
            Ok(())
        })?;
        let freq = every(nap(&control), "freq", move || {
            control.sample(FreqFiles::read)
        })?;
        Ok(Sampler {
            _stoppers: [idle, freq],
        })
    }
}

/// The first failure is told.
fn every(
    nap: impl Fn() -> Duration + Send + 'static,
    name: &str,
    mut sample: impl FnMut() -> Result<()> + Send + 'static,
) -> Result<Stopper> {
    let (stopper, stop) = stopper();
    let run = move || {
        let mut told = false;
        while stop.sleep(nap()) {
            let Err(e) = sample() else { continue };
            if !told {
                warn!("frequencies of CPUs are not followed: {e:#}");
            }
            told = true;
        }
    };
    let thread = Builder::new().name(name.to_string()).spawn(run);
    thread.context("cannot start the threads that read frequencies and idle periods")?;
    Ok(stopper)
}
