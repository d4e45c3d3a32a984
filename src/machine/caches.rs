// SPDX-License-Identifier: GPL-2.0-only
//! Which CPUs share a last-level cache. Each CPU has files about its own caches. Firmware and
//! kernels leave out some of them, and may contradict themselves.

use super::LlcKind;
use super::files::{cpus_text, numbered, optional_text, own_list, parse_kb};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// The CPU numbers, and what is known of each.
type PerCpu<T> = BTreeMap<u16, T>;

#[derive(Clone)]
pub struct Cache {
    pub kind: LlcKind,
    /// The online CPUs of one node that share it, ascending.
    pub cpus: Vec<u16>,
    pub size_kb: Option<u32>,
}

/// The last-level cache of each online CPU that has one, and sentences about contradictions. `dir`
/// has the folders of the CPUs, `nodes` the node of each, `cores` the threads of its core.
pub fn read_llcs(
    dir: &Path,
    nodes: &PerCpu<u16>,
    cores: &PerCpu<Vec<u16>>,
) -> Result<(PerCpu<Cache>, Vec<String>)> {
    let mut caches = PerCpu::new();
    for &cpu in cores.keys() {
        caches.insert(cpu, read_caches(dir, cpu, nodes)?);
    }
    let mut llcs = PerCpu::new();
    for (&cpu, threads) in cores {
        let kinds = [LlcKind::L3, LlcKind::L2];
        if let Some(llc) = kinds.iter().find_map(|kind| find(&caches, *kind, cpu)) {
            let chip = read_chip(dir, cpu, llc, threads, nodes)?;
            llcs.insert(cpu, chip.unwrap_or_else(|| llc.clone()));
        }
    }
    let mut doubts = unite(&mut llcs, cores);
    doubts.extend(agree(&mut llcs));
    Ok((llcs, doubts))
}

/// The L3 and the L2 of a CPU, as far as its files describe them.
fn read_caches(dir: &Path, cpu: u16, nodes: &PerCpu<u16>) -> Result<Vec<Cache>> {
    let dir = dir.join(format!("cpu{cpu}/cache"));
    let mut caches = Vec::new();
    // Not every number has a folder, nor every folder a level.
    for index in numbered(&dir, "index")? {
        let dir = dir.join(format!("index{index}"));
        let kind = match optional_text(&dir.join("level"))?.as_deref() {
            Some("3") => LlcKind::L3,
            Some("2") => LlcKind::L2,
            _ => continue,
        };
        if optional_text(&dir.join("type"))?.as_deref() == Some("Instruction") {
            continue;
        }
        // Without a list it is not known which CPUs share it.
        let Some(cpus) = own_list(&dir.join("shared_cpu_list"), cpu)? else {
            continue;
        };
        caches.push(Cache {
            kind,
            cpus: of_node(cpus, cpu, nodes),
            size_kb: optional_text(&dir.join("size"))?.and_then(|size| parse_kb(&size)),
        });
    }
    Ok(caches)
}

/// The cache by the CPU's own files, else by those of a CPU that names it.
fn find(caches: &PerCpu<Vec<Cache>>, kind: LlcKind, cpu: u16) -> Option<&Cache> {
    let own = caches[&cpu].iter().find(|c| c.kind == kind);
    let others = caches.values().flatten();
    let naming = others.filter(|c| c.kind == kind && c.cpus.contains(&cpu));
    own.or_else(|| naming.min_by_key(|c| c.cpus.len()))
}

/// Where an L2 is private to a core and no L3 is known, the group of cores that the kernel's
/// scheduler takes for a cache: the cluster on architectures that have clusters, else the chip
/// (s390, whose kernel hides shared caches). None: the L2 is shared, or that group is one core.
fn read_chip(
    dir: &Path,
    cpu: u16,
    llc: &Cache,
    threads: &[u16],
    nodes: &PerCpu<u16>,
) -> Result<Option<Cache>> {
    let one_core = |cpus: &[u16]| cpus.iter().all(|c| threads.contains(c));
    if llc.kind != LlcKind::L2 || !one_core(&llc.cpus) {
        return Ok(None);
    }
    let dir = dir.join(format!("cpu{cpu}/topology"));
    for name in [
        "cluster_cpus_list",
        "package_cpus_list",
        "core_siblings_list",
    ] {
        if let Some(cpus) = own_list(&dir.join(name), cpu)? {
            let cpus = of_node(cpus, cpu, nodes);
            let chip = (!one_core(&cpus)).then_some(cpus);
            return Ok(chip.map(|cpus| Cache {
                kind: LlcKind::Chip,
                cpus,
                size_kb: None,
            }));
        }
    }
    Ok(None)
}

/// A cache that spans nodes (sub-NUMA clustering) is one for each: the kernel splits its scheduling
/// domain at the node too. Only online CPUs have a node.
fn of_node(mut cpus: Vec<u16>, cpu: u16, nodes: &PerCpu<u16>) -> Vec<u16> {
    cpus.retain(|c| nodes.get(c) == nodes.get(&cpu));
    cpus
}

/// The threads of a core share its caches: placement looks for a sibling among the bits of the LLC.
/// Where their files contradict each other, the smallest group that one of them names counts, and
/// all of them are in it. A sentence about each such core.
fn unite(llcs: &mut PerCpu<Cache>, cores: &PerCpu<Vec<u16>>) -> Vec<String> {
    let mut doubts = Vec::new();
    for (cpu, threads) in cores {
        let known = || threads.iter().filter_map(|thread| llcs.get(thread));
        let group = |llc: &Cache| (llc.kind, llc.cpus.clone());
        let Some(smallest) = known().min_by_key(|llc| llc.cpus.len()) else {
            continue;
        };
        let agree =
            known().count() == threads.len() && known().all(|c| group(c) == group(smallest));
        if agree || threads.first() != Some(cpu) {
            continue;
        }
        let mut cpus = [&smallest.cpus[..], threads].concat();
        cpus.sort_unstable();
        cpus.dedup();
        doubts.push(format!(
            "the files of {}, threads of one core, contradict each other about its cache: the smaller \
             group counts, {}",
            cpus_text(threads),
            cpus_text(&cpus)
        ));
        let united = Cache {
            cpus,
            ..smallest.clone()
        };
        llcs.extend(threads.iter().map(|thread| (*thread, united.clone())));
    }
    doubts
}

/// CPUs are in one group if they name the same CPUs. Where they contradict each other, this makes
/// the smaller groups, and a sentence about each.
fn agree(llcs: &mut PerCpu<Cache>) -> Vec<String> {
    let mut groups: BTreeMap<(LlcKind, Vec<u16>), Vec<u16>> = BTreeMap::new();
    for (&cpu, llc) in &*llcs {
        let group = groups.entry((llc.kind, llc.cpus.clone())).or_default();
        group.push(cpu);
    }
    groups.retain(|(_, named), members| named != members);
    for members in groups.values() {
        for &cpu in members {
            let llc = llcs.entry(cpu);
            llc.and_modify(|llc| llc.cpus.clone_from(members));
        }
    }
    let doubts = groups.iter();
    doubts
        .map(|((kind, named), members)| doubt(*kind, named, members))
        .collect()
}

fn doubt(kind: LlcKind, named: &[u16], members: &[u16]) -> String {
    let others: Vec<u16> = named
        .iter()
        .filter(|c| !members.contains(c))
        .copied()
        .collect();
    let what = match kind {
        LlcKind::L3 => "an L3",
        LlcKind::L2 => "an L2",
        LlcKind::Chip | LlcKind::Node => "a chip",
    };
    format!(
        "the files of {} say that {} share {what}, those of {} say otherwise: the smaller groups count",
        cpus_text(members),
        cpus_text(named),
        cpus_text(&others)
    )
}
