// SPDX-License-Identifier: GPL-2.0-only
//! The process that runs the scheduler. `scheduler` is what the library shows of it, `run` loads
//! the BPF half (`load`) and keeps it loaded, `looks` calls `watch` and `sampler` again and again,
//! `control` holds the policy that is asked for, `publish` computes its image, `bpf_memory` writes
//! that into the kernel's maps.

pub mod bpf_memory;
pub mod control;
pub mod counters;
pub mod load;
pub mod looks;
pub mod process;
mod reload;
pub mod rule_events;
pub mod run;
pub mod sampler;
pub mod scheduler;
mod task_maps;
pub mod uevents;
mod urgent;
pub mod watch;
