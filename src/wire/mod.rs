// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon and its clients share: sockets, the requests, the statistics, and the
//! note of the last run.

pub mod client;
pub mod note;
pub mod protocol;
pub mod socket;
pub mod stats;
