// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the simulator: its clock, its workloads, and runs with a known outcome.

mod clock;
mod command;
mod documents;
mod fair;
mod loads;
mod machine;
mod matrix;
mod pictures;
mod rtapp;
mod runs;
mod steps;
#[allow(dead_code)]
#[path = "../../../../tests/crate/support.rs"]
mod support;
mod swarm;
