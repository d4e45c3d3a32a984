// SPDX-License-Identifier: GPL-2.0-only
//! Small tools that know nothing of scheduling.

pub(crate) mod folder;
pub(crate) mod hash;
pub mod print;
pub mod rng;
pub mod stop;
pub mod user;
pub(crate) mod whole_file;
