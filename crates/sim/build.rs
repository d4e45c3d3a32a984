// SPDX-License-Identifier: GPL-2.0-only
//! Links what the native policy needs with the feature `sanitize`.

#[path = "../../build/sanitizers.rs"]
mod sanitizers;

fn main() -> Result<(), String> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../build/sanitizers.rs");
    match std::env::var_os("CARGO_FEATURE_SANITIZE") {
        Some(_) => sanitizers::link(),
        None => Ok(()),
    }
}
