// SPDX-License-Identifier: GPL-2.0-only
//! Every situation on small machines: the C against the model, and what must hold of any decision.

use crate::check::check_invariants;
use crate::model::Features;
use crate::setup::{Case, MAINLINE, Machine, Runner};
use crate::topology::Topology;

/// Every way in which up to four CPUs can share cores and caches, up to relabelling, and two nodes.
fn small_machines() -> Vec<Topology> {
    vec![
        Topology::regular(1, 1, 1, 1, false),
        Topology::regular(1, 2, 1, 1, false),
        Topology::regular(1, 1, 2, 1, false),
        Topology::regular(2, 1, 1, 2, false),
        Topology::regular(2, 1, 1, 1, false),
        Topology::regular(1, 3, 1, 1, false),
        Topology::regular(1, 4, 1, 1, false),
        Topology::regular(1, 2, 2, 1, false),
        Topology::regular(1, 2, 2, 1, true),
        Topology::regular(1, 1, 4, 1, false),
        Topology::regular(2, 2, 1, 2, false),
        Topology::regular(2, 2, 1, 1, false),
        Topology::regular(2, 1, 2, 2, true),
        Topology::regular(2, 1, 2, 1, false),
        Topology::regular(4, 1, 1, 2, false),
        Topology::regular(4, 1, 1, 1, false),
    ]
}

fn all_features() -> impl Iterator<Item = Features> {
    (0..1 << Features::NAMES.len()).map(Features::of_mask)
}

fn mask(bits: usize, len: usize) -> Vec<bool> {
    (0..len).map(|c| bits >> c & 1 != 0).collect()
}

fn set_idle(machine: &mut Machine, bits: usize) {
    for cpu in 0..machine.topology.len() {
        let now = if bits >> cpu & 1 != 0 {
            machine.idle(0)
        } else {
            machine.busy()
        };
        machine.set(cpu, now);
    }
}

fn compare(machine: &mut Machine, runner: &mut Runner, case: &Case) {
    let want = runner.model(machine, case);
    let got = runner.native(machine, case);
    assert_eq!(
        got, want,
        "left the C, right the model\n{case:?}\n{:?}\n{:?}",
        machine.cpus, machine.topology
    );
    check_invariants(machine, case, &got);
}

#[test]
fn four_cpus_every_input() {
    let mut cases = 0u64;
    for topology in small_machines() {
        let n = topology.len();
        let mut machine = Machine::new(topology);
        let mut runner = Runner::new(&machine);
        for idle in 0..1 << n {
            set_idle(&mut machine, idle);
            for bits in 1..1 << n {
                for at in 0..n * n {
                    for features in all_features() {
                        for kind in 0..5 {
                            let mut case = Case::new(n, at / n, at % n);
                            case.allowed = mask(bits, n);
                            case.features = features;
                            case.sync = kind == 1 || kind == 4;
                            case.fork = kind == 2;
                            case.waker_pcpu_kthread = kind == 3;
                            if kind == 4 {
                                partners(&mut case);
                            }
                            compare(&mut machine, &mut runner, &case);
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{cases} cases");
}

/// Waker and wakee keep waking each other, in short bursts.
fn partners(case: &mut Case) {
    case.wakee.last_wakee = crate::setup::WAKER;
    case.waker.last_wakee = crate::setup::WAKEE;
    case.wakee_burst = 20_000;
    case.waker_burst = 20_000;
}

/// Eight CPUs: idle set, affinity, previous CPU, waker and sync, all of them. By symmetry of the machines the waker
/// is one of two CPUs: the first, and one in the middle of the order.
fn eight_cpus(topology: Topology) {
    let mut machine = Machine::new(topology);
    let mut runner = Runner::new(&machine);
    let features = Features {
        wide_idle: true,
        prev_core: true,
        core_first: true,
        ..MAINLINE
    };
    let mut case = Case::new(8, 0, 0);
    for idle in 0..256 {
        set_idle(&mut machine, idle);
        for bits in 1..256 {
            case.allowed = mask(bits, 8);
            for at in 0..64 {
                case.prev = at / 8;
                case.this = [0, 5][at % 2];
                case.sync = at & 2 != 0;
                case.features = if at & 4 != 0 { features } else { MAINLINE };
                compare(&mut machine, &mut runner, &case);
            }
        }
    }
}

#[test]
fn eight_cpus_one_llc() {
    eight_cpus(Topology::regular(1, 8, 1, 1, false));
}

#[test]
fn eight_cpus_two_llcs() {
    eight_cpus(Topology::regular(2, 4, 1, 2, false));
}

#[test]
fn eight_cpus_smt() {
    eight_cpus(Topology::regular(1, 4, 2, 1, false));
}

#[test]
fn eight_cpus_smt_two_llcs() {
    eight_cpus(Topology::regular(2, 2, 2, 2, true));
}

#[test]
fn eight_cpus_two_nodes() {
    eight_cpus(Topology::regular(4, 1, 2, 2, false));
}
