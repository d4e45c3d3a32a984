// SPDX-License-Identifier: GPL-2.0-only
//! What happened to the clocks between two looks: whether the machine was suspended or its date was
//! set.

use crate::machine::Clocks;
use std::time::Duration;

/// Less is an effect of reading the clocks one after another.
const LEAST_SUSPEND: Duration = Duration::from_millis(100);
/// In milliseconds. NTP slews by less between two looks.
const LEAST_JUMP: i128 = 500;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub suspended: Option<Duration>,
    /// Milliseconds by which the date was set, if it was.
    pub jumped_ms: Option<i64>,
}

/// The suspend and the jump of the date between `then` and `now`, if there was one.
pub fn passed(then: &Clocks, now: &Clocks) -> Passed {
    let awake = now.monotonic.saturating_sub(then.monotonic);
    let all = now.boot.saturating_sub(then.boot);
    let suspended = all.saturating_sub(awake);
    // The date advances during suspend.
    let date = now.real.as_millis() as i128 - then.real.as_millis() as i128;
    let jumped = date - all.as_millis() as i128;
    Passed {
        suspended: (suspended >= LEAST_SUSPEND).then_some(suspended),
        jumped_ms: (jumped.abs() >= LEAST_JUMP).then_some(jumped as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(monotonic: u64, boot: u64, real: u64) -> Clocks {
        Clocks {
            monotonic: Duration::from_millis(monotonic),
            boot: Duration::from_millis(boot),
            real: Duration::from_millis(real),
        }
    }

    const THEN: (u64, u64, u64) = (5_000, 7_000, 1_000_000);

    fn after(monotonic: u64, boot: u64, real: i64) -> Passed {
        let real = THEN.2.checked_add_signed(real).unwrap();
        let now = at(THEN.0 + monotonic, THEN.1 + boot, real);
        passed(&at(THEN.0, THEN.1, THEN.2), &now)
    }

    #[test]
    fn time_that_passes_is_nothing() {
        assert_eq!(after(0, 0, 0), Passed::default());
        assert_eq!(after(1_000, 1_000, 1_000), Passed::default());
        assert_eq!(after(1_000, 1_090, 1_400), Passed::default());
    }

    #[test]
    fn a_suspend_is_no_jump() {
        let passed = after(1_000, 61_000, 61_000);
        let minute = Some(Duration::from_secs(60));
        assert_eq!((passed.suspended, passed.jumped_ms), (minute, None));
    }

    #[test]
    fn the_date_is_set_either_way() {
        assert_eq!(after(1_000, 1_000, 4_600_000).jumped_ms, Some(4_599_000));
        assert_eq!(after(1_000, 1_000, -900_000).jumped_ms, Some(-901_000));
        assert_eq!(after(1_000, 1_000, 1_000 + 499).jumped_ms, None);
        let both = after(1_000, 61_000, 0);
        assert_eq!(both.jumped_ms, Some(-61_000));
        assert!(both.suspended.is_some());
    }
}
