// SPDX-License-Identifier: GPL-2.0-only
//! Every situation on small machines: compares the C with the model, and checks what must hold of
//! any decision. Varied are the waker's and the previous CPU, the affinity, the set of idle CPUs,
//! the features, and the kind of wakeup; in plain ones also the recently used CPU. With claims,
//! CPUs and cores may be claimed; with up to three CPUs online, claims may have expired, CPUs may
//! run a SCHED_IDLE task, and budgets may be 0. CPUs with odd numbers are at a low frequency. On
//! five machines of eight CPUs the idle set, affinity, previous CPU, two wakers' CPUs and sync
//! vary. The random tests vary the rest: loads, room, weights, bursts, flips, unequal CPUs.

use crate::check::check_invariants;
use crate::setup::{Case, MAINLINE, Machine, Runner, THRESHOLD};
use crate::topology::CLAIM_TTL;
use scx_roost::placement::topology::Topology;
use scx_roost::placement::{CpuNow, Features, LlcNow};
use scx_roost::policy::features::{PRESETS, feature};
use std::sync::LazyLock;

/// Feature sets with claims are tried on machines with claimed CPUs, the others on machines
/// without: a set without the feature ignores claims.
static WITHOUT_CLAIMS: LazyLock<Vec<Features>> = LazyLock::new(|| sets_where(|f| !f.claim));
static WITH_CLAIMS: LazyLock<Vec<Features>> = LazyLock::new(|| sets_where(|f| f.claim));

fn sets_where(keep: fn(&Features) -> bool) -> Vec<Features> {
    feature_sets().into_iter().filter(keep).collect()
}

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

/// Each switch alone. Each switch, and each pair, on top of mainline. A sub-switch with its parent.
/// The placement features of each preset.
fn feature_sets() -> Vec<Features> {
    let whole = |name: &str| {
        let parent = feature(name).expect(name).parent;
        let mut features = Features::NONE;
        for name in [name, parent] {
            features.switch(name).into_iter().for_each(|on| *on = true);
        }
        features
    };
    let mut sets = vec![Features::NONE];
    for (i, a) in Features::NAMES.iter().enumerate() {
        sets.push(whole(a));
        sets.extend(
            Features::NAMES[..=i]
                .iter()
                .map(|b| whole(a).or(whole(b)).or(MAINLINE)),
        );
    }
    for preset in PRESETS {
        let mut set = Features::NONE;
        for name in Features::NAMES {
            let on = preset.features.has(feature(name).expect(name).bit);
            *set.switch(name).expect(name) = on;
        }
        sets.push(set);
    }
    sets.sort_by_key(Features::bits);
    sets.dedup();
    sets
}

fn mask(bits: usize, len: usize) -> Vec<bool> {
    (0..len).map(|c| bits >> c & 1 != 0).collect()
}

/// Machines of up to three online CPUs, and some of four with one CPU offline.
fn three_online() -> Vec<Topology> {
    let without = |off: usize, mut topology: Topology| {
        topology.cpus[off].online = false;
        Topology::new(topology.cpus)
    };
    let mut machines = small_machines();
    machines.retain(|t| t.nr_cpu_ids() < 4);
    machines.extend([
        without(3, Topology::regular(1, 4, 1, 1, false)),
        without(0, Topology::regular(1, 2, 2, 1, false)),
        without(0, Topology::regular(2, 1, 2, 2, true)),
        without(3, Topology::regular(4, 1, 1, 2, false)),
    ]);
    machines
}

/// A burst long enough for smt_spread to move the task, ns.
const LONG: u64 = 500_000;

/// The kinds of wakeup: a case has one of them.
const KINDS: [fn(&mut Case); 7] = [
    |_| (),
    |case| case.wakee_sched_idle = true,
    |case| {
        case.sync = true;
        case.wakee_burst = LONG;
    },
    |case| case.fork = true,
    |case| {
        case.waker_pcpu_kthread = true;
        case.wakee_burst = LONG;
    },
    // An interrupt on the idle task, or a waker of another scheduling class.
    |case| case.waker_ours = false,
    partners,
];

/// CPUs with odd numbers have a low frequency.
fn frequency(cpu: usize) -> u32 {
    THRESHOLD + (cpu as u32 + 1) % 2
}

/// Sets each CPU to one of `base` (3 to 6) states; a digit of `states` each. In order: busy, idle,
/// claimed, core claimed, then both claims so old that they have expired.
fn set_claims(machine: &mut Machine, base: usize, mut states: usize) {
    for cpu in machine.topology.online().collect::<Vec<_>>() {
        let mut now = if states.is_multiple_of(base) {
            machine.busy()
        } else {
            machine.idle(0)
        };
        match states % base {
            2 => now.claim_age = Some(CLAIM_TTL),
            3 => now.core_claim_age = Some(CLAIM_TTL),
            4 => now.claim_age = Some(CLAIM_TTL + 1),
            5 => now.core_claim_age = Some(CLAIM_TTL + 1),
            _ => (),
        }
        states /= base;
        now.khz = frequency(cpu);
        machine.set(cpu, now);
    }
}

type State = fn(&Machine) -> CpuNow;

const FULL_OR_IDLE: &[State] = &[Machine::busy, idle];
const ROOM_TOO: &[State] = &[Machine::busy, idle, room];
const ALL_STATES: &[State] = &[Machine::busy, idle, room, sched_idle];

fn idle(machine: &Machine) -> CpuNow {
    machine.idle(0)
}

/// Busy, with room for the task beside the one that runs there.
fn room(machine: &Machine) -> CpuNow {
    CpuNow {
        est: 0,
        ..machine.busy()
    }
}

fn sched_idle(machine: &Machine) -> CpuNow {
    CpuNow {
        sched_idle: true,
        ..machine.busy()
    }
}

/// The number of ways in which each CPU can have one of these states.
fn ways(machine: &Machine, of: &[State]) -> usize {
    of.len().pow(machine.topology.online().count() as u32)
}

/// Sets the CPUs' states to one of these ways.
fn set_states(machine: &mut Machine, of: &[State], mut way: usize) {
    for cpu in machine.topology.online().collect::<Vec<_>>() {
        let mut now = of[way % of.len()](machine);
        way /= of.len();
        now.khz = frequency(cpu);
        machine.set(cpu, now);
    }
}

/// The budget of sis_util is all or nothing, that of avg_idle_scan is `worth` CPUs.
fn set_budgets(machine: &mut Machine, full: bool, worth: usize) {
    for llc in 0..machine.llcs.len() {
        let budget = if full {
            machine.facts.llcs[llc].nr_cpus.into()
        } else {
            0
        };
        machine.set_llc(
            llc,
            LlcNow {
                budget,
                worth,
                ..machine.llcs[llc]
            },
        );
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

/// Sanitizers make a case several times as slow, and they look for other defects than a wrong
/// answer. So they run one case in about 30. The number must not divide the number of feature
/// sets, so that each set is tried.
fn one_in(sets: &[Features]) -> u64 {
    if !cfg!(feature = "sanitize") {
        return 1;
    }
    let sets = sets.len() as u64;
    let of = [29, 31, 37, 41]
        .into_iter()
        .find(|n| !sets.is_multiple_of(*n));
    of.expect("not all four divide the number of feature sets")
}

/// Tries every waker's CPU, previous CPU, affinity mask, kind of wakeup and feature set on the
/// machine as it is. The first `with_recent` kinds also try every recently used CPU.
fn every_wakeup(
    machine: &mut Machine,
    runner: &mut Runner,
    with_recent: usize,
    sets: &[Features],
) -> u64 {
    let n = machine.topology.nr_cpu_ids();
    let online: Vec<usize> = machine.topology.online().collect();
    let every = one_in(sets);
    let mut cases = 0;
    for at in 0..online.len() * n {
        for (kind, set) in KINDS.iter().enumerate() {
            let mut case = Case::new(n, online[at / n], at % n);
            set(&mut case);
            for bits in 1..1 << n {
                case.allowed = mask(bits, n);
                for recent in 0..=if kind < with_recent { n } else { 0 } {
                    case.recent = recent.checked_sub(1);
                    for &features in sets {
                        cases += 1;
                        if cases % every == 0 {
                            case.features = features;
                            compare(machine, runner, &case);
                        }
                    }
                }
            }
        }
    }
    cases
}

#[test]
fn four_cpus_every_input() {
    let mut cases = 0;
    let (fits, others): (Vec<Features>, Vec<Features>) =
        WITHOUT_CLAIMS.iter().partition(|f| f.util_fits);
    for topology in small_machines() {
        let mut machine = Machine::new(topology);
        let mut runner = Runner::new(&machine);
        set_budgets(&mut machine, true, 2);
        for (sets, states) in [(&others, FULL_OR_IDLE), (&fits, ROOM_TOO)] {
            for way in 0..ways(&machine, states) {
                set_states(&mut machine, states, way);
                cases += every_wakeup(&mut machine, &mut runner, 1, sets);
            }
        }
    }
    println!("{cases} cases");
}

/// All states of a CPU, an offline CPU and an empty scan budget. Each multiplies the cases, so at
/// most three CPUs are online.
#[test]
fn three_cpus_every_state() {
    let mut cases = 0;
    for topology in three_online() {
        let mut machine = Machine::new(topology);
        let mut runner = Runner::new(&machine);
        for budget in [true, false] {
            set_budgets(&mut machine, budget, 1);
            for way in 0..ways(&machine, ALL_STATES) {
                set_states(&mut machine, ALL_STATES, way);
                cases += every_wakeup(&mut machine, &mut runner, 2, &WITHOUT_CLAIMS);
            }
        }
    }
    println!("{cases} cases");
}

#[test]
fn four_cpus_claimed() {
    let mut cases = 0;
    for topology in small_machines() {
        let mut machine = Machine::new(topology);
        let mut runner = Runner::new(&machine);
        set_budgets(&mut machine, true, 1);
        let online = machine.topology.online().count() as u32;
        let base: usize = if online < 4 { 6 } else { 3 };
        for states in 0..base.pow(online) {
            set_claims(&mut machine, base, states);
            cases += every_wakeup(&mut machine, &mut runner, 1, &WITH_CLAIMS);
        }
    }
    println!("{cases} cases");
}

/// Waker and wakee keep waking each other and run in short bursts.
fn partners(case: &mut Case) {
    case.sync = true;
    case.wakee.last_wakee = crate::setup::WAKER;
    case.waker.last_wakee = crate::setup::WAKEE;
    case.wakee_burst = 20_000;
    case.waker_burst = 20_000;
}

/// Eight CPUs: every idle set, affinity mask and previous CPU, with and without sync. The machines
/// are symmetric, so two wakers are enough: the first CPU and one in the middle.
fn eight_cpus(topology: Topology) {
    let mut machine = Machine::new(topology);
    let mut runner = Runner::new(&machine);
    let features = Features {
        wide_idle: true,
        prev_core: true,
        core_first: true,
        sync_core: true,
        ..MAINLINE
    };
    let mut case = Case::new(8, 0, 0);
    for idle in 0..256 {
        set_states(&mut machine, FULL_OR_IDLE, idle);
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
