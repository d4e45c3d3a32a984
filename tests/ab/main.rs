// SPDX-License-Identifier: GPL-2.0-only
//! Tests of `src/ab`: its statistics against reference values and by simulation, its design, and
//! runs on a simulated machine.

mod baseline;
mod boots;
mod calibration;
mod child;
mod closing;
mod cpus;
mod design;
mod files;
mod hostile;
mod lasting;
mod lkml;
mod metrics;
mod noise;
mod page;
mod pictures;
mod played;
mod real;
mod reference;
mod reports;
mod resume;
mod runs;
mod suite;
mod suite_runs;
mod threadripper;
mod tune;
mod typed;
mod users;
mod variants;
mod verdicts;
