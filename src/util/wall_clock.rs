// SPDX-License-Identifier: GPL-2.0-only
//! The time of day, for people.

use std::time::{SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;

/// Seconds since 1970; 0 before.
pub fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// Such as '2026-01-31 23:59 UTC', from seconds since 1970.
pub fn date(seconds: u64) -> String {
    let known = i64::try_from(seconds).ok();
    let known = known.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    known.map_or("no date".to_string(), |at| {
        format!("{} {:02}:{:02} UTC", at.date(), at.hour(), at.minute())
    })
}

/// '2 h 3 min': the two largest units.
pub fn span(s: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let first = units.iter().position(|(_, unit)| s >= *unit).unwrap_or(3);
    let mut rest = s;
    let mut parts = Vec::new();
    for (name, unit) in units.iter().skip(first).take(2) {
        if rest / unit > 0 || parts.is_empty() {
            parts.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    parts.join(" ")
}

/// '2026-01-31 23:59 UTC, 2 h 3 min ago', from seconds since 1970.
pub fn date_and_age(seconds: u64) -> String {
    let age = span(now_s().saturating_sub(seconds));
    format!("{}, {age} ago", date(seconds))
}

#[cfg(test)]
mod tests {
    use super::{date, span};

    #[test]
    fn dates_and_spans() {
        assert_eq!(date(1_790_000_000), "2026-09-21 14:13 UTC");
        for (s, text) in [
            (5, "5 s"),
            (60, "1 min"),
            (7380, "2 h 3 min"),
            (90_000, "1 d 1 h"),
            (86_400, "1 d"),
        ] {
            assert_eq!(span(s), text);
        }
    }
}
