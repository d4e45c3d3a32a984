// SPDX-License-Identifier: GPL-2.0-only
//! Random situations on random machines of up to 1,024 CPUs: the C against the model.
//!
//! ROOST_CASES sets the number of cases (default: ten million, fewer without optimisation),
//! ROOST_SEED the first seed. A failure prints ROOST_REPLAY=..., which runs that machine alone.

use crate::check::{check_invariants, unrelated_idle_changes_nothing};
use crate::rng::Rng;
use crate::setup::{By, Case, Machine, NOW, Runner, STALE_MS, THRESHOLD, WAKEE, WAKER};
use crate::topology::CLAIM_TTL;
use scx_roost::native::World;
use scx_roost::placement::topology::NICE0;
use scx_roost::placement::topology::{Cpu, Topology};
use scx_roost::placement::{CpuNow, Features, LlcNow, Waker};
use std::sync::atomic::{AtomicU64, Ordering};

const CASES_PER_MACHINE: u64 = 2000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |v| {
        v.parse()
            .unwrap_or_else(|_| panic!("{name}={v} is not a number"))
    })
}

fn cores(rng: &mut Rng) -> Vec<Cpu> {
    let nodes = *rng.pick(&[1, 1, 1, 2, 2, 4, 8]);
    let most = rng.scale(1024 / nodes);
    let mut cores = vec![];
    let mut llc = 0;
    for node in 0..nodes {
        let mut room = most;
        while room > 0 {
            let size = rng.scale(room);
            room -= size;
            let capacity = *rng.pick(&[1024, 1024, 900, 600, 400]);
            cores.extend((0..size).map(|_| Cpu {
                core: 0,
                llc,
                node,
                capacity,
                online: true,
            }));
            llc += 1;
            if rng.chance(30) {
                break;
            }
        }
    }
    cores
}

fn machine(rng: &mut Rng) -> Topology {
    let mut cores = cores(rng);
    if rng.chance(75) {
        cores.iter_mut().for_each(|c| c.capacity = 1024);
    }
    let threads = *rng.pick(&[1, 2, 2, 4]);
    cores.truncate(1024 / threads);
    let apart = rng.chance(50);
    let n = cores.len();
    let mut cpus: Vec<Cpu> = (0..n * threads)
        .map(|cpu| {
            let core = if apart { cpu % n } else { cpu / threads };
            Cpu {
                core,
                ..cores[core]
            }
        })
        .collect();
    if rng.chance(30) {
        punch_holes(&mut cpus, rng);
    }
    Topology::new(cpus)
}

/// Takes CPUs offline, but leaves one in each LLC.
fn punch_holes(cpus: &mut [Cpu], rng: &mut Rng) {
    let percent = rng.within(1, 60);
    for c in 0..cpus.len() {
        let llc = cpus[c].llc;
        let left = cpus.iter().filter(|o| o.llc == llc && o.online).count();
        if left > 1 && rng.chance(percent) {
            cpus[c].online = false;
        }
    }
}

fn load(rng: &mut Rng) -> u64 {
    match rng.below(4) {
        0 => 0,
        1 => NICE0.into(),
        _ => rng.scale(1_500_000_000) as u64,
    }
}

fn cpu_now(rng: &mut Rng, idle_percent: usize) -> CpuNow {
    let idle = rng.chance(idle_percent);
    CpuNow {
        idle,
        nr_running: if idle { 0 } else { rng.within(1, 3) as u32 },
        sched_idle: !idle && rng.chance(8),
        load: load(rng),
        util: rng.below(1025) as u64,
        idle_for: if rng.chance(40) {
            Some(*rng.pick(&IDLE_FOR))
        } else {
            None
        },
        claim_age: claim_age(rng, 25),
        core_claim_age: claim_age(rng, 10),
        est: rng.scale(3000) as u64,
        pressure: *rng.pick(&[0, 0, 0, 1, 100, 399]),
        rt: *rng.pick(&[0, 0, 1, 300, 2000]),
        khz: *rng.pick(&[0, 1, THRESHOLD, THRESHOLD, THRESHOLD + 1]),
        khz_age_ms: *rng.pick(&[0, 0, 0, 1000, STALE_MS + 1]),
    }
}

/// Idle times around the bounds of a vacant core: the migration cost, twice the task's sleep, ten
/// times the migration cost. ns
const IDLE_FOR: [u64; 8] = [
    0, 499_999, 500_000, 600_000, 1_999_999, 2_000_000, 4_999_999, 5_000_000,
];
const SLEPT: [u64; 6] = [0, 250_000, 300_000, 1_000_000, 2_500_000, NOW];

fn claim_age(rng: &mut Rng, percent: usize) -> Option<u64> {
    let ages = [1, CLAIM_TTL - 1, CLAIM_TTL, CLAIM_TTL + 1, NOW - 2];
    rng.chance(percent).then(|| *rng.pick(&ages))
}

fn renew_state(machine: &mut Machine, rng: &mut Rng) {
    let percent = *rng.pick(&[0, 2, 10, 50, 90, 100]);
    for cpu in 0..machine.topology.nr_cpu_ids() {
        let now = cpu_now(rng, percent);
        machine.set(cpu, now);
    }
    for llc in 0..machine.llcs.len() {
        let size = machine.topology.llc_cpus(llc).len();
        let budget = if rng.chance(50) {
            size
        } else {
            rng.within(0, size)
        };
        let load = load(rng);
        let util = rng.below(size * 1024 + 1) as u64;
        let age = *rng.pick(&[0, 0, 0, 20_000_000, 20_000_001]);
        let now = LlcNow {
            budget,
            load,
            util,
            nr_running: rng.within(0, 2 * size),
            age,
            worth: rng.within(0, size),
            // As BPF the clock runs, so a value that is valid for 0 ms more is left to the
            // exhaustive tests, which are native.
            worth_left_ms: *rng.pick(&[60_000, 60_000, 60_000, -1]),
        };
        machine.set_llc(llc, now);
    }
}

fn renew_mask(allowed: &mut [bool], topology: &Topology, rng: &mut Rng) {
    match rng.below(5) {
        0 | 1 => allowed.fill(true),
        2 => {
            let percent = rng.within(1, 99);
            allowed.iter_mut().for_each(|a| *a = rng.chance(percent));
        }
        3 => {
            let llc = rng.below(topology.nr_llcs());
            (0..allowed.len()).for_each(|c| allowed[c] = topology.cpus[c].llc == llc);
        }
        _ => {
            allowed.fill(false);
            for _ in 0..rng.within(0, 3) {
                allowed[rng.below(topology.nr_cpu_ids())] = true;
            }
        }
    }
}

fn waker(rng: &mut Rng, partner: u32) -> Waker {
    Waker {
        last_wakee: if rng.chance(40) {
            partner
        } else {
            rng.below(3) as u32
        },
        flips: *rng.pick(&[0, 1, 4, 8, 64, 512, 4096, 1 << 20]) + rng.below(3) as u32,
        decay_at: NOW - rng.pick(&[0, 999_999_999, 1_000_000_000, 1_000_000_001, NOW]),
    }
}

fn case(allowed: &[bool], topology: &Topology, online: &[usize], rng: &mut Rng) -> Case {
    let this = *rng.pick(online);
    let prev = match rng.below(4) {
        0 => this,
        1 => *rng.pick(topology.llc_cpus(topology.cpus[this].llc)),
        2 => rng.below(topology.nr_cpu_ids()),
        _ => *rng.pick(online),
    };
    let mut case = Case::new(topology.nr_cpu_ids(), this, prev);
    case.allowed.copy_from_slice(allowed);
    case.recent = rng.chance(60).then(|| {
        if rng.chance(70) {
            *rng.pick(topology.llc_cpus(topology.cpus[prev].llc.min(topology.nr_llcs() - 1)))
        } else {
            rng.below(topology.nr_cpu_ids())
        }
    });
    case.fork = rng.chance(15);
    case.sync = rng.chance(40);
    case.wakee_sched_idle = rng.chance(5);
    case.wakee_util = rng.below(1025) as u32;
    case.fits_margin = *rng.pick(&[0, 0, 20]);
    case.fits_rt = rng.chance(30);
    case.threshold = *rng.pick(&[0, THRESHOLD, THRESHOLD, THRESHOLD, 1]);
    case.wakee_weight = rng.scale(1 << 22) as u32;
    case.wakee = waker(rng, WAKER);
    case.wakee_slept = *rng.pick(&SLEPT);
    case.wakee_burst = *rng.pick(&[0, 1, 100_000, 100_001, 499_999, 500_000]);
    case.waker_ours = rng.chance(80);
    case.waker_weight = rng.scale(1 << 22) as u32;
    case.waker = waker(rng, WAKEE);
    case.waker_burst = *rng.pick(&[0, 1, 100_000, 100_001]);
    case.waker_pcpu_kthread = rng.chance(10);
    case.features = Features::each(|| rng.chance(35));
    case
}

/// One machine and its cases, all drawn from the seed.
fn episode(seed: u64, start: fn(&World) -> By, cases: u64) {
    let mut rng = Rng::new(seed);
    let mut machine = Machine::new(machine(&mut rng));
    let mut by = start(&machine.world);
    let mut runner = Runner::new(&machine);
    let online: Vec<usize> = machine.topology.online().collect();
    let mut allowed = vec![true; machine.topology.nr_cpu_ids()];
    renew_state(&mut machine, &mut rng);
    for i in 0..cases {
        if i % 100 == 0 {
            renew_state(&mut machine, &mut rng);
        }
        if i % 10 == 0 {
            renew_mask(&mut allowed, &machine.topology, &mut rng);
        }
        for _ in 0..4 {
            let now = cpu_now(&mut rng, 40);
            machine.set(rng.below(machine.topology.nr_cpu_ids()), now);
        }
        let case = case(&allowed, &machine.topology, &online, &mut rng);
        let want = runner.model(&mut machine, &case);
        let got = runner.run(&mut by, &mut machine, &case);
        assert!(
            got == want,
            "case {i}: the C says {got:?}\nthe model says {want:?}\n{case:?}"
        );
        check_invariants(&machine, &case, &got);
        if i % 20 == 0 {
            unrelated_idle_changes_nothing(&mut machine, &mut runner, &case, &got, &mut rng);
        }
    }
}

fn run(seed: u64) {
    let outcome = std::panic::catch_unwind(|| episode(seed, |_| By::Native, CASES_PER_MACHINE));
    if let Err(cause) = outcome {
        eprintln!("to replay: ROOST_REPLAY={seed} cargo test --release --test policy random_cases");
        std::panic::resume_unwind(cause);
    }
}

#[test]
fn random_cases() {
    if std::env::var_os("ROOST_REPLAY").is_some() {
        return run(number("ROOST_REPLAY", 0));
    }
    let default = if cfg!(debug_assertions) {
        200_000
    } else {
        10_000_000
    };
    let machines = number("ROOST_CASES", default).div_ceil(CASES_PER_MACHINE);
    let clock = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("ROOST_SEED", clock());
    println!("seed {seed}: {machines} machines of {CASES_PER_MACHINE} cases");
    let next = AtomicU64::new(0);
    std::thread::scope(|s| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            s.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= machines {
                        break;
                    }
                    run(Rng::new(seed ^ i).next());
                }
            });
        }
    });
}

/// Fewer than natively: each machine is a load of the object, each case a copy of the world and a
/// system call.
#[test]
#[ignore = "needs a kernel that lets it load BPF: tests/guest/policy-bpf.sh runs it"]
fn random_cases_as_bpf() {
    const MACHINES: u64 = 12;
    const CASES: u64 = 100;
    let clock = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("ROOST_SEED", clock());
    println!("seed {seed}: {MACHINES} machines of {CASES} cases");
    for i in 0..MACHINES {
        episode(Rng::new(seed ^ i).next(), By::bpf, CASES);
    }
}
