// SPDX-License-Identifier: GPL-2.0-only
//! One workload under several variants: which is better, and how sure is that? docs/ab.md has the rules and their sources.
//!
//! In reading order: `variant`, `metric` and `design` are what is compared, of what, and when; `run` does it on a `machine`, with `child` for one
//! run of the command, `cpus` where it may run and `concurrent` two at once; `result` is the file of it, `analysis` takes it to `stats/`, `condition` is what spoils it, `programs` are found by name, `report/` shows it, on `pages` too, and `progress` tells meanwhile. `tune`
//! searches with such comparisons, and `lasting` says how what it found is kept. `suite` are workloads that come along, `suite_runs` runs them one after the other, `threadripper` those of source 003.

pub mod analysis;
pub mod args;
pub mod cgroup;
pub mod child;
pub mod command;
pub mod concurrent;
pub mod condition;
pub mod cpus;
pub mod design;
pub mod lasting;
pub mod machine;
pub mod metric;
pub mod pages;
pub mod programs;
pub mod progress;
pub mod real;
pub mod report;
pub mod result;
pub mod run;
pub mod share;
pub mod stats;
pub mod suite;
pub mod suite_runs;
pub mod threadripper;
pub mod tune;
pub mod variant;
