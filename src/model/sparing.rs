// SPDX-License-Identifier: GPL-2.0-only
//! Limits how often a recurring message is logged. No clock here: times come in as arguments.

use std::time::Duration;

/// The least time between two messages.
const LEAST: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default)]
pub struct Sparing {
    next: Option<Duration>,
    left_out: u32,
}

impl Sparing {
    /// To be called each time it happens. Some: log it; the number of messages suppressed since the
    /// last one.
    pub fn told(&mut self, now: Duration) -> Option<u32> {
        if self.next.is_some_and(|next| now < next) {
            self.left_out += 1;
            return None;
        }
        self.next = Some(now + LEAST);
        Some(std::mem::take(&mut self.left_out))
    }
}

/// A suffix for a message that states how many were suppressed.
pub fn and_before(left_out: u32) -> String {
    match left_out {
        0 => String::new(),
        n => format!(" ({n} times more since this was told last)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_minute_and_what_was_left_out() {
        let mut sparing = Sparing::default();
        let mut told = |seconds| sparing.told(Duration::from_secs(seconds));
        assert_eq!(told(1000), Some(0));
        assert_eq!((told(1001), told(1059)), (None, None));
        assert_eq!(told(1060), Some(2));
        assert_eq!(told(5000), Some(0));
        assert_eq!(and_before(0), "");
        assert_eq!(and_before(2), " (2 times more since this was told last)");
    }
}
