// SPDX-License-Identifier: GPL-2.0-only
//! scx_roost as a library: `run(&config, stop)` runs the scheduler until it ends.
//!
//! `run` changes nothing that belongs to the whole process: no signal handler, logger, limit, heap
//! or privileges. `main.rs` does that for the program, with `process` and `privileges`. A process
//! can run one scheduler at a time.

pub mod ab;
pub mod arms;
pub mod bpf;
pub mod cli;
pub mod config;
pub mod control;
pub mod counters;
pub mod cpufreq;
pub mod ctl;
pub mod doctor;
pub mod exec;
pub mod export;
pub mod features;
mod folder;
mod hash;
pub mod host;
pub mod live;
pub mod looks;
pub mod machine;
pub mod model;
pub mod monitor;
pub mod native;
pub mod outlook;
pub mod print;
pub mod privileges;
pub mod process;
pub mod publish;
pub mod rng;
pub mod rule_events;
pub mod rules;
pub mod sampler;
pub mod scheduler;
#[cfg(feature = "sim")]
pub mod sim;
pub mod socket;
pub mod stats;
pub mod stop;
pub mod topology_view;
pub mod uevents;
mod urgent;
pub mod user;
pub mod variant;
pub mod watch;
mod whole_file;

pub use config::Config;
pub use scheduler::run;
pub use stop::{Stop, Stopper, stopper};
