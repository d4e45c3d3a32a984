// SPDX-License-Identifier: GPL-2.0-only
//! scx_roost as a library: `run(&config, stop)` runs the scheduler until it ends.
//!
//! `run` changes nothing that belongs to the whole process: no signal handler, logger, limit, heap
//! or privileges. `main.rs` does that for the program, with `daemon::process` and
//! `util::privileges`. A process can run one scheduler at a time.

pub mod ab;
pub mod bpf;
pub mod cli;
pub mod clients;
pub mod daemon;
pub mod doctor;
pub mod machine;
pub mod model;
pub mod native;
pub mod policy;
pub mod publish;
#[cfg(feature = "sim")]
pub mod sim;
pub mod util;
pub mod wire;

pub use daemon::scheduler::run;
pub use policy::config::Config;
pub use util::stop::{Stop, Stopper, stopper};
