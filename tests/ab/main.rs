// SPDX-License-Identifier: GPL-2.0-only
//! Tests of `src/ab`: its statistics against reference values and by simulation, its design, and runs on a machine that is played.

mod calibration;
mod child;
mod design;
mod files;
mod metrics;
mod noise;
mod played;
mod real;
mod reference;
mod reports;
mod runs;
mod suite;
mod tune;
mod variants;
mod verdicts;
