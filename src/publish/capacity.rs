// SPDX-License-Identifier: GPL-2.0-only
//! What CPUs are worth, as cpufreq limits them.

use crate::host::Host;
use crate::machine::{Facts, Limits, Policies};
use crate::model::capacities;

pub struct Capacity {
    /// At the highest frequency, by number.
    whole: Vec<u16>,
    limits: Limits,
}

impl Capacity {
    pub fn new(policies: &Policies, facts: &Facts) -> Capacity {
        Capacity {
            limits: Limits::new(policies),
            whole: facts.capacities(),
        }
    }

    pub fn now(&self, host: &Host) -> Vec<u16> {
        capacities(&self.whole, &self.limits.read(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::intf::machine_facts;
    use std::fs;

    fn facts(capacity: &[u16]) -> Facts {
        // SAFETY: plain numbers, for which zero is a value.
        let (row, machine) = unsafe { (std::mem::zeroed(), std::mem::zeroed::<machine_facts>()) };
        let mut facts = Facts {
            cpus: vec![row; capacity.len()],
            llcs: vec![],
            nodes: vec![],
            llc_cpus: vec![],
            machine,
        };
        for (cpu, &capacity) in facts.cpus.iter_mut().zip(capacity) {
            cpu.capacity = capacity;
        }
        facts
    }

    #[test]
    fn a_limit_counts_when_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("devices/system/cpu/cpu1/cpufreq");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cpuinfo_max_freq"), "2000\n").unwrap();
        let limit = |khz: &str| fs::write(folder.join("scaling_max_freq"), khz).unwrap();
        limit("2000\n");
        let host = Host::in_folder(dir.path());
        let capacity = Capacity::new(&Policies::read(&host, 2), &facts(&[1024, 1000]));
        assert_eq!(capacity.now(&host), [1024, 1000]);
        limit("500\n");
        assert_eq!(capacity.now(&host), [1024, 250]);
    }
}
