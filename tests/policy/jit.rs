// SPDX-License-Identifier: GPL-2.0-only
//! Placement as the kernel runs it: src/bpf/test.bpf.c, loaded and run by BPF_PROG_RUN on a copy of
//! a world. The tests compare its decisions, the bench times them.
#![allow(dead_code)]

use anyhow::{Context, Result};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, ProgramInput, ProgramMut};
use scx_roost::bpf::copy_rows;
use scx_roost::bpf::intf::{self, policy_store};
use scx_roost::daemon::counters::make_room;
use scx_roost::native::{Task, Wakeup, World, sys};
use scx_roost::{fill_rodata, twins};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice::{from_mut, from_ref};

#[allow(clippy::too_many_lines, reason = "libbpf-cargo writes it")]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/test_skel.rs"));
}
use skel::{TestSkel, TestSkelBuilder, types};

twins! { unsafe
    types::machine_facts = intf::machine_facts,
    types::cpu_facts = intf::cpu_facts,
    types::llc_facts = intf::llc_facts,
    types::node_facts = intf::node_facts,
    types::tunables = intf::tunables,
    types::policy_image = intf::policy_image,
    types::cpu_state = sys::cpu_state,
    types::cpu_view = sys::cpu_view,
    types::llc_state = sys::llc_state,
    types::llc_sets = sys::llc_sets,
    types::task_state = sys::task_state,
    types::waker_state = sys::waker_state,
    types::placement = sys::placement,
}

pub struct Jit {
    skel: TestSkel<'static>,
}

impl Jit {
    /// Loads the program `decide` with the policy, facts and tunables of `world`. Facts and
    /// tunables are constants to the verifier, as in the scheduler.
    pub fn load(world: &World) -> Result<Jit> {
        Jit::load_program(world, "decide")
    }

    /// Only the named program is loaded: each contains all of placement and costs the verifier as
    /// much.
    pub fn load_program(world: &World, name: &str) -> Result<Jit> {
        // The skeleton borrows the object. It is leaked: a test process loads a few of them and
        // ends.
        let object = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = TestSkelBuilder::default().open(object)?;
        // The headers of scx add programs of their own, which need a kernel with sched_ext.
        for mut prog in open.open_object_mut().progs_mut() {
            prog.set_autoload(prog.name() == name);
        }
        make_room(&mut open.maps.bss_stats, world.facts())?;
        let bss = open.maps.bss_data.as_mut().context("no .bss")?;
        copy_rows(&mut bss.policy.slot[..1], from_ref(world.policy()))?;
        for (away, cpu) in bss.the_domains.away.iter_mut().zip(&world.facts().cpus) {
            *away = (cpu.online == 0).into();
        }
        let rodata = open.maps.rodata_data.as_mut().context("no .rodata")?;
        fill_rodata!(rodata, world.facts(), world.tunables());
        let skel = open.load().context("the kernel refuses test.bpf.c")?;
        Ok(Jit { skel })
    }

    /// Does what `World::idle_begins` (`arrival` None) or `idle_ends` does to CPU 0.
    pub fn idle_event(
        &mut self,
        world: &mut World,
        arrival: Option<sys::arrival>,
        now: u64,
    ) -> Result<()> {
        let bss = self.bss();
        copy_rows(from_mut(&mut bss.cpu_states[0]), from_ref(world.cpu(0)))?;
        bss.query.now = now;
        bss.begins = arrival.is_none().into();
        bss.arrives = arrival.unwrap_or_default();
        run(&mut self.skel.progs.idle_event)?;
        let bss = self.bss();
        copy_rows(from_mut(world.cpu_mut(0)), from_ref(&bss.cpu_states[0]))
    }

    fn bss(&mut self) -> &mut types::bss {
        self.skel.maps.bss_data.as_mut().expect("there is a .bss")
    }

    /// The counters of the CPU that the program ran on, a row for each arm.
    fn counted(&mut self) -> &mut [types::cpu_stats] {
        let arms = sys::MAX_ARMS as usize;
        let at = self.bss().ran_on as usize * arms;
        let maps = &mut self.skel.maps;
        let rows = maps.bss_stats.value_size() as usize / size_of::<types::cpu_stats>();
        assert!(at + arms <= rows, "the map has {rows} rows");
        let data = maps.bss_stats_data.as_deref_mut().expect("a .bss.stats");
        let first = (&raw mut *data).cast::<types::cpu_stats>();
        // SAFETY: the map, which owns this memory, has this many rows (`make_room`).
        unsafe { std::slice::from_raw_parts_mut(first.add(at), arms) }
    }

    /// Does what `World::place` does, by the BPF program: the world and the tasks change in the
    /// same way.
    pub fn place(&mut self, world: &mut World, mut wakeup: Wakeup<'_>) -> Result<sys::placement> {
        self.send(world, &wakeup)?;
        run(&mut self.skel.progs.decide)?;
        self.receive(world, &mut wakeup)
    }

    fn send(&mut self, world: &World, wakeup: &Wakeup<'_>) -> Result<()> {
        let bss = self.bss();
        for cpu in 0..world.nr_cpus() {
            copy_rows(from_mut(&mut bss.cpu_states[cpu]), from_ref(world.cpu(cpu)))?;
            copy_rows(from_mut(&mut bss.cpu_views[cpu]), from_ref(world.view(cpu)))?;
        }
        // The stamps of the world are against a clock at 0 ms; the clock of the kernel runs.
        let now = clock_ms() << 32;
        for (to, &freq) in bss.cpu_freqs.iter_mut().zip(world.freqs()) {
            *to = freq.wrapping_add(now);
        }
        for (to, &told) in bss.llc_scans.iter_mut().zip(world.llc_scans()) {
            *to = told.wrapping_add(now);
        }
        for llc in 0..world.facts().llcs.len() {
            copy_rows(from_mut(&mut bss.llc_states[llc]), from_ref(world.llc(llc)))?;
        }
        copy_rows(from_mut(&mut bss.sets_of_llcs), from_ref(world.llc_sets()))?;
        send_task(bss, wakeup.task)?;
        if let Some(waker) = &wakeup.waker {
            copy_rows(from_mut(&mut bss.waker), from_ref(&waker.state))?;
        }
        copy_rows(&mut bss.policy.slot[..1], from_ref(world.policy()))?;
        for (away, cpu) in bss.the_domains.away.iter_mut().zip(&world.facts().cpus) {
            *away = (cpu.online == 0).into();
        }
        let pol = &wakeup.task.state.pol;
        let arm = &mut bss.policy.slot[0].arm[0].task;
        (arm.features, arm.fits_scale, arm.fits_rt) =
            (wakeup.features, pol.fits_scale, pol.fits_rt);
        bss.query = types::query {
            now: wakeup.now,
            waker_pid: wakeup.waker_pid,
            pid: wakeup.task.pid,
            this_cpu: wakeup.this_cpu as i32,
            prev: wakeup.prev as i32,
            waker_ours: wakeup.waker.is_some().into(),
            fork: wakeup.fork.into(),
            sync: wakeup.sync.into(),
            waker_pcpu_kthread: wakeup.waker_pcpu_kthread.into(),
        };
        Ok(())
    }

    fn receive(&mut self, world: &mut World, wakeup: &mut Wakeup<'_>) -> Result<sys::placement> {
        let mut answer = sys::placement::default();
        let bss = self.bss();
        copy_rows(from_mut(&mut answer), from_ref(&bss.answer))?;
        for cpu in 0..world.nr_cpus() {
            copy_rows(from_mut(world.cpu_mut(cpu)), from_ref(&bss.cpu_states[cpu]))?;
        }
        for llc in 0..world.facts().llcs.len() {
            copy_rows(from_mut(world.llc_mut(llc)), from_ref(&bss.llc_states[llc]))?;
        }
        copy_rows(from_mut(&mut wakeup.task.state), from_ref(&bss.wakee))?;
        if let Some(waker) = &mut wakeup.waker {
            copy_rows(from_mut(&mut waker.state), from_ref(&bss.waker))?;
        }
        let sums = world
            .counters_mut()
            .chunks_mut(sys::ROOST_NR_STATS as usize);
        for (sums, counted) in sums.zip(self.counted()) {
            for (sum, n) in sums.iter_mut().zip(&mut counted.wakeup.counts) {
                *sum += std::mem::take(n);
            }
        }
        Ok(answer)
    }
}

/// Times decisions on the pairs of (waker's CPU, previous CPU) in turn. Each call returns ns per
/// decision.
pub fn cost(
    world: &World,
    task: &mut Task,
    features: u32,
    pairs: &[(usize, usize)],
    decisions: u32,
) -> Result<impl FnMut() -> Result<f64>> {
    let mut jit = Jit::load_program(world, "cost")?;
    let mut wakeup = Wakeup::new(task, 0, 0, world.facts());
    wakeup.features = features;
    jit.send(world, &wakeup)?;
    let bss = jit.bss();
    anyhow::ensure!(
        pairs.len() == bss.pairs.len(),
        "{} pairs, expected {}",
        pairs.len(),
        bss.pairs.len()
    );
    for (to, &(this, prev)) in bss.pairs.iter_mut().zip(pairs) {
        *to = types::pair {
            this_cpu: this as i32,
            prev: prev as i32,
        };
    }
    bss.nr_decisions = decisions;
    Ok(move || {
        run(&mut jit.skel.progs.cost)?;
        Ok(jit.bss().took_ns as f64 / f64::from(decisions))
    })
}

/// Readers of the policy in the kernel.
impl Jit {
    /// Loads only the program that reads the arms.
    pub fn load_reader(world: &World) -> Result<Jit> {
        Jit::load_program(world, "read_arms")
    }

    /// The policy that the program reads. Valid as long as `self`.
    pub fn store(&mut self) -> NonNull<policy_store> {
        const { assert!(size_of::<policy_store>() == size_of::<types::policy_store>()) };
        NonNull::from(&mut self.bss().policy).cast()
    }

    /// Reads arm 0 `reads` times. Returns how many reads there have been so far, and how many of
    /// them saw parts of two images.
    pub fn read_arms(&mut self, reads: u32) -> Result<(u64, u64)> {
        self.bss().nr_decisions = reads;
        run(&mut self.skel.progs.read_arms)?;
        Ok((self.bss().nr_reads, self.bss().nr_torn))
    }
}

fn send_task(bss: &mut types::bss, task: &Task) -> Result<()> {
    copy_rows(from_mut(&mut bss.wakee), from_ref(&task.state))?;
    copy_rows(&mut bss.task.allowed, task.mask())?;
    bss.task.restricted = task.restricted().into();
    Ok(())
}

/// CLOCK_MONOTONIC
fn clock_ms() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t) };
    t.tv_sec as u64 * 1000 + t.tv_nsec as u64 / 1_000_000
}

fn run(program: &mut ProgramMut<'_>) -> Result<()> {
    let out = program.test_run(ProgramInput::default())?;
    anyhow::ensure!(
        out.return_value == 0,
        "the program returned {}",
        out.return_value
    );
    Ok(())
}
