// SPDX-License-Identifier: GPL-2.0-only
//! How long the watch loop naps: briefly while things change, long while the machine is idle. No
//! clock here: times come in as arguments.

use std::time::Duration;

/// After a change.
const SHORTEST: Duration = Duration::from_millis(100);
/// While nothing changes.
const WHILE_BUSY: Duration = Duration::from_millis(400);
/// While nothing changes and the machine is idle.
const WHILE_IDLE: Duration = Duration::from_secs(1);
/// The machine is idle if its CPUs together are busy for less than this, in thousandths of one CPU.
/// One running task is work, however many CPUs there are.
const IDLE_PERMILLE: u32 = 150;
/// After this many idle looks in a row the machine counts as staying idle.
const IDLE_LOOKS: u32 = 3;
/// A look that begins later than this is late. On a full machine the daemon waits for some slices.
const SLACK: Duration = Duration::from_millis(500);

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Something changed since the last look.
    pub changed: bool,
    /// How busy all CPUs together are, in thousandths of one CPU; None: not known.
    pub busy: Option<u32>,
}

pub struct Pace {
    nap: Duration,
    /// Consecutive looks after which the nap was the longest.
    idle: u32,
}

/// How much later than planned a nap ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    pub by: Duration,
    /// Naps that would have ended meanwhile.
    pub skipped: u64,
}

impl Pace {
    pub fn new() -> Pace {
        Pace {
            nap: SHORTEST,
            idle: 0,
        }
    }

    /// The nap after this look: the shortest after a change, else twice the last one. The upper
    /// bound depends on whether the machine is idle.
    pub fn after(&mut self, seen: Seen) -> Duration {
        let most = match seen.busy {
            Some(busy) if busy < IDLE_PERMILLE => WHILE_IDLE,
            _ => WHILE_BUSY,
        };
        self.nap = if seen.changed {
            SHORTEST
        } else {
            (self.nap * 2).min(most)
        };
        self.idle = if self.nap == WHILE_IDLE {
            self.idle + 1
        } else {
            0
        };
        self.nap
    }

    /// Called when a change was reported: the time until the next look.
    pub fn hurry(&mut self) -> Duration {
        (self.nap, self.idle) = (SHORTEST, 0);
        self.nap
    }

    /// The machine has been idle for some looks.
    pub fn idle(&self) -> bool {
        self.idle >= IDLE_LOOKS
    }

    /// How late a look began; None: within `SLACK`. Missed looks are not repeated, since this one
    /// sees all changes.
    pub fn lateness(&self, by: Duration) -> Option<Lateness> {
        let by = Some(by).filter(|by| *by > SLACK)?;
        let skipped = by.as_nanos() / self.nap.as_nanos();
        Some(Lateness {
            by,
            skipped: skipped as u64,
        })
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naps(pace: &mut Pace, changed: bool, busy: Option<u32>, looks: usize) -> Vec<u64> {
        let seen = Seen { changed, busy };
        let nap = |_| pace.after(seen).as_millis() as u64;
        (0..looks).map(nap).collect()
    }

    #[test]
    fn naps_grow_while_nothing_changes() {
        let mut pace = Pace::new();
        assert_eq!(
            naps(&mut pace, false, Some(0), 5),
            [200, 400, 800, 1000, 1000]
        );
        assert_eq!(naps(&mut pace, true, Some(0), 2), [100, 100]);
        assert_eq!(naps(&mut pace, false, Some(500), 4), [200, 400, 400, 400]);
        assert_eq!(naps(&mut pace, false, None, 2), [400, 400]);
        assert_eq!(naps(&mut pace, false, Some(149), 3), [800, 1000, 1000]);
        assert_eq!(naps(&mut pace, false, Some(150), 2), [400, 400]);
    }

    #[test]
    fn an_idle_machine_is_left_alone() {
        let mut pace = Pace::new();
        let all = naps(&mut pace, false, Some(0), 20);
        assert!(all.iter().skip(3).sum::<u64>() >= 17 * 1000);
        assert!(pace.idle());
        assert_eq!(pace.hurry(), SHORTEST);
        assert!(!pace.idle());
        naps(&mut pace, false, Some(0), 5);
        assert!(!pace.idle(), "for two looks");
        naps(&mut pace, false, Some(0), 1);
        assert!(pace.idle());
    }

    #[test]
    fn lateness_counts_from_the_end_of_the_nap() {
        let pace = Pace::new();
        let late = |ms| pace.lateness(Duration::from_millis(ms));
        assert_eq!((late(0), late(500)), (None, None));
        let by = |ms, skipped| {
            let by = Duration::from_millis(ms);
            Some(Lateness { by, skipped })
        };
        assert_eq!(late(501), by(501, 5));
        assert_eq!(late(3_050), by(3_050, 30));
    }
}
