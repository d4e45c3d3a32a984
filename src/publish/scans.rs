// SPDX-License-Identifier: GPL-2.0-only
//! How many CPUs a scan at wakeup may visit in each last-level cache, derived from the idle periods
//! of its CPUs.

use super::STALE_PERIODS;
use crate::bpf::intf::llc_facts;
use crate::model::scan_worth;
use std::time::Duration;

#[derive(Default)]
pub struct Scans {
    /// The CPUs of each cache, by number.
    caches: Vec<Vec<u16>>,
    /// How long the bounds are valid.
    pub counts_ms: u32,
}

impl Scans {
    /// `llcs`, `llc_cpus`: as in the machine's facts. The bounds are renewed every `period`.
    pub fn new(llcs: &[llc_facts], llc_cpus: &[u16], period: Duration) -> Self {
        let cpus = |llc: &llc_facts| {
            let first = usize::from(llc.first);
            llc_cpus[first..first + usize::from(llc.nr_cpus)].to_vec()
        };
        Scans {
            caches: llcs.iter().map(cpus).collect(),
            counts_ms: STALE_PERIODS * period.as_millis() as u32,
        }
    }

    /// A bound of 0 for each cache: nothing is known.
    pub fn nothing(&self) -> Vec<u32> {
        vec![0; self.caches.len()]
    }

    /// The bound of each cache, from the mean idle periods of all CPUs by number, in ns.
    pub fn worth(&self, means: &[u64]) -> Vec<u32> {
        let of = |cpus: &Vec<u16>| {
            let known = cpus.iter().filter_map(|&cpu| means.get(usize::from(cpu)));
            scan_worth(&known.copied().collect::<Vec<u64>>())
        };
        self.caches.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cache_has_the_mean_of_its_own_cpus() {
        let llc = |first| llc_facts {
            first,
            nr_cpus: 6,
            nr_words: 1,
            node: 0,
            capacity: 6 * 1024,
        };
        // The even ones and the odd ones.
        let cpus = [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11];
        let scans = Scans::new(&[llc(0), llc(6)], &cpus, Duration::from_millis(20));
        assert_eq!(scans.counts_ms, 60);
        let means: Vec<u64> = (0..12).map(|cpu| (cpu % 2) * 5 * 25_600).collect();
        assert_eq!(scans.worth(&means), [4, 5]);
        let means: Vec<u64> = (0..12).map(|cpu| (1 - cpu % 2) * 1_000_000).collect();
        assert_eq!(scans.worth(&means), [6, 4]);
        assert_eq!(Scans::default().worth(&means), [0; 0]);
    }
}
