// SPDX-License-Identifier: GPL-2.0-only
//! Machines to test on: which CPUs share what, and the C's tables of it. Written for clarity. The
//! model reads the description, the C reads the tables.

use scx_roost::bpf::intf::{
    arm, cpu_facts, llc_facts, machine_facts, node_facts, task_policy, tunables,
};
use scx_roost::machine::Facts;
use scx_roost::native::World;
use scx_roost::native::sys::{CAPACITY_SCALE, MAX_SMT, NICE0_WEIGHT};

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
                    capacity: CAPACITY_SCALE,
                    online: true,
                }
            })
            .collect();
        Topology::new(cpus)
    }

    pub fn len(&self) -> usize {
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

    pub fn facts(&self) -> Facts {
        let mut facts = Facts {
            machine: machine_facts {
                nr_cpu_ids: self.len() as u32,
                nr_online: self.online().count() as u32,
                nr_llcs: self.nr_llcs() as u32,
                nr_nodes: self.nr_nodes() as u32,
                smt: self.smt().into(),
                asym: self.asym().into(),
                nohz: 0,
            },
            cpus: vec![],
            llcs: vec![],
            nodes: vec![],
            llc_cpus: vec![],
        };
        for llc in 0..self.nr_llcs() {
            let cpus = self.llc_cpus(llc);
            facts.llcs.push(llc_facts {
                first: facts.llc_cpus.len() as u16,
                nr_cpus: cpus.len() as u16,
                nr_words: cpus.len().div_ceil(64) as u16,
                node: self.cpus[cpus[0]].node as u16,
                capacity: cpus.iter().map(|&c| self.cpus[c].capacity).sum(),
            });
            facts.llc_cpus.extend(cpus.iter().map(|&c| c as u16));
        }
        for node in 0..self.nr_nodes() {
            let llcs: Vec<usize> = (0..self.nr_llcs())
                .filter(|&l| facts.llcs[l].node == node as u16)
                .collect();
            facts.nodes.push(node_facts {
                first_llc: llcs[0] as u16,
                nr_llcs: llcs.len() as u16,
            });
        }
        facts.cpus = (0..self.len()).map(|c| self.cpu_facts(c)).collect();
        facts
    }

    fn cpu_facts(&self, cpu: usize) -> cpu_facts {
        let c = self.cpus[cpu];
        if !c.online {
            return cpu_facts {
                llc: 0,
                pos: 0,
                node: 0,
                core: 0,
                capacity: 0,
                online: 0,
                nr_sib: 0,
                sib: [0; MAX_SMT as usize],
                nohz: 0,
            };
        }
        let siblings = self.siblings(cpu);
        assert!(
            siblings.len() < MAX_SMT as usize,
            "more threads than a core may have"
        );
        let mut sib = [0; MAX_SMT as usize];
        for (to, from) in sib.iter_mut().zip(siblings) {
            *to = *from as u16;
        }
        cpu_facts {
            llc: c.llc as u16,
            pos: self.llc_cpus(c.llc).iter().position(|&x| x == cpu).unwrap() as u16,
            node: c.node as u16,
            core: c.core as u16,
            capacity: c.capacity as u16,
            online: 1,
            nr_sib: siblings.len() as u8,
            sib,
            nohz: 0,
        }
    }

    pub fn world(&self) -> World {
        World::new(self.facts(), kernel_arm(), kernel_tunables(), 1)
    }
}

/// base_slice_ns and migration_cost as the kernel sets them on eight or more CPUs. The rest is
/// ours.
pub fn kernel_arm() -> arm {
    arm {
        task: task_policy {
            features: 0,
            arm: 0,
            slice_ns: 2_800_000,
            min_slice_ns: 700_000,
            claim_ttl_ns: CLAIM_TTL,
            fits_scale: CAPACITY_SCALE,
            fits_rt: 0,
            delay_ns: 50_000,
            pad: 0,
        },
        rescue_ns: 20_000_000,
        migration_cost_ns: 500_000,
    }
}

/// imbalance_pct is the kernel's for an LLC.
pub fn kernel_tunables() -> tunables {
    tunables {
        cpuperf: 0,
        timers: 1,
        wait_bound_ns: WAIT_BOUND,
        imbalance_pct: 117,
        frozen: 0,
        features: 0,
        limits: 1,
    }
}

/// Half of the watchdog's timeout, ns.
pub const WAIT_BOUND: u64 = 2_500_000_000;
/// As in `kernel_arm()`, ns.
pub const CLAIM_TTL: u64 = 1_000_000;
/// CLAIM_LOST_NS in claim.h.
pub const CLAIM_LOST: u64 = 2_000_000_000;

/// The weight of nice 0.
pub const NICE0: u32 = NICE0_WEIGHT;
