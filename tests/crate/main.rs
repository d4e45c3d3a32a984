// SPDX-License-Identifier: GPL-2.0-only
//! The tests of the Rust half against its library and its binary, in one program so that they are linked once.

mod bad_input;
mod ctl;
mod doctor;
mod export;
#[path = "../monitoring/fake.rs"]
#[allow(dead_code)]
mod fake;
mod machine;
mod machine_random;
#[cfg(feature = "monitor")]
mod monitor;
mod object;
#[path = "../policy/rng.rs"]
#[allow(dead_code)]
mod rng;
mod scripts;
mod soak;
mod stats;
mod support;
mod trees;
mod units;
mod watch;
