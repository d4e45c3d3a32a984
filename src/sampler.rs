// SPDX-License-Identifier: GPL-2.0-only
//! Reads the CPUs' frequencies and idle periods again and again, beside the scheduler's loop, which naps for longer.

use crate::control::Control;
use crate::machine::FreqFiles;
use crate::stop::{Stopper, stopper};
use anyhow::{Context, Result};
use log::warn;
use std::thread::Builder;
use std::time::Duration;

/// Until dropped. Nobody waits for the thread then: a file that it reads may hang. By the time that it comes back what it has
/// read is too old, or of files that nobody asks any more.
pub struct Sampler {
    _stopper: Stopper,
}

impl Sampler {
    pub fn start(control: Control, period: Duration) -> Result<Sampler> {
        let (stopper, stop) = stopper();
        let run = move || {
            let mut told = false;
            while stop.sleep(period) {
                control.sample_idle();
                let Err(e) = control.sample(FreqFiles::read) else {
                    continue;
                };
                if !told {
                    warn!("frequencies of CPUs are not followed: {e:#}");
                }
                told = true;
            }
        };
        let thread = Builder::new().name("freq".to_string()).spawn(run);
        thread.context("cannot start the thread that reads frequencies and idle periods")?;
        Ok(Sampler { _stopper: stopper })
    }
}
