// SPDX-License-Identifier: GPL-2.0-only
//! Small tools that know nothing of scheduling.

#[cfg(feature = "ab")]
pub mod affinity;
#[cfg(feature = "ab")]
pub mod distributions;
pub mod escape;
pub(crate) mod folder;
pub mod journal;
#[cfg(feature = "ab")]
pub mod lock;
pub mod names;
pub mod parse;
pub mod plain_file;
pub mod print;
pub mod privileges;
pub mod refusal;
pub mod rng;
pub mod stderr;
pub mod stop;
pub mod text;
pub mod user;
pub mod version;
pub mod wall_clock;
pub(crate) mod whole_file;
