// SPDX-License-Identifier: GPL-2.0-only
//! One workload under several variants: which is better, and how sure is that? docs/ab.md has the rules and their sources.
//!
//! In reading order: `variant`, `metric` and `design` are what is compared, of what, and when; `run` does it on a `machine`, with `child` for one
//! run of the command; `result` is the file of it, `analysis` takes it to `stats/`, `condition` is what spoils it, `report/` shows it. `tune`
//! searches with such comparisons.

pub mod analysis;
pub mod args;
pub mod cgroup;
pub mod child;
pub mod command;
pub mod condition;
pub mod design;
pub mod machine;
pub mod metric;
pub mod real;
pub mod report;
pub mod result;
pub mod run;
pub mod share;
pub mod stats;
pub mod suite;
pub mod tune;
pub mod variant;
