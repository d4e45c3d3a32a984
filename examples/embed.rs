// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler in another program: runs it for ten seconds without one of its features. Needs
//! root, as `scx_roost` does. Nothing here is hidden from other crates.

use scx_roost::{Change, Config, Settings, run, stopper};
use std::error::Error;
use std::thread::{sleep, spawn};
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let change = Change {
        disable: vec!["wide_idle".into()],
        ..Change::default()
    };
    let config = Config {
        settings: Settings::default().changed(&change)?,
        stats_path: "/run/embed/stats".into(),
        ctl_path: "/run/embed/ctl".into(),
        ..Config::default()
    };
    let (stopper, stop) = stopper();
    spawn(move || {
        sleep(Duration::from_secs(10));
        drop(stopper);
    });
    run(&config, stop)?;
    println!("the kernel's own scheduler is back");
    Ok(())
}
