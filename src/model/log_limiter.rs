// SPDX-License-Identifier: GPL-2.0-only
//! Limits how often a recurring message is logged. No clock here: times come in as arguments.

use std::time::Duration;

/// The least time between two messages.
const LEAST: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default)]
pub struct LogLimiter {
    next: Option<Duration>,
    suppressed: u32,
}

impl LogLimiter {
    /// Call this each time the event occurs. Some: log it; the number of messages suppressed since
    /// the last one.
    pub fn admit(&mut self, now: Duration) -> Option<u32> {
        if self.next.is_some_and(|next| now < next) {
            self.suppressed += 1;
            return None;
        }
        self.next = Some(now + LEAST);
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// A suffix for a message that states how many were suppressed.
pub fn suppressed_suffix(suppressed: u32) -> String {
    match suppressed {
        0 => String::new(),
        n => format!(" (and {n} more times since it was last logged)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_logged_once_a_minute_with_the_number_of_suppressed_ones() {
        let mut limiter = LogLimiter::default();
        let mut admit = |seconds| limiter.admit(Duration::from_secs(seconds));
        assert_eq!(admit(1000), Some(0));
        assert_eq!((admit(1001), admit(1059)), (None, None));
        assert_eq!(admit(1060), Some(2));
        assert_eq!(admit(5000), Some(0));
        assert_eq!(suppressed_suffix(0), "");
        assert_eq!(
            suppressed_suffix(2),
            " (and 2 more times since it was last logged)"
        );
    }
}
