// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's scheduling domains, which /proc/schedstat lists for each CPU.

use super::files::parse_cpumap;
use super::host::Host;
use std::collections::BTreeMap;

/// The first version of the file that has the names of domains.
const FIRST_NAMED: u32 = 17;
/// The domains whose CPUs share a cache (kernel: SD_SHARE_LLC).
const SHARING: [&str; 3] = ["SMT", "CLS", "MC"];

/// The domains of a CPU.
#[derive(Debug, PartialEq, Eq)]
pub struct Domains {
    /// The CPUs that share its last-level cache: those of the widest such domain. The kernel drops
    /// a domain that is as wide as a narrower one, or has one CPU.
    pub llc: Vec<u16>,
    /// The CPUs of its widest domain. Without cpuset partitions these are all.
    pub widest: Vec<u16>,
}

/// The domains of each CPU that has any. None: the kernel does not list them, or not by name.
pub fn kernel_domains(host: &Host) -> Option<BTreeMap<u16, Domains>> {
    parse(&host.proc_text("schedstat")?)
}

fn parse(text: &str) -> Option<BTreeMap<u16, Domains>> {
    let version = text.lines().next()?.strip_prefix("version ")?;
    if version.parse::<u32>().ok()? < FIRST_NAMED {
        return None;
    }
    let mut domains = BTreeMap::new();
    let mut cpu = None;
    for line in text.lines() {
        let mut words = line.split(' ');
        let first = words.next()?;
        if let Some(number) = first.strip_prefix("cpu") {
            cpu = Some(number.parse().ok()?);
        } else if first.starts_with("domain") {
            let (name, cpus) = (words.next()?, parse_cpumap(words.next()?).ok()?);
            widen(&mut domains, cpu?, name, cpus);
        }
    }
    Some(domains)
}

/// The lines of a CPU begin with the narrowest domain.
fn widen(domains: &mut BTreeMap<u16, Domains>, cpu: u16, name: &str, cpus: Vec<u16>) {
    let of_cpu = domains.entry(cpu).or_insert_with(|| Domains {
        llc: vec![cpu],
        widest: Vec::new(),
    });
    if SHARING.contains(&name) {
        of_cpu.llc.clone_from(&cpus);
    }
    of_cpu.widest = cpus;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn llcs(text: &str) -> Option<Vec<(u16, Vec<u16>, usize)>> {
        let row = |(cpu, d): (u16, Domains)| (cpu, d.llc, d.widest.len());
        Some(parse(text)?.into_iter().map(row).collect())
    }

    /// Two cores of two threads each have a cache; a fifth CPU has its own, a sixth is isolated.
    #[test]
    fn version_17_names_the_domains() {
        let text = "version 17\ntimestamp 4294931243\n\
            cpu0 0 0 0 0 0 0 5 6 7\n\
            domain0 SMT 03 1 2 3\ndomain1 MC 0f 1 2 3\ndomain2 PKG 1f 1 2 3\n\
            cpu2 0 0 0 0 0 0 5 6 7\n\
            domain0 SMT 0c 0\ndomain1 MC 0f 0\ndomain2 PKG 1f 0\n\
            cpu4 0 0 0 0 0 0 5 6 7\n\
            domain0 PKG 1f 0\n\
            cpu5 0 0 0 0 0 0 5 6 7";
        let four = vec![0, 1, 2, 3];
        let expected = vec![(0, four.clone(), 5), (2, four, 5), (4, vec![4], 5)];
        assert_eq!(llcs(text), Some(expected));
    }

    /// On machines of one cache for each core, SMT is what is left.
    #[test]
    fn a_dropped_domain_leaves_the_narrower_one() {
        let text = "version 17\ntimestamp 1\ncpu33 0\n\
            domain0 SMT 00000003,00000000 0\ndomain1 NUMA 0000000f,ffffffff 0";
        assert_eq!(llcs(text), Some(vec![(33, vec![32, 33], 36)]));
    }

    #[test]
    fn older_versions_have_no_names() {
        for version in [15, 16] {
            let text = format!("version {version}\ntimestamp 1\ncpu0 0 0\ndomain0 03 1 2 3");
            assert_eq!(llcs(&text), None);
        }
    }

    #[test]
    fn later_versions_may_have_other_lines() {
        let text = "version 18\ntimestamp 1\nnews 3\ncpu0 0\ndomain0 MC 3 0";
        assert_eq!(llcs(text), Some(vec![(0, vec![0, 1], 2)]));
    }

    #[test]
    fn garbage_has_no_domains() {
        for text in [
            "",
            "version x",
            "version 17\ncpux 0",
            "version 17\ndomain0 MC 3 0",
            "version 17\ncpu0 0\ndomain0 MC",
            "version 17\ncpu0 0\ndomain0 MC 0-1",
        ] {
            assert_eq!(llcs(text), None, "{text}");
        }
    }
}
