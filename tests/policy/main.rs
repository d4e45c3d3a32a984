// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the policy, run natively: decision tables, exhaustive and random comparison with an independent model,
//! properties of queues, signals, sets, stealing and cgroup weights.

mod cases;
mod check;
mod exhaustive;
mod model;
mod queue;
mod random;
mod rng;
mod setup;
mod signals;
mod topology;
