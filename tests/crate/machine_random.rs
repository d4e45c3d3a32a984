// SPDX-License-Identifier: GPL-2.0-only
//! Random machines: what is read must be what was written, whatever the numbering.

use crate::rng::Rng;
use crate::support::Tree;
use scx_roost::machine::Machine;
use std::collections::BTreeMap;

fn shuffle(rng: &mut Rng, items: &mut [usize]) {
    for i in (1..items.len()).rev() {
        items.swap(i, rng.below(i + 1));
    }
}

/// The node, LLC and core of each online CPU, each numbered over the whole machine.
type Plan = BTreeMap<usize, (usize, usize, usize)>;

/// Nodes, LLCs and cores of random sizes, random CPU numbers with holes, and some CPUs offline.
fn plan(rng: &mut Rng) -> (Vec<usize>, Plan) {
    let mut slots = Vec::new();
    let (mut llc, mut core) = (0, 0);
    for node in 0..1 + rng.below(3) {
        for _ in 0..1 + rng.below(3) {
            for _ in 0..1 + rng.below(3) {
                slots.extend((0..1 + rng.below(3)).map(|_| (node, llc, core)));
                core += 1;
            }
            llc += 1;
        }
    }
    let mut numbers: Vec<usize> = (0..slots.len() + rng.below(5)).collect();
    shuffle(rng, &mut numbers);
    let mut possible = numbers[..slots.len()].to_vec();
    let mut plan: Plan = possible.iter().copied().zip(slots).collect();
    for _ in 0..rng.below(3).min(plan.len() - 1) {
        let victim = *plan.keys().nth(rng.below(plan.len())).expect("a CPU");
        plan.remove(&victim);
    }
    possible.sort_unstable();
    (possible, plan)
}

fn same(plan: &Plan, part: impl Fn(&(usize, usize, usize)) -> usize, cpu: usize) -> Vec<usize> {
    plan.iter()
        .filter(|(_, p)| part(p) == part(&plan[&cpu]))
        .map(|(c, _)| *c)
        .collect()
}

fn write(possible: &[usize], plan: &Plan) -> Tree {
    let online: Vec<usize> = plan.keys().copied().collect();
    let tree = Tree::new(possible, &online);
    for node in 0..3 {
        let cpus: Vec<usize> = plan
            .iter()
            .filter(|(_, p)| p.0 == node)
            .map(|(c, _)| *c)
            .collect();
        tree.node(node, &cpus);
    }
    for &cpu in plan.keys() {
        tree.core(cpu, &same(plan, |p| p.2, cpu));
        tree.cache(cpu, 0, "Unified", 3, &same(plan, |p| p.1, cpu), "8192K");
    }
    tree
}

fn ids(cpus: &[u16]) -> Vec<usize> {
    cpus.iter().map(|c| *c as usize).collect()
}

#[test]
fn what_is_read_is_what_was_written() {
    let mut rng = Rng::new(1);
    for round in 0..50 {
        let (possible, plan) = plan(&mut rng);
        let tree = write(&possible, &plan);
        let machine = Machine::read(tree.root()).expect("a machine");
        assert_eq!(
            ids(&machine.online()),
            plan.keys().copied().collect::<Vec<_>>(),
            "round {round}"
        );
        for cpu in &machine.cpus {
            let id = cpu.id as usize;
            let mut core = ids(&cpu.siblings);
            core.push(id);
            core.sort_unstable();
            assert_eq!(core, same(&plan, |p| p.2, id), "round {round}");
            let llc = &machine.llcs[cpu.llc as usize];
            assert_eq!(ids(&llc.cpus), same(&plan, |p| p.1, id), "round {round}");
            assert_eq!(llc.cpus[cpu.pos as usize], cpu.id);
            assert_eq!(
                machine.nodes[cpu.node as usize].id as usize, plan[&id].0,
                "round {round}"
            );
        }
        assert!(
            machine.llcs.is_sorted_by_key(|l| (l.node, l.cpus[0])),
            "round {round}"
        );
        let nodes: Vec<u16> = machine.llcs.iter().map(|l| l.node).collect();
        for (index, node) in machine.nodes.iter().enumerate() {
            let own = nodes.iter().filter(|n| **n as usize == index).count();
            assert_eq!(
                (
                    node.nr_llcs as usize,
                    nodes[node.first_llc as usize] as usize
                ),
                (own, index)
            );
        }
    }
}
