// SPDX-License-Identifier: GPL-2.0-only
//! What of cpufreq somebody may set while the scheduler runs, and what follows from it: governor, EPP, boost, and the highest
//! frequency, which boost changes. Few files, so that they can be read again and again.

use super::policy::cpufreq_file;
use crate::host::Host;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Of each CPU by number; None: cpufreq does not have it.
    cpus: Vec<Option<Mode>>,
    boost: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mode {
    governor: Option<String>,
    epp: Option<String>,
    max: Option<String>,
}

impl Modes {
    pub fn read(host: &Host, nr_cpu_ids: usize) -> Modes {
        Modes {
            cpus: (0..nr_cpu_ids).map(|cpu| mode(host, cpu)).collect(),
            boost: boost(host),
        }
    }

    /// Each once; 'none' where cpufreq has no CPU.
    pub fn governors(&self) -> String {
        let governors = self.cpus.iter().flatten();
        let names = names(governors.filter_map(|m| m.governor.as_deref()));
        names.unwrap_or("none".to_string())
    }

    /// 'governor schedutil, boost on'.
    pub fn text(&self) -> String {
        let modes = || self.cpus.iter().flatten();
        let boost = self
            .boost
            .map(|on| if on { "boost on" } else { "boost off" });
        let all = [
            named("governor", modes().filter_map(|m| m.governor.as_deref())),
            named("EPP", modes().filter_map(|m| m.epp.as_deref())),
            boost.map(str::to_string),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if all.is_empty() {
            return "no governor".to_string();
        }
        all.join(", ")
    }
}

fn mode(host: &Host, cpu: usize) -> Option<Mode> {
    let text = |name| host.sys_text(&cpufreq_file(cpu, name));
    let max = text("cpuinfo_max_freq");
    let governor = text("scaling_governor");
    if max.is_none() && governor.is_none() {
        return None;
    }
    Some(Mode {
        governor,
        epp: text("energy_performance_preference"),
        max,
    })
}

fn boost(host: &Host) -> Option<bool> {
    let cpu = |file: &str| host.sys_text(&format!("devices/system/cpu/{file}"));
    match (cpu("cpufreq/boost"), cpu("intel_pstate/no_turbo")) {
        (Some(boost), _) => Some(boost != "0"),
        (None, Some(no_turbo)) => Some(no_turbo == "0"),
        (None, None) => None,
    }
}

fn named<'a>(what: &str, all: impl Iterator<Item = &'a str>) -> Option<String> {
    names(all).map(|names| format!("{what} {names}"))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| names.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_set_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join("devices/system/cpu").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let host = Host::in_folder(dir.path());
        let mut last = Modes::read(&host, 2);
        assert_eq!(last.text(), "no governor");
        for (path, text, told) in [
            (
                "cpu1/cpufreq/scaling_governor",
                "powersave\n",
                "governor powersave",
            ),
            (
                "cpu0/cpufreq/scaling_governor",
                "ondemand\n",
                "governor ondemand powersave",
            ),
            (
                "cpu1/cpufreq/energy_performance_preference",
                "power\n",
                "governor ondemand powersave, EPP power",
            ),
            (
                "intel_pstate/no_turbo",
                "1\n",
                "governor ondemand powersave, EPP power, boost off",
            ),
            (
                "cpufreq/boost",
                "1\n",
                "governor ondemand powersave, EPP power, boost on",
            ),
            (
                "cpu0/cpufreq/cpuinfo_max_freq",
                "3000000\n",
                "governor ondemand powersave, EPP power, boost on",
            ),
        ] {
            write(path, text);
            let now = Modes::read(&host, 2);
            assert_ne!(now, last, "{path}");
            assert_eq!(now.text(), told);
            last = now;
        }
    }
}
