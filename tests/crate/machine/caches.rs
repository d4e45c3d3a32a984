// SPDX-License-Identifier: GPL-2.0-only
//! Which caches are LLCs, how LLCs are numbered, and what is used where there is no cache.

use super::*;

#[test]
fn llcs_are_numbered_node_by_node() {
    // Even CPUs in node 0, odd CPUs in node 2, two LLCs each.
    let tree = Tree::new(&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6, 7]);
    tree.node(0, &[0, 2, 4, 6]);
    tree.node(2, &[1, 3, 5, 7]);
    for llc in [[0, 2], [1, 3], [4, 6], [5, 7]] {
        tree.l3(&llc);
    }
    let machine = read(&tree);
    let cpus: Vec<_> = machine.llcs.iter().map(|l| l.cpus.clone()).collect();
    assert_eq!(cpus, [[0, 2], [4, 6], [1, 3], [5, 7]]);
    assert_eq!(
        machine.nodes.iter().map(|n| n.id).collect::<Vec<_>>(),
        [0, 2]
    );
}

#[test]
fn a_cache_over_two_nodes_is_cut() {
    let tree = Tree::new(&[0, 1, 2, 3], &[0, 1, 2, 3]);
    tree.node(0, &[0, 1]);
    tree.node(1, &[2, 3]);
    tree.l3(&[0, 1, 2, 3]);
    let machine = read(&tree);
    assert_eq!(
        machine
            .llcs
            .iter()
            .map(|l| l.cpus.clone())
            .collect::<Vec<_>>(),
        [[0, 1], [2, 3]]
    );
}

#[test]
fn without_an_l3_the_l2_counts() {
    let tree = SMALL_SMT.tree();
    for cpu in 0..8 {
        tree.remove(&format!("devices/system/cpu/cpu{cpu}/cache/index3"));
    }
    let machine = read(&tree);
    assert_eq!(
        (
            machine.llcs.len(),
            machine.llcs[0].kind,
            machine.llcs[0].size_kb
        ),
        (4, LlcKind::L2, Some(512))
    );
}

#[test]
fn some_cores_without_an_l3() {
    // Like Intel's low-power cores: a cluster outside of the L3 that shares an L2.
    let tree = SMALL_SMT.tree();
    for cpu in 4..8 {
        tree.remove(&format!("devices/system/cpu/cpu{cpu}/cache/index3"));
        tree.cache(cpu, 2, "Unified", 2, &[4, 5, 6, 7], "2048K");
    }
    let machine = read(&tree);
    assert_eq!(
        machine.llcs.iter().map(|l| l.kind).collect::<Vec<_>>(),
        [LlcKind::L3, LlcKind::L2]
    );
}

#[test]
fn without_caches_the_node_counts() {
    let tree = TWO_NODES.tree();
    for cpu in 0..8 {
        tree.remove(&format!("devices/system/cpu/cpu{cpu}/cache"));
    }
    let machine = read(&tree);
    assert_eq!(
        machine.llcs.iter().map(|l| l.kind).collect::<Vec<_>>(),
        [LlcKind::Node; 2]
    );
    assert_eq!(machine.llcs[0].cpus, [0, 1, 2, 3]);
}
