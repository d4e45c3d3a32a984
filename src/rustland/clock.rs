// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's clock of the core's stamps, as this process can tell it.

use std::time::{Duration, Instant};

/// One part in so many is what the two clocks may drift apart: 500 ppm is as much as the kernel
/// corrects its own time by.
const DRIFT_PART: i64 = 2000;

pub struct Clock {
    zero: Instant,
    /// What the kernel's clock showed at `zero`, by the nearest stamp, and when that came after
    /// `zero`; None: there was none.
    nearest: Option<(i64, Duration)>,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock {
            zero: Instant::now(),
            nearest: None,
        }
    }
}

impl Clock {
    /// A stamp that was made before now; 0: none.
    pub fn saw(&mut self, stamp: u64) {
        self.saw_after(self.zero.elapsed(), stamp);
    }

    /// Of the kernel's clock; None: not known yet.
    pub fn now(&self) -> Option<u64> {
        self.now_after(self.zero.elapsed())
    }

    /// A later distance is nearer, because a stamp is past when it comes. If the kernel's clock is
    /// the slower one, that holds only for a distance less the drift.
    fn saw_after(&mut self, since: Duration, stamp: u64) {
        let at_zero = stamp as i64 - since.as_nanos() as i64;
        if stamp > 0 && self.at_zero(since).is_none_or(|nearest| at_zero > nearest) {
            self.nearest = Some((at_zero, since));
        }
    }

    fn at_zero(&self, since: Duration) -> Option<i64> {
        let (at_zero, when) = self.nearest?;
        Some(at_zero - since.saturating_sub(when).as_nanos() as i64 / DRIFT_PART)
    }

    fn now_after(&self, since: Duration) -> Option<u64> {
        let now = self.at_zero(since)? + since.as_nanos() as i64;
        u64::try_from(now).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// How far the clock is from the kernel's after a day of stamps, ns.
    fn off(ppm: i64) -> i64 {
        const DAY: i64 = 86400;
        let mut clock = Clock::default();
        let kernel = |second: i64| second * (1_000_000 + ppm) * 1000 + 10 * SECOND;
        let since = |second: i64| Duration::from_secs(second as u64);
        for second in 0..=DAY {
            clock.saw_after(since(second), kernel(second) as u64);
        }
        clock.now_after(since(DAY)).unwrap() as i64 - kernel(DAY)
    }

    #[test]
    fn it_follows_a_clock_that_is_slower_or_faster() {
        for ppm in [-400, 0, 400] {
            assert_eq!(off(ppm), 0, "{ppm} ppm");
        }
    }

    #[test]
    fn the_nearest_stamp_counts() {
        let mut clock = Clock::default();
        let second = Duration::from_secs;
        clock.saw_after(second(1), 0);
        assert_eq!(clock.now_after(second(1)), None);
        clock.saw_after(second(1), 5 * SECOND as u64);
        clock.saw_after(second(2), 11 * SECOND as u64 / 2);
        assert_eq!(clock.now_after(second(1)), Some(5 * SECOND as u64));
        // Tasks that have slept for long are all that comes.
        clock.saw_after(second(601), 5 * SECOND as u64);
        let after = clock.now_after(second(601)).unwrap() as i64;
        assert_eq!(after, 605 * SECOND - 600 * SECOND / DRIFT_PART);
    }
}
