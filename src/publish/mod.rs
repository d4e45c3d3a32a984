// SPDX-License-Identifier: GPL-2.0-only
//! Publishes policies to the running scheduler. `image` puts the arms into one piece of memory.
//! `slots` writes it beside the live one and flips. `grace` waits until nothing reads the old one.
//! `capacity` follows what cpufreq's limits leave of CPUs, `frequencies` decides at which frequency
//! a CPU is slow, `scans` bounds how many CPUs a scan visits.

/// A sample is valid for this many periods.
const STALE_PERIODS: u32 = 3;

mod capacity;
mod frequencies;
mod grace;
mod image;
mod scans;
mod slots;

pub use capacity::Capacity;
pub use frequencies::{Frequencies, Reading};
pub use grace::{Grace, MapUpdate};
pub use image::{image, image_of_rows};
pub use scans::Scans;
pub use slots::Publisher;
