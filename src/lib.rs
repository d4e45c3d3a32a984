// SPDX-License-Identifier: GPL-2.0-only
//! scx_roost as a library: [`Scheduler::builder`] makes a scheduler, [`Scheduler::run`] runs it
//! until it ends, and a [`Handle`] reads its statistics and changes it meanwhile.
//!
//! Nothing that belongs to the whole process is changed: no signal handler, logger, limit, heap or
//! privileges. `program` does that for the command `scx_roost`. A process can have one scheduler at
//! a time.

#![cfg_attr(not(feature = "internals"), deny(missing_docs))]
// They panic without a reader: util::print, util::stderr.
#![cfg_attr(not(test), warn(clippy::print_stderr, clippy::print_stdout))]
// Commands share the floors below them. Dead code shows in the build with all commands.
#![cfg_attr(
    not(all(
        feature = "ab",
        feature = "export",
        feature = "monitor",
        feature = "sim"
    )),
    allow(dead_code, unused_imports)
)]

#[cfg(all(feature = "ab", not(feature = "internals")))]
mod ab;
#[cfg(not(feature = "internals"))]
mod bpf;
#[cfg(not(feature = "internals"))]
mod cli;
#[cfg(not(feature = "internals"))]
mod clients;
#[cfg(not(feature = "internals"))]
mod daemon;
#[cfg(not(feature = "internals"))]
mod doctor;
#[cfg(not(feature = "internals"))]
mod machine;
#[cfg(not(feature = "internals"))]
mod model;
#[cfg(all(feature = "sim", not(feature = "internals")))]
mod native;
#[cfg(all(feature = "rustland", not(feature = "internals")))]
mod placement;
#[cfg(not(feature = "internals"))]
mod policy;
#[cfg(not(feature = "internals"))]
mod publish;
#[cfg(all(feature = "rustland", not(feature = "internals")))]
mod rustland;
#[cfg(all(feature = "sim", not(feature = "internals")))]
mod sim;
#[cfg(not(feature = "internals"))]
mod util;
#[cfg(not(feature = "internals"))]
mod wire;

// With `internals` the modules are public, for this package's tests, benches and examples.
#[cfg(all(feature = "internals", feature = "ab"))]
pub mod ab;
#[cfg(feature = "internals")]
pub mod bpf;
#[cfg(feature = "internals")]
pub mod cli;
#[cfg(feature = "internals")]
pub mod clients;
#[cfg(feature = "internals")]
pub mod daemon;
#[cfg(feature = "internals")]
pub mod doctor;
#[cfg(feature = "internals")]
pub mod machine;
#[cfg(feature = "internals")]
pub mod model;
#[cfg(feature = "internals")]
pub mod native;
#[cfg(feature = "internals")]
pub mod placement;
#[cfg(feature = "internals")]
pub mod policy;
#[cfg(feature = "internals")]
pub mod publish;
#[cfg(feature = "internals")]
pub mod rustland;
#[cfg(all(feature = "internals", feature = "sim"))]
pub mod sim;
#[cfg(feature = "internals")]
pub mod util;
#[cfg(feature = "internals")]
pub mod wire;

mod program;

pub use daemon::scheduler::{Builder, Ended, Error, Handle, Scheduler};
pub use machine::FreqSource;
pub use machine::cpufreq::CpuPerf;
pub use policy::change::Change;
pub use policy::config::Config;
#[cfg(feature = "faults")]
pub use policy::config::Faults;
pub use policy::features::FeatureSet;
pub use policy::rules::Whom;
pub use policy::settings::Settings;
pub use program::program;
pub use util::stop::{Stop, Stopper, stopper};
pub use wire::protocol::Op;
