// SPDX-License-Identifier: GPL-2.0-only
//! The thread that reads the configuration again when a bell is rung. It is separate: a file may
//! hang, and a signal handler may not read one.

use crate::daemon::control::Control;
use crate::util::stop::{Bell, Stopper, Woken, stopper};
use anyhow::{Context, Result};
use std::thread::Builder;

/// Reloads go on until this is dropped. One that hangs is not waited for.
pub struct Reloads(#[expect(dead_code, reason = "dropping it ends the thread")] Stopper);

impl Reloads {
    pub fn start(control: &Control, bell: &Bell) -> Result<Reloads> {
        let (stopper, stop) = stopper();
        let (control, bell) = (control.clone(), bell.clone());
        let run = move || {
            while stop.wait_for(&bell) == Woken::Rung {
                control.read_again();
            }
        };
        let thread = Builder::new().name("reload".to_string()).spawn(run);
        thread.context("cannot start the thread that reads the configuration again")?;
        Ok(Reloads(stopper))
    }
}
