// SPDX-License-Identifier: GPL-2.0-only
//! Trees as other programs copy them from /sys (hwloc-gather-topology and others): files that end
//! with a NUL, maps in place of lists, files that are missing.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};

/// All files of a tree.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a folder");
    let of = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    };
    entries.flat_map(|e| of(e.unwrap().path())).collect()
}

/// The same set of CPUs as words of 32 bits, the highest first.
fn map(list: &str) -> String {
    let mut words = [0u32; 5];
    for cpu in scx_roost::machine::parse_cpulist(list.trim()).unwrap() {
        words[4 - usize::from(cpu / 32)] |= 1 << (cpu % 32);
    }
    words.map(|w| format!("{w:08x}")).join(",")
}

#[test]
fn files_that_end_with_a_nul() {
    let tree = TWO_NODES.tree();
    tree.capacity(7, "512");
    let before = read(&tree);
    for file in files(tree.root()) {
        let text = fs::read_to_string(&file).unwrap() + "\0";
        fs::write(file, text).unwrap();
    }
    assert_eq!(read(&tree), before);
}

#[test]
fn maps_in_place_of_lists() {
    for (list, map_name) in [
        ("shared_cpu_list", "shared_cpu_map"),
        ("core_cpus_list", "core_cpus"),
        ("core_cpus_list", "thread_siblings"),
        ("cpulist", "cpumap"),
    ] {
        let shape = Shape {
            nodes: 2,
            ..THREADRIPPER_3970X
        };
        let tree = shape.tree();
        let before = read(&tree);
        let mut replaced = 0;
        for file in files(tree.root()).iter().filter(|f| f.ends_with(list)) {
            let text = fs::read_to_string(file).unwrap();
            fs::remove_file(file).unwrap();
            fs::write(file.with_file_name(map_name), map(&text)).unwrap();
            replaced += 1;
        }
        assert!(replaced > 0);
        assert_eq!(read(&tree), before, "{map_name}");
    }
}

#[test]
fn without_the_lists_of_cpus_and_nodes_the_folders_count() {
    let tree = TWO_NODES.tree();
    tree.node(2, &[]);
    let before = read(&tree);
    for list in ["cpu/possible", "cpu/online", "node/online"] {
        tree.remove(&format!("devices/system/{list}"));
    }
    tree.write("devices/system/cpu/cpufreq/boost", "1");
    assert_eq!(read(&tree), before);
    tree.write("devices/system/cpu/cpu5/online", "0");
    let machine = read(&tree);
    assert_eq!(machine.online(), [0, 1, 2, 3, 4, 6, 7]);
    assert_eq!(machine.offline, [5]);
}

#[test]
fn nodes_of_memory_alone_have_no_lists() {
    let tree = TWO_NODES.tree();
    let before = read(&tree);
    tree.node(7, &[]);
    tree.remove("devices/system/node/node7/cpulist");
    tree.write("devices/system/node/node7/distance", "17 28 10");
    assert_eq!(read(&tree), before);
}

/// Also where the map is there, and empty.
#[test]
fn a_cache_that_no_list_describes_is_no_llc() {
    let tree = SMALL_SMT.tree();
    for cpu in 0..8 {
        let index = format!("devices/system/cpu/cpu{cpu}/cache/index3");
        tree.remove(&format!("{index}/shared_cpu_list"));
        if cpu > 3 {
            tree.write(&format!("{index}/shared_cpu_map"), "00000000,00000000");
        }
    }
    let kinds: Vec<_> = read(&tree).llcs.iter().map(|l| l.kind).collect();
    assert_eq!(kinds, [LlcKind::L2; 4]);
}

#[test]
fn errors_print_no_control_characters() {
    let online = "devices/system/cpu/online";
    for (path, text) in [
        (online, "0-7\0\x1b[31m,x"),
        (online, "7-0\0,"),
        ("devices/system/cpu/cpu0/cpu_capacity", "1\x002"),
    ] {
        let tree = SMALL_SMT.tree();
        tree.write(path, text);
        let error = error(&tree);
        assert!(error.contains(path), "{error}");
        assert!(!error.contains(char::is_control), "{error:?}");
    }
}

#[test]
fn a_map_that_is_none_is_refused() {
    let tree = SMALL_SMT.tree();
    let index = "devices/system/cpu/cpu0/cache/index3";
    tree.remove(&format!("{index}/shared_cpu_list"));
    tree.write(&format!("{index}/shared_cpu_map"), "0-3");
    let error = error(&tree);
    assert!(error.contains("expected a map of CPUs such as"), "{error}");
}

/// The kernel writes no leading zeros; cpu00 would be CPU 0 a second time.
#[test]
fn a_cpu_with_two_names_is_one() {
    let tree = TWO_NODES.tree();
    let before = read(&tree);
    for (folder, name) in [
        ("devices/system/cpu", "cpu00"),
        ("devices/system/node", "node00"),
    ] {
        fs::create_dir_all(tree.root().join(folder).join(name)).unwrap();
    }
    assert_eq!(read(&tree), before);
}
