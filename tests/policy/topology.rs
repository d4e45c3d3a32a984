// SPDX-License-Identifier: GPL-2.0-only
//! Machines to test on: the C's tables of a machine that the model reads as a description.

use scx_roost::bpf::intf::{
    arm, cpu_facts, llc_facts, machine_facts, node_facts, task_policy, tunables,
};
use scx_roost::machine::Facts;
use scx_roost::native::World;
use scx_roost::native::sys::{CAPACITY_SCALE, MAX_SMT};
use scx_roost::placement::topology::Topology;

pub trait Tables {
    fn facts(&self) -> Facts;
    fn world(&self) -> World;
}

impl Tables for Topology {
    fn facts(&self) -> Facts {
        let mut facts = Facts {
            machine: machine_facts {
                nr_cpu_ids: self.nr_cpu_ids() as u32,
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
        facts.cpus = (0..self.nr_cpu_ids())
            .map(|c| cpu_facts_of(self, c))
            .collect();
        facts
    }

    fn world(&self) -> World {
        World::new(self.facts(), kernel_arm(), kernel_tunables(), 1)
    }
}

fn cpu_facts_of(machine: &Topology, cpu: usize) -> cpu_facts {
    let c = machine.cpus[cpu];
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
    let siblings = machine.siblings(cpu);
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
        pos: machine
            .llc_cpus(c.llc)
            .iter()
            .position(|&x| x == cpu)
            .unwrap() as u16,
        node: c.node as u16,
        core: c.core as u16,
        capacity: c.capacity as u16,
        online: 1,
        nr_sib: siblings.len() as u8,
        sib,
        nohz: 0,
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
            rules: 0,
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
        kernel_rules: 0,
    }
}

/// A quarter of the watchdog's timeout, ns.
pub const WAIT_BOUND: u64 = 2_500_000_000;
/// As in `kernel_arm()`, ns.
pub const CLAIM_TTL: u64 = 1_000_000;
/// CLAIM_LOST_NS in claim.h.
pub const CLAIM_LOST: u64 = 2_000_000_000;
