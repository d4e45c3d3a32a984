// SPDX-License-Identifier: GPL-2.0-only
//! Reads the CPUs' frequencies and idle periods again and again, beside the scheduler's loop, which naps for longer.

use crate::control::Control;
use crate::stop::{Stopper, stopper};
use anyhow::{Context, Result};
use log::warn;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Until dropped.
pub struct Sampler {
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    pub fn start(control: Control, period: Duration) -> Result<Sampler> {
        let (stopper, stop) = stopper();
        let run = move || {
            let mut told = false;
            while stop.sleep(period) {
                control.sample_idle();
                let Err(e) = control.sample() else { continue };
                if !told {
                    warn!("frequencies of CPUs are not followed: {e:#}");
                }
                told = true;
            }
        };
        let thread = Builder::new().name("freq".to_string()).spawn(run);
        Ok(Sampler {
            stopper: Some(stopper),
            thread: Some(
                thread
                    .context("cannot start the thread that reads frequencies and idle periods")?,
            ),
        })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stopper.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
