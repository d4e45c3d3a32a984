// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler for tests/guest/claim.sh and delay.sh: built with the feature `spin`, its wakeups spin between the look at an idle
//! CPU and the insertion there and it loses timers (both in src/bpf/act.bpf.h). Takes the scheduler's own options.

use anyhow::{Result, bail};
use scx_roost::cli::{Command, parse};
use scx_roost::{run, stopper};

pub fn main() -> Result<()> {
    let Command::Run { config, .. } = parse(std::env::args_os())? else {
        bail!("options of a run are expected");
    };
    let (stopper, stop) = stopper();
    let mut held = Some(stopper);
    ctrlc::set_handler(move || drop(held.take()))?;
    run(&config, stop).map(|_| ())
}
