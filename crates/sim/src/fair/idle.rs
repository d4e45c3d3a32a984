// SPDX-License-Identifier: GPL-2.0-only
//! The average length of a CPU's idle periods. A CPU that will soon be woken anyway does not look
//! for work elsewhere (kernel: rq->avg_idle, ttwu_do_activate(), sched_balance_newidle()). A
//! feature says what ends an idle period. Up to 6.19 only a wakeup does, so a period that a move
//! ends goes on in the mean until the next wakeup. With Huang v6 (`avg_idle_every`) any arrival
//! does.

use scx_roost::policy::features::{FeatureSet, bits};

/// Half of the longest average that counts (kernel: sysctl_sched_migration_cost), ns.
const MAX: u64 = 500_000;

/// What is known of idle periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ends {
    /// Nothing, so every look pays (`avg_idle` is off).
    Unknown,
    /// A wakeup ends them.
    #[default]
    Wakeup,
    /// Any arrival ends them.
    Arrival,
}

impl Ends {
    pub fn of(features: FeatureSet) -> Ends {
        match (
            features.has(bits::avg_idle),
            features.has(bits::avg_idle_every),
        ) {
            (false, _) => Ends::Unknown,
            (true, false) => Ends::Wakeup,
            (true, true) => Ends::Arrival,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Idle {
    ends: Ends,
    since: Option<u64>,
    /// ns
    average: u64,
}

impl Default for Idle {
    fn default() -> Idle {
        Idle::new(Ends::default())
    }
}

impl Idle {
    pub fn new(ends: Ends) -> Idle {
        Idle {
            ends,
            since: None,
            average: 2 * MAX,
        }
    }

    /// Nothing was found to run on the CPU.
    pub fn begins(&mut self, now: u64) {
        self.since = Some(now);
    }

    #[cfg(test)]
    /// When the idle period began. 0: there is none.
    pub fn since(&self) -> u64 {
        self.since.unwrap_or(0)
    }

    /// A task comes to the CPU, woken or not.
    pub fn comes(&mut self, wakes: bool, now: u64) {
        let ends = wakes || self.ends == Ends::Arrival;
        let Some(since) = self.since.take_if(|_| ends) else {
            return;
        };
        let idled = now - since;
        self.average = (self.average * 7 + idled) / 8;
        self.average = self.average.min(2 * MAX);
    }

    /// The CPU was about to idle, and found work elsewhere.
    pub fn forgets(&mut self) {
        self.since = None;
    }

    /// True if a look of `cost` ns pays.
    pub fn affords(&self, cost: u64) -> bool {
        self.ends == Ends::Unknown || self.average >= cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idles `times` times for `ns`, each time until a wakeup.
    fn idled(ends: Ends, times: u64, ns: u64) -> Idle {
        let mut idle = Idle::new(ends);
        for turn in 0..times {
            idle.begins(turn * 2 * ns);
            idle.comes(true, turn * 2 * ns + ns);
        }
        idle
    }

    #[test]
    fn idle_periods_of_10_us_allow_no_search_of_20() {
        assert!(Idle::new(Ends::Wakeup).affords(2 * MAX));
        for ends in [Ends::Wakeup, Ends::Arrival] {
            let idled = |ns| idled(ends, 100, ns);
            assert!(idled(10_000).affords(10_000));
            assert!(!idled(10_000).affords(20_000));
            assert!(idled(5_000_000).affords(2 * MAX));
            assert!(!idled(5_000_000).affords(2 * MAX + 1));
        }
        assert!(idled(Ends::Unknown, 100, 10_000).affords(u64::MAX));
    }

    /// Idle for 10 us until a task is moved there, which runs for a second until a wakeup comes.
    #[test]
    fn a_move_ends_an_idle_period_with_the_patch_alone() {
        for (ends, affords) in [(Ends::Wakeup, true), (Ends::Arrival, false)] {
            let mut idle = idled(ends, 100, 10_000);
            idle.begins(2_000_000);
            idle.comes(false, 2_010_000);
            idle.comes(true, 1_002_010_000);
            assert_eq!(idle.affords(20_000), affords, "{ends:?}");
        }
    }

    #[test]
    fn a_new_idle_period_starts_from_zero() {
        let mut idle = idled(Ends::Wakeup, 100, 10_000);
        idle.begins(2_000_000);
        idle.comes(false, 2_010_000);
        idle.begins(900_000_000);
        idle.comes(true, 900_010_000);
        assert!(!idle.affords(20_000));
    }

    #[test]
    fn a_cpu_that_pulls_a_task_has_not_idled() {
        let mut idle = idled(Ends::Wakeup, 100, 10_000);
        idle.begins(2_000_000);
        idle.forgets();
        idle.comes(true, 900_000_000);
        assert!(!idle.affords(20_000));
    }
}
