// SPDX-License-Identifier: GPL-2.0-only
//! Machines described in folders: what is read from them, and what facts the BPF half gets.

mod absent;
mod caches;
mod gathered;
mod refused;

use crate::support::{Numbering, SMALL_SMT, Shape, Tree};
use scx_roost::bpf::intf::WORD_BITS;
use scx_roost::machine::picture;
use scx_roost::machine::{Facts, LlcKind, Machine};

const THREADRIPPER_3970X: Shape = Shape {
    nodes: 1,
    llcs: 8,
    cores: 4,
    threads: 2,
    numbering: Numbering::Halves,
};
const TWO_NODES: Shape = Shape {
    nodes: 2,
    llcs: 1,
    cores: 4,
    threads: 1,
    numbering: Numbering::Adjacent,
};
const LARGEST: Shape = Shape {
    nodes: 8,
    llcs: 8,
    cores: 8,
    threads: 2,
    numbering: Numbering::Halves,
};

fn read(tree: &Tree) -> Machine {
    let machine = Machine::read(tree.root()).expect("a machine");
    check(&machine);
    machine
}

fn llcs(machine: &Machine) -> Vec<Vec<u16>> {
    machine.llcs.iter().map(|l| l.cpus.clone()).collect()
}

fn error(tree: &Tree) -> String {
    format!("{:#}", Machine::read(tree.root()).expect_err("an error"))
}

/// What holds for every machine.
fn check(machine: &Machine) {
    let facts = machine.facts().expect("facts");
    check_llcs(&facts);
    check_nodes(&facts);
    check_cpus(&facts);
    check_picture(machine);
}

/// LLCs follow each other in llc_cpus. Their CPUs ascend, and pos is the rank of a CPU.
fn check_llcs(facts: &Facts) {
    let mut next = 0;
    for (index, llc) in facts.llcs.iter().enumerate() {
        assert_eq!(llc.first, next);
        next += llc.nr_cpus;
        let cpus = &facts.llc_cpus[llc.first as usize..next as usize];
        assert!(!cpus.is_empty() && cpus.is_sorted());
        assert_eq!(
            u32::from(llc.nr_words),
            u32::from(llc.nr_cpus).div_ceil(WORD_BITS)
        );
        for (pos, cpu) in cpus.iter().enumerate() {
            let row = &facts.cpus[*cpu as usize];
            assert_eq!(
                (row.llc as usize, row.pos as usize, row.node),
                (index, pos, llc.node)
            );
        }
    }
    assert_eq!(next as usize, facts.llc_cpus.len());
    assert_eq!(facts.machine.nr_llcs as usize, facts.llcs.len());
}

/// The LLCs are divided among the nodes, in order.
fn check_nodes(facts: &Facts) {
    let mut next = 0;
    for (index, node) in facts.nodes.iter().enumerate() {
        assert_eq!(node.first_llc, next);
        assert!(node.nr_llcs > 0);
        next += node.nr_llcs;
        let llcs = &facts.llcs[node.first_llc as usize..next as usize];
        assert!(llcs.iter().all(|l| l.node as usize == index));
    }
    assert_eq!(next as usize, facts.llcs.len());
}

/// Siblings name each other, share core and LLC; core numbers are dense.
fn check_cpus(facts: &Facts) {
    let online: Vec<usize> = (0..facts.cpus.len())
        .filter(|c| facts.cpus[*c].online == 1)
        .collect();
    assert_eq!(online.len(), facts.machine.nr_online as usize);
    assert_eq!(facts.cpus.len(), facts.machine.nr_cpu_ids as usize);
    for &cpu in &online {
        let row = &facts.cpus[cpu];
        for sib in &row.sib[..row.nr_sib as usize] {
            let other = &facts.cpus[*sib as usize];
            assert!(other.online == 1 && *sib as usize != cpu);
            assert_eq!((other.core, other.llc), (row.core, row.llc));
            assert!(other.sib[..other.nr_sib as usize].contains(&(cpu as u16)));
        }
    }
    let mut cores: Vec<u16> = online.iter().map(|c| facts.cpus[*c].core).collect();
    cores.sort_unstable();
    cores.dedup();
    assert_eq!(cores.last().map(|c| *c as usize + 1), Some(cores.len()));
}

/// Every CPU is in the picture once, and it fits a terminal.
fn check_picture(machine: &Machine) {
    let text = picture::picture(machine);
    assert!(text.lines().all(|l| l.len() <= 100), "{text}");
    let cores = text
        .split('[')
        .skip(1)
        .map(|c| c.split(']').next().unwrap_or(""));
    let mut shown: Vec<u16> = cores
        .flat_map(|c| c.split_whitespace())
        .map(|n| n.parse().unwrap())
        .collect();
    shown.sort_unstable();
    assert_eq!(shown, machine.online());
}

#[test]
fn threadripper_3970x() {
    let machine = read(&THREADRIPPER_3970X.tree());
    assert_eq!(
        (
            machine.cpus.len(),
            machine.nr_cores,
            machine.llcs.len(),
            machine.nodes.len()
        ),
        (64, 32, 8, 1)
    );
    assert!(machine.smt() && !machine.asym());
    assert_eq!(machine.llcs[1].cpus, [4, 5, 6, 7, 36, 37, 38, 39]);
    assert_eq!(
        (machine.llcs[1].kind, machine.llcs[1].size_kb),
        (LlcKind::L3, Some(16384))
    );
    let cpu = &machine.cpus[37];
    assert_eq!(
        (cpu.id, cpu.core, cpu.llc, cpu.pos, &cpu.siblings[..]),
        (37, 5, 1, 5, &[5][..])
    );
}

#[test]
fn siblings_next_to_each_other() {
    let machine = read(&SMALL_SMT.tree());
    assert_eq!(machine.llcs[1].cpus, [4, 5, 6, 7]);
    let cpu = &machine.cpus[6];
    assert_eq!(
        (cpu.core, cpu.llc, cpu.pos, &cpu.siblings[..]),
        (3, 1, 2, &[7][..])
    );
}

#[test]
fn two_nodes() {
    let machine = read(&TWO_NODES.tree());
    assert_eq!(machine.nodes.len(), 2);
    assert!(!machine.smt());
    assert_eq!(machine.llcs[1].cpus, [4, 5, 6, 7]);
    assert_eq!(machine.cpus[4].node, 1);
}

/// The distances of this many nodes do not fit into a line.
#[test]
fn a_machine_of_forty_nodes_has_a_picture() {
    let cpus: Vec<usize> = (0..40).collect();
    let tree = Tree::new(&cpus, &cpus);
    for node in 0..40 {
        tree.node(node, &[node]);
        let distances = vec!["99"; 40].join(" ");
        tree.write(
            &format!("devices/system/node/node{node}/distance"),
            &distances,
        );
    }
    let machine = read(&tree);
    check_picture(&machine);
    let text = picture::picture(&machine);
    assert_eq!(text.matches(" 99").count(), 40 * 40, "{text}");
}

/// A node without CPUs has a column too.
#[test]
fn distances_of_nodes() {
    let tree = Tree::new(&[0, 1], &[0, 1]);
    tree.node(0, &[0]);
    tree.node(1, &[]);
    tree.node(4, &[1]);
    let distance = |node: usize, text: &str| {
        tree.write(&format!("devices/system/node/node{node}/distance"), text);
    };
    let told = || {
        let nodes = read(&tree).nodes.into_iter();
        nodes.map(|n| n.distances).collect::<Vec<_>>()
    };
    assert_eq!(told(), [None, None]);
    distance(0, "10 17 21");
    distance(4, "22 28 10");
    assert_eq!(told(), [Some(vec![10, 21]), Some(vec![22, 10])]);
    let text = picture::picture(&read(&tree));
    assert!(text.contains("node 4  distances 22 10\n"), "{text}");
    distance(0, "10 21");
    distance(4, "near far far");
    assert_eq!(told(), [None, None]);
}

#[test]
fn hybrid_capacities() {
    let tree = SMALL_SMT.tree();
    for cpu in 4..8 {
        tree.capacity(cpu, "512");
    }
    let machine = read(&tree);
    assert!(machine.asym());
    assert_eq!(machine.facts().unwrap().machine.asym, 1);
    assert!(picture::picture(&machine).contains("capacity  512  [4 5] [6 7]"));
}

#[test]
fn any_difference_of_capacity_is_asymmetry() {
    let tree = SMALL_SMT.tree();
    for cpu in 0..8 {
        tree.capacity(cpu, "1000");
    }
    assert!(!read(&tree).asym());
    tree.capacity(7, "999");
    assert!(read(&tree).asym());
}

#[test]
fn preferred_cores_are_no_capacity() {
    let tree = SMALL_SMT.tree();
    for cpu in 0..8 {
        tree.write(
            &format!("devices/system/cpu/cpu{cpu}/cpufreq/amd_pstate_prefcore_ranking"),
            &(166 + cpu * 10).to_string(),
        );
    }
    assert_eq!(read(&tree), read(&SMALL_SMT.tree()));
}

#[test]
fn the_largest_machine() {
    let machine = read(&LARGEST.tree());
    assert_eq!(
        (machine.cpus.len(), machine.llcs.len(), machine.nodes.len()),
        (1024, 64, 8)
    );
    assert_eq!(machine.nr_cpu_ids, 1024);
}

#[test]
fn one_llc_of_200_cpus_has_four_words() {
    let shape = Shape {
        nodes: 1,
        llcs: 1,
        cores: 100,
        threads: 2,
        numbering: Numbering::Halves,
    };
    assert_eq!(read(&shape.tree()).facts().unwrap().llcs[0].nr_words, 4);
}

#[test]
fn two_machines_at_once() {
    let (small, large) = (SMALL_SMT.tree(), THREADRIPPER_3970X.tree());
    let (a, b) = (read(&small), read(&large));
    assert_eq!((a.cpus.len(), b.cpus.len()), (8, 64));
    assert_eq!(read(&small), a);
}

#[test]
fn the_picture_of_a_small_machine() {
    let text = picture::picture(&read(&SMALL_SMT.tree()));
    let expected = "8 CPUs of 8 online, 4 cores, 2 LLCs, 1 node
node 0
  LLC 0  L3 16 MiB, 4 CPUs
    [0 1] [2 3]
  LLC 1  L3 16 MiB, 4 CPUs
    [4 5] [6 7]
";
    assert_eq!(text, expected);
}
