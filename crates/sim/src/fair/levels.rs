// SPDX-License-Identifier: GPL-2.0-only
//! How near CPUs are to each other (kernel: scheduling domains): the threads of a core, an LLC, a
//! node, the machine.

use scx_roost::machine::Facts;

/// Levels of `Levels::around`. Level 0 is the core, level 2 the node.
pub const LLC: usize = 1;
pub const MACHINE: usize = 3;

/// The CPUs of each core, LLC and node, and which of these each CPU is in.
pub struct Levels {
    pub cores: Vec<Vec<usize>>,
    pub llcs: Vec<Vec<usize>>,
    pub nodes: Vec<Vec<usize>>,
    pub all: Vec<usize>,
    /// LLCs of each node.
    pub node_llcs: Vec<Vec<usize>>,
    core: Vec<usize>,
    pub llc: Vec<usize>,
    pub node: Vec<usize>,
}

impl Levels {
    pub fn new(facts: &Facts) -> Levels {
        let online = (0..facts.cpus.len()).filter(|&c| facts.cpus[c].online != 0);
        let all: Vec<usize> = online.collect();
        let of = |which: &dyn Fn(usize) -> usize| -> Vec<usize> {
            (0..facts.cpus.len()).map(which).collect()
        };
        let core = of(&|c| facts.cpus[c].core.into());
        let llc = of(&|c| facts.cpus[c].llc.into());
        let node = of(&|c| facts.cpus[c].node.into());
        let groups = |of: &[usize]| {
            let mut groups = vec![Vec::new(); of.iter().max().map_or(0, |m| m + 1)];
            all.iter().for_each(|&cpu| groups[of[cpu]].push(cpu));
            groups
        };
        let (cores, llcs, nodes) = (groups(&core), groups(&llc), groups(&node));
        let mut node_llcs = vec![Vec::new(); nodes.len()];
        for (number, cpus) in llcs.iter().enumerate() {
            if let Some(&cpu) = cpus.first() {
                node_llcs[node[cpu]].push(number);
            }
        }
        Levels {
            cores,
            llcs,
            nodes,
            all,
            node_llcs,
            core,
            llc,
            node,
        }
    }

    /// The level of the nearest domain that has both CPUs.
    pub fn apart(&self, a: usize, b: usize) -> usize {
        if self.core[a] == self.core[b] {
            0
        } else if self.llc[a] == self.llc[b] {
            LLC
        } else if self.node[a] == self.node[b] {
            LLC + 1
        } else {
            MACHINE
        }
    }

    /// The threads of the CPU's core, including the CPU itself.
    pub fn threads(&self, cpu: usize) -> &[usize] {
        &self.cores[self.core[cpu]]
    }

    /// The CPUs around this one, from near to far. Each level contains the one before.
    pub fn around(&self, cpu: usize) -> [&[usize]; 4] {
        [
            self.threads(cpu),
            &self.llcs[self.llc[cpu]],
            &self.nodes[self.node[cpu]],
            &self.all,
        ]
    }
}
