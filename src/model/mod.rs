// SPDX-License-Identifier: GPL-2.0-only
//! From what was read of the machine to the numbers that the policy wants: no file, no clock.

mod capacity;
mod idle;
mod threshold;

pub use capacity::capacities;
pub use idle::scan_worth;
pub use threshold::{FreqRule, Learner};
