// SPDX-License-Identifier: GPL-2.0-only
//! A machine described by files. An input has a line for each file: its path below /sys, a space,
//! and the file's text, with \n for a newline.

use scx_roost::doctor::outlook::Outlook;
use scx_roost::machine::host::Host;
use scx_roost::machine::picture::picture;
use scx_roost::machine::{
    FreqFiles, Limits, Machine, Modes, Policies, Rankings, Throttles, cpu_times, driver,
    idle_states, kernel_domains, resident_kb, waiting_permille,
};
use scx_roost::model::{Sharing, capacities, preferred_cores};
use std::fs;
use std::path::{Component, Path};
use tempfile::TempDir;

const FILES: usize = 400;
/// On larger machines cpufreq is not read: it looks for 20 files of each CPU.
const SMALL: u16 = 32;

pub fn sysfs(input: &[u8]) {
    let dir = folder();
    let text = String::from_utf8_lossy(input);
    text.lines().take(FILES).for_each(|line| write(&dir, line));
    let host = Host::in_folder(dir.path());
    proc_files(&host);
    let Ok(machine) = Machine::read(dir.path()) else {
        return;
    };
    holds(&machine);
    let _ = picture(&machine);
    if machine.nr_cpu_ids <= SMALL {
        cpufreq(&host, &machine);
        let _ = Outlook::read(&host, &machine).text();
    }
}

/// In memory, where /dev/shm exists.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder")
}

/// Lines that name no possible file are skipped.
fn write(dir: &TempDir, line: &str) {
    let (path, text) = line.split_once(' ').unwrap_or((line, ""));
    let inside = |c: Component| matches!(c, Component::Normal(_));
    if path.is_empty() || path.contains('\0') || !Path::new(path).components().all(inside) {
        return;
    }
    let path = dir.path().join(path);
    let made = path.parent().is_some_and(|p| fs::create_dir_all(p).is_ok());
    if made {
        let _ = fs::write(path, text.replace("\\n", "\n"));
    }
}

/// What the policy relies on in its tables.
fn holds(machine: &Machine) {
    let Ok(facts) = machine.facts() else {
        return;
    };
    assert_eq!(facts.cpus.len(), usize::from(machine.nr_cpu_ids));
    assert_eq!(facts.llc_cpus.len(), machine.cpus.len());
    for cpu in &machine.cpus {
        let row = &facts.cpus[usize::from(cpu.id)];
        let llc = &facts.llcs[usize::from(row.llc)];
        assert!(row.pos < llc.nr_cpus && row.node == llc.node);
        let at = usize::from(llc.first + row.pos);
        assert_eq!(facts.llc_cpus[at], cpu.id);
        let node = &facts.nodes[usize::from(row.node)];
        assert!((node.first_llc..node.first_llc + node.nr_llcs).contains(&row.llc));
        for other in &cpu.siblings {
            let other = &facts.cpus[usize::from(*other)];
            assert_eq!((other.core, other.llc), (row.core, row.llc));
        }
    }
}

fn proc_files(host: &Host) {
    let _ = (cpu_times(host), waiting_permille(host), resident_kb(host));
    let _ = (host.preempt_rt(), host.hotplug_seq(), kernel_domains(host));
}

fn cpufreq(host: &Host, machine: &Machine) {
    let ids = usize::from(machine.nr_cpu_ids);
    let (online, whole) = (machine.online(), machine.capacities());
    let policies = Policies::read(host, ids);
    let limits = Limits::new(&policies).read(host);
    let worth = capacities(&whole, &limits);
    assert!(worth.iter().zip(&whole).all(|(now, whole)| now <= whole));
    let modes = Modes::read(host, &policies, None);
    let _ = (modes.text(), modes.governors(), driver(host, &online));
    let _ = Sharing::new(machine, &policies).condition();
    let _ = preferred_cores(machine, &Rankings::read(host, ids));
    let _ = Throttles::read(host, &online);
    let _ = FreqFiles::of_cpufreq(host, ids).map(|files| files.read());
    for &cpu in online.iter().take(4) {
        let _ = idle_states(host, cpu);
    }
}
