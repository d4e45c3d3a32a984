// SPDX-License-Identifier: GPL-2.0-only
//! What of this machine could spoil a run, by the files that show it.

use crate::ab::condition::Seen;
use crate::host::Host;
use crate::machine::{Modes, Policies, Throttles};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

pub struct Conditions {
    policies: Policies,
    cpus: Vec<u16>,
    throttles: Throttles,
    modes: Modes,
    others: usize,
    offset_s: f64,
}

impl Conditions {
    pub fn before(host: &Host) -> Conditions {
        let cpus: Vec<u16> = (0..nr_cpus(host) as u16).collect();
        let policies = Policies::read(host, cpus.len());
        Conditions {
            modes: Modes::read(host, &policies, None),
            throttles: Throttles::read(host, &cpus),
            others: running(host).saturating_sub(1),
            offset_s: offset_s(),
            policies,
            cpus,
        }
    }

    pub fn after(self, host: &Host) -> Seen {
        let throttles = Throttles::read(host, &self.cpus);
        let modes = Modes::read(host, &self.policies, Some(&self.modes));
        let (then, now) = (self.modes.text(), modes.text());
        Seen {
            modes: if then == now {
                now
            } else {
                format!("{then}, then {now}")
            },
            throttled: throttles.since(&self.throttles).is_some(),
            battery: on_battery(&host.sys),
            others: self.others,
            clock_step_s: ((offset_s() - self.offset_s) * 1e3).round() / 1e3,
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

/// Tasks that run or want to, we among them.
fn running(host: &Host) -> usize {
    let text = host.proc_text("loadavg").unwrap_or_default();
    let field = text
        .split_whitespace()
        .nth(3)
        .and_then(|f| f.split('/').next());
    field.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Of the wall's clock from the monotonic one.
fn offset_s() -> f64 {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // SAFETY: all zeroes is a value of it, and it is alive.
    let monotonic = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    wall.unwrap_or_default().as_secs_f64() - monotonic.as_secs_f64()
}

/// A mains supply that is there and off.
fn on_battery(sys: &Path) -> bool {
    let supplies = fs::read_dir(sys.join("class/power_supply"))
        .into_iter()
        .flatten()
        .flatten();
    let text = |path: &Path, name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
    let mains: Vec<bool> = supplies
        .map(|s| s.path())
        .filter(|p| text(p, "type").trim() == "Mains")
        .map(|p| text(&p, "online").trim() == "1")
        .collect();
    !mains.is_empty() && !mains.contains(&true)
}

/// What one wants to know of the machine behind a result.
pub fn facts(host: &Host) -> BTreeMap<String, String> {
    let info = host.proc_text("cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':'));
    let facts = [
        ("kernel", host.proc_text("sys/kernel/osrelease")),
        ("name", host.proc_text("sys/kernel/hostname")),
        ("cpus", host.sys_text("devices/system/cpu/online")),
        ("cpu", model.map(|(_, name)| name.trim().to_string())),
    ];
    let known = facts
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_string(), text?)));
    known.collect()
}
