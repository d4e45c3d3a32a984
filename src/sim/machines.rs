// SPDX-License-Identifier: GPL-2.0-only
//! The machines of the sources, and any other whose /sys files are available.

use super::caches::Caches;
use super::cost::Costs;
use super::params::Params;
use super::speed::Cores;
use crate::machine::cpufreq::CpuFreq;
use crate::machine::host::Host;
use crate::machine::{Cpu, Facts, Llc, LlcKind, Machine, Node, Policies, Policy, advice};
use anyhow::{Context, Result};
use std::path::Path;

/// Names as in data/params.tsv, with descriptions.
pub const MACHINES: [(&str, &str); 8] = [
    (
        "tr-3970x",
        "AMD Threadripper 3970X (Zen 2): 32 cores, 64 threads, 8 caches of 4 cores; source 003",
    ),
    (
        "ryzen-3400g",
        "AMD Ryzen 5 3400G (Zen+): 4 cores, 8 threads, one cache; source 001",
    ),
    (
        "e7-8870v4/active",
        "4 x Intel Xeon E7-8870 v4 (Broadwell): 80 cores, 160 threads, a cache a socket; intel_pstate's own loop; source 000",
    ),
    (
        "e7-8870v4/passive",
        "the same; intel_cpufreq, schedutil; source 000",
    ),
    (
        "e7-8870v4/powersave",
        "the same; intel_pstate, slow; source 001",
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
];

/// A machine and its parameters.
#[derive(Clone, Debug)]
pub struct Model {
    pub name: String,
    pub machine: Machine,
    pub params: Params,
    /// Which CPUs share a frequency, as its cpufreq files say. None: there are no files.
    pub cpufreq: Option<Policies>,
}

/// One of `MACHINES`.
pub fn model(name: &str) -> Option<Model> {
    let &(name, _) = MACHINES.iter().find(|(known, _)| *known == name)?;
    let params = Params::of(name);
    Some(Model {
        name: name.to_string(),
        machine: machine(&params),
        params,
        cpufreq: None,
    })
}

impl Model {
    /// The machine whose files are below `sysfs`, with the parameters of any machine (`*`). Errors:
    /// it cannot be read.
    pub fn read(sysfs: &Path) -> Result<Model> {
        let machine = Machine::read(sysfs);
        let machine: Machine = machine.or_else(|error| {
            let advice = advice(&error);
            Err(error).context(advice)
        })?;
        let policies = Policies::read(&Host::new(sysfs), machine.nr_cpu_ids.into());
        Ok(Model {
            name: sysfs.display().to_string(),
            machine,
            params: Params::of("*"),
            cpufreq: Some(policies),
        })
    }

    /// What cpufreq would report of its CPUs.
    pub fn policies(&self) -> Policies {
        let (params, all) = (&self.params, &self.machine.cpus);
        let mut cpus = vec![None; self.machine.nr_cpu_ids.into()];
        for cpu in all {
            let related = self.related(cpu);
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

    /// The CPUs that share a frequency with this one, itself included, ascending.
    fn related(&self, cpu: &Cpu) -> Vec<u16> {
        let read = self.cpufreq.as_ref().and_then(|p| p.of(cpu.id.into()));
        let beside = self.params.count("freq_cores").max(1) as u16;
        let shares = |other: &&Cpu| {
            let core = other.core == cpu.core;
            core || match read {
                Some(policy) => policy.related.contains(&other.id),
                None => other.node == cpu.node && other.core / beside == cpu.core / beside,
            }
        };
        self.machine
            .cpus
            .iter()
            .filter(shares)
            .map(|c| c.id)
            .collect()
    }

    /// The frequency domain of each core.
    fn domains(&self) -> Vec<usize> {
        let mut domains = vec![0; self.machine.nr_cores.into()];
        let core = |id: &u16| {
            self.machine
                .cpus
                .iter()
                .find(|c| c.id == *id)
                .map(|c| c.core)
        };
        for cpu in &self.machine.cpus {
            let first = self.related(cpu).iter().filter_map(core).min();
            domains[usize::from(cpu.core)] = first.unwrap_or(cpu.core).into();
        }
        domains
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
            cores: Cores::new(&self.params, &facts, &self.domains()),
            caches: Caches::new(&self.params, &self.machine),
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
}

/// Siblings are numbered n and n + cores, as on the 3970X.
fn machine(params: &Params) -> Machine {
    let of = |name| params.count(name) as u16;
    let (nodes, llcs, cores, threads) = (of("nodes"), of("llcs"), of("cores"), of("threads"));
    let all = nodes * llcs * cores;
    let cpus = (0..all * threads).map(|id| {
        let (core, thread) = (id % all, id / all);
        let llc = core / cores;
        let siblings = (0..threads).filter(|&t| t != thread);
        Cpu {
            id,
            core,
            llc,
            node: llc / llcs,
            pos: core % cores + thread * cores,
            capacity: 1024,
            siblings: siblings.map(|t| t * all + core).collect(),
        }
    });
    let cpus: Vec<Cpu> = cpus.collect();
    let of = |llc: u16| cpus.iter().filter(|c| c.llc == llc).map(|c| c.id).collect();
    let llc = |llc: u16| Llc {
        kind: LlcKind::L3,
        size_kb: Some((params.bytes("l3") / 1000) as u32),
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
        nr_cpu_ids: all * threads,
        offline: Vec::new(),
        nr_cores: all,
        nohz_full: Vec::new(),
        nodes: (0..nodes).map(node).collect(),
        llcs: (0..nodes * llcs).map(llc).collect(),
        cpus,
    }
}
