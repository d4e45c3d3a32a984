// SPDX-License-Identifier: GPL-2.0-only
//! One workload under several variants: which is better, and how sure is that? docs/ab.md has the rules and their sources.
//!
//! `design` is which run is next, `stats/` what the numbers say; both pure. It is not offered as a command yet.

pub mod design;
pub mod stats;
