// SPDX-License-Identifier: GPL-2.0-only
//! Writes the /sys of a described machine into a folder.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub struct Tree {
    dir: TempDir,
}

/// How the threads of a core are numbered.
#[derive(Clone, Copy)]
pub enum Numbering {
    /// n, n+1
    Adjacent,
    /// n, n+cores
    Halves,
}

/// A regular machine. Each number is per unit of the one before: LLCs per node and so on.
#[derive(Clone, Copy)]
pub struct Shape {
    pub nodes: usize,
    pub llcs: usize,
    pub cores: usize,
    pub threads: usize,
    pub numbering: Numbering,
}

/// 8 CPUs: two caches of two cores.
pub const SMALL_SMT: Shape = Shape {
    nodes: 1,
    llcs: 2,
    cores: 2,
    threads: 2,
    numbering: Numbering::Adjacent,
};

impl Shape {
    fn nr_cores(&self) -> usize {
        self.nodes * self.llcs * self.cores
    }

    fn nr_cpus(&self) -> usize {
        self.nr_cores() * self.threads
    }

    fn threads_of(&self, core: usize) -> Vec<usize> {
        let cpu = |thread| match self.numbering {
            Numbering::Adjacent => core * self.threads + thread,
            Numbering::Halves => core + thread * self.nr_cores(),
        };
        (0..self.threads).map(cpu).collect()
    }

    fn threads_of_cores(&self, cores: std::ops::Range<usize>) -> Vec<usize> {
        let mut cpus: Vec<usize> = cores.flat_map(|c| self.threads_of(c)).collect();
        cpus.sort_unstable();
        cpus
    }

    pub fn tree(&self) -> Tree {
        let all: Vec<usize> = (0..self.nr_cpus()).collect();
        let tree = Tree::new(&all, &all);
        for node in 0..self.nodes {
            let per_node = self.llcs * self.cores;
            tree.node(
                node,
                &self.threads_of_cores(node * per_node..(node + 1) * per_node),
            );
        }
        for llc in 0..self.nodes * self.llcs {
            let cores = llc * self.cores..(llc + 1) * self.cores;
            let shared = self.threads_of_cores(cores.clone());
            for core in cores {
                self.write_core(&tree, core, &shared);
            }
        }
        tree
    }

    fn write_core(&self, tree: &Tree, core: usize, shared: &[usize]) {
        let threads = self.threads_of(core);
        for &cpu in &threads {
            tree.core(cpu, &threads);
            // Large machines have no files for L1: they would be thousands, and add nothing.
            let first = if self.nr_cpus() > 64 { 0 } else { 2 };
            if first > 0 {
                tree.cache(cpu, 0, "Data", 1, &threads, "32K");
                tree.cache(cpu, 1, "Instruction", 1, &threads, "32K");
            }
            tree.cache(cpu, first, "Unified", 2, &threads, "512K");
            tree.cache(cpu, first + 1, "Unified", 3, shared, "16384K");
        }
    }
}

impl Tree {
    pub fn new(possible: &[usize], online: &[usize]) -> Tree {
        let tree = Tree {
            dir: tempfile::tempdir().expect("a temporary folder"),
        };
        tree.write("devices/system/cpu/possible", &list(possible));
        tree.online(online);
        tree
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn online(&self, cpus: &[usize]) {
        self.write("devices/system/cpu/online", &list(cpus));
    }

    pub fn core(&self, cpu: usize, threads: &[usize]) {
        self.write(
            &format!("devices/system/cpu/cpu{cpu}/topology/core_cpus_list"),
            &list(threads),
        );
    }

    pub fn cache(
        &self,
        cpu: usize,
        index: usize,
        kind: &str,
        level: usize,
        shared: &[usize],
        size: &str,
    ) {
        let dir = format!("devices/system/cpu/cpu{cpu}/cache/index{index}");
        self.write(&format!("{dir}/type"), kind);
        self.write(&format!("{dir}/level"), &level.to_string());
        self.write(&format!("{dir}/shared_cpu_list"), &list(shared));
        self.write(&format!("{dir}/size"), size);
    }

    pub fn l3(&self, cpus: &[usize]) {
        for &cpu in cpus {
            self.cache(cpu, 3, "Unified", 3, cpus, "16384K");
            self.cache(cpu, 0, "Data", 1, &[cpu], "32K");
            self.cache(cpu, 1, "Instruction", 1, &[cpu], "32K");
            self.cache(cpu, 2, "Unified", 2, &[cpu], "512K");
        }
    }

    pub fn capacity(&self, cpu: usize, text: &str) {
        self.write(&format!("devices/system/cpu/cpu{cpu}/cpu_capacity"), text);
    }

    pub fn node(&self, node: usize, cpus: &[usize]) {
        self.write(
            &format!("devices/system/node/node{node}/cpulist"),
            &list(cpus),
        );
        let dir = self.root().join("devices/system/node");
        let nodes: Vec<usize> = (0..64)
            .filter(|n| dir.join(format!("node{n}")).is_dir())
            .collect();
        self.write("devices/system/node/online", &list(&nodes));
    }

    /// The link of a CPU to its node, which may be offline.
    pub fn link_to_node(&self, cpu: usize, node: usize) {
        let dir = self.root().join(format!("devices/system/cpu/cpu{cpu}"));
        fs::create_dir_all(&dir).expect("a folder");
        let link = dir.join(format!("node{node}"));
        std::os::unix::fs::symlink(format!("../../node/node{node}"), link).expect("a link");
    }

    /// Files of cpufreq, for CPUs that share a clock.
    pub fn cpufreq(&self, related: &[usize], files: &[(&str, &str)]) {
        let list: Vec<String> = related.iter().map(usize::to_string).collect();
        for &cpu in related {
            let write = |name: &str, text: &str| {
                let folder = format!("devices/system/cpu/cpu{cpu}/cpufreq");
                self.write(&format!("{folder}/{name}"), text);
            };
            write("related_cpus", &list.join(" "));
            files.iter().for_each(|(name, text)| write(name, text));
        }
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().expect("a file in a folder")).expect("a folder");
        fs::write(path, format!("{text}\n")).expect("a file");
    }

    pub fn remove(&self, path: &str) -> PathBuf {
        let path = self.root().join(path);
        let gone = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        gone.expect("something to remove");
        path
    }

    /// A CPU goes offline as in the kernel: its folders vanish, and lists no longer name it.
    pub fn offline(&self, cpu: usize, remaining: &[usize]) {
        self.remove(&format!("devices/system/cpu/cpu{cpu}/topology"));
        self.remove(&format!("devices/system/cpu/cpu{cpu}/cache"));
        self.online(remaining);
    }
}

/// A list of CPUs as the kernel prints it.
pub fn list(cpus: &[usize]) -> String {
    let ranges = cpus.chunk_by(|a, b| a + 1 == *b).map(|r| match r {
        [one] => one.to_string(),
        _ => format!("{}-{}", r[0], r[r.len() - 1]),
    });
    ranges.collect::<Vec<_>>().join(",")
}
