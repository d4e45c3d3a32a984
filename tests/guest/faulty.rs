// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler with a fault, for tests in the guest. Its name chooses the fault: `scx_roost_spin`
//! (claim.sh, delay.sh, ab.sh) or `scx_roost_old` (old-paths.sh). Takes the scheduler's own
//! options.

use anyhow::{Result, bail};
use scx_roost::cli::{Command, parse};
use scx_roost::policy::config::Faults;
use scx_roost::{run, stopper};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

fn main() -> Result<()> {
    let name = std::env::args().next().unwrap_or_default();
    let faults = Faults {
        old_paths: name.ends_with("scx_roost_old"),
        spin: name.ends_with("scx_roost_spin"),
    };
    if !faults.old_paths && !faults.spin {
        bail!("{name} chooses no fault: call it scx_roost_spin or scx_roost_old");
    }
    let Command::Run { mut config, .. } = parse(std::env::args_os())? else {
        bail!("options of a run are expected");
    };
    config.faults = faults;
    let (stopper, stop) = stopper();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        signals.forever().next();
        drop(stopper);
    });
    Ok(run(&config, stop)?)
}
