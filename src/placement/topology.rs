// SPDX-License-Identifier: GPL-2.0-only
//! A machine as placement sees it: which CPUs share what. Written for clarity.

use crate::bpf::intf;

/// The weight of nice 0.
pub const NICE0: u32 = intf::NICE0_WEIGHT;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    pub core: usize,
    pub llc: usize,
    pub node: usize,
    pub capacity: u32,
    pub online: bool,
}

#[derive(Clone, Debug)]
pub struct Topology {
    pub cpus: Vec<Cpu>,
    /// The online CPUs of each LLC, in order of number.
    llcs: Vec<Vec<usize>>,
    /// The other online threads of each CPU's core.
    siblings: Vec<Vec<usize>>,
    smt: bool,
    asym: bool,
}

impl Topology {
    /// LLCs, nodes and cores are numbered from 0, and each has an online CPU. LLCs of one node are
    /// consecutive.
    pub fn new(cpus: Vec<Cpu>) -> Self {
        let online = || (0..cpus.len()).filter(|&c| cpus[c].online);
        let nr_llcs = online().map(|c| cpus[c].llc + 1).max().unwrap_or(0);
        let mut llcs = vec![vec![]; nr_llcs];
        let mut cores = vec![vec![]; cpus.len()];
        for c in online() {
            llcs[cpus[c].llc].push(c);
            cores[cpus[c].core].push(c);
        }
        let others = |c: usize| {
            cores[cpus[c].core]
                .iter()
                .copied()
                .filter(|&o| o != c)
                .collect()
        };
        let siblings = (0..cpus.len())
            .map(|c| if cpus[c].online { others(c) } else { vec![] })
            .collect();
        let capacities = || online().map(|c| cpus[c].capacity);
        let (least, most) = (
            capacities().min().unwrap_or(0),
            capacities().max().unwrap_or(0),
        );
        Topology {
            smt: cores.iter().any(|c| c.len() > 1),
            asym: least < most,
            llcs,
            siblings,
            cpus,
        }
    }

    /// `llcs` caches of `cores` cores of `threads` threads; `llcs_per_node` caches in a node.
    /// Siblings are consecutive (n, n+1), or with `apart` n and n + the number of cores.
    #[cfg(feature = "internals")]
    pub fn regular(
        llcs: usize,
        cores: usize,
        threads: usize,
        llcs_per_node: usize,
        apart: bool,
    ) -> Self {
        let all = llcs * cores;
        let cpus = (0..all * threads)
            .map(|cpu| {
                let core = if apart { cpu % all } else { cpu / threads };
                Cpu {
                    core,
                    llc: core / cores,
                    node: core / cores / llcs_per_node,
                    capacity: intf::CAPACITY_SCALE,
                    online: true,
                }
            })
            .collect();
        Topology::new(cpus)
    }

    pub fn nr_cpu_ids(&self) -> usize {
        self.cpus.len()
    }

    pub fn online(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.cpus.len()).filter(|&c| self.cpus[c].online)
    }

    pub fn llc_cpus(&self, llc: usize) -> &[usize] {
        &self.llcs[llc]
    }

    pub fn siblings(&self, cpu: usize) -> &[usize] {
        &self.siblings[cpu]
    }

    pub fn nr_llcs(&self) -> usize {
        self.llcs.len()
    }

    pub fn nr_nodes(&self) -> usize {
        self.online()
            .map(|c| self.cpus[c].node + 1)
            .max()
            .unwrap_or(0)
    }

    pub fn smt(&self) -> bool {
        self.smt
    }

    pub fn asym(&self) -> bool {
        self.asym
    }
}
