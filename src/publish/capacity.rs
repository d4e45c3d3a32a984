// SPDX-License-Identifier: GPL-2.0-only
//! The capacity of CPUs under cpufreq's limits.

use crate::machine::host::Host;
use crate::machine::{Limits, Policies};
use crate::model::{capacities, limited};

pub struct Capacity {
    /// At the highest frequency, by CPU number.
    whole: Vec<u16>,
    limits: Limits,
}

impl Capacity {
    pub fn new(policies: &Policies, whole: Vec<u16>) -> Capacity {
        Capacity {
            limits: Limits::new(policies),
            whole,
        }
    }

    /// Takes over new policies of cpufreq.
    pub fn follow(&mut self, policies: &Policies) {
        self.limits = Limits::new(policies);
    }

    pub fn now(&self, host: &Host) -> Vec<u16> {
        capacities(&self.whole, &self.limits.read(host))
    }

    /// A sentence for people, if some CPU has less than its full capacity.
    pub fn limited(&self, now: &[u16]) -> Option<String> {
        limited(&self.whole, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_limit_counts_when_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("devices/system/cpu/cpu1/cpufreq");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cpuinfo_max_freq"), "2000\n").unwrap();
        let limit = |khz: &str| fs::write(folder.join("scaling_max_freq"), khz).unwrap();
        limit("2000\n");
        let host = Host::in_folder(dir.path());
        let capacity = Capacity::new(&Policies::read(&host, 2), vec![1024, 1000]);
        assert_eq!(capacity.now(&host), [1024, 1000]);
        limit("500\n");
        assert_eq!(capacity.now(&host), [1024, 250]);
    }
}
