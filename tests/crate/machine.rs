// SPDX-License-Identifier: GPL-2.0-only
//! Machines described in folders: what is read from them, and what the BPF half gets.

use crate::support::{Numbering, SMALL_SMT, Shape, Tree};
use scx_roost::bpf::intf::WORD_BITS;
use scx_roost::machine::{Facts, LlcKind, Machine};
use scx_roost::topology_view;

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

/// LLCs lie one behind the other in llc_cpus, their CPUs ascend, pos is the rank.
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

/// The nodes divide the LLCs among them, in order.
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
    let text = topology_view::picture(machine);
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

/// Of so many nodes the distances do not stand in a line.
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
    let text = topology_view::picture(&machine);
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
    let text = topology_view::picture(&read(&tree));
    assert!(text.contains("node 4  distances 22 10\n"), "{text}");
    distance(0, "10 21");
    distance(4, "near far far");
    assert_eq!(told(), [None, None]);
}

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
    assert!(topology_view::picture(&machine).ends_with("offline 1 3 5 7\n"));
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
    // As Intel's low-power cores: a cluster beside the L3 that shares an L2.
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

#[test]
fn hybrid_capacities() {
    let tree = SMALL_SMT.tree();
    for cpu in 4..8 {
        tree.capacity(cpu, "512");
    }
    let machine = read(&tree);
    assert!(machine.asym());
    assert_eq!(machine.facts().unwrap().machine.asym, 1);
    assert!(topology_view::picture(&machine).contains("capacity  512  [4 5] [6 7]"));
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
    let text = topology_view::picture(&read(&SMALL_SMT.tree()));
    let expected = "8 CPUs of 8 online, 4 cores, 2 LLCs, 1 node
node 0
  LLC 0  L3 16 MiB, 4 CPUs
    [0 1] [2 3]
  LLC 1  L3 16 MiB, 4 CPUs
    [4 5] [6 7]
";
    assert_eq!(text, expected);
}

#[test]
fn a_root_that_is_none() {
    let empty = tempfile::tempdir().unwrap();
    let error = format!("{:#}", Machine::read(empty.path()).unwrap_err());
    assert!(
        error.contains("devices/system/cpu: No such file or directory"),
        "{error}"
    );
}

#[test]
fn more_cpus_than_are_handled() {
    let tree = Tree::new(&[0], &[0]);
    tree.write("devices/system/cpu/possible", "0-1024");
    assert!(
        error(&tree).contains("beyond the 1024 CPUs"),
        "{}",
        error(&tree)
    );
}

#[test]
fn garbage_names_the_file_and_what_is_expected() {
    let cpu0 = "devices/system/cpu/cpu0";
    for (path, text, expected) in [
        (
            "devices/system/cpu/possible".to_string(),
            "all",
            "a list of CPUs such as '0-3,8' is expected",
        ),
        (
            "devices/system/cpu/online".to_string(),
            "",
            "at least one CPU is expected",
        ),
        (
            "devices/system/cpu/online".to_string(),
            "0-8",
            "it is expected to",
        ),
        (
            "devices/system/node/node0/cpulist".to_string(),
            "x",
            "a list of CPUs such as",
        ),
        (
            format!("{cpu0}/topology/core_cpus_list"),
            "1",
            "does not name CPU 0 itself",
        ),
        (
            format!("{cpu0}/topology/core_cpus_list"),
            "0",
            "CPUs 1 and 0 are threads of one core",
        ),
        (
            format!("{cpu0}/topology/core_cpus_list"),
            "0-8",
            "at most 8 is expected",
        ),
        (
            format!("{cpu0}/cache/index3/shared_cpu_list"),
            "4-7",
            "does not name CPU 0 itself",
        ),
        (
            format!("{cpu0}/cpu_capacity"),
            "0",
            "a capacity of 1 to 1024 is expected",
        ),
        (
            format!("{cpu0}/cpu_capacity"),
            "fast",
            "a capacity of 1 to 1024 is expected",
        ),
    ] {
        let tree = if text == "0-8" && path.ends_with("core_cpus_list") {
            Shape {
                nodes: 1,
                llcs: 1,
                cores: 1,
                threads: 9,
                numbering: Numbering::Adjacent,
            }
            .tree()
        } else {
            SMALL_SMT.tree()
        };
        tree.write(&path, text);
        let error = error(&tree);
        assert!(error.contains(expected), "{path} '{text}': {error}");
        assert!(error.contains(tree.root().to_str().unwrap()), "{error}");
    }
}

#[test]
fn a_core_over_two_caches_is_refused() {
    let tree = SMALL_SMT.tree();
    tree.core(3, &[3, 4]);
    tree.core(4, &[3, 4]);
    tree.core(2, &[2]);
    tree.core(5, &[5]);
    let error = error(&tree);
    assert!(
        error.contains("CPUs 3 and 4 are threads of one core"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for path in [
        "devices/system/cpu/online",
        "devices/system/cpu/cpu0/cpu_capacity",
        "devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
    ] {
        let tree = SMALL_SMT.tree();
        tree.capacity(0, "1024");
        // A folder in place of a file: root could read a file without permissions.
        std::fs::create_dir(tree.remove(path)).unwrap();
        let error = error(&tree);
        assert!(
            error.contains("cannot read") && error.contains(path),
            "{error}"
        );
    }
}
