// SPDX-License-Identifier: GPL-2.0-only
//! Turns a `Machine` into the tables of intf.h, which the BPF half and the native policy read.

use super::{Cpu, Llc, Machine};
use crate::bpf::intf::{self, cpu_facts, llc_facts, machine_facts, node_facts};
use anyhow::{Result, bail};

/// Tables as long as the machine needs: `cpus` by CPU number (offline CPUs are zero), `llc_cpus`
/// LLC by LLC.
#[derive(Clone)]
pub struct Facts {
    pub cpus: Vec<cpu_facts>,
    pub llcs: Vec<llc_facts>,
    pub nodes: Vec<node_facts>,
    pub llc_cpus: Vec<u16>,
    pub machine: machine_facts,
}

impl Facts {
    /// The full capacity of each CPU, by number.
    pub fn capacities(&self) -> Vec<u16> {
        capacities(&self.cpus)
    }
}

impl Machine {
    /// The facts for the BPF half. Errors: the machine has more nodes than the tables have places.
    pub fn facts(&self) -> Result<Facts> {
        if self.nodes.len() > intf::MAX_NODES as usize {
            bail!(
                "the machine has {} NUMA nodes, scx_roost handles {}: boot with numa=off, which merges them into one",
                self.nodes.len(),
                intf::MAX_NODES
            );
        }
        let cpus = self.cpu_rows();
        let node = |n: &super::Node| node_facts {
            first_llc: n.first_llc,
            nr_llcs: n.nr_llcs,
        };
        Ok(Facts {
            llcs: llc_rows(&self.llcs, &cpus),
            cpus,
            nodes: self.nodes.iter().map(node).collect(),
            llc_cpus: self
                .llcs
                .iter()
                .flat_map(|l| l.cpus.iter().copied())
                .collect(),
            machine: self.machine_row(),
        })
    }

    /// The full capacity of each CPU by number; 0 if offline.
    pub fn capacities(&self) -> Vec<u16> {
        capacities(&self.cpu_rows())
    }

    fn cpu_rows(&self) -> Vec<cpu_facts> {
        let mut rows = vec![offline_row(); self.nr_cpu_ids.into()];
        for cpu in &self.cpus {
            rows[usize::from(cpu.id)] = cpu_row(cpu);
        }
        for &cpu in &self.nohz_full {
            rows[usize::from(cpu)].nohz = 1;
        }
        rows
    }

    fn machine_row(&self) -> machine_facts {
        machine_facts {
            nr_cpu_ids: self.nr_cpu_ids.into(),
            nr_online: self.cpus.len() as u32,
            nr_llcs: self.llcs.len() as u32,
            nr_nodes: self.nodes.len() as u32,
            smt: self.smt().into(),
            asym: self.asym().into(),
            nohz: (!self.nohz_full.is_empty()).into(),
        }
    }
}

fn capacities(rows: &[cpu_facts]) -> Vec<u16> {
    rows.iter().map(|row| row.capacity).collect()
}

fn offline_row() -> cpu_facts {
    // SAFETY: plain numbers, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

fn cpu_row(cpu: &Cpu) -> cpu_facts {
    let mut row = cpu_facts {
        llc: cpu.llc,
        pos: cpu.pos,
        node: cpu.node,
        core: cpu.core,
        capacity: cpu.capacity,
        online: 1,
        nr_sib: cpu.siblings.len() as u8,
        ..offline_row()
    };
    row.sib[..cpu.siblings.len()].copy_from_slice(&cpu.siblings);
    row
}

fn llc_rows(llcs: &[Llc], cpus: &[cpu_facts]) -> Vec<llc_facts> {
    let mut first = 0;
    let capacity = |llc: &Llc| {
        let of = |&cpu: &u16| u32::from(cpus[cpu as usize].capacity);
        llc.cpus.iter().map(of).sum()
    };
    let row = |llc: &Llc| {
        let nr_cpus = llc.cpus.len() as u16;
        let row = llc_facts {
            first,
            nr_cpus,
            nr_words: nr_cpus.div_ceil(intf::WORD_BITS as u16),
            node: llc.node,
            capacity: capacity(llc),
        };
        first += nr_cpus;
        row
    };
    llcs.iter().map(row).collect()
}
