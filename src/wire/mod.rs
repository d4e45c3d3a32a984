// SPDX-License-Identifier: GPL-2.0-only
//! What the daemon and its clients share: sockets, and the statistics that go through them.

pub mod socket;
pub mod stats;
