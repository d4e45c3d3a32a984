// SPDX-License-Identifier: GPL-2.0-only
//! Commands that talk to a running scheduler, or look at the machine. None of them uses the daemon.

pub mod ctl;
pub mod exec;
pub mod export;
pub mod monitor;
