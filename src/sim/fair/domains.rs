// SPDX-License-Identifier: GPL-2.0-only
//! What a CPU knows of the domains around it (kernel: struct sched_domain, of which each CPU has
//! its own): how long a look for tasks takes there, and how often in a row such looks failed.

use super::levels::{Levels, MACHINE};
use crate::sim::params::Params;

const LEVELS: usize = MACHINE + 1;
/// Failures in a row after which hot tasks move too (kernel: sd->cache_nice_tries of threads, an
/// LLC, a node, nodes).
const NICE_TRIES: [u32; LEVELS] = [0, 1, 1, 2];
/// ns after which the longest look counts less, in parts of 256 (kernel: update_newidle_cost()).
const DECAYS: u64 = 1_000_000_000;
const KEPT: u64 = 253;
/// ns between two looks of an idle CPU for each CPU of the domain (kernel: sd->balance_interval).
const INTERVAL: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Domain {
    /// ns that a look takes.
    look: u64,
    /// The longest look so far (kernel: max_newidle_lb_cost), and when it was or last decayed.
    longest: u64,
    since: u64,
    /// Looks in a row that found hot tasks alone (kernel: nr_balance_failed), and when the next one
    /// counts.
    failed: u32,
    next: u64,
    interval: u64,
}

/// For each CPU the domains of its levels. None: the level has no more CPUs than the one before.
pub struct Domains(Vec<[Option<Domain>; LEVELS]>);

impl Domains {
    pub fn new(levels: &Levels, params: &Params, cpus: usize) -> Domains {
        let lines = params.count("lines_look");
        let far = ["smt", "llc", "other_llc", "node"];
        let line = far.map(|to| params.ns(&format!("transfer_{to}")));
        let of = |cpu: usize| {
            // The CPU itself, whose lines it has.
            let (mut nearer, mut look) = (1, 0);
            let around = levels.around(cpu).map(<[usize]>::len);
            std::array::from_fn(|level| {
                let more = around[level].saturating_sub(nearer) as u64;
                nearer = around[level].max(nearer);
                look += more * lines * line[level];
                (more > 0).then_some(Domain {
                    look,
                    longest: 0,
                    since: 0,
                    failed: 0,
                    next: 0,
                    interval: around[level] as u64 * INTERVAL,
                })
            })
        };
        Domains((0..cpus).map(of).collect())
    }

    /// ns that a look of the CPU may take. None: there is no such domain.
    pub fn cost(&self, cpu: usize, level: usize) -> Option<u64> {
        Some(self.0[cpu][level]?.longest)
    }

    fn of(&mut self, cpu: usize, level: usize) -> &mut Domain {
        self.0[cpu][level].as_mut().expect("the CPU has the domain")
    }

    /// The CPU looks. Returns the ns that it takes.
    pub fn looks(&mut self, cpu: usize, level: usize, now: u64) -> u64 {
        let domain = self.of(cpu, level);
        if domain.look > domain.longest {
            (domain.longest, domain.since) = (domain.look, now);
        } else if now > domain.since + DECAYS {
            (domain.longest, domain.since) = (domain.longest * KEPT / 256, now);
        }
        domain.look
    }

    /// True if the CPU takes hot tasks too.
    pub fn hot_too(&self, cpu: usize, level: usize) -> bool {
        self.0[cpu][level].is_some_and(|domain| domain.failed > NICE_TRIES[level])
    }

    /// True if the next look of the idle CPU counts.
    pub fn due(&self, cpu: usize, level: usize, now: u64) -> bool {
        self.0[cpu][level].is_some_and(|domain| now >= domain.next)
    }

    /// The idle CPU looked, and found hot tasks alone.
    pub fn fails(&mut self, cpu: usize, level: usize, now: u64) {
        let domain = self.of(cpu, level);
        if now >= domain.next {
            domain.failed += 1;
            domain.next = now + domain.interval;
        }
    }

    /// The CPU took a task, or there was none to take.
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

    /// 8 threads in an LLC, 64 in all: 4 lines each, at 6, 38 and 92 ns a line.
    #[test]
    fn the_longest_look_is_known_and_decays() {
        let model = crate::sim::model("tr-3970x").unwrap();
        let facts = model.hardware().unwrap().facts;
        let mut domains = Domains::new(&Levels::new(&facts), &model.params, 64);
        let costs = |domains: &Domains| [0, 1, 2, 3].map(|level| domains.cost(0, level));
        assert_eq!(costs(&domains), [Some(0), Some(0), Some(0), None]);
        let llc = 4 * (6 + 6 * 38);
        let all = llc + 4 * 56 * 92;
        for level in 0..3 {
            domains.looks(0, level, S);
        }
        assert_eq!(costs(&domains), [Some(24), Some(llc), Some(all), None]);
        domains.looks(0, 2, 2 * S + 1);
        assert_eq!(domains.cost(0, 2), Some(all * 253 / 256));
        assert_eq!(domains.cost(1, 2), Some(0));
        // It took longer again.
        domains.looks(0, 2, 2 * S + 2);
        assert_eq!(domains.cost(0, 2), Some(all));
    }

    /// An LLC of 8 CPUs: looks 8 ms apart.
    #[test]
    fn hot_tasks_move_after_two_failures() {
        let model = crate::sim::model("tr-3970x").unwrap();
        let facts = model.hardware().unwrap().facts;
        let mut domains = Domains::new(&Levels::new(&facts), &model.params, 64);
        let mut fails = |ms: u64| {
            domains.fails(0, LLC, S + ms * INTERVAL);
            domains.hot_too(0, LLC)
        };
        assert_eq!([0, 4, 8].map(&mut fails), [false, false, true]);
        domains.succeeds(0, LLC);
        assert!(!domains.hot_too(0, LLC));
    }
}
