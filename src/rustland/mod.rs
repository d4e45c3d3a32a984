// SPDX-License-Identifier: GPL-2.0-only
//! `--backend rust`: every decision is made in this process, by `placement`. scx_rustland_core's
//! BPF programs send each task that wants a CPU here, and carry out the answer.
//!
//! *Invariant: the thread that schedules takes no lock that a scheduled thread may hold, and
//! allocates nothing for a task.* The other would wait for this one to be scheduled.
//! tests/policy/heap.rs checks the second, for `books` and `counts`.

mod books;
mod clock;
#[cfg(feature = "rustland")]
mod core;
mod counts;
mod known;
#[cfg(feature = "rustland")]
mod own_limit;
#[cfg(feature = "rustland")]
mod run;

pub use books::{Books, Queued, Stamps};
pub use clock::Clock;
pub use counts::Counts;
pub use known::{refuse_ignored, refuse_unknown};
#[cfg(feature = "rustland")]
pub use run::{NEEDED, run};
