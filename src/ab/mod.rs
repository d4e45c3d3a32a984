// SPDX-License-Identifier: GPL-2.0-only
//! Compares variants on one workload: which is better, and how certain that is.
//! docs/explanation/ab.md has the rules and their sources.
//!
//! In reading order:
//!
//! - `variant`, `metric`, `design`: what is compared, by which number, in which order.
//! - `run`: makes the runs on a `machine`, which is `real/` or played by a test. `child` is one run
//!   of the command, in a `cgroup`; `cpus` the CPUs it may use, `hooks` what is done around the
//!   runs. `boot`: the one in which a run is made; `boots`: kernels as variants.
//! - `result`: the file of runs. `analysis` passes them to `stats/`. `condition`: what spoils them.
//! - `report/`: shows the result. `progress` reports meanwhile.
//! - `tune`: searches by such comparisons.
//! - `args`: the options; `tasks`: the comparison that they ask for; `command`: carries it out.

pub mod analysis;
pub mod args;
pub mod boot;
pub mod boots;
pub mod cgroup;
pub mod child;
pub mod command;
pub mod condition;
pub mod cpus;
pub mod design;
pub mod hooks;
pub mod machine;
pub mod metric;
pub mod progress;
pub mod real;
pub mod report;
pub mod result;
pub mod run;
pub mod stats;
pub mod tasks;
pub mod tune;
pub mod variant;
