// SPDX-License-Identifier: GPL-2.0-only
//! Who sets the frequencies, and what `--cpuperf` makes of it. Only the schedutil governor listens to a scheduler's
//! requests; under any other they are wasted.

use crate::bpf::intf;
use crate::host::Host;
use std::collections::BTreeSet;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CpuPerf {
    /// Follow utilisation where the governor is schedutil, else do nothing
    Auto,
    /// Never ask: sched_ext itself asks for the highest frequency when a scheduler is enabled, and that stays
    Off,
}

/// Governors and drivers of the machine, each named once. Empty where there is no cpufreq.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CpuFreq {
    pub governors: BTreeSet<String>,
    pub drivers: BTreeSet<String>,
}

impl CpuFreq {
    pub fn read(host: &Host) -> CpuFreq {
        let mut found = CpuFreq::default();
        let dir = host.sys.join("devices/system/cpu/cpufreq");
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
            found
                .governors
                .extend(read("scaling_governor").map(|s| s.trim().to_string()));
            found
                .drivers
                .extend(read("scaling_driver").map(|s| s.trim().to_string()));
        }
        found
    }

    /// enum cpuperf_mode for the BPF half.
    pub fn mode(&self, asked: CpuPerf) -> u32 {
        match asked {
            CpuPerf::Off => intf::cpuperf_mode_CPUPERF_OFF,
            CpuPerf::Auto if self.schedutil() => intf::cpuperf_mode_CPUPERF_UTIL,
            CpuPerf::Auto => intf::cpuperf_mode_CPUPERF_OFF,
        }
    }

    pub fn schedutil(&self) -> bool {
        self.governors.contains("schedutil")
    }

    pub fn governor(&self) -> String {
        join(&self.governors)
    }

    /// One sentence on who sets the frequencies.
    pub fn describe(&self) -> String {
        if self.governors.is_empty() {
            return "no cpufreq: the machine sets its frequencies by itself".to_string();
        }
        let effect = if self.schedutil() {
            "--cpuperf auto follows each CPU's utilisation"
        } else {
            "it does not listen to the scheduler, --cpuperf has no effect"
        };
        format!(
            "governor {}, driver {}: {effect}",
            self.governor(),
            join(&self.drivers)
        )
    }
}

fn join(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if names.is_empty() {
        "none".to_string()
    } else {
        names.join(" ")
    }
}

pub fn mode_name(mode: u32) -> &'static str {
    match mode {
        intf::cpuperf_mode_CPUPERF_UTIL => "util",
        _ => "off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn governed_by(names: &[&str]) -> CpuFreq {
        CpuFreq {
            governors: names.iter().map(|n| n.to_string()).collect(),
            drivers: BTreeSet::new(),
        }
    }

    #[test]
    fn auto_follows_utilisation_under_schedutil_only() {
        assert_eq!(
            governed_by(&["schedutil"]).mode(CpuPerf::Auto),
            intf::cpuperf_mode_CPUPERF_UTIL
        );
        assert_eq!(
            governed_by(&["performance"]).mode(CpuPerf::Auto),
            intf::cpuperf_mode_CPUPERF_OFF
        );
        assert_eq!(
            governed_by(&[]).mode(CpuPerf::Auto),
            intf::cpuperf_mode_CPUPERF_OFF
        );
    }

    #[test]
    fn off_does_not_ask_the_governor() {
        for governor in ["schedutil", "performance"] {
            assert_eq!(
                governed_by(&[governor]).mode(CpuPerf::Off),
                intf::cpuperf_mode_CPUPERF_OFF
            );
        }
    }
}
