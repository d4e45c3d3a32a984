// SPDX-License-Identifier: GPL-2.0-only
//! The sets of idle CPUs, of idle cores and of LLCs with idle CPUs: compared with a naive set, and
//! changed by two threads at once.

use crate::rng::Rng;
use crate::setup::NOW;
use crate::topology::{CLAIM_LOST, Tables};
use scx_roost::native::sys::{FEATURE_claim, PLAIN_CLAIM};
use scx_roost::native::{Task, World, sys};
use scx_roost::placement::topology::Topology;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SET_IDLE: usize = sys::SET_IDLE as usize;
const SET_IDLE_CORE: usize = sys::SET_IDLE_CORE as usize;
const SET_WAITING: usize = sys::SET_WAITING as usize;

fn machines() -> Vec<Topology> {
    vec![
        Topology::regular(1, 1, 1, 1, false),
        Topology::regular(1, 8, 1, 1, false),
        Topology::regular(1, 4, 2, 1, true),
        Topology::regular(8, 4, 2, 4, true),
        Topology::regular(3, 5, 4, 3, false),
        // More CPUs than bits in a word, with the threads of a core in two words.
        Topology::regular(1, 64, 2, 1, true),
        Topology::regular(2, 100, 2, 1, true),
        Topology::regular(1, 512, 2, 1, false),
        Topology::regular(512, 1, 2, 64, true),
    ]
}

fn has(words: &[u64], pos: usize) -> bool {
    words[pos / 64] >> (pos % 64) & 1 != 0
}

/// The sets contain exactly what `idle` says.
fn check_sets(world: &World, topology: &Topology, idle: &[bool]) {
    for llc in 0..topology.nr_llcs() {
        let state = world.llc(llc);
        let cpus = topology.llc_cpus(llc);
        for (pos, &cpu) in cpus.iter().enumerate() {
            assert_eq!(
                has(&state.set[SET_IDLE], pos),
                idle[cpu],
                "CPU {cpu} in the idle set"
            );
            let core = idle[cpu] && topology.siblings(cpu).iter().all(|&s| idle[s]);
            assert_eq!(
                has(&state.set[SET_IDLE_CORE], pos),
                topology.smt() && core,
                "CPU {cpu} in the set of idle cores"
            );
        }
        let any = cpus.iter().any(|&c| idle[c]);
        if topology.nr_llcs() > 1 {
            assert_eq!(
                has(&world.llc_sets().set[SET_IDLE], llc),
                any,
                "LLC {llc} in the set of LLCs"
            );
        }
        let beyond = |words: &[u64]| (cpus.len()..words.len() * 64).any(|pos| has(words, pos));
        assert!(
            !state.set.iter().any(|s| beyond(s)),
            "a bit without a CPU in LLC {llc}"
        );
    }
}

#[test]
fn sets_are_what_a_naive_set_would_be() {
    for (i, topology) in machines().into_iter().enumerate() {
        let mut rng = Rng::new(i as u64);
        let mut world = topology.world();
        let n = topology.nr_cpu_ids();
        let mut idle = vec![false; n];
        check_sets(&world, &topology, &idle);
        for step in 0..20_000 {
            let cpu = rng.below(n);
            // Long phases of mostly one kind fill and empty the sets.
            let percent = if step / 1000 % 2 == 0 { 80 } else { 20 };
            idle[cpu] = rng.chance(percent);
            if idle[cpu] {
                world.mark_idle(cpu);
            } else {
                world.mark_busy(cpu);
            }
            if step % (1 + n / 8) == 0 {
                check_sets(&world, &topology, &idle);
            }
        }
        check_sets(&world, &topology, &idle);
    }
}

#[test]
fn waiting_sets_too() {
    let topology = Topology::regular(4, 40, 2, 2, true);
    let mut world = topology.world();
    let mut rng = Rng::new(9);
    let mut waiting = vec![false; topology.nr_cpu_ids()];
    for _ in 0..50_000 {
        let cpu = rng.below(topology.nr_cpu_ids());
        waiting[cpu] = rng.chance(50);
        if waiting[cpu] {
            world.mark_waiting(cpu);
        } else {
            world.unmark_waiting(cpu);
        }
    }
    assert!(world.anybody_waits());
    for llc in 0..4 {
        let cpus = topology.llc_cpus(llc);
        for (pos, &cpu) in cpus.iter().enumerate() {
            assert_eq!(has(&world.llc(llc).set[SET_WAITING], pos), waiting[cpu]);
        }
        assert_eq!(
            has(&world.llc_sets().set[SET_WAITING], llc),
            cpus.iter().any(|&c| waiting[c])
        );
    }
}

#[test]
fn anybody_waits_on_any_machine() {
    for topology in machines() {
        let mut world = topology.world();
        // With more than 64 LLCs it says yes without looking.
        let looks = topology.nr_llcs() <= 64;
        assert_eq!(world.anybody_waits(), !looks);
        for cpu in [0, topology.nr_cpu_ids() - 1] {
            world.mark_waiting(cpu);
            assert!(world.anybody_waits());
            world.unmark_waiting(cpu);
            assert_eq!(world.anybody_waits(), !looks);
        }
    }
}

#[test]
fn an_idle_helper_is_near_if_it_can_be() {
    // LLCs of four CPUs, two LLCs to a node.
    let topology = Topology::regular(4, 4, 1, 2, false);
    let mut world = topology.world();
    let task = Task::new(1, &world);
    assert_eq!(world.idle_helper(&task, 9, NOW), None);
    for (idle, why) in [
        (2, "of the machine"),
        (14, "of the node"),
        (8, "of the LLC, around its end"),
        (11, "of the LLC, the next from its own position on"),
    ] {
        world.set_idle(idle);
        assert_eq!(world.idle_helper(&task, 9, NOW), Some(idle), "{why}");
    }
    assert_eq!(world.idle_helper(&task, 1, NOW), Some(2));
    for busy in [11, 8, 14] {
        world.set_busy(busy);
    }
    assert_eq!(world.idle_helper(&task, 9, NOW), Some(2));
}

/// The set also holds CPUs that run a SCHED_IDLE or a real-time task. A kick does not make those
/// look for work.
#[test]
fn a_helper_is_idle_and_not_only_marked() {
    let mut world = Topology::regular(2, 4, 1, 2, false).world();
    let task = Task::new(1, &world);
    for marked in [0, 2, 3, 4, 6, 7] {
        world.set_idle(marked);
    }
    for taken in [0, 2, 4, 6] {
        world.view_mut(taken).idle = 0;
        world.view_mut(taken).nr_running = 1;
    }
    // A SCHED_IDLE task runs alone there.
    (world.cpu_mut(0).curr_pid, world.cpu_mut(0).curr_sched_idle) = (77, 1);
    assert_eq!(world.idle_helper(&task, 5, NOW), Some(7));
    assert_eq!(world.idle_helper(&task, 1, NOW), Some(3));
    world.view_mut(3).idle = 0;
    assert_eq!(world.idle_helper(&task, 1, NOW), Some(7), "the other LLC's");
    world.view_mut(7).idle = 0;
    assert_eq!(world.idle_helper(&task, 1, NOW), None);
}

/// A claimed CPU waits for its task, if arm 0 has claims: it is no helper.
#[test]
fn a_helper_is_not_claimed() {
    let mut world = Topology::regular(1, 4, 1, 1, false).world();
    let task = Task::new(1, &world);
    (1..3).for_each(|idle| world.set_idle(idle));
    world.cpu_mut(1).claim = NOW - 1000;
    assert_eq!(world.idle_helper(&task, 0, NOW), Some(1));
    for (features, ttl, helper) in [
        (0, 2000, 1),
        (FEATURE_claim, 2000, 2),
        (FEATURE_claim, 500, 1),
    ] {
        let arm = &mut world.policy_mut().arm[0].task;
        (arm.features, arm.claim_ttl_ns) = (features, ttl);
        assert_eq!(world.idle_helper(&task, 0, NOW), Some(helper), "{ttl}");
    }
    // A plain claim counts for 2 s, whatever the limit of others is.
    world.cpu_mut(1).claim |= u64::from(PLAIN_CLAIM);
    assert_eq!(world.idle_helper(&task, 0, NOW), Some(2));
    world.cpu_mut(1).claim -= CLAIM_LOST;
    assert_eq!(world.idle_helper(&task, 0, NOW), Some(1));
}

#[test]
fn a_helper_may_run_the_task() {
    let topology = Topology::regular(2, 4, 1, 2, false);
    let mut world = topology.world();
    let mut task = Task::new(1, &world);
    let facts = topology.facts();
    (0..6).for_each(|cpu| world.set_idle(cpu));
    task.allow(&[0b1111_0000], &facts);
    assert_eq!(world.idle_helper(&task, 7, NOW), Some(4));
    assert_eq!(
        world.idle_helper(&task, 1, NOW),
        Some(4),
        "its own LLC has only others"
    );
    task.allow(&[0b1000_0000], &facts);
    assert_eq!(
        world.idle_helper(&task, 7, NOW),
        None,
        "pinned where it waits"
    );
}

/// Wrong entries once all threads have stopped.
#[derive(Default)]
struct Leftovers {
    lost_llcs: usize,
    stale_llcs: usize,
    lost_cores: usize,
    stale_cores: usize,
}

/// Two threads wait here for each other. They spin, because a race needs them to start together.
#[derive(Default)]
struct Gate(AtomicUsize);

impl Gate {
    fn pass(&self) {
        let all_here = (self.0.fetch_add(1, Ordering::SeqCst) / 2 + 1) * 2;
        let mut spins = 0;
        while self.0.load(Ordering::SeqCst) < all_here {
            spins += 1;
            if spins % 1000 == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

/// Two threads mark CPUs of the same cores and words, as two CPUs would: siblings belong to
/// different threads. After each burst both stop, and the sets are checked.
fn stress(topology: &Topology, rounds: usize) -> Leftovers {
    let world = topology.world();
    let n = topology.nr_cpu_ids();
    let idle: Vec<AtomicBool> = (0..n).map(|_| AtomicBool::new(false)).collect();
    let gate = Gate::default();
    let owner = |c: usize| topology.siblings(c).iter().filter(|&&s| s < c).count() % 2;
    let run = |half: usize| {
        let mut left = Leftovers::default();
        let mut marker = world.marker();
        let mut rng = Rng::new(half as u64);
        let own: Vec<usize> = (0..n).filter(|&c| owner(c) == half).collect();
        for _ in 0..rounds {
            gate.pass();
            for _ in 0..rng.within(9, 12) {
                let cpu = *rng.pick(&own);
                let now = !idle[cpu].load(Ordering::Relaxed);
                idle[cpu].store(now, Ordering::Relaxed);
                marker.mark(cpu, now);
            }
            gate.pass();
            if half == 0 {
                let idle: Vec<bool> = idle.iter().map(|i| i.load(Ordering::Relaxed)).collect();
                count_leftovers(&world, topology, &idle, &mut left);
            }
        }
        left
    };
    std::thread::scope(|s| {
        let other = s.spawn(|| run(1));
        let left = run(0);
        other.join().unwrap();
        left
    })
}

fn count_leftovers(world: &World, topology: &Topology, idle: &[bool], left: &mut Leftovers) {
    for llc in 0..topology.nr_llcs() {
        let cpus = topology.llc_cpus(llc);
        for (pos, &cpu) in cpus.iter().enumerate() {
            assert_eq!(
                has(&world.llc(llc).set[SET_IDLE], pos),
                idle[cpu],
                "CPU {cpu}: a lost or stale idle bit"
            );
            let core =
                topology.smt() && idle[cpu] && topology.siblings(cpu).iter().all(|&s| idle[s]);
            let marked = has(&world.llc(llc).set[SET_IDLE_CORE], pos);
            left.lost_cores += usize::from(core && !marked);
            left.stale_cores += usize::from(marked && !core);
        }
        if topology.nr_llcs() > 1 {
            let any = cpus.iter().any(|&c| idle[c]);
            let marked = has(&world.llc_sets().set[SET_IDLE], llc);
            left.lost_llcs += usize::from(any && !marked);
            left.stale_llcs += usize::from(marked && !any);
        }
    }
}

#[test]
fn racing_threads_lose_nothing() {
    let rounds = if cfg!(debug_assertions) {
        5_000
    } else {
        20_000
    };
    for topology in [
        Topology::regular(1, 1, 2, 1, true),
        Topology::regular(2, 1, 2, 2, true),
        Topology::regular(1, 64, 2, 1, true),
    ] {
        let rounds = rounds / (1 + topology.nr_cpu_ids() / 16);
        let left = stress(&topology, rounds);
        println!(
            "{} CPUs, {rounds} rounds: LLCs lost {} stale {}, cores lost {} stale {}",
            topology.nr_cpu_ids(),
            left.lost_llcs,
            left.stale_llcs,
            left.lost_cores,
            left.stale_cores
        );
        assert_eq!(
            left.lost_llcs, 0,
            "an LLC with idle CPUs is not in the set of LLCs"
        );
        assert_eq!(
            left.lost_cores, 0,
            "an idle core is not in the set of idle cores"
        );
        assert_eq!(
            left.stale_cores, 0,
            "a core with a busy thread is in the set of idle cores"
        );
        // cpu_set.h: an empty LLC may stay in the set of LLCs until its next change.
        assert!(
            left.stale_llcs < rounds / 100,
            "empty LLCs stay in the set of LLCs too often"
        );
    }
}
