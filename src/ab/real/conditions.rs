// SPDX-License-Identifier: GPL-2.0-only
//! Conditions of this machine that could spoil a run, read from files.

use crate::ab::condition::{Seen, THEN};
use crate::ab::cpus::cores;
use crate::machine::host::Host;
use crate::machine::{
    Clocks, Limits, Machine, Modes, Policies, Throttles, cpulist_text, tick_period,
};
use crate::model::passed;
use crate::util::text::count;
use rustix::param::clock_ticks_per_second;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub struct Conditions {
    policies: Policies,
    cpus: Vec<u16>,
    throttles: Throttles,
    modes: Modes,
    limits: Limits,
    held: Option<String>,
    busy_s: f64,
    clocks: Clocks,
    begin: Instant,
}

impl Conditions {
    pub fn before(host: &Host) -> Conditions {
        let cpus: Vec<u16> = (0..nr_cpus(host) as u16).collect();
        let policies = Policies::read(host, cpus.len());
        let limits = Limits::new(&policies);
        Conditions {
            held: held(&limits, host),
            modes: Modes::read(host, &policies, None),
            throttles: Throttles::read(host, &cpus),
            busy_s: busy_s(host),
            begin: Instant::now(),
            clocks: Clocks::now(),
            policies,
            limits,
            cpus,
        }
    }

    /// What changed since `before`. `own_s`: CPU time of the command, s. EPP is not read again, as
    /// that would interrupt the CPUs.
    pub fn after(self, host: &Host, own_s: f64) -> Seen {
        let busy_s = busy_s(host) - self.busy_s;
        let cpus =
            |secs: f64| (secs.max(0.0) / self.begin.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let throttles = Throttles::read(host, &self.cpus);
        let modes = Modes::read(host, &self.policies, Some(&self.modes));
        let with = |modes: &Modes, held: Option<String>| {
            let held = held.map_or(String::new(), |held| format!(", {held}"));
            modes.text() + &held
        };
        let now = with(&modes, held(&self.limits, host));
        let then = with(&self.modes, self.held);
        let clocks = Clocks::now();
        let suspended = passed(&self.clocks, &clocks).suspended.unwrap_or_default();
        Seen {
            modes: if then == now {
                now
            } else {
                format!("{then}{THEN}{now}")
            },
            throttled: throttles
                .known()
                .then(|| throttles.since(&self.throttles).is_some()),
            battery: on_battery(&host.sys),
            busy_cpus: cpus(busy_s),
            other_cpus: cpus(busy_s - own_s),
            clock_step_s: ((offset_s(&clocks) - offset_s(&self.clocks)) * 1e3).round() / 1e3,
            suspended_s: (suspended.as_secs_f64() * 1e3).round() / 1e3,
        }
    }
}

fn nr_cpus(host: &Host) -> usize {
    let text = host
        .sys_text("devices/system/cpu/possible")
        .unwrap_or_default();
    let last = text
        .rsplit([',', '-'])
        .next()
        .and_then(|n| n.parse::<usize>().ok());
    last.map_or(1, |n| n + 1)
}

/// CPU time of all CPUs since boot, s: of tasks, and steal time. Not of interrupts, which the
/// command may cause.
fn busy_s(host: &Host) -> f64 {
    let text = host.proc_text("stat").unwrap_or_default();
    let all = text.lines().find_map(|l| l.strip_prefix("cpu "));
    let ticks = all.unwrap_or_default().split_whitespace().enumerate();
    // user, nice, system and steal.
    let busy = ticks.filter(|(at, _)| [0, 1, 2, 7].contains(at));
    let sum: u64 = busy.filter_map(|(_, n)| n.parse::<u64>().ok()).sum();
    sum as f64 / clock_ticks_per_second() as f64
}

/// CLOCK_REALTIME minus CLOCK_BOOTTIME.
fn offset_s(clocks: &Clocks) -> f64 {
    clocks.real.as_secs_f64() - clocks.boot.as_secs_f64()
}

/// Limits of CPUs below their highest frequency, by cpufreq or cooling. None: there are none.
fn held(limits: &Limits, host: &Host) -> Option<String> {
    let all = limits.read(host).into_iter().flatten();
    let held: BTreeSet<(u32, u32)> = all
        .filter(|limit| limit.now_khz < limit.most_khz)
        .map(|limit| (limit.now_khz, limit.most_khz))
        .collect();
    let ghz = |khz: u32| f64::from(khz / 10_000) / 100.0;
    let each = held.into_iter();
    let each = each.map(|(now, most)| format!("{} of {} GHz", ghz(now), ghz(most)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("held to {}", each.join(" and ")))
}

/// True if no supply powers the machine, and there is a mains supply or a battery that is
/// discharging. Batteries of devices such as a mouse do not count.
fn on_battery(sys: &Path) -> bool {
    let supplies = fs::read_dir(sys.join("class/power_supply"));
    let supplies = supplies.into_iter().flatten().flatten().map(|s| s.path());
    let text = |path: &Path, name: &str| {
        let text = fs::read_to_string(path.join(name)).unwrap_or_default();
        text.trim().to_string()
    };
    let own: Vec<PathBuf> = supplies.filter(|p| text(p, "scope") != "Device").collect();
    let battery = |path: &Path| ["Battery", "UPS"].contains(&text(path, "type").as_str());
    // USB supplies that are online read 1 or 2.
    let fed = own
        .iter()
        .any(|p| !battery(p) && !["", "0"].contains(&text(p, "online").as_str()));
    let reported = |p: &PathBuf| {
        text(p, "type") == "Mains" || battery(p) && text(p, "status") == "Discharging"
    };
    !fed && own.iter().any(reported)
}

/// Facts about the machine to keep with a result.
pub fn facts(host: &Host) -> BTreeMap<String, String> {
    let info = host.proc_text("cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    let machine = Machine::read(&host.sys).ok();
    let facts = [
        ("kernel", host.proc_text("sys/kernel/osrelease")),
        ("name", host.proc_text("sys/kernel/hostname")),
        ("cpus", host.sys_text("devices/system/cpu/online")),
        // The first thread of each core.
        ("cores", machine.as_ref().map(|m| cpulist_text(&cores(m)))),
        ("topology", machine.as_ref().map(topology)),
        ("memory", memory(host)),
        ("cpu", model.map(|(_, name)| name.trim().to_string())),
        ("cmdline", host.proc_text("cmdline")),
        (
            "hz",
            tick_period().map(|tick| (1.0 / tick.as_secs_f64()).round().to_string()),
        ),
        ("mitigations", mitigations(host)),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_string(), text?)));
    known.collect()
}

fn topology(machine: &Machine) -> String {
    let parts = [
        count(usize::from(machine.nr_cores), "core"),
        count(machine.llcs.len(), "last-level cache"),
        count(machine.nodes.len(), "node"),
    ];
    parts.join(", ")
}

/// In whole GiB: what the kernel keeps for itself differs by boot.
fn memory(host: &Host) -> Option<String> {
    let info = host.proc_text("meminfo")?;
    let total = info.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    let kb: f64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(format!("{} GiB", (kb / f64::from(1 << 20)).round()))
}

/// What the kernel does about each vulnerability of the CPU that it knows. None: it tells nothing.
fn mitigations(host: &Host) -> Option<String> {
    let folder = host.sys.join("devices/system/cpu/vulnerabilities");
    let files = fs::read_dir(&folder).ok()?.flatten();
    let mut names: Vec<String> = files
        .filter_map(|f| f.file_name().into_string().ok())
        .collect();
    names.sort();
    let of = |name: &String| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        let text = text.trim();
        (text != "Not affected").then(|| format!("{name}: {text}"))
    };
    let each: Vec<String> = names.iter().filter_map(of).collect();
    Some(match each.len() {
        0 => "none needed".to_string(),
        _ => each.join("; "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn write(folder: &Path, name: &str, text: &str) {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    #[test]
    fn a_machine_whose_mains_are_off_is_on_battery() {
        let dir = tempfile::tempdir().unwrap();
        let supply = |name: &str, kind: &str, online: &str| {
            let folder = dir.path().join("class/power_supply").join(name);
            write(&folder, "type", kind);
            write(&folder, "online", online);
            on_battery(dir.path())
        };
        assert!(!on_battery(dir.path()));
        assert!(!supply("BAT0", "Battery\n", "0\n"));
        assert!(supply("AC", "Mains\n", "0\n"));
        assert!(!supply("AC2", "Mains\n", "1\n"));
    }

    /// As on machines with USB chargers, where no supply has type Mains.
    #[test]
    fn a_machine_whose_battery_empties_is_on_battery() {
        let dir = tempfile::tempdir().unwrap();
        let says = |supply: &str, files: &[(&str, &str)]| {
            let folder = dir.path().join("class/power_supply").join(supply);
            files
                .iter()
                .for_each(|(name, text)| write(&folder, name, text));
            on_battery(dir.path())
        };
        let discharging = ("status", "Discharging\n");
        let battery = ("type", "Battery\n");
        assert!(!says(
            "mouse",
            &[battery, discharging, ("scope", "Device\n")]
        ));
        assert!(!says(
            "BAT0",
            &[battery, ("status", "Full\n"), ("scope", "System\n")]
        ));
        assert!(says("BAT0", &[discharging]));
        assert!(says("usb", &[("type", "USB\n"), ("online", "0\n")]));
        assert!(!says("usb", &[("online", "2\n")]));
    }

    #[test]
    fn what_cpus_are_held_to_is_of_the_modes() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        let cap = |cpu: usize, khz: &str| {
            let folder = dir
                .path()
                .join(format!("devices/system/cpu/cpu{cpu}/cpufreq"));
            write(&folder, "cpuinfo_max_freq", "4549121");
            write(&folder, "scaling_governor", "performance");
            write(&folder, "scaling_max_freq", khz);
        };
        write(dir.path(), "devices/system/cpu/possible", "0-2");
        (0..3).for_each(|cpu| cap(cpu, "4549121"));
        let free = Conditions::before(&host);
        cap(1, "2800000");
        cap(2, "2800000");
        let held = Conditions::before(&host).after(&host, 0.0);
        assert_eq!(held.modes, "governor performance, held to 2.8 of 4.54 GHz");
        let changed = free.after(&host, 0.0).modes;
        assert_eq!(
            changed,
            format!("governor performance, then {}", held.modes)
        );
    }

    #[test]
    fn modes_and_clocks_that_change_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        let boost = "devices/system/cpu/cpufreq/boost";
        write(dir.path(), boost, "1");
        let (same, changed) = (Conditions::before(&host), Conditions::before(&host));
        let ago = |suspended: u64, set: u64| {
            let mut before = Conditions::before(&host);
            before.clocks.boot -= Duration::from_secs(suspended);
            before.clocks.real -= Duration::from_secs(suspended + set);
            let seen = before.after(&host, 0.0);
            [seen.suspended_s, seen.clock_step_s]
        };
        let seen = same.after(&host, 0.0);
        assert_eq!((seen.modes.as_str(), seen.battery), ("boost on", false));
        assert!(seen.clock_step_s.abs() < 0.5);
        for (suspended, set) in [(0, 0), (0, 7), (5, 0), (5, 7)] {
            let [slept, step] = ago(suspended, set);
            let off = [slept - suspended as f64, step - set as f64];
            assert!(off.iter().all(|off| off.abs() < 0.5), "{slept} {step}");
        }
        write(dir.path(), boost, "0");
        assert_eq!(changed.after(&host, 0.0).modes, "boost on, then boost off");
    }

    #[test]
    fn known_facts_of_a_machine_are_reported() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        // The tick is that of the kernel that runs the test.
        let known = |host: &Host| {
            let mut known = facts(host);
            let hz: Option<u32> = known.remove("hz").and_then(|hz| hz.parse().ok());
            assert!(hz.is_none_or(|hz| (10..=10_000).contains(&hz)));
            known
        };
        assert_eq!(known(&host), BTreeMap::new());
        write(dir.path(), "proc/sys/kernel/osrelease", "7.2.13\n");
        write(dir.path(), "proc/sys/kernel/hostname", "desk\n");
        write(
            dir.path(),
            "proc/cpuinfo",
            "processor : 0\nmodel name\t: A CPU\n",
        );
        write(dir.path(), "devices/system/cpu/online", "0-7\n");
        let reported: Vec<(String, String)> = known(&host).into_iter().collect();
        let expected = [
            ("cpu", "A CPU"),
            ("cpus", "0-7"),
            ("kernel", "7.2.13"),
            ("name", "desk"),
        ];
        assert_eq!(
            reported,
            expected.map(|(name, text)| (name.to_string(), text.to_string()))
        );
    }

    #[test]
    fn what_others_use_while_it_runs_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        let stat = dir.path().join("proc/stat");
        let write = |user: u64, steal: u64| {
            fs::create_dir_all(stat.parent().unwrap()).unwrap();
            fs::write(
                &stat,
                format!("cpu  {user} 0 100 9999 99 77 88 {steal} 0 0\ncpu0 1 1 1\n"),
            )
            .unwrap();
        };
        write(500, 3);
        let before = |past: u64| Conditions {
            begin: Instant::now() - Duration::from_secs(past),
            ..Conditions::before(&host)
        };
        let (quiet, busy) = (before(10), before(10));
        assert_eq!(quiet.after(&host, 0.0).other_cpus, 0.0);
        // 20 s of CPU time of the command and 10 s of other tasks within 10 s.
        write(500 + 2900, 3 + 100);
        let seen = busy.after(&host, 20.0);
        assert!(
            (seen.busy_cpus - 3.0).abs() < 0.02 && (seen.other_cpus - 1.0).abs() < 0.02,
            "{seen:?}"
        );
        assert_eq!(seen.throttled, None);
        let folder = dir.path().join("devices/system/cpu/cpu0/thermal_throttle");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("core_throttle_count"), "5").unwrap();
        let (cool, hot) = (before(1), before(1));
        assert_eq!(cool.after(&host, 0.0).throttled, Some(false));
        fs::write(folder.join("core_throttle_count"), "6").unwrap();
        assert_eq!(hot.after(&host, 0.0).throttled, Some(true));
    }
}
