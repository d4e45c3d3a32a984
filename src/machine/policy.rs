// SPDX-License-Identifier: GPL-2.0-only
//! Properties of each CPU in cpufreq that seldom change: driver and governor, range of frequencies,
//! and CPUs that share one.

use super::ask::Asker;
use crate::machine::host::Host;
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Policy {
    pub driver: Option<String>,
    pub governor: Option<String>,
    /// Preference between energy and performance, where the hardware decides
    /// (energy_performance_preference).
    pub epp: Option<String>,
    pub min_khz: Option<u32>,
    pub max_khz: Option<u32>,
    /// The highest frequency without boost.
    pub base_khz: Option<u32>,
    /// The highest frequency that can be requested, where the driver has a table
    /// (scaling_available_frequencies). With boost the hardware exceeds it by itself.
    pub table_khz: Option<u32>,
    /// The CPUs that share one frequency with this one, itself included, ascending.
    pub related: Vec<u16>,
    /// The lowest CPU of its policy. All CPUs of a policy share one set of files (related_cpus).
    pub first: u16,
}

/// By CPU number; None: cpufreq does not manage this CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    pub cpus: Vec<Option<Policy>>,
    /// Sentences about files that are unusable.
    pub odd: Vec<String>,
}

impl Policies {
    pub fn read(host: &Host, nr_cpu_ids: usize) -> Policies {
        let mut ask = Asker::new(host);
        Policies {
            cpus: (0..nr_cpu_ids).map(|cpu| read(&mut ask, cpu)).collect(),
            odd: ask.odd,
        }
    }

    /// The same CPUs have the same frequencies to choose from; governor and EPP are ignored.
    pub fn same_frequencies(&self, other: &Policies) -> bool {
        let chosen = |policies: &Policies| -> Vec<Option<Policy>> {
            let unset = |policy: &Policy| Policy {
                governor: None,
                epp: None,
                ..policy.clone()
            };
            let cpus = policies.cpus.iter();
            cpus.map(|cpu| cpu.as_ref().map(unset)).collect()
        };
        chosen(self) == chosen(other)
    }

    /// One CPU of each policy, the first that cpufreq manages, by number.
    pub fn firsts(&self) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let cpus = self.cpus.iter().enumerate();
        let first = |(cpu, policy): (usize, &Option<Policy>)| {
            let new = seen.insert(policy.as_ref()?.first);
            new.then_some(cpu)
        };
        cpus.filter_map(first).collect()
    }

    pub fn of(&self, cpu: usize) -> Option<&Policy> {
        self.cpus.get(cpu)?.as_ref()
    }
}

fn read(ask: &mut Asker, cpu: usize) -> Option<Policy> {
    let file = |name| cpufreq_file(cpu, name);
    // Where the hardware coordinates frequencies, each policy has one CPU, and freqdomain_cpus
    // lists the CPUs that share a frequency.
    let domain = ask.cpus(&file("freqdomain_cpus"));
    let policy_cpus = ask.cpus(&file("related_cpus"));
    let own = |related: &Vec<u16>| related.contains(&(cpu as u16));
    let one = policy_cpus.clone().filter(own);
    let first = one.and_then(|cpus| cpus.first().copied());
    let related = domain.or(policy_cpus);
    let table = ask.text(&file("scaling_available_frequencies"));
    let table = table.unwrap_or_default();
    let table = table.split_whitespace().filter_map(|khz| khz.parse().ok());
    let policy = Policy {
        driver: ask.text(&file("scaling_driver")),
        governor: ask.text(&file("scaling_governor")),
        epp: ask.text(&file("energy_performance_preference")),
        min_khz: ask.number(&file("cpuinfo_min_freq")),
        max_khz: ask.number(&file("cpuinfo_max_freq")),
        base_khz: ask.number(&file("base_frequency")),
        table_khz: table.max(),
        ..Policy::default()
    };
    if policy == Policy::default() && related.is_none() {
        return None;
    }
    Some(Policy {
        first: first.unwrap_or(cpu as u16),
        related: related.filter(own).unwrap_or(vec![cpu as u16]),
        ..policy
    })
}

/// Each name once, sorted.
pub fn names<'a>(all: impl Iterator<Item = &'a String>) -> Vec<String> {
    let names: BTreeSet<&String> = all.collect();
    names.into_iter().cloned().collect()
}

pub fn cpufreq_file(cpu: usize, name: &str) -> String {
    format!("devices/system/cpu/cpu{cpu}/cpufreq/{name}")
}

/// The driver of cpufreq, as the first CPU of `online` names it, or else the last. None: neither
/// does. On most machines this reads one file.
pub fn driver(host: &Host, online: &[u16]) -> Option<String> {
    let of = |&cpu: &u16| host.sys_text(&cpufreq_file(cpu.into(), "scaling_driver"));
    // A driver of only some CPUs manages the first online CPU or the last.
    let mut asked = online.iter().take(1).chain(online.last());
    asked.find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn existing_files_are_read_and_garbage_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let write = |cpu: usize, name: &str, text: &str| {
            let path = dir.path().join(cpufreq_file(cpu, name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(0, "scaling_driver", "amd-pstate-epp\n");
        write(0, "scaling_governor", "powersave\n");
        write(0, "energy_performance_preference", "balance_performance\n");
        write(0, "cpuinfo_min_freq", "400000\n");
        write(0, "cpuinfo_max_freq", "4500000\n");
        write(0, "base_frequency", "3700000\n");
        write(0, "related_cpus", "0 1\n");
        write(1, "cpuinfo_min_freq", "slow\n");
        write(1, "cpuinfo_max_freq", "3000000\n");
        write(1, "related_cpus", "0\n");
        let host = Host::in_folder(dir.path());
        let policies = Policies::read(&host, 3);
        let first = policies.of(0).unwrap();
        assert_eq!(first.driver.as_deref(), Some("amd-pstate-epp"));
        assert_eq!(first.governor.as_deref(), Some("powersave"));
        assert_eq!(first.epp.as_deref(), Some("balance_performance"));
        let khz = (first.min_khz, first.base_khz, first.max_khz);
        assert_eq!(khz, (Some(400_000), Some(3_700_000), Some(4_500_000)));
        assert_eq!(first.related, [0, 1]);
        let second = policies.of(1).unwrap();
        assert_eq!((second.min_khz, second.max_khz), (None, Some(3_000_000)));
        assert_eq!(
            second.related,
            [1],
            "a CPU that does not name itself stands alone"
        );
        assert!(policies.of(2).is_none() && policies.of(3).is_none());
        assert_eq!(policies.odd.len(), 1, "{:?}", policies.odd);
        assert_eq!(driver(&host, &[0, 1]).as_deref(), Some("amd-pstate-epp"));
        assert_eq!(driver(&host, &[1, 2]), None);
        write(2, "scaling_driver", "cppc\n");
        assert_eq!(driver(&host, &[1, 2]).as_deref(), Some("cppc"));
    }
}
