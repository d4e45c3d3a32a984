// SPDX-License-Identifier: GPL-2.0-only
//! What a machine lacks: nodes without CPUs, offline CPUs, holes in the numbers, and files that
//! older kernels name differently.

use super::*;

#[test]
fn a_node_without_cpus_is_left_out() {
    let tree = SMALL_SMT.tree();
    tree.node(1, &[]);
    let machine = read(&tree);
    assert_eq!(machine.nodes.len(), 1);
}

#[test]
fn cpus_in_several_fake_nodes_stay_in_the_first() {
    let tree = SMALL_SMT.tree();
    tree.node(1, &[0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(read(&tree).nodes.len(), 1);
}

/// As on the kernels that list no offline node: its CPUs are left a link.
#[test]
fn cpus_of_an_offline_node_stay_on_it() {
    let tree = Tree::new(&[0, 1, 2, 3], &[0, 1, 2, 3]);
    tree.l3(&[0, 1]);
    tree.l3(&[2, 3]);
    tree.node(1, &[2, 3]);
    for cpu in 0..4 {
        tree.link_to_node(cpu, cpu / 2);
    }
    let machine = read(&tree);
    let nodes: Vec<u16> = machine.nodes.iter().map(|n| n.id).collect();
    assert_eq!(
        (nodes, llcs(&machine)),
        (vec![0, 1], vec![vec![0, 1], vec![2, 3]])
    );
    assert_eq!(machine.doubts, [""; 0]);
}

#[test]
fn cpus_of_no_known_node_are_on_no_other() {
    let tree = TWO_NODES.tree();
    tree.remove("devices/system/node/node0");
    tree.node(1, &[4, 5, 6, 7]);
    let machine = read(&tree);
    assert_eq!(llcs(&machine), [[4, 5, 6, 7], [0, 1, 2, 3]]);
    let text = picture::picture(&machine);
    assert!(text.contains("unknown node\n"), "{text}");
    assert!(text.contains("doubt no node lists CPUs 0-3"), "{text}");
}

#[test]
fn one_cpu_that_says_nothing() {
    let machine = read(&Tree::new(&[0], &[0]));
    assert_eq!(
        (machine.cpus.len(), machine.llcs.len(), machine.nodes.len()),
        (1, 1, 1)
    );
    assert_eq!(machine.llcs[0].kind, LlcKind::Node);
    assert_eq!(machine.cpus[0].capacity, 1024);
}

#[test]
fn smt_switched_off() {
    let tree = SMALL_SMT.tree();
    let mut online: Vec<usize> = (0..8).collect();
    for cpu in [1, 3, 5, 7] {
        online.retain(|c| *c != cpu);
        tree.offline(cpu, &online);
        tree.core(cpu - 1, &[cpu - 1]);
    }
    let machine = read(&tree);
    assert!(!machine.smt());
    assert_eq!(
        (machine.online(), machine.offline.clone()),
        (vec![0, 2, 4, 6], vec![1, 3, 5, 7])
    );
    assert_eq!(
        (machine.nr_cpu_ids, machine.nr_cores, machine.llcs.len()),
        (8, 4, 2)
    );
    assert_eq!(machine.cpus[3].pos, 1);
    assert!(picture::picture(&machine).ends_with("offline 1 3 5 7\n"));
}

#[test]
fn a_list_that_still_names_an_offline_sibling() {
    let tree = SMALL_SMT.tree();
    tree.offline(7, &[0, 1, 2, 3, 4, 5, 6]);
    let machine = read(&tree);
    assert!(machine.cpus[6].siblings.is_empty());
    assert_eq!(machine.llcs[1].cpus, [4, 5, 6]);
}

#[test]
fn a_whole_llc_offline() {
    let tree = SMALL_SMT.tree();
    for cpu in [0, 1, 2, 3] {
        tree.offline(cpu, &[4, 5, 6, 7]);
    }
    let machine = read(&tree);
    assert_eq!((machine.llcs.len(), machine.nr_cores), (1, 2));
    assert_eq!(machine.cpus[0].id, 4);
}

#[test]
fn holes_in_the_numbers() {
    let tree = Tree::new(&[0, 2, 5, 6, 9], &[0, 2, 6, 9]);
    tree.l3(&[0, 6]);
    tree.l3(&[2, 9]);
    tree.core(0, &[0, 6]);
    tree.core(6, &[0, 6]);
    let machine = read(&tree);
    assert_eq!(
        (
            machine.nr_cpu_ids,
            machine.offline.clone(),
            machine.nr_cores
        ),
        (10, vec![5], 3)
    );
    assert_eq!(
        machine
            .cpus
            .iter()
            .map(|c| (c.id, c.llc, c.pos))
            .collect::<Vec<_>>(),
        [(0, 0, 0), (2, 1, 0), (6, 0, 1), (9, 1, 1)]
    );
}

#[test]
fn a_kernel_without_numa() {
    let tree = SMALL_SMT.tree();
    tree.remove("devices/system/node");
    assert_eq!(read(&tree), read(&SMALL_SMT.tree()));
}

#[test]
fn older_kernels_name_the_list_otherwise() {
    let tree = SMALL_SMT.tree();
    for cpu in 0..8 {
        tree.remove(&format!(
            "devices/system/cpu/cpu{cpu}/topology/core_cpus_list"
        ));
        let first = cpu / 2 * 2;
        tree.write(
            &format!("devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"),
            &format!("{first}-{}", first + 1),
        );
    }
    assert_eq!(read(&tree), read(&SMALL_SMT.tree()));
}
