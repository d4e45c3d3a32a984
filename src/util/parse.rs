// SPDX-License-Identifier: GPL-2.0-only
//! Values of options that several commands have.

use super::user;
use std::time::Duration;

/// Parses the number of a group that is given by name or by number.
pub fn group(text: &str) -> Result<u32, String> {
    let unknown = || format!("there is no group '{text}'");
    match text.parse() {
        // chown() would take it for "do not change the group".
        Ok(u32::MAX) => return Err(unknown()),
        Ok(number) => return Ok(number),
        Err(_) => (),
    }
    let found = user::group_of(text).map_err(|e| format!("{e:#}"))?;
    found.ok_or_else(unknown)
}

/// Parses a time of 0.1 to 3600 seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let secs: f64 = text
        .parse()
        .map_err(|_| "expected a number of seconds".to_string())?;
    if !(0.1..=3600.0).contains(&secs) {
        return Err("0.1 to 3600 seconds are possible".to_string());
    }
    Ok(Duration::from_secs_f64(secs))
}
