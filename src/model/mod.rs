// SPDX-License-Identifier: GPL-2.0-only
//! Turns what was read of the machine into the numbers that the policy needs: no file, no clock.

mod busy;
mod capacity;
mod domains;
mod idle;
mod log_limiter;
mod pace;
mod preferred;
mod saturation;
mod threshold;
mod time;

pub use busy::{Busy, BusyMeter};
pub use capacity::{Settled, capacities, limited};
pub use domains::Sharing;
pub use idle::scan_worth;
pub use log_limiter::{LogLimiter, suppressed_suffix};
pub use pace::{Lateness, Pace, Seen};
pub use preferred::preferred_cores;
pub use saturation::Saturation;
pub use threshold::{FreqRule, Learner};
pub use time::{Passed, passed};
