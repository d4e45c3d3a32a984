// SPDX-License-Identifier: GPL-2.0-only
//! Which scx_roost this is.

/// The version, with the commit if that is known: '0.1.0-g1234567'.
pub fn number() -> String {
    let mut version = env!("CARGO_PKG_VERSION").to_string();
    if !env!("ROOST_COMMIT").is_empty() {
        version += concat!("-g", env!("ROOST_COMMIT"));
    }
    version
}
