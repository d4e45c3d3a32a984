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
    not(all(feature = "ab", feature = "export", feature = "monitor")),
    allow(dead_code, unused_imports)
)]

/// The rooms of the library, each once. With `internals` they are public, for the tests, benches
/// and examples of this package, and for the packages in crates/.
#[path = "."]
mod rooms {
    #[cfg(feature = "ab")]
    pub mod ab;
    pub mod bpf;
    pub mod cli;
    pub mod clients;
    pub mod daemon;
    pub mod doctor;
    pub mod machine;
    pub mod model;
    #[cfg(feature = "internals")]
    pub mod native;
    #[cfg(any(feature = "internals", feature = "rustland"))]
    pub mod placement;
    pub mod policy;
    pub mod publish;
    #[cfg(any(feature = "internals", feature = "rustland"))]
    pub mod rustland;
    pub mod util;
    pub mod wire;
}
#[cfg(feature = "internals")]
pub use rooms::*;
#[cfg(not(feature = "internals"))]
use rooms::*;

mod program;

pub use daemon::run::Ended;
pub use daemon::scheduler::{Builder, Error, Handle, Scheduler};
pub use machine::FreqSource;
pub use machine::cpufreq::CpuPerf;
pub use policy::change::Change;
pub use policy::config::Config;
#[cfg(feature = "faults")]
pub use policy::config::Faults;
pub use policy::features::FeatureSet;
pub use policy::rules::Subject;
pub use policy::settings::Settings;
pub use program::program;
pub use util::stop::{Stop, Stopper, stopper};
pub use wire::protocol::Op;
