// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the Rust half, its library and its binary. They are one program, so that it is linked
//! once.

mod bad_input;
mod columns;
mod config_file;
mod ctl;
mod doctor;
mod documents;
#[cfg(feature = "export")]
mod export;
#[path = "../monitoring/fake.rs"]
#[allow(dead_code)]
mod fake;
mod hostile;
mod indexes;
mod layers;
mod linked;
mod machine;
mod machine_random;
#[cfg(feature = "monitor")]
mod monitor;
mod object;
mod package;
mod reference;
#[path = "../policy/rng.rs"]
#[allow(dead_code)]
mod rng;
mod scripts;
mod soak;
mod stats;
mod support;
mod trees;
mod units;
mod version;
mod watch;

/// The tree that is tested.
fn top() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
}
