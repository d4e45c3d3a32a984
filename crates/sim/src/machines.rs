// SPDX-License-Identifier: GPL-2.0-only
//! The machines of the sources, others of the matrix, and any whose /sys files are available.

use super::caches::Caches;
use super::cost::Costs;
use super::cstates::Cstates;
use super::params::Params;
use super::speed::Cores;
use anyhow::Result;
use scx_roost::machine::cpufreq::CpuFreq;
use scx_roost::machine::{Cpu, Facts, Llc, LlcKind, Machine, Node, Policies, Policy, read_advised};
use std::path::Path;

/// Names as in data/params.tsv, with descriptions.
pub const MACHINES: [(&str, &str); 14] = [
    (
        "tr-3970x",
        "AMD Threadripper 3970X (Zen 2): 32 cores, 64 threads, 8 caches of 4 cores; source 003",
    ),
    (
        "ryzen-3400g",
        "AMD Ryzen 5 3400G (Zen+): 4 cores, 8 threads, one cache; source 001",
    ),
    (
        "e7-8870v4",
        "4 x Intel Xeon E7-8870 v4 (Broadwell): 80 cores, 160 threads, a cache a socket; schedutil; source 000",
    ),
    (
        "epyc-9654-2s",
        "2 x AMD EPYC 9654 (Zen 4): 192 cores, 384 threads, 24 caches of 8 cores; source 004",
    ),
    (
        "epyc-zen3-2s",
        "2 x AMD EPYC of 64 cores (Zen 3): 256 threads, 16 caches of 8 cores; C2 disabled; a report on source 004",
    ),
    (
        "fleming-2x24",
        "2 nodes of 12 cores, 48 threads; a report on source 002",
    ),
    (
        "tr-7980x",
        "AMD Threadripper 7980X (Zen 4): 64 cores, 128 threads, 8 caches of 8 cores",
    ),
    (
        "ryzen-9950x3d",
        "AMD Ryzen 9 9950X3D (Zen 5): 16 cores, 32 threads, a cache of 96 MB and one of 32",
    ),
    (
        "core-13900k",
        "Intel Core i9-13900K: 8 cores of 2 threads and 16 smaller ones of 1, one cache",
    ),
    ("laptop-8", "4 cores, 8 threads, one cache, schedutil"),
    (
        "epyc-12-nodes",
        "2 x AMD EPYC of 48 cores (Zen 3): 192 threads, 12 caches of 8 cores, each a node",
    ),
    ("arm-128", "128 cores without SMT, one cache"),
    (
        "uneven-20",
        "20 CPUs without SMT, 2 caches; those of the second have 0.6 of the capacity",
    ),
    ("odd-17", "17 CPUs without SMT, one cache"),
];

/// A machine and its parameters.
#[derive(Clone, Debug)]
pub struct Model {
    pub name: String,
    pub machine: Machine,
    pub params: Params,
}

/// One of `MACHINES`.
pub fn model(name: &str) -> Option<Model> {
    let &(name, _) = MACHINES.iter().find(|(known, _)| *known == name)?;
    let params = Params::of(name);
    Some(Model {
        name: name.to_string(),
        machine: machine(&params),
        params,
    })
}

impl Model {
    /// The machine whose files are below `sysfs`, with the parameters of any machine (`*`). Errors:
    /// it cannot be read.
    pub fn read(sysfs: &Path) -> Result<Model> {
        let machine = read_advised(sysfs)?;
        Ok(Model {
            name: sysfs.display().to_string(),
            machine,
            params: Params::of("*"),
        })
    }

    /// What cpufreq would report of its CPUs.
    pub fn policies(&self) -> Policies {
        let (params, all) = (&self.params, &self.machine.cpus);
        let mut cpus = vec![None; self.machine.nr_cpu_ids.into()];
        for cpu in all {
            // A core has one frequency.
            let mut related = cpu.siblings.clone();
            related.push(cpu.id);
            related.sort_unstable();
            cpus[usize::from(cpu.id)] = Some(Policy {
                min_khz: Some(params.khz("freq_min")),
                max_khz: Some(params.khz("freq_max")),
                first: related[0],
                related,
                ..Policy::default()
            });
        }
        Policies {
            cpus,
            odd: Vec::new(),
        }
    }

    /// The governor, which says whether the scheduler's requests for frequencies are heard.
    pub fn listens(&self) -> CpuFreq {
        let governor = match self.params.count("governor") {
            1 => "schedutil",
            _ => "performance",
        };
        CpuFreq {
            governors: vec![governor.to_string()],
            drivers: Vec::new(),
        }
    }

    /// The tables that the scheduler reads while the CPUs in `away` are away. No cache may lose its
    /// last CPU. Errors: as of `hardware`.
    pub fn facts_without(&self, away: &[usize]) -> Result<Facts> {
        let mut machine = self.machine.clone();
        let there = |id: &u16| !away.contains(&usize::from(*id));
        machine.cpus.retain(|cpu| there(&cpu.id));
        machine.offline.extend(away.iter().map(|&cpu| cpu as u16));
        machine.llcs.iter_mut().for_each(|l| l.cpus.retain(there));
        for cpu in &mut machine.cpus {
            cpu.siblings.retain(there);
            let llc = &machine.llcs[usize::from(cpu.llc)].cpus;
            cpu.pos = llc.partition_point(|&c| c < cpu.id) as u16;
        }
        machine.facts()
    }

    /// What a run needs of the machine. Errors: the policy does not handle it.
    pub fn hardware(&self) -> Result<Hardware> {
        let facts = self.machine.facts()?;
        Ok(Hardware {
            costs: Costs::new(&self.params, &facts),
            cores: Cores::new(&self.params, &facts),
            caches: Caches::new(&self.params, &self.machine),
            cstates: Cstates::new(&self.params, &facts),
            facts,
        })
    }
}

/// The parts of a machine, in one run.
pub struct Hardware {
    pub facts: Facts,
    pub costs: Costs,
    pub cores: Cores,
    pub caches: Caches,
    pub cstates: Cstates,
}

/// The core and the thread of each CPU, by its number: first the first threads of all cores, as on
/// the 3970X. The last cores may be smaller, with fewer threads.
fn places(params: &Params, cores: u16) -> Vec<(u16, u16)> {
    let of = |name| params.count(name) as u16;
    let big = cores - of("small_cores");
    let threads = |core: u16| {
        of(if core < big {
            "threads"
        } else {
            "small_threads"
        })
    };
    let most = (0..cores).map(threads).max().unwrap_or(0);
    let of = |thread: u16| {
        let has = (0..cores).filter(move |&core| thread < threads(core));
        has.map(move |core| (core, thread))
    };
    (0..most).flat_map(of).collect()
}

fn cpus(params: &Params, cores: u16) -> Vec<Cpu> {
    let of = |name| params.count(name) as u16;
    let big = cores - of("small_cores");
    let places = places(params, cores);
    let number = |at: usize| at as u16;
    let llc = |core: u16| core / of("cores");
    let cpu = |(id, &(core, _)): (usize, &(u16, u16))| {
        let shares = |&(other, place): &(usize, &(u16, u16))| other != id && place.0 == core;
        let before = places[..id].iter().filter(|p| llc(p.0) == llc(core));
        Cpu {
            id: number(id),
            core,
            llc: llc(core),
            node: llc(core) / of("llcs"),
            pos: number(before.count()),
            capacity: if core < big {
                1024
            } else {
                of("small_capacity")
            },
            siblings: places
                .iter()
                .enumerate()
                .filter(shares)
                .map(|(other, _)| number(other))
                .collect(),
        }
    };
    places.iter().enumerate().map(cpu).collect()
}

fn machine(params: &Params) -> Machine {
    let of = |name| params.count(name) as u16;
    let (nodes, llcs) = (of("nodes"), of("llcs"));
    let cores = nodes * llcs * of("cores");
    let cpus = cpus(params, cores);
    let of = |llc: u16| cpus.iter().filter(|c| c.llc == llc).map(|c| c.id).collect();
    let size = |llc: u16| match (llc, params.bytes("l3_first")) {
        (0, bytes) if bytes > 0 => bytes,
        _ => params.bytes("l3"),
    };
    let llc = |llc: u16| Llc {
        kind: LlcKind::L3,
        size_kb: Some((size(llc) / 1000) as u32),
        node: llc / llcs,
        cpus: of(llc),
    };
    let node = |id: u16| Node {
        id,
        first_llc: id * llcs,
        nr_llcs: llcs,
        distances: None,
    };
    Machine {
        nr_cpu_ids: cpus.len() as u16,
        offline: Vec::new(),
        nr_cores: cores,
        nohz_full: Vec::new(),
        doubts: Vec::new(),
        nodes: (0..nodes).map(node).collect(),
        llcs: (0..nodes * llcs).map(llc).collect(),
        cpus,
    }
}
