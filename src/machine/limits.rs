// SPDX-License-Identifier: GPL-2.0-only
//! How far cpufreq lets each CPU go: its highest frequency, and the one that it is held to now, by somebody's wish or by
//! cooling.

use super::policy::{Policies, cpufreq_file};
use crate::host::Host;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub now_khz: u32,
    pub most_khz: u32,
}

/// What does not change: the highest frequency of each CPU, by number; None where cpufreq does not have the CPU.
pub struct Limits {
    most_khz: Vec<Option<u32>>,
}

impl Limits {
    pub fn new(policies: &Policies) -> Limits {
        let most = policies.cpus.iter().map(|p| p.as_ref()?.max_khz);
        Limits {
            most_khz: most.collect(),
        }
    }

    /// As it is now; one file of each CPU that cpufreq has.
    pub fn read(&self, host: &Host) -> Vec<Option<Limit>> {
        let now = |(cpu, most): (usize, &Option<u32>)| {
            Some(Limit {
                most_khz: (*most)?,
                now_khz: host
                    .sys_text(&cpufreq_file(cpu, "scaling_max_freq"))?
                    .parse()
                    .ok()?,
            })
        };
        self.most_khz.iter().enumerate().map(now).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn limits_are_followed_and_garbage_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let write = |cpu: usize, file: &str, text: &str| {
            let folder = dir
                .path()
                .join(format!("devices/system/cpu/cpu{cpu}/cpufreq"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(file), text).unwrap();
        };
        write(0, "cpuinfo_max_freq", "3000000\n");
        write(0, "scaling_max_freq", "3000000\n");
        write(1, "cpuinfo_max_freq", "0\n");
        write(1, "scaling_max_freq", "3000000\n");
        write(2, "cpuinfo_max_freq", "2000000\n");
        write(2, "scaling_max_freq", "<unknown>\n");
        let host = Host::in_folder(dir.path());
        let limits = Limits::new(&Policies::read(&host, 4));
        let first = |now_khz| {
            Some(Limit {
                now_khz,
                most_khz: 3_000_000,
            })
        };
        assert_eq!(limits.read(&host), [first(3_000_000), None, None, None]);
        write(0, "scaling_max_freq", "1200000\n");
        assert_eq!(limits.read(&host)[0], first(1_200_000));
    }
}
