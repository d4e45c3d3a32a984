// SPDX-License-Identifier: GPL-2.0-only
//! The machines of the sources, and any other of whose shape we know.

use super::cost::Costs;
use super::speed::Speeds;
use crate::machine::{Cpu, Llc, LlcKind, Machine, Node};

/// Nodes x LLCs x cores x threads, and what is known of their speeds.
#[derive(Debug)]
pub struct Model {
    pub name: &'static str,
    pub what: &'static str,
    nodes: u16,
    llcs: u16,
    cores: u16,
    threads: u16,
    llc_kb: u32,
    smt: f64,
    /// So many busy cores have the highest clock; with all it is this part of it.
    boost: (usize, f64),
}

pub const MODELS: [Model; 2] = [
    Model {
        name: "tr-3970x",
        what: "AMD Threadripper 3970X (Zen 2): 32 cores, 64 threads, 8 caches of 4 cores; source 003",
        nodes: 1,
        llcs: 8,
        cores: 4,
        threads: 2,
        llc_kb: 16_384,
        smt: 0.55,
        boost: (20, 0.9433),
    },
    Model {
        name: "ryzen-3400g",
        what: "AMD Ryzen 5 3400G (Zen+): 4 cores, 8 threads, one cache; source 001",
        nodes: 1,
        llcs: 1,
        cores: 4,
        threads: 2,
        llc_kb: 4_096,
        smt: 0.60,
        boost: (4, 1.0),
    },
];

pub fn model(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|m| m.name == name)
}

impl Model {
    /// Siblings are numbered n and n + cores, as on those machines.
    pub fn machine(&self) -> Machine {
        let all = self.nodes * self.llcs * self.cores;
        let cpus = (0..all * self.threads).map(|id| {
            let core = id % all;
            let llc = core / self.cores;
            let thread = id / all;
            Cpu {
                id,
                core,
                llc,
                node: llc / self.llcs,
                pos: core % self.cores + thread * self.cores,
                capacity: 1024,
                siblings: (0..self.threads)
                    .filter(|&t| t != thread)
                    .map(|t| t * all + core)
                    .collect(),
            }
        });
        let cpus: Vec<Cpu> = cpus.collect();
        let of = |llc: u16| cpus.iter().filter(|c| c.llc == llc).map(|c| c.id).collect();
        let llcs = (0..self.nodes * self.llcs).map(|llc| Llc {
            kind: LlcKind::L3,
            size_kb: Some(self.llc_kb),
            node: llc / self.llcs,
            cpus: of(llc),
        });
        let llcs: Vec<Llc> = llcs.collect();
        let nodes = (0..self.nodes).map(|id| Node {
            id,
            first_llc: id * self.llcs,
            nr_llcs: self.llcs,
            distances: None,
        });
        Machine {
            nr_cpu_ids: all * self.threads,
            offline: Vec::new(),
            nr_cores: all,
            nodes: nodes.collect(),
            cpus,
            llcs,
        }
    }

    pub fn speeds(&self) -> Speeds {
        let cores = usize::from(self.nodes * self.llcs * self.cores);
        Speeds::new(self.smt, cores, self.boost.0, self.boost.1)
    }

    pub fn costs(&self) -> Costs {
        Costs::default()
    }
}
