// SPDX-License-Identifier: GPL-2.0-only
//! Compares variants on one workload: which is better, and how certain that is.
//! docs/explanation/ab.md has the rules and their sources.
//!
//! In reading order:
//!
//! - `variant`, `metric`, `design`: what is compared, by which number, in which order.
//! - `run`: makes the runs on a `machine`. `child` is one run of the command, `cpus` the CPUs it
//!   may use, `hooks` what is done around the runs. `boots`: kernels as variants.
//! - `result`: the file of runs. `analysis` passes them to `stats/`. `condition`: what spoils them;
//!   `carry_over`: what a run leaves behind for the next one.
//! - `report/`: shows the result, also as a `page`. `progress` reports meanwhile.
//! - `programs`: finds programs by name.
//! - `tune`: searches by such comparisons. `lasting`: how to keep what it found.
//! - `args`: the options; `tasks`: the comparisons that they ask for. `parameter`: a command with
//!   several values.
//! - `suite`: workloads that are shipped. `suite_runs` runs them one by one. `threadripper`: those
//!   of Roy v7, in `threadripper.json`.

pub mod analysis;
pub mod args;
pub mod boots;
pub mod carry_over;
pub mod cgroup;
pub mod child;
pub mod command;
pub mod condition;
pub mod cpus;
pub mod design;
pub mod hooks;
pub mod lasting;
pub mod machine;
pub mod metric;
pub mod page;
pub mod parameter;
pub mod programs;
pub mod progress;
pub mod real;
pub mod report;
pub mod result;
pub mod run;
pub mod stats;
pub mod suite;
pub mod suite_runs;
pub mod tasks;
pub mod threadripper;
pub mod tune;
pub mod variant;
