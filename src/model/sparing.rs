// SPDX-License-Identifier: GPL-2.0-only
//! How often the log is told of one thing that may happen again and again. No clock here: times come in.

use std::time::Duration;

/// Between two lines.
const LEAST: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, Default)]
pub struct Sparing {
    next: Option<Duration>,
    left_out: u32,
}

impl Sparing {
    /// It happens once more. Some: it is told, and how often it was not since the last time.
    pub fn told(&mut self, now: Duration) -> Option<u32> {
        if self.next.is_some_and(|next| now < next) {
            self.left_out += 1;
            return None;
        }
        self.next = Some(now + LEAST);
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Behind a line: what was left out.
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
