// SPDX-License-Identifier: GPL-2.0-only
//! Words for people.

/// '1 core', '2 cores'.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
