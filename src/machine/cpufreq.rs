// SPDX-License-Identifier: GPL-2.0-only
//! What sets the frequencies, and what `--cpuperf` means there. Only the schedutil governor uses a
//! scheduler's requests; under any other they have no effect.

use crate::bpf::intf;
use crate::machine::host::Host;
use crate::machine::names;
use crate::util::escape;
use crate::util::plain_file;
use std::fs::DirEntry;

/// Which frequencies the scheduler requests of the cpufreq governor: the value of `--cpuperf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum CpuPerf {
    /// Follow utilisation if the governor is schedutil; otherwise do nothing
    Auto,
    /// Make no requests. sched_ext itself requests the highest frequency when a scheduler is
    /// enabled, and that request stays
    Off,
}

/// Governors and drivers of the machine, each name once. Empty without cpufreq.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CpuFreq {
    pub governors: Vec<String>,
    pub drivers: Vec<String>,
}

impl CpuFreq {
    pub fn read(host: &Host) -> CpuFreq {
        let dir = host.sys.join("devices/system/cpu/cpufreq");
        let policies = || std::fs::read_dir(&dir).into_iter().flatten().flatten();
        let each = |name: &str| {
            let read = |policy: DirEntry| plain_file::text(&policy.path().join(name)).ok();
            let all = policies()
                .filter_map(read)
                .map(|s| escape::line(s.trim()).into_owned());
            names(all.collect::<Vec<_>>().iter())
        };
        CpuFreq {
            governors: each("scaling_governor"),
            drivers: each("scaling_driver"),
        }
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
        self.governors.iter().any(|name| name == "schedutil")
    }

    /// A sentence about what sets the frequencies.
    pub fn describe(&self) -> String {
        if self.governors.is_empty() {
            return "no cpufreq: the hardware sets the frequencies".to_string();
        }
        let effect = if self.schedutil() {
            "--cpuperf auto follows each CPU's utilisation"
        } else {
            "it ignores the scheduler's requests, --cpuperf has no effect"
        };
        format!(
            "governor {}, driver {}: {effect}",
            self.governors.join(" "),
            self.drivers.join(" ")
        )
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
            governors: names.iter().map(ToString::to_string).collect(),
            drivers: Vec::new(),
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
