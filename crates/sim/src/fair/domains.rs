// SPDX-License-Identifier: GPL-2.0-only
//! What a CPU knows of the domains around it (kernel: struct sched_domain, of which each CPU has
//! its own): how long a look for tasks takes there, a fixed time, and how often in a row such looks
//! failed. The kernel measures looks, and goes by the longest (max_newidle_lb_cost): here all are
//! alike, and the machine has been up for long.

use super::levels::{Levels, MACHINE};
use crate::params::Params;

const LEVELS: usize = MACHINE + 1;
/// Failures in a row after which hot tasks move too (kernel: sd->cache_nice_tries of threads, an
/// LLC, a node, nodes).
pub const NICE_TRIES: [u32; LEVELS] = [0, 1, 1, 2];
/// ns between two looks of an idle CPU for each CPU of the domain (kernel: sd->balance_interval).
const INTERVAL: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Domain {
    /// ns that a look takes.
    look: u64,
    /// Looks in a row that found hot tasks alone (kernel: nr_balance_failed), and when the next one
    /// is due.
    failed: u32,
    next: u64,
    interval: u64,
}

/// For each CPU the domains of its levels. None: the level has no more CPUs than the one before.
pub struct Domains(Vec<[Option<Domain>; LEVELS]>);

impl Domains {
    pub fn new(levels: &Levels, params: &Params, cpus: usize) -> Domains {
        let each = params.ns("balance_look");
        let of = |cpu: usize| {
            // The CPU itself, whose queue it knows.
            let (mut nearer, mut look) = (1, 0);
            let around = levels.around(cpu).map(<[usize]>::len);
            std::array::from_fn(|level| {
                let more = around[level].saturating_sub(nearer) as u64;
                nearer = around[level].max(nearer);
                look += more * each;
                (more > 0).then_some(Domain {
                    look,
                    failed: 0,
                    next: 0,
                    interval: around[level] as u64 * INTERVAL,
                })
            })
        };
        Domains((0..cpus).map(of).collect())
    }

    /// ns that a look of the CPU takes. None: there is no such domain.
    pub fn cost(&self, cpu: usize, level: usize) -> Option<u64> {
        Some(self.0[cpu][level]?.look)
    }

    fn of(&mut self, cpu: usize, level: usize) -> &mut Domain {
        self.0[cpu][level].as_mut().expect("the CPU has the domain")
    }

    /// True if the CPU takes hot tasks too.
    pub fn hot_too(&self, cpu: usize, level: usize) -> bool {
        self.0[cpu][level].is_some_and(|domain| domain.failed > NICE_TRIES[level])
    }

    /// True if a look of the idle CPU is due.
    pub fn due(&self, cpu: usize, level: usize, now: u64) -> bool {
        self.0[cpu][level].is_some_and(|domain| now >= domain.next)
    }

    /// The idle CPU looked at a tick, and found hot tasks alone; or none at all.
    pub fn looked(&mut self, cpu: usize, level: usize, now: u64, hot: bool) {
        let domain = self.of(cpu, level);
        domain.failed = if hot { domain.failed + 1 } else { 0 };
        domain.next = now + domain.interval;
    }

    /// The CPU took a task, or found none as it was about to go idle.
    pub fn succeeds(&mut self, cpu: usize, level: usize) {
        self.of(cpu, level).failed = 0;
    }

    #[cfg(test)]
    pub fn failed(&self, cpu: usize, level: usize) -> u32 {
        self.0[cpu][level].map_or(0, |domain| domain.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::levels::LLC;
    use super::*;

    const S: u64 = 1_000_000_000;

    /// 8 threads in an LLC, 64 in all: 200 ns each.
    #[test]
    fn a_look_reads_all_queues_of_its_domain() {
        let model = crate::model("tr-3970x").unwrap();
        let facts = model.hardware().unwrap().facts;
        let domains = Domains::new(&Levels::new(&facts), &model.params, 64);
        let costs = [0, 1, 2, 3].map(|level| domains.cost(0, level));
        assert_eq!(costs, [Some(200), Some(7 * 200), Some(63 * 200), None]);
    }

    /// An LLC of 8 CPUs: looks 8 ms apart.
    #[test]
    fn hot_tasks_move_after_two_failures() {
        let model = crate::model("tr-3970x").unwrap();
        let facts = model.hardware().unwrap().facts;
        let mut domains = Domains::new(&Levels::new(&facts), &model.params, 64);
        let mut fails = |ms: u64| {
            let now = S + ms * INTERVAL;
            if domains.due(0, LLC, now) {
                domains.looked(0, LLC, now, true);
            }
            domains.hot_too(0, LLC)
        };
        assert_eq!([0, 4, 8].map(&mut fails), [false, false, true]);
        domains.succeeds(0, LLC);
        assert!(!domains.hot_too(0, LLC));
    }
}
