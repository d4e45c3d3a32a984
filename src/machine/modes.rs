// SPDX-License-Identifier: GPL-2.0-only
//! Settings of cpufreq that may change while the scheduler runs, and their effects: governor, EPP,
//! boost, and the highest frequency, which boost changes. These are few files, of one CPU of each
//! policy, so they can be read often.

use super::policy::{Policies, cpufreq_file, names};
use crate::machine::host::Host;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// By the first CPU of each policy.
    cpus: BTreeMap<usize, Mode>,
    boost: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mode {
    governor: Option<String>,
    epp: Option<String>,
    max: Option<String>,
}

impl Modes {
    /// EPP is taken from `known` if given: reading it costs an interrupt on its CPU (intel_pstate
    /// reads an MSR there).
    pub fn read(host: &Host, policies: &Policies, known: Option<&Modes>) -> Modes {
        let mode = |cpu| {
            let text = |name| host.sys_text(&cpufreq_file(cpu, name));
            let epp = match known {
                Some(known) => known.cpus.get(&cpu).and_then(|mode| mode.epp.clone()),
                None => text("energy_performance_preference"),
            };
            let mode = Mode {
                governor: text("scaling_governor"),
                max: text("cpuinfo_max_freq"),
                epp,
            };
            (cpu, mode)
        };
        Modes {
            cpus: policies.firsts().into_iter().map(mode).collect(),
            boost: boost(host),
        }
    }

    /// Each governor once; 'none' where cpufreq manages no CPU.
    pub fn governors(&self) -> String {
        let governors = self.cpus.values().filter_map(|m| m.governor.as_ref());
        match names(governors) {
            none if none.is_empty() => "none".to_string(),
            names => names.join(" "),
        }
    }

    /// Each EPP once; empty where there is none.
    pub fn epps(&self) -> String {
        names(self.cpus.values().filter_map(|m| m.epp.as_ref())).join(" ")
    }

    /// For example 'governor schedutil, boost on'.
    pub fn text(&self) -> String {
        let boost = self
            .boost
            .map(|on| if on { "boost on" } else { "boost off" });
        let all = [
            self.named("governor", |m| m.governor.as_ref()),
            self.named("EPP", |m| m.epp.as_ref()),
            boost.map(str::to_string),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        if all.is_empty() {
            return "no governor".to_string();
        }
        all.join(", ")
    }

    fn named(&self, what: &str, of: impl Fn(&Mode) -> Option<&String>) -> Option<String> {
        let names = names(self.cpus.values().filter_map(of));
        (!names.is_empty()).then(|| format!("{what} {}", names.join(" ")))
    }
}

fn boost(host: &Host) -> Option<bool> {
    let cpu = |file: &str| host.sys_text(&format!("devices/system/cpu/{file}"));
    match (cpu("cpufreq/boost"), cpu("intel_pstate/no_turbo")) {
        (Some(boost), _) => Some(boost != "0"),
        (None, Some(no_turbo)) => Some(no_turbo == "0"),
        (None, None) => None,
    }
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
        let read = || Modes::read(&host, &Policies::read(&host, 2), None);
        let mut last = read();
        assert_eq!(last.text(), "no governor");
        for (path, text, expected) in [
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
            let now = read();
            assert_ne!(now, last, "{path}");
            assert_eq!(now.text(), expected);
            last = now;
        }
    }
    #[test]
    fn one_cpu_of_a_policy_is_asked_and_epp_only_if_it_may_be() {
        let dir = tempfile::tempdir().unwrap();
        let write = |cpu: usize, name: &str, text: &str| {
            let path = dir.path().join(cpufreq_file(cpu, name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for cpu in 0..4 {
            write(cpu, "related_cpus", ["0 1", "2 3"][cpu / 2]);
            write(cpu, "freqdomain_cpus", "0 1 2 3");
            write(cpu, "scaling_governor", ["a", "no", "b", "no"][cpu]);
            write(cpu, "energy_performance_preference", "power");
        }
        let host = Host::in_folder(dir.path());
        let policies = Policies::read(&host, 4);
        let known = Modes::read(&host, &policies, None);
        assert_eq!(known.text(), "governor a b, EPP power");
        write(2, "energy_performance_preference", "default");
        let idle = Modes::read(&host, &policies, Some(&known));
        assert_eq!(idle, known);
        let busy = Modes::read(&host, &policies, None);
        assert_eq!(busy.text(), "governor a b, EPP default power");
    }
}
