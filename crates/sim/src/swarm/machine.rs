// SPDX-License-Identifier: GPL-2.0-only
//! Random machines: one CPU, odd shapes, unequal CPUs, any numbering, gaps.

use super::{of, one_in};
use crate::Rng;
use scx_roost::machine::{Cpu, Llc, LlcKind, Machine, Node};

const MOST: usize = 40;

/// A core: its LLC and node, how many threads it has, and their capacity.
struct Core {
    llc: u16,
    node: u16,
    threads: u16,
    capacity: u16,
}

pub fn machine(rng: &mut Rng) -> Machine {
    let (cores, nodes) = match one_in(rng, 10) {
        true => (vec![core(0, 0, 1, 1024)], vec![1]),
        false => cores(rng),
    };
    let threads: usize = cores.iter().map(|c| usize::from(c.threads)).sum();
    let holes = if one_in(rng, 4) {
        rng.below(4) as usize
    } else {
        0
    };
    let ids = numbers(rng, &cores, threads + holes);
    let mut next = ids.iter().copied();
    let mut cpus: Vec<Cpu> = Vec::new();
    for (number, core) in cores.iter().enumerate() {
        let own: Vec<u16> = next.by_ref().take(core.threads.into()).collect();
        for &id in &own {
            let mut siblings: Vec<u16> = own.iter().copied().filter(|&o| o != id).collect();
            siblings.sort_unstable();
            cpus.push(Cpu {
                id,
                core: number as u16,
                llc: core.llc,
                node: core.node,
                pos: 0,
                capacity: core.capacity,
                siblings,
            });
        }
    }
    cpus.sort_by_key(|c| c.id);
    whole(cpus, nodes, cores.len() as u16, (threads + holes) as u16)
}

fn core(llc: u16, node: u16, threads: u16, capacity: u16) -> Core {
    Core {
        llc,
        node,
        threads,
        capacity,
    }
}

/// Random cores, and the number of LLCs of each node.
fn cores(rng: &mut Rng) -> (Vec<Core>, Vec<u16>) {
    let most_threads = of(rng, &[1, 2, 2, 2, 4]);
    let unequal = one_in(rng, 3);
    let (mut cores, mut nodes, mut llc, mut cpus) = (Vec::new(), Vec::new(), 0, 0);
    for node in 0..of(rng, &[1, 1, 1, 2, 3]) {
        let llcs = 1 + rng.below(3) as u16;
        for _ in 0..llcs {
            for _ in 0..1 + rng.below(5) {
                let threads = if one_in(rng, 6) { 1 } else { most_threads };
                let slow = unequal && !cores.is_empty();
                let capacity = if slow {
                    of(rng, &[1024, 1024, 500, 250])
                } else {
                    1024
                };
                cpus += usize::from(threads);
                if cpus <= MOST || cores.last().is_none_or(|c: &Core| c.llc != llc) {
                    cores.push(core(llc, node, threads, capacity));
                }
            }
            llc += 1;
        }
        nodes.push(llcs);
    }
    (cores, nodes)
}

/// The CPU numbers of all threads, core by core.
fn numbers(rng: &mut Rng, cores: &[Core], possible: usize) -> Vec<u16> {
    let mut ids: Vec<u16> = (0..possible as u16).collect();
    match rng.below(3) {
        // Threads of a core are neighbours.
        0 => ids,
        // First threads come first.
        1 => {
            let most = cores.iter().map(|c| c.threads).max().unwrap_or(1);
            let mut of_core: Vec<Vec<u16>> = cores.iter().map(|_| Vec::new()).collect();
            let mut next = 0;
            for thread in 0..most {
                for (core, own) in cores.iter().zip(&mut of_core) {
                    if core.threads > thread {
                        own.push(next);
                        next += 1;
                    }
                }
            }
            of_core.concat()
        }
        _ => {
            for i in (1..ids.len()).rev() {
                ids.swap(i, rng.below(i as u64 + 1) as usize);
            }
            ids
        }
    }
}

fn whole(mut cpus: Vec<Cpu>, llcs_of: Vec<u16>, nr_cores: u16, nr_cpu_ids: u16) -> Machine {
    let (mut llcs, mut nodes) = (Vec::new(), Vec::new());
    for (id, &count) in llcs_of.iter().enumerate() {
        let id = id as u16;
        nodes.push(Node {
            id,
            first_llc: llcs.len() as u16,
            nr_llcs: count,
            distances: None,
        });
        for _ in 0..count {
            let llc = llcs.len() as u16;
            let own = cpus.iter_mut().filter(|c| c.llc == llc);
            let own = own.enumerate().map(|(pos, cpu)| {
                cpu.pos = pos as u16;
                cpu.id
            });
            llcs.push(Llc {
                kind: LlcKind::L3,
                size_kb: Some(8192),
                node: id,
                cpus: own.collect(),
            });
        }
    }
    let online = |id: &u16| cpus.iter().any(|c| c.id == *id);
    Machine {
        nr_cpu_ids,
        offline: (0..nr_cpu_ids).filter(|id| !online(id)).collect(),
        nr_cores,
        nohz_full: Vec::new(),
        doubts: Vec::new(),
        llcs,
        nodes,
        cpus,
    }
}
