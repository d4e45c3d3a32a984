// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon and its clients share: sockets, the requests, and the statistics.

pub mod client;
pub mod protocol;
pub mod socket;
pub mod stats;
