// SPDX-License-Identifier: GPL-2.0-only
//! Commands that talk to a running scheduler. None of them uses the code of the daemon.

pub mod ctl;
pub mod exec;
#[cfg(feature = "export")]
pub mod export;
pub mod monitor;
pub mod status;
pub mod stop;
