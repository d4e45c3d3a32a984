// SPDX-License-Identifier: GPL-2.0-only
//! Looks whether the process's own group, which pays for the states of tasks, gets a memory limit.
//! A thread of its own does so: reading a file takes locks that a scheduled thread may hold.

use crate::machine::host::Host;
use crate::machine::own_group::own_limit;
use crate::util::stop::{Stopper, stopper};
use crate::wire::stats::host::Condition;
use crate::wire::stats::source::CounterSource;
use anyhow::{Context, Result};
use std::thread::Builder;
use std::time::Duration;

/// As often as the daemon's loop looks.
const PERIOD: Duration = Duration::from_secs(10);

/// The looks go on until this is dropped. One that hangs is not waited for.
pub struct OwnLimit(#[expect(dead_code, reason = "dropping it ends the thread")] Stopper);

impl OwnLimit {
    pub fn follow(host: &Host, source: &CounterSource) -> Result<OwnLimit> {
        let (stopper, stop) = stopper();
        let (host, source) = (host.clone(), source.clone());
        let run = move || {
            while stop.sleep(PERIOD) {
                source.set_condition(Condition::MemoryLimited, own_limit(&host));
            }
        };
        let thread = Builder::new().name("limit".to_string()).spawn(run);
        thread.context("cannot start the thread that looks for a memory limit")?;
        Ok(OwnLimit(stopper))
    }
}
