// SPDX-License-Identifier: GPL-2.0-only
//! The highest frequency of each CPU, and the one that cpufreq limits it to now, by a setting or by
//! cooling.

use super::policy::{Policies, cpufreq_file};
use crate::machine::host::Host;

/// The highest frequency that cpufreq allows a CPU now, and the highest that the CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub now_khz: u32,
    pub most_khz: u32,
}

/// What does not change, by CPU number: the highest frequency, None where cpufreq does not manage
/// the CPU, and the highest one of the driver's table.
pub struct Limits {
    most_khz: Vec<Option<u32>>,
    table_khz: Vec<Option<u32>>,
}

impl Limits {
    pub fn new(policies: &Policies) -> Limits {
        let most = policies.cpus.iter().map(|p| p.as_ref()?.max_khz);
        let table = policies.cpus.iter().map(|p| p.as_ref()?.table_khz);
        Limits {
            most_khz: most.collect(),
            table_khz: table.collect(),
        }
    }

    /// The current limits; reads one file for each CPU that cpufreq manages. A CPU that may use the
    /// highest frequency of the table is not limited. acpi-cpufreq includes boost in the highest
    /// frequency (acpi_cpufreq_cpu_init()), but not in the table, nor in scaling_max_freq.
    pub fn read(&self, host: &Host) -> Vec<Option<Limit>> {
        let now = |(cpu, most): (usize, &Option<u32>)| {
            let most_khz = (*most)?;
            let text = host.sys_text(&cpufreq_file(cpu, "scaling_max_freq"))?;
            let now_khz = text.parse().ok()?;
            let whole = self.table_khz[cpu].is_some_and(|table| now_khz >= table);
            Some(Limit {
                most_khz,
                now_khz: if whole { most_khz } else { now_khz },
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

    /// As acpi-cpufreq reports a Threadripper 3970X: boost to 4.5 GHz, and a table that ends at
    /// 3.7.
    #[test]
    fn a_limit_at_the_top_of_the_table_is_no_limit() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = dir.path().join(cpufreq_file(0, file));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("cpuinfo_max_freq", "4549121\n");
        write(
            "scaling_available_frequencies",
            "3700000 2800000 2200000 \n",
        );
        let host = Host::in_folder(dir.path());
        let limits = Limits::new(&Policies::read(&host, 1));
        let now = |text: &str| {
            write("scaling_max_freq", text);
            limits.read(&host)[0].map(|limit| limit.now_khz)
        };
        assert_eq!(now("3700000\n"), Some(4_549_121));
        assert_eq!(now("2800000\n"), Some(2_800_000));
    }
}
