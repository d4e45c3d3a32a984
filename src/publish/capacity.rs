// SPDX-License-Identifier: GPL-2.0-only
//! Keeps what CPUs are worth in step with what cpufreq allows them.

use super::{Grace, Publisher, table};
use crate::bpf::intf::policy_image;
use crate::host::Host;
use crate::machine::{Facts, Limits};
use crate::model::capacities;
use anyhow::Result;

pub struct Capacity {
    /// At the highest frequency, by number.
    whole: Vec<u16>,
    limits: Limits,
}

impl Capacity {
    pub fn new(host: &Host, facts: &Facts) -> Capacity {
        let whole = facts.capacities();
        Capacity {
            limits: Limits::new(host, whole.len()),
            whole,
        }
    }

    pub fn now(&self, host: &Host) -> Vec<u16> {
        capacities(&self.whole, &self.limits.read(host))
    }

    /// Publishes what has changed; true if something has.
    pub fn follow<G: Grace>(&self, host: &Host, publisher: &mut Publisher<G>) -> Result<bool> {
        let live = publisher.live();
        let capacity = table(&self.now(host));
        if capacity == live.capacity {
            return Ok(false);
        }
        publisher.publish(&policy_image { capacity, ..live })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::intf::{machine_facts, policy_store};
    use crate::config::Config;
    use crate::publish::image;
    use std::fs;

    struct Nobody;

    impl Grace for Nobody {
        fn wait(&mut self) -> Result<()> {
            Ok(())
        }
    }

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
    fn a_limit_is_published_once_and_the_arms_stay() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("devices/system/cpu/cpu1/cpufreq");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("cpuinfo_max_freq"), "2000\n").unwrap();
        let limit = |khz: &str| fs::write(folder.join("scaling_max_freq"), khz).unwrap();
        limit("2000\n");
        let host = Host::in_folder(dir.path());
        let capacity = Capacity::new(&host, &facts(&[1024, 1000]));
        let first = image(&[Config::default().arm(2)], &capacity.now(&host));
        let mut store = policy_store {
            slot: [first, first],
            index: 0,
        };
        // SAFETY: the store lives, and nobody else has it.
        let mut publisher = unsafe { Publisher::new((&mut store).into(), Nobody) };
        assert!(!capacity.follow(&host, &mut publisher).unwrap());
        limit("500\n");
        assert!(capacity.follow(&host, &mut publisher).unwrap());
        let live = publisher.live();
        assert_eq!(live.capacity[..3], [1024, 250, 0]);
        assert_eq!(
            live.arm[0].task.features,
            Config::default().features.0,
            "the arms are as they were"
        );
        assert_eq!(live.generation, 1);
        assert!(!capacity.follow(&host, &mut publisher).unwrap());
    }
}
