// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the policy's C, run natively and in part as BPF: decision tables, exhaustive and random
//! comparison with an independent model, and properties of queues, signals, sets, stealing, cgroup
//! weights and arms.

mod arms;
mod balance;
mod bandwidth;
mod callbacks;
mod cases;
mod cgroups;
mod check;
mod claims;
mod delay;
mod domains;
mod exhaustive;
// That feature has an allocator of its own.
#[cfg(not(feature = "rustland"))]
mod heap;
mod hotplug;
mod idle_time;
mod jit;
mod life;
mod load;
mod pick;
mod preempt;
mod queue;
mod random;
mod rescue;
mod rng;
mod rules;
mod sets;
mod setup;
mod signals;
mod spread;
mod steal;
mod topology;
mod util_est;
mod waits;
