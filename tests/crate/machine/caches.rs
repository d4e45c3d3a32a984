// SPDX-License-Identifier: GPL-2.0-only
//! Which caches are LLCs, how LLCs are numbered, and what is used where there is no cache.

use super::*;
use crate::support::list;

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

/// Four CPUs, two of which share each L2.
fn pairs() -> Tree {
    let tree = Tree::new(&[0, 1, 2, 3], &[0, 1, 2, 3]);
    for cpu in 0..4 {
        tree.cache(cpu, 0, "Data", 1, &[cpu], "32K");
        tree.cache(cpu, 1, "Instruction", 1, &[cpu], "32K");
        tree.cache(
            cpu,
            2,
            "Unified",
            2,
            &[cpu / 2 * 2, cpu / 2 * 2 + 1],
            "1024K",
        );
    }
    tree
}

#[test]
fn a_gap_in_the_folders_stops_nothing() {
    let tree = pairs();
    tree.remove("devices/system/cpu/cpu0/cache/index1");
    assert_eq!(read(&tree), read(&pairs()));
}

#[test]
fn a_folder_without_a_level_stops_nothing() {
    let tree = pairs();
    for cpu in 0..4 {
        tree.remove(&format!("devices/system/cpu/cpu{cpu}/cache/index0/level"));
    }
    assert_eq!(read(&tree), read(&pairs()));
    assert_eq!(llcs(&read(&tree)), [[0, 1], [2, 3]]);
}

/// CPUs without files are where another puts them.
#[test]
fn one_cpu_that_names_the_others_is_enough() {
    let tree = Tree::new(&[0, 1, 2, 3, 4, 5, 6, 7], &[0, 1, 2, 3, 4, 5, 6, 7]);
    tree.cache(0, 1, "Unified", 2, &[0, 1, 2, 3], "1024K");
    let machine = read(&tree);
    assert_eq!(llcs(&machine), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    let kinds: Vec<_> = machine.llcs.iter().map(|l| l.kind).collect();
    assert_eq!(kinds, [LlcKind::L2, LlcKind::Node]);
    assert_eq!(machine.doubts, [""; 0]);
}

#[test]
fn a_contradiction_makes_the_smaller_groups_and_a_doubt() {
    for (lists, groups, doubts) in [
        // Only CPU 0 names the others.
        (
            vec![vec![0, 1, 2, 3], vec![1], vec![2], vec![3]],
            vec![vec![0], vec![1], vec![2], vec![3]],
            1,
        ),
        // Two names against two.
        (
            vec![vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![2, 3], vec![2, 3]],
            vec![vec![0, 1], vec![2, 3]],
            1,
        ),
        // A chain: each names its neighbours.
        (
            vec![vec![0, 1], vec![0, 1, 2], vec![1, 2, 3], vec![2, 3]],
            vec![vec![0], vec![1], vec![2], vec![3]],
            4,
        ),
    ] {
        let tree = Tree::new(&[0, 1, 2, 3], &[0, 1, 2, 3]);
        for (cpu, list) in lists.iter().enumerate() {
            tree.cache(cpu, 0, "Unified", 3, list, "8192K");
        }
        let machine = read(&tree);
        assert_eq!((llcs(&machine), machine.doubts.len()), (groups, doubts));
        let text = picture::picture(&machine);
        assert_eq!(
            text.matches("\ndoubt the files of CPU").count(),
            doubts,
            "{text}"
        );
        let json = serde_json::to_value(&machine).unwrap();
        assert_eq!(json["doubts"].as_array().unwrap().len(), doubts);
    }
}

/// CPUs 0 and 1 are a core of an L3 with 2 and 3; so are 4 and 5 with 6 and 7.
#[test]
fn a_core_whose_threads_contradict_each_other_is_in_the_smaller_group() {
    let doubt = |machine: &Machine, of: &str, group: &str| {
        let found = machine.doubts.first().unwrap();
        let words = format!(
            "the files of {of}, threads of one core, contradict each other about its cache: the \
             smaller group counts, {group}"
        );
        assert_eq!(*found, words);
        assert!(picture::picture(machine).contains("\ndoubt"));
    };
    // One thread names itself alone, with and without a file of its sibling.
    for level in ["3", "1"] {
        let tree = SMALL_SMT.tree();
        let l3 = |cpu: usize| format!("devices/system/cpu/cpu{cpu}/cache/index3");
        tree.write(&format!("{}/shared_cpu_list", l3(1)), "1");
        tree.write(&format!("{}/level", l3(0)), level);
        let machine = read(&tree);
        assert_eq!(llcs(&machine), [vec![0, 1], vec![2, 3], vec![4, 5, 6, 7]]);
        doubt(&machine, "CPUs 0-1", "CPUs 0-1");
    }
    // A core whose threads name two caches.
    let tree = SMALL_SMT.tree();
    for core in [vec![3, 4], vec![2], vec![5]] {
        core.iter().for_each(|cpu| tree.core(*cpu, &core));
    }
    let machine = read(&tree);
    let groups = [vec![0, 1, 2], vec![3, 4], vec![5, 6, 7]];
    assert_eq!(llcs(&machine), groups);
    doubt(&machine, "CPUs 3-4", "CPUs 0-4");
}

/// Six CPUs with an L2 each, on chips of two and four.
fn two_chips() -> Tree {
    let all = [0, 1, 2, 3, 4, 5];
    let tree = Tree::new(&all, &all);
    for cpu in all {
        tree.core(cpu, &[cpu]);
        tree.cache(cpu, 2, "Data", 2, &[cpu], "1024K");
        tree.cache(cpu, 3, "Instruction", 2, &[cpu], "1024K");
        let chip: &[usize] = if cpu < 2 { &[0, 1] } else { &[2, 3, 4, 5] };
        let dir = format!("devices/system/cpu/cpu{cpu}/topology");
        tree.write(&format!("{dir}/core_siblings_list"), &list(chip));
    }
    tree
}

/// As on s390, whose kernel shows private caches only.
#[test]
fn where_each_l2_is_private_the_chip_counts() {
    let machine = read(&two_chips());
    assert_eq!(llcs(&machine), [vec![0, 1], vec![2, 3, 4, 5]]);
    let text = picture::picture(&machine);
    let word = "LLC 1  the chip (each L2 is private, no shared cache known), 4 CPUs";
    assert!(text.contains(word), "{text}");
}

/// As the kernel does: a cluster may be one core (x86) or several (arm64).
#[test]
fn where_there_are_clusters_no_chip_counts() {
    let tree = two_chips();
    for cpu in 0..6 {
        let cluster = if cpu < 4 { vec![cpu] } else { vec![4, 5] };
        let dir = format!("devices/system/cpu/cpu{cpu}/topology");
        tree.write(&format!("{dir}/cluster_cpus_list"), &list(&cluster));
    }
    let machine = read(&tree);
    assert_eq!(
        llcs(&machine),
        [vec![0], vec![1], vec![2], vec![3], vec![4, 5]]
    );
    let kinds: Vec<_> = machine.llcs.iter().map(|l| l.kind).collect();
    assert_eq!(kinds[3..], [LlcKind::L2, LlcKind::Chip]);
}
