// SPDX-License-Identifier: GPL-2.0-only
//! The cost of one placement decision, run natively and as BPF: ns per wakeup at 8, 64 and 1,024
//! CPUs. All CPUs are idle, or half of them, or the last one, or none. The same C runs in the
//! scheduler, where peeks at other CPUs' run queues cost more.
//!
//! cargo bench --bench placement [-- --samples N] [--machine NAME] [--scene NAME] [--native]
//!
//! BPF needs root, and a kernel that lets it load BPF, but no sched_ext. `--native` leaves it out,
//! `--machine` and `--scene` all but one, for example under cachegrind.

#[path = "../tests/policy/jit.rs"]
mod jit;
#[path = "../tests/policy/rng.rs"]
#[allow(dead_code)]
mod rng;
#[path = "../tests/policy/topology.rs"]
#[allow(dead_code)]
mod topology;

use rng::Rng;
use scx_roost::native::sys::{FEATURE_prev_idle, FEATURE_sis_util, FEATURE_wide_idle};
use scx_roost::native::{Task, Wakeup, World};
use scx_roost::placement::topology::Topology;
use std::time::Instant;
use topology::Tables;

const SAMPLES: usize = 31;
const DECISIONS: usize = 20_000;
const MAINLINE: u32 = FEATURE_prev_idle | FEATURE_sis_util;

struct Scene {
    name: &'static str,
    /// Whether a CPU is idle; the second argument is the number of CPUs.
    idle: fn(usize, usize) -> bool,
    /// Another class has just taken the idle CPUs: they are in the set, but their run queues are
    /// busy.
    taken: bool,
    features: u32,
    restricted: bool,
}

const SCENES: [Scene; 7] = [
    Scene {
        name: "all idle",
        idle: |_, _| true,
        taken: false,
        features: MAINLINE,
        restricted: false,
    },
    Scene {
        name: "half idle",
        idle: |cpu, _| cpu % 2 == 0,
        taken: false,
        features: MAINLINE,
        restricted: false,
    },
    Scene {
        name: "half idle, restricted task",
        idle: |cpu, _| cpu % 2 == 0,
        taken: false,
        features: MAINLINE,
        restricted: true,
    },
    Scene {
        name: "all busy",
        idle: |_, _| false,
        taken: false,
        features: MAINLINE,
        restricted: false,
    },
    Scene {
        name: "all taken",
        idle: |_, _| true,
        taken: true,
        features: MAINLINE,
        restricted: false,
    },
    Scene {
        name: "all busy, wide_idle",
        idle: |_, _| false,
        taken: false,
        features: MAINLINE | FEATURE_wide_idle,
        restricted: false,
    },
    Scene {
        name: "last CPU idle, wide_idle",
        idle: |cpu, n| cpu == n - 1,
        taken: false,
        features: MAINLINE | FEATURE_wide_idle,
        restricted: false,
    },
];

/// Wakeups between random CPUs, drawn before the clock runs.
fn pairs(n: usize) -> Vec<(usize, usize)> {
    let mut rng = Rng::new(n as u64);
    (0..1024).map(|_| (rng.below(n), rng.below(n))).collect()
}

fn prepare(topology: &Topology, scene: &Scene) -> (World, Task) {
    let mut world = topology.world();
    let n = topology.nr_cpu_ids();
    for cpu in 0..n {
        if (scene.idle)(cpu, n) {
            world.set_idle(cpu);
            world.view_mut(cpu).idle = (!scene.taken).into();
            world.view_mut(cpu).nr_running = scene.taken.into();
        } else {
            world.set_busy(cpu);
        }
    }
    let mut task = Task::new(1, &world);
    if scene.restricted {
        // Every third CPU is forbidden.
        let mut mask = vec![0u64; n.div_ceil(64)];
        (0..n)
            .filter(|c| c % 3 != 2)
            .for_each(|c| mask[c / 64] |= 1 << (c % 64));
        task.allow(&mask, world.facts());
    }
    (world, task)
}

/// ns per decision: median and quartiles of `samples` samples.
fn median(samples: usize, mut measure: impl FnMut() -> f64) -> String {
    measure(); // warms the caches
    let mut ns: Vec<f64> = (0..samples).map(|_| measure()).collect();
    ns.sort_by(f64::total_cmp);
    let [median, low, high] = [2, 1, 3].map(|quarter| ns[(samples - 1) * quarter / 4]);
    format!("{median:8.1} ({low:6.1}, {high:6.1})")
}

fn native(topology: &Topology, scene: &Scene, samples: usize) -> String {
    let (mut world, mut task) = prepare(topology, scene);
    let facts = world.facts().clone();
    let pairs = pairs(topology.nr_cpu_ids());
    median(samples, || {
        let start = Instant::now();
        for i in 0..DECISIONS {
            let (this, prev) = pairs[i % pairs.len()];
            let mut wakeup = Wakeup::new(&mut task, this, prev, &facts);
            wakeup.features = scene.features;
            std::hint::black_box(world.place(wakeup));
        }
        start.elapsed().as_nanos() as f64 / DECISIONS as f64
    })
}

fn as_bpf(topology: &Topology, scene: &Scene, samples: usize) -> anyhow::Result<String> {
    let (world, mut task) = prepare(topology, scene);
    let pairs = pairs(topology.nr_cpu_ids());
    let mut cost = jit::cost(&world, &mut task, scene.features, &pairs, DECISIONS as u32)?;
    Ok(median(samples, || cost().expect("it ran before")))
}

/// The value behind an option; cargo adds `--bench`.
fn option(name: &str) -> Option<String> {
    let mut args = std::env::args();
    args.find(|a| a == name)?;
    Some(
        args.next()
            .unwrap_or_else(|| panic!("{name}: its value is missing")),
    )
}

fn samples() -> usize {
    let number = |n: String| n.parse().ok().filter(|&n| n > 0).expect("--samples N");
    option("--samples").map_or(SAMPLES, number)
}

/// The one that the option names; without the option all.
fn chosen<'a, T>(from: &'a [T], option_name: &str, name: fn(&T) -> &str) -> Vec<&'a T> {
    let only = option(option_name);
    let wanted = |one: &&T| only.as_deref().is_none_or(|only| name(one) == only);
    let chosen: Vec<_> = from.iter().filter(wanted).collect();
    assert!(
        !chosen.is_empty(),
        "{option_name}: there is none of this name"
    );
    chosen
}

fn main() {
    let machines = [
        (
            "8 CPUs = 2 LLCs x 2 cores x 2",
            Topology::regular(2, 2, 2, 2, true),
        ),
        (
            "64 CPUs = 8 LLCs x 4 cores x 2",
            Topology::regular(8, 4, 2, 8, true),
        ),
        (
            "1024 CPUs = 64 LLCs x 8 cores x 2",
            Topology::regular(64, 8, 2, 8, true),
        ),
        (
            "1024 CPUs in one LLC",
            Topology::regular(1, 512, 2, 1, true),
        ),
    ];
    let samples = samples();
    libbpf_rs::set_print(None); // the reason of a refusal is printed once, below
    println!(
        "placement, ns per decision: median of {samples} samples of {DECISIONS} decisions (quartiles)"
    );
    let native_only = std::env::args().any(|a| a == "--native");
    let mut refused = native_only.then(|| "--native".to_string());
    for (name, topology) in chosen(&machines, "--machine", |(name, _)| name) {
        println!("{name:<42} native                     BPF, JIT-compiled");
        for scene in chosen(&SCENES, "--scene", |scene| scene.name) {
            let bpf = match &refused {
                None => as_bpf(topology, scene, samples),
                Some(_) => Ok("-".into()),
            };
            println!(
                "  {:<28} {}   {}",
                scene.name,
                native(topology, scene, samples),
                bpf.unwrap_or_else(|e| {
                    refused = Some(format!("{e:#}"));
                    "-".into()
                })
            );
        }
    }
    if let Some(why) = refused {
        println!("JIT cost through BPF_PROG_RUN: skipped: {why}");
    }
}
