// SPDX-License-Identifier: GPL-2.0-only
//! The cost of a simulator run at 64, 256 and 1,024 CPUs: events per second of CPU time of one
//! thread, and the most memory that the process has held until then.
//!
//! cargo bench -p roost-sim

use roost_sim::load::Load;
use roost_sim::{Model, Params, Policy, Scenario};
use scx_roost::machine::{Cpu, Llc, LlcKind, Machine, Node};
use std::fs;

struct Case {
    llcs: u16,
    tasks: u64,
    /// Simulated time, ms.
    ms: u64,
}

const CASES: [Case; 3] = [
    Case {
        llcs: 8,
        tasks: 128,
        ms: 4_000,
    },
    Case {
        llcs: 32,
        tasks: 512,
        ms: 1_000,
    },
    Case {
        llcs: 128,
        tasks: 10_000,
        ms: 250,
    },
];
/// Cores of an LLC, and threads of a core.
const CORES: u16 = 4;
const THREADS: u16 = 2;

fn machine(nr_llcs: u16) -> Machine {
    let cores = nr_llcs * CORES;
    let cpu = |id: u16| {
        let (core, thread) = (id % cores, id / cores);
        Cpu {
            id,
            core,
            llc: core / CORES,
            node: 0,
            pos: core % CORES + thread * CORES,
            capacity: 1024,
            siblings: vec![(1 - thread) * cores + core],
        }
    };
    let cpus: Vec<Cpu> = (0..cores * THREADS).map(cpu).collect();
    let llc = |llc: u16| Llc {
        kind: LlcKind::L3,
        size_kb: Some(16_384),
        node: 0,
        cpus: cpus.iter().filter(|c| c.llc == llc).map(|c| c.id).collect(),
    };
    Machine {
        nr_cpu_ids: cores * THREADS,
        offline: Vec::new(),
        llcs: (0..nr_llcs).map(llc).collect(),
        nodes: vec![Node {
            id: 0,
            first_llc: 0,
            nr_llcs,
            distances: None,
        }],
        nr_cores: cores,
        nohz_full: Vec::new(),
        doubts: Vec::new(),
        cpus,
    }
}

/// A third of the tasks sleep, a third are clients, a third are servers. There is more work than
/// CPUs.
fn load(tasks: u64, ms: u64) -> Load {
    let third = tasks / 3;
    let text = format!(
        "duration {ms}ms\nsocket ask[{third}]\nsocket reply[{third}]\n\
         task sleeper x {}:\n    forever\n        run 200us exp\n        sleep 300us exp\n\
         task client x {third}:\n    forever\n        run 30us exp\n        send ask[me]\n        receive reply[me]\n\
         task server x {third}:\n    forever\n        receive ask[me]\n        run 20us exp\n        send reply[me]\n",
        tasks - 2 * third
    );
    Load::parse(&text, &Default::default()).expect("it is a load")
}

/// CPU time of this thread, ns. There is no other thread; other processes may share the host.
fn cpu_ns() -> u64 {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns = stat.split_whitespace().next().and_then(|n| n.parse().ok());
    ns.expect("the kernel has schedstat")
}

/// The most memory that the process has held, MB.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    let kb = line.and_then(|l| l.split_whitespace().nth(1));
    kb.and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn main() {
    println!("   CPUs   tasks    events CPU seconds  million events/s  most memory, MB");
    let policy = Policy::parse("roost").expect("it is a preset");
    for case in CASES {
        let model = Model {
            name: "bench".to_string(),
            machine: machine(case.llcs),
            params: Params::of("*"),
        };
        let scenario = Scenario {
            model: &model,
            load: load(case.tasks, case.ms),
            policy: &policy,
            seed: 1,
        };
        let began = cpu_ns();
        let measured = scenario.run().expect("it runs");
        let seconds = (cpu_ns() - began) as f64 / 1e9;
        println!(
            "{:>7} {:>7} {:>9} {seconds:>11.2} {:>17.2} {:>16}",
            model.machine.cpus.len(),
            case.tasks,
            measured.events,
            measured.events as f64 / seconds / 1e6,
            most_memory()
        );
    }
}
