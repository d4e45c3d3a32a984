// SPDX-License-Identifier: GPL-2.0-only
//! Tests of `src/ab`: its statistics against reference values and by simulation, its design, and
//! runs on a simulated machine.

mod boots;
mod calibration;
mod candidates;
mod child;
mod cpus;
mod design;
mod files;
mod lkml;
mod metrics;
mod noise;
mod played;
mod real;
mod reference;
mod reports;
mod resume;
mod runs;
mod tune;
mod typed;
mod users;
mod variants;
mod verdicts;
