// SPDX-License-Identifier: GPL-2.0-only
//! Typical machines: what is found on each, and what the model makes of it, compared line by line
//! with trees.txt.

use crate::support::{Numbering, Shape, Tree};
use scx_roost::doctor::outlook::Outlook;
use scx_roost::machine::Machine;
use scx_roost::machine::host::Host;
use scx_roost::machine::picture::summary;
use std::collections::BTreeMap;
use std::ops::Range;
use std::process::{Command, Output};

const EXPECTED: &str = include_str!("trees.txt");

const fn shape(nodes: usize, llcs: usize, cores: usize, threads: usize, halves: bool) -> Shape {
    Shape {
        nodes,
        llcs,
        cores,
        threads,
        numbering: match halves {
            true => Numbering::Halves,
            false => Numbering::Adjacent,
        },
    }
}

/// The driver, the governor, lowest, base (or "") and highest frequency in kHz.
fn freqs(tree: &Tree, cpus: Range<usize>, [driver, governor, min, base, max]: [&str; 5]) {
    for cpu in cpus {
        let mut files = vec![
            ("scaling_driver", driver),
            ("scaling_governor", governor),
            ("cpuinfo_min_freq", min),
            ("cpuinfo_max_freq", max),
            ("scaling_max_freq", max),
            ("scaling_cur_freq", min),
        ];
        if !base.is_empty() {
            files.push(("base_frequency", base));
        }
        tree.cpufreq(&[cpu], &files);
    }
}

fn cpufreq_file(tree: &Tree, cpus: impl IntoIterator<Item = usize>, name: &str, text: &str) {
    for cpu in cpus {
        tree.write(&format!("devices/system/cpu/cpu{cpu}/cpufreq/{name}"), text);
    }
}

fn l3_size(tree: &Tree, cpus: Range<usize>, index: usize, size: &str) {
    for cpu in cpus {
        let dir = format!("devices/system/cpu/cpu{cpu}/cache/index{index}");
        tree.write(&format!("{dir}/size"), size);
    }
}

/// The names of idle states, and their exit latencies in us.
fn idle_states(tree: &Tree, states: &[(&str, &str)]) {
    for (index, (name, latency)) in states.iter().enumerate() {
        let dir = format!("devices/system/cpu/cpu0/cpuidle/state{index}");
        tree.write(&format!("{dir}/name"), name);
        tree.write(&format!("{dir}/latency"), latency);
    }
}

fn threadripper_3970x() -> Tree {
    let tree = shape(1, 8, 4, 2, true).tree();
    let rows = ["acpi-cpufreq", "schedutil", "2200000", "", "3700000"];
    freqs(&tree, 0..64, rows);
    idle_states(&tree, &[("POLL", "0"), ("C1", "1"), ("C2", "400")]);
    tree
}

fn ryzen_preferred() -> Tree {
    let tree = shape(1, 2, 8, 2, true).tree();
    let rows = ["amd-pstate-epp", "powersave", "400000", "", "5700000"];
    freqs(&tree, 0..32, rows);
    l3_size(&tree, 0..32, 3, "32768K");
    cpufreq_file(
        &tree,
        0..32,
        "energy_performance_preference",
        "balance_performance",
    );
    for core in 0..16 {
        let rank = (166 + 5 * ((core * 7) % 16)).to_string();
        let threads = [core, core + 16];
        cpufreq_file(&tree, threads, "amd_pstate_prefcore_ranking", &rank);
    }
    // The user has lowered the limit.
    cpufreq_file(&tree, 0..32, "scaling_max_freq", "4275000");
    tree
}

fn epyc_9654() -> Tree {
    let tree = shape(2, 12, 8, 2, true).tree();
    let rows = ["amd-pstate-epp", "performance", "400000", "", "3707000"];
    freqs(&tree, 0..384, rows);
    l3_size(&tree, 0..384, 1, "32768K");
    // All CPUs have the same ranking.
    cpufreq_file(&tree, 0..384, "amd_pstate_prefcore_ranking", "166");
    tree
}

fn e7_8870_v4() -> Tree {
    let tree = shape(4, 1, 20, 2, true).tree();
    let rows = ["intel_pstate", "powersave", "1200000", "2100000", "3000000"];
    freqs(&tree, 0..160, rows);
    l3_size(&tree, 0..160, 1, "51200K");
    idle_states(
        &tree,
        &[("POLL", "0"), ("C1", "2"), ("C1E", "10"), ("C6", "133")],
    );
    tree
}

fn ryzen_3400g() -> Tree {
    let tree = shape(1, 1, 4, 2, false).tree();
    let rows = ["acpi-cpufreq", "schedutil", "1400000", "", "3700000"];
    freqs(&tree, 0..8, rows);
    l3_size(&tree, 0..8, 3, "4096K");
    tree
}

/// Four P cores of two threads, eight E cores in two clusters, one L3.
fn hybrid() -> Tree {
    let all: Vec<usize> = (0..16).collect();
    let tree = Tree::new(&all, &all);
    tree.node(0, &all);
    for cpu in 0..16 {
        let threads: Vec<usize> = match cpu {
            0..8 => vec![cpu & !1, cpu | 1],
            _ => vec![cpu],
        };
        tree.core(cpu, &threads);
        tree.cache(cpu, 3, "Unified", 3, &all, "18432K");
        let first = (cpu / 4) * 4;
        let shared = if cpu < 8 {
            threads.clone()
        } else {
            (first..first + 4).collect()
        };
        tree.cache(cpu, 0, "Data", 1, &threads, "48K");
        tree.cache(cpu, 1, "Instruction", 1, &threads, "32K");
        tree.cache(cpu, 2, "Unified", 2, &shared, "2048K");
        tree.capacity(cpu, if cpu < 8 { "1024" } else { "623" });
    }
    let rows = ["intel_pstate", "powersave", "400000", "2100000", "4700000"];
    freqs(&tree, 0..8, rows);
    let rows = ["intel_pstate", "powersave", "400000", "1500000", "3400000"];
    freqs(&tree, 8..16, rows);
    cpufreq_file(
        &tree,
        0..16,
        "energy_performance_preference",
        "balance_power",
    );
    idle_states(
        &tree,
        &[
            ("POLL", "0"),
            ("C1_ACPI", "1"),
            ("C2_ACPI", "127"),
            ("C3_ACPI", "1048"),
        ],
    );
    tree
}

/// Two clusters of four CPUs, each with one clock and one L2.
fn big_little() -> Tree {
    let all: Vec<usize> = (0..8).collect();
    let tree = Tree::new(&all, &all);
    for (first, capacity, min, max) in [
        (0, "446", "500000", "1800000"),
        (4, "1024", "600000", "2400000"),
    ] {
        let cluster: Vec<usize> = (first..first + 4).collect();
        for &cpu in &cluster {
            tree.core(cpu, &[cpu]);
            tree.cache(cpu, 0, "Data", 1, &[cpu], "32K");
            tree.cache(cpu, 1, "Instruction", 1, &[cpu], "32K");
            tree.cache(cpu, 2, "Unified", 2, &cluster, "1024K");
            tree.capacity(cpu, capacity);
        }
        let files = [
            ("scaling_driver", "cpufreq-dt"),
            ("scaling_governor", "schedutil"),
            ("cpuinfo_min_freq", min),
            ("cpuinfo_max_freq", max),
            ("scaling_max_freq", max),
            ("cpuinfo_avg_freq", min),
        ];
        tree.cpufreq(&cluster, &files);
    }
    idle_states(&tree, &[("WFI", "1"), ("cpu-sleep", "350")]);
    tree
}

fn smt_off() -> Tree {
    let tree = shape(1, 2, 2, 2, false).tree();
    let mut online: Vec<usize> = (0..8).collect();
    for cpu in [1, 3, 5, 7] {
        online.retain(|c| *c != cpu);
        tree.offline(cpu, &online);
        tree.core(cpu - 1, &[cpu - 1]);
    }
    tree
}

fn offline_holes() -> Tree {
    let tree = shape(1, 2, 8, 1, false).tree();
    freqs(
        &tree,
        0..16,
        ["acpi-cpufreq", "ondemand", "800000", "", "2800000"],
    );
    let mut online: Vec<usize> = (0..16).collect();
    for cpu in [3, 4, 10, 11, 13] {
        online.retain(|c| *c != cpu);
        tree.offline(cpu, &online);
        tree.remove(&format!("devices/system/cpu/cpu{cpu}/cpufreq"));
    }
    tree
}

fn sparse_ids() -> Tree {
    let ids = [0, 8, 16, 24, 512, 520, 1016, 1023];
    let tree = Tree::new(&ids, &ids);
    for llc in ids.chunks(4) {
        tree.l3(llc);
    }
    tree
}

fn no_caches() -> Tree {
    let tree = shape(2, 1, 4, 1, false).tree();
    for cpu in 0..8 {
        tree.remove(&format!("devices/system/cpu/cpu{cpu}/cache"));
    }
    tree
}

fn largest() -> Tree {
    let tree = shape(8, 8, 8, 2, true).tree();
    let rows = ["cppc_cpufreq", "performance", "1000000", "", "3000000"];
    freqs(&tree, 0..1024, rows);
    tree
}

fn garbage() -> Tree {
    let tree = shape(1, 1, 2, 1, false).tree();
    let rows = ["acpi-cpufreq", "schedutil", "slow", "", "3000000"];
    freqs(&tree, 0..2, rows);
    tree
}

type Make = fn() -> Tree;

const MACHINES: &[(&str, Make)] = &[
    ("Threadripper 3970X", threadripper_3970x),
    (
        "Ryzen 9 with preferred cores, held to three quarters",
        ryzen_preferred,
    ),
    ("2 x EPYC 9654", epyc_9654),
    ("4 x E7-8870 v4", e7_8870_v4),
    ("Ryzen 5 3400G", ryzen_3400g),
    ("hybrid of P and E cores", hybrid),
    ("big.LITTLE", big_little),
    ("one CPU", || Tree::new(&[0], &[0])),
    ("SMT off", smt_off),
    ("offline holes", offline_holes),
    ("sparse ids", sparse_ids),
    ("no cache folder", no_caches),
    ("1,024 CPUs", largest),
    ("garbage", garbage),
];

/// The expected lines of each machine.
fn expected() -> BTreeMap<&'static str, &'static str> {
    let blocks = EXPECTED.split("== ").skip(1);
    let block = blocks.map(|b| b.split_once('\n').expect("a name and lines"));
    block.collect()
}

/// The folder's name differs in each run.
fn without_root(text: &str, tree: &Tree) -> String {
    text.replace(tree.root().to_str().unwrap(), "ROOT")
}

fn described(tree: &Tree) -> String {
    let machine = Machine::read(tree.root()).unwrap();
    let model = Outlook::read(&Host::in_folder(tree.root()), &machine);
    without_root(&(summary(&machine) + "\n" + &model.text()), tree)
}

fn run(command: &str, tree: &Tree) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args([command, "--sysfs"])
        .arg(tree.root())
        .output()
        .expect("the binary runs")
}

#[test]
fn each_machine_is_described_correctly() {
    let expected = expected();
    let mut wrong = String::new();
    for (name, make) in MACHINES {
        let told = described(&make());
        // Where lines break depends on the length of the folder's name.
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_string)
                .collect::<Vec<_>>()
        };
        if expected.get(name).map(|e| words(e)) != Some(words(&told)) {
            wrong += &format!("== {name}\n{told}\n");
        }
        assert!(told.lines().all(|l| l.len() <= 100), "{told}");
    }
    assert!(
        wrong.is_empty(),
        "tests/crate/trees.txt says something else:\n{wrong}"
    );
}

#[test]
fn the_commands_show_it_of_a_folder() {
    for (name, make) in MACHINES {
        let tree = make();
        let topology = run("topology", &tree);
        assert!(topology.status.success(), "{name}");
        let text = String::from_utf8(topology.stdout).unwrap();
        let model = described(&tree);
        let model = model.split_once('\n').unwrap().1;
        assert!(
            without_root(&text, &tree).ends_with(model),
            "{name}: {text}"
        );
        // Whether the scheduler can run depends on this host's kernel.
        let text = String::from_utf8(run("doctor", &tree).stdout).unwrap();
        for check in ["machine", "frequencies", "limits", "preferred"] {
            let line = text.lines().find(|l| l.contains(&format!("  {check} ")));
            assert!(line.is_some_and(|l| l.starts_with("ok ")), "{name}: {text}");
        }
        assert_eq!(text.contains("WARN  files "), *name == "garbage", "{name}");
    }
}

#[test]
fn json_has_the_machine_and_the_model() {
    let tree = ryzen_preferred();
    let output = Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(["topology", "--json", "--sysfs"])
        .arg(tree.root())
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["nr_cpu_ids"], 32);
    let model = &json["model"];
    assert_eq!(model["sharing"]["domains"], 32);
    assert_eq!(model["preferred"].as_array().unwrap().len(), 16);
    assert_eq!(model["ranges"][0]["max_khz"], 5_700_000);
}
