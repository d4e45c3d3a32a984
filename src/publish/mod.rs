// SPDX-License-Identifier: GPL-2.0-only
//! From the policy to the running scheduler: `image` puts the arms into one piece of memory, `slots` writes it beside
//! the live one and flips, `grace` waits until nobody reads the old one.
//! `capacity` publishes what cpufreq leaves of CPUs, `frequencies` at which frequency a CPU is slow, `scans` how many CPUs a
//! scan is worth.

/// What was read so many periods ago is not known any more.
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
