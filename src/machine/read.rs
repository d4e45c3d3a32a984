// SPDX-License-Identifier: GPL-2.0-only
//! Reads /sys into a `Machine`. First the `CpuLocation` of every online CPU is read, then these
//! are numbered.
//!
//! A group of CPUs (core, cache) is identified by its lowest online CPU. The kernel's ids of cores
//! and caches are neither dense nor unique across packages; CPU numbers are unique.

use super::caches::{Cache, read_llcs};
use super::files::{cpus_text, numbered, optional_cpulist, optional_text, own_list, shown, text};
use super::{Cpu, Llc, LlcKind, Machine, Node, UNKNOWN_NODE};
use crate::bpf::intf;
use anyhow::{Context, Result, anyhow, bail};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// Where an online CPU is, in the kernel's terms.
struct CpuLocation {
    cpu: u16,
    /// Online threads of its core, itself included.
    threads: Vec<u16>,
    node: u16,
    llc: LlcKey,
    size_kb: Option<u32>,
    capacity: u16,
}

/// Sorting by this key numbers the LLCs node by node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LlcKey {
    node: u16,
    first_cpu: u16,
    kind: LlcKind,
}

impl Machine {
    /// Reads the machine below `root`, which has the content of /sys.
    pub fn read(root: &Path) -> Result<Machine> {
        let dir = root.join("devices/system/cpu");
        check_folder(&dir)?;
        let possible = read_possible(&dir)?;
        let online = read_online(&dir, &possible)?;
        check_online(&dir, &possible, &online)?;
        let node_dir = root.join("devices/system/node");
        let nodes = read_nodes(&dir, &node_dir, &online)?;
        let cores = online
            .iter()
            .map(|&cpu| Ok((cpu, read_threads(&dir, cpu, &online)?)))
            .collect::<Result<BTreeMap<_, _>>>()?;
        let (llcs, mut doubts) = read_llcs(&dir, &nodes, &cores)?;
        let places = cores
            .into_iter()
            .map(|(cpu, threads)| read_place(&dir, threads, cpu, nodes[&cpu], llcs.get(&cpu)))
            .collect::<Result<Vec<_>>>()?;
        check_threads(&dir, &places)?;
        let mut machine = number(&possible, &places);
        read_distances(&node_dir, &mut machine.nodes);
        doubts.extend(lost(&nodes));
        machine.doubts = doubts;
        machine.nohz_full = read_nohz_full(&dir, &online);
        Ok(machine)
    }
}

/// The highest possible CPU number + 1 of the kernel whose /sys is `root`.
pub fn possible_cpus(root: &Path) -> Result<usize> {
    let possible = read_possible(&root.join("devices/system/cpu"))?;
    Ok(possible.last().map_or(0, |&last| usize::from(last) + 1))
}

/// Trees that other programs gathered from /sys may lack `possible` and `online`.
fn read_possible(dir: &Path) -> Result<Vec<u16>> {
    match optional_cpulist(&dir.join("possible"))? {
        Some(possible) => Ok(possible),
        None => numbered(dir, "cpu"),
    }
}

fn read_online(dir: &Path, possible: &[u16]) -> Result<Vec<u16>> {
    if let Some(online) = optional_cpulist(&dir.join("online"))? {
        return Ok(online);
    }
    let mut online = Vec::new();
    for &cpu in possible {
        let text = optional_text(&dir.join(format!("cpu{cpu}/online")))?;
        if text.as_deref() != Some("0") {
            online.push(cpu);
        }
    }
    Ok(online)
}

/// The nodes that are online, also those without CPUs.
fn online_nodes(dir: &Path) -> Result<Vec<u16>> {
    match optional_cpulist(&dir.join("online"))? {
        Some(nodes) => Ok(nodes),
        None => numbered(dir, "node"),
    }
}

fn check_folder(dir: &Path) -> Result<()> {
    let meta = std::fs::metadata(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    if !meta.is_dir() {
        return Err(Error::from(ErrorKind::NotADirectory))
            .with_context(|| format!("cannot read {}", dir.display()));
    }
    Ok(())
}

/// As `Machine::read`, with what to do about an error.
pub fn read_advised(root: &Path) -> Result<Machine> {
    Machine::read(root).map_err(|e| anyhow!("{e:#}: {}", advice(&e)))
}

/// What to do about an error of `Machine::read`.
pub fn advice(error: &anyhow::Error) -> &'static str {
    let kind = error
        .chain()
        .find_map(|e| Some(e.downcast_ref::<Error>()?.kind()));
    match kind {
        Some(ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            "give --sysfs a folder with the content of /sys, or mount sysfs on /sys"
        }
        Some(ErrorKind::PermissionDenied) => "run as a user with permission to read it",
        Some(_) => "check --sysfs",
        None => "check --sysfs, or report this with a copy of the file",
    }
}

fn check_online(dir: &Path, possible: &[u16], online: &[u16]) -> Result<()> {
    if online.is_empty() {
        bail!(
            "{}/online is empty: expected at least one CPU",
            dir.display()
        );
    }
    if let Some(cpu) = online.iter().find(|c| !possible.contains(c)) {
        bail!(
            "{}/online names CPU {cpu}, but {0}/possible does not",
            dir.display()
        );
    }
    Ok(())
}

/// The node of each online CPU: by its own link, which is there for nodes that are offline too,
/// else by the lists of the nodes. Where neither names a node, the kernel has no NUMA, and all CPUs
/// are on node 0.
fn read_nodes(dir: &Path, node_dir: &Path, online: &[u16]) -> Result<BTreeMap<u16, u16>> {
    let mut node_of = listed_nodes(node_dir)?;
    for &cpu in online {
        let links = numbered(&dir.join(format!("cpu{cpu}")), "node")?;
        if let Some(&node) = links.first() {
            node_of.insert(cpu, node);
        }
    }
    let other = if node_of.is_empty() { 0 } else { UNKNOWN_NODE };
    let node = |cpu: &u16| node_of.get(cpu).copied().unwrap_or(other);
    Ok(online.iter().map(|cpu| (*cpu, node(cpu))).collect())
}

fn listed_nodes(dir: &Path) -> Result<BTreeMap<u16, u16>> {
    let mut node_of = BTreeMap::new();
    for node in online_nodes(dir)? {
        // Nodes of memory alone may have no list.
        let cpus = optional_cpulist(&dir.join(format!("node{node}/cpulist")))?;
        for cpu in cpus.unwrap_or_default() {
            // With numa=fake several nodes name the same CPU: the first keeps it.
            node_of.entry(cpu).or_insert(node);
        }
    }
    Ok(node_of)
}

/// A sentence about the CPUs of no known node.
fn lost(nodes: &BTreeMap<u16, u16>) -> Option<String> {
    let cpus = nodes.iter().filter(|(_, node)| **node == UNKNOWN_NODE);
    let cpus: Vec<u16> = cpus.map(|(cpu, _)| *cpu).collect();
    let told = || {
        format!(
            "no node lists {}: they count as a node of their own",
            cpus_text(&cpus)
        )
    };
    (!cpus.is_empty()).then(told)
}

/// The CPUs of `online` in nohz_full=, ascending. Empty if that is not in force: the file is then
/// missing, empty or not a list.
fn read_nohz_full(dir: &Path, online: &[u16]) -> Vec<u16> {
    let cpus = optional_cpulist(&dir.join("nohz_full"));
    let mut cpus = cpus.ok().flatten().unwrap_or_default();
    cpus.retain(|c| online.contains(c));
    cpus
}

/// A file has one number for each online node, also for those without CPUs. Missing or inconsistent
/// distances stay unknown.
fn read_distances(dir: &Path, nodes: &mut [Node]) {
    let online = online_nodes(dir).unwrap_or_default();
    let ids: Vec<u16> = nodes.iter().map(|n| n.id).collect();
    let place = |id: &u16| online.iter().position(|n| n == id);
    let columns: Option<Vec<usize>> = ids.iter().map(place).collect();
    for node in nodes {
        let text = text(&dir.join(format!("node{}/distance", node.id)));
        let row = text.ok().and_then(|text| parse_distances(&text));
        let row = row.filter(|row| row.len() == online.len());
        node.distances = row.zip(columns.as_ref()).map(|(row, columns)| {
            let to = columns.iter().map(|&at| row[at]);
            to.collect()
        });
    }
}

fn parse_distances(text: &str) -> Option<Vec<u16>> {
    let numbers = text.split_ascii_whitespace();
    numbers.map(|n| n.parse().ok()).collect()
}

fn read_place(
    dir: &Path,
    threads: Vec<u16>,
    cpu: u16,
    node: u16,
    llc: Option<&Cache>,
) -> Result<CpuLocation> {
    let (kind, first_cpu, size_kb) = match llc {
        Some(c) => (c.kind, c.cpus[0], c.size_kb),
        None => (LlcKind::Node, 0, None),
    };
    Ok(CpuLocation {
        cpu,
        threads,
        node,
        llc: LlcKey {
            node,
            first_cpu,
            kind,
        },
        size_kb,
        capacity: read_capacity(&dir.join(format!("cpu{cpu}/cpu_capacity")))?,
    })
}

/// `core_cpus_list` since Linux 5.3, `thread_siblings_list` before. Without both, the CPU is a core
/// of its own.
fn read_threads(dir: &Path, cpu: u16, online: &[u16]) -> Result<Vec<u16>> {
    for name in ["core_cpus_list", "thread_siblings_list"] {
        let path = dir.join(format!("cpu{cpu}/topology/{name}"));
        let Some(mut threads) = own_list(&path, cpu)? else {
            continue;
        };
        threads.retain(|c| online.contains(c));
        if threads.len() > intf::MAX_SMT as usize {
            bail!(
                "{} names {} threads: expected a core of at most {}",
                path.display(),
                threads.len(),
                intf::MAX_SMT
            );
        }
        return Ok(threads);
    }
    Ok(vec![cpu])
}

/// The threads of a core must list the same threads and be on one node. They may differ briefly
/// while a CPU goes offline; the caller retries then.
fn check_threads(dir: &Path, places: &[CpuLocation]) -> Result<()> {
    let by_cpu: BTreeMap<u16, &CpuLocation> = places.iter().map(|p| (p.cpu, p)).collect();
    for place in places {
        for other in place.threads.iter().filter_map(|t| by_cpu.get(t)) {
            if other.threads != place.threads || other.node != place.node {
                bail!(
                    "{}: CPUs {} and {} are threads of one core: expected the same core_cpus_list and node",
                    dir.display(),
                    place.cpu,
                    other.cpu
                );
            }
        }
    }
    Ok(())
}

/// Reads cpu_capacity alone: neither frequencies nor AMD's preferred-core ranking tell a CPU's
/// capacity.
fn read_capacity(path: &Path) -> Result<u16> {
    if !path.exists() {
        return Ok(intf::CAPACITY_SCALE as u16);
    }
    let text = text(path)?;
    let valid = |c: &u16| (1..=intf::CAPACITY_SCALE as u16).contains(c);
    text.parse().ok().filter(valid).with_context(|| {
        format!(
            "{} reads '{}': expected a capacity of 1 to {}",
            path.display(),
            shown(&text),
            intf::CAPACITY_SCALE
        )
    })
}

fn number(possible: &[u16], places: &[CpuLocation]) -> Machine {
    let node_ids = sorted(places.iter().map(|p| p.node));
    let llc_keys = sorted(places.iter().map(|p| p.llc));
    let cores = sorted(places.iter().map(|p| (p.llc, p.threads[0])));
    let llcs: Vec<Llc> = llc_keys
        .iter()
        .map(|k| make_llc(k, &node_ids, places))
        .collect();
    let cpus = places
        .iter()
        .map(|p| make_cpu(p, &node_ids, &llc_keys, &cores, &llcs))
        .collect();
    let offline = possible
        .iter()
        .filter(|c| !places.iter().any(|p| p.cpu == **c))
        .copied()
        .collect();
    let nodes = node_ids
        .iter()
        .map(|id| make_node(*id, &llc_keys))
        .collect();
    Machine {
        nr_cpu_ids: possible.last().map_or(0, |last| last + 1),
        cpus,
        offline,
        llcs,
        nodes,
        nr_cores: cores.len() as u16,
        nohz_full: Vec::new(),
        doubts: Vec::new(),
    }
}

fn make_llc(key: &LlcKey, node_ids: &[u16], places: &[CpuLocation]) -> Llc {
    let members = || places.iter().filter(|p| p.llc == *key);
    Llc {
        kind: key.kind,
        size_kb: members().find_map(|p| p.size_kb),
        node: index(node_ids, &key.node),
        cpus: members().map(|p| p.cpu).collect(),
    }
}

fn make_cpu(
    place: &CpuLocation,
    node_ids: &[u16],
    llc_keys: &[LlcKey],
    cores: &[(LlcKey, u16)],
    llcs: &[Llc],
) -> Cpu {
    let llc = index(llc_keys, &place.llc);
    Cpu {
        id: place.cpu,
        core: index(cores, &(place.llc, place.threads[0])),
        llc,
        node: index(node_ids, &place.node),
        pos: index(&llcs[llc as usize].cpus, &place.cpu),
        capacity: place.capacity,
        siblings: place
            .threads
            .iter()
            .filter(|t| **t != place.cpu)
            .copied()
            .collect(),
    }
}

fn make_node(id: u16, llc_keys: &[LlcKey]) -> Node {
    let first_llc = llc_keys.partition_point(|k| k.node < id);
    let end = llc_keys.partition_point(|k| k.node <= id);
    Node {
        id,
        first_llc: first_llc as u16,
        nr_llcs: (end - first_llc) as u16,
        distances: None,
    }
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// The position of an item that is known to be in the sorted list.
fn index<T: Ord>(sorted: &[T], item: &T) -> u16 {
    sorted.partition_point(|x| x < item) as u16
}
