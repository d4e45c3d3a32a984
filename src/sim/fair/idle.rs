// SPDX-License-Identifier: GPL-2.0-only
//! How long a CPU idles, on average: one that will soon be woken anyway does not look for work elsewhere (kernel: rq->avg_idle,
//! ttwu_do_activate(), sched_balance_newidle()).

/// Half of the longest average that counts (kernel: sysctl_sched_migration_cost), ns.
const MAX: u64 = 500_000;

#[derive(Clone, Debug)]
pub struct Idle {
    since: Option<u64>,
    /// ns
    average: u64,
}

impl Default for Idle {
    fn default() -> Idle {
        Idle {
            since: None,
            average: 2 * MAX,
        }
    }
}

impl Idle {
    /// Nothing was found to run there.
    pub fn begins(&mut self, now: u64) {
        self.since.get_or_insert(now);
    }

    /// When that was, if nobody has come since; 0: never.
    pub fn since(&self) -> u64 {
        self.since.unwrap_or(0)
    }

    /// A wakeup comes there.
    pub fn ends(&mut self, now: u64) {
        let Some(since) = self.since.take() else {
            return;
        };
        let idled = now - since;
        self.average = (self.average * 7 + idled) / 8;
        self.average = self.average.min(2 * MAX);
    }

    /// Who runs there was not woken there: it was moved.
    pub fn forgets(&mut self) {
        self.since = None;
    }

    /// It pays to look for so many ns.
    pub fn affords(&self, cost: u64) -> bool {
        self.average >= cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idles so many times for so many ns, each time until a wakeup.
    fn idled(times: u64, ns: u64) -> Idle {
        let mut idle = Idle::default();
        for turn in 0..times {
            idle.begins(turn * 2 * ns);
            idle.ends(turn * 2 * ns + ns);
        }
        idle
    }

    #[test]
    fn who_idles_for_10_us_at_a_time_affords_no_look_of_20() {
        assert!(Idle::default().affords(2 * MAX));
        assert!(idled(100, 10_000).affords(10_000));
        assert!(!idled(100, 10_000).affords(20_000));
        assert!(idled(100, 5_000_000).affords(2 * MAX));
        assert!(!idled(100, 5_000_000).affords(2 * MAX + 1));
    }

    #[test]
    fn what_is_moved_there_ends_no_idle_time() {
        let mut idle = idled(100, 10_000);
        idle.begins(2_000_000);
        idle.forgets();
        idle.ends(900_000_000);
        assert!(!idle.affords(20_000));
    }
}
