// SPDX-License-Identifier: GPL-2.0-only
//! One workload under several variants: which is better, and how sure is that? docs/ab.md has the rules and their sources.
//!
//! `design` is which run is next, `metric` what is compared of it, `child` the run itself, `stats/` what the numbers say. It is not offered as a
//! command yet.

pub mod child;
pub mod design;
pub mod metric;
pub mod stats;
