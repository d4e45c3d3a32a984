// SPDX-License-Identifier: GPL-2.0-only
//! One situation, given to both the C and the model.

use crate::jit::Jit;
use crate::topology::{CLAIM_TTL, Tables, kernel_arm, kernel_tunables};
use scx_roost::machine::Facts;
use scx_roost::native::sys::{
    CAPACITY_SCALE, PLACE_IDLE, PLACE_NEXT, STAT_claim_release, STAT_claim_set,
    STAT_placed_other_llc, STAT_wa_idle_this, STAT_wa_same, cpu_view, placement, waker_state,
};
use scx_roost::native::{Task, Wakeup, World, stat_name};
use scx_roost::placement::topology::NICE0;
use scx_roost::placement::topology::Topology;
use scx_roost::placement::{self as model, CpuNow, Decision, Features, LlcNow, TaskNow, WakerNow};

/// The time of every decision. It is far from 0, so that no stamp that starts as 0 looks recent.
pub const NOW: u64 = 3_600_000_000_000;

/// The default threshold for a low frequency, kHz, and the age up to which a reading counts.
pub const THRESHOLD: u32 = 1200;
pub use scx_roost::placement::STALE_MS;

pub const WAKEE: u32 = 1000;
pub const WAKER: u32 = 1001;

/// Mainline: the placement features of today's kernel.
pub const MAINLINE: Features = Features {
    prev_idle: true,
    sis_util: true,
    avg_idle: true,
    ..Features::NONE
};

/// The rows of stats.tbl.h that count the decisions of a placement and their outcome.
pub const PLACEMENT_STATS: std::ops::RangeInclusive<u32> =
    STAT_wa_idle_this..=STAT_placed_other_llc;

/// A machine and the state of its CPUs, in the C's world and for the model.
pub struct Machine {
    pub topology: Topology,
    pub facts: Facts,
    pub world: World,
    pub cpus: Vec<CpuNow>,
    pub llcs: Vec<LlcNow>,
}

impl Machine {
    /// Every CPU runs one task of nice 0.
    pub fn new(topology: Topology) -> Self {
        let facts = topology.facts();
        let world = World::new(facts.clone(), kernel_arm(), kernel_tunables(), 1);
        let mut machine = Machine {
            cpus: vec![CpuNow::default(); topology.nr_cpu_ids()],
            llcs: facts
                .llcs
                .iter()
                .map(|l| LlcNow {
                    budget: l.nr_cpus.into(),
                    load: 0,
                    util: l.capacity.into(),
                    nr_running: l.nr_cpus.into(),
                    age: 0,
                    worth: 0,
                    worth_left_ms: 0,
                })
                .collect(),
            topology,
            facts,
            world,
        };
        for cpu in 0..machine.cpus.len() {
            machine.set(cpu, machine.busy());
        }
        for llc in 0..machine.llcs.len() {
            machine.set_llc(llc, machine.llcs[llc]);
        }
        machine
    }

    /// Busy, without room for any task.
    pub fn busy(&self) -> CpuNow {
        CpuNow {
            nr_running: 1,
            load: NICE0.into(),
            util: CAPACITY_SCALE.into(),
            est: u64::from(CAPACITY_SCALE) * 2,
            ..Default::default()
        }
    }

    /// Idle; `load` is left from tasks that went to sleep there.
    pub fn idle(&self, load: u64) -> CpuNow {
        CpuNow {
            idle: true,
            load,
            ..Default::default()
        }
    }

    pub fn set(&mut self, cpu: usize, now: CpuNow) {
        if !self.topology.cpus[cpu].online {
            return;
        }
        self.cpus[cpu] = now;
        *self.world.view_mut(cpu) = cpu_view {
            idle: now.idle.into(),
            nr_running: now.nr_running,
            rt_util: now.rt,
            domain: 0,
        };
        self.world.set_freq(cpu, now.khz, now.khz_age_ms);
        let capacity = self.topology.cpus[cpu].capacity - now.pressure;
        self.world.policy_mut().capacity[cpu] = capacity as u16;
        let state = self.world.cpu_mut(cpu);
        state.curr_pid = (now.nr_running > 0).into();
        state.curr_sched_idle = now.sched_idle.into();
        let idle = now.idle_for.map_or(1, |ns| NOW - ns);
        state.idle_every.since = if now.idle { idle } else { 0 };
        // Not plain ones: those have the lowest bit.
        let made = |age: Option<u64>| age.map_or(0, |age| (NOW - age) & !1);
        state.claim = made(now.claim_age);
        state.core_claim = made(now.core_claim_age);
        state.load_avg = now.load;
        state.util_avg = now.util as u32;
        state.util_est = now.est;
        state.folded_at = NOW;
        state.load_since = NOW;
        if now.idle || now.sched_idle {
            self.world.mark_idle(cpu);
        } else {
            self.world.mark_busy(cpu);
        }
    }

    pub fn set_llc(&mut self, llc: usize, now: LlcNow) {
        self.llcs[llc] = now;
        self.world.llc_mut(llc).summed_at = NOW - now.age;
        self.world.llc_mut(llc).scan_budget = now.budget as u32;
        self.world.llc_mut(llc).load = now.load;
        self.world.llc_mut(llc).util = now.util as u32;
        self.world.llc_mut(llc).nr_running = now.nr_running as u32;
        let worth = now.worth as u32;
        self.world.set_scan(llc, worth, now.worth_left_ms);
    }
}

/// The two tasks of a wakeup, and the kind of wakeup.
#[derive(Clone, Debug)]
pub struct Case {
    pub allowed: Vec<bool>,
    pub this: usize,
    pub prev: usize,
    pub recent: Option<usize>,
    pub fork: bool,
    pub sync: bool,
    pub wakee_sched_idle: bool,
    /// 0..CAPACITY_SCALE
    pub wakee_util: u32,
    /// Percent
    pub fits_margin: u32,
    pub fits_rt: bool,
    /// kHz, the same on all CPUs; 0: no frequency is low.
    pub threshold: u32,
    pub wakee_weight: u32,
    pub wakee: model::Waker,
    pub wakee_burst: u64,
    /// ns
    pub wakee_slept: u64,
    /// The waker is a task of ours.
    pub waker_ours: bool,
    pub waker_weight: u32,
    pub waker: model::Waker,
    pub waker_burst: u64,
    pub waker_pcpu_kthread: bool,
    pub features: Features,
}

impl Case {
    pub fn new(nr_cpus: usize, this: usize, prev: usize) -> Self {
        Case {
            allowed: vec![true; nr_cpus],
            this,
            prev,
            recent: None,
            fork: false,
            sync: false,
            wakee_sched_idle: false,
            wakee_util: 0,
            fits_margin: 0,
            fits_rt: false,
            threshold: THRESHOLD,
            wakee_weight: NICE0,
            wakee: model::Waker::default(),
            wakee_burst: 0,
            wakee_slept: NOW,
            waker_ours: true,
            waker_weight: NICE0,
            waker: model::Waker::default(),
            waker_burst: 0,
            waker_pcpu_kthread: false,
            features: MAINLINE,
        }
    }
}

fn model_waker(w: waker_state) -> model::Waker {
    model::Waker {
        last_wakee: w.last_wakee,
        flips: w.flips,
        decay_at: w.decay_at,
    }
}

fn waker_state(w: model::Waker) -> waker_state {
    waker_state {
        decay_at: w.decay_at,
        last_wakee: w.last_wakee,
        flips: w.flips,
    }
}

/// How the C is run.
pub enum By {
    Native,
    Bpf(Box<Jit>),
}

impl By {
    /// Runs the C as BPF, on machines like this one.
    pub fn bpf(machine: &World) -> By {
        By::Bpf(Box::new(Jit::load(machine).expect("this kernel loads BPF")))
    }
}

/// Asks the C and the model for their decision on a case.
pub struct Runner {
    wakee: Task,
    waker: Task,
    words: Vec<u64>,
}

impl Runner {
    pub fn new(machine: &Machine) -> Self {
        Runner {
            wakee: Task::new(WAKEE, &machine.world),
            waker: Task::new(WAKER, &machine.world),
            words: vec![0; machine.topology.nr_cpu_ids().div_ceil(64)],
        }
    }

    fn arm(&mut self, machine: &mut Machine, case: &Case) {
        self.words.fill(0);
        for (cpu, &may) in case.allowed.iter().enumerate() {
            self.words[cpu / 64] |= u64::from(may) << (cpu % 64);
        }
        self.wakee.allow(&self.words, &machine.facts);
        let policy = machine.world.policy_mut();
        policy.freq_stale_ms = STALE_MS;
        policy.threshold[0][..machine.topology.nr_cpu_ids()].fill(case.threshold);
        let s = &mut self.wakee.state;
        s.pol.features = case.features.bits();
        s.delay_at = 0;
        s.delay_cpu = 0;
        s.recent_cpu = case.recent.map_or(0, |c| c as i32 + 1);
        s.weight = case.wakee_weight;
        s.sched_idle = case.wakee_sched_idle.into();
        s.runnable_avg = CAPACITY_SCALE;
        s.util_est = case.wakee_util;
        s.load_cpu = 1;
        s.folded_at = NOW;
        s.pol.fits_scale = CAPACITY_SCALE * 100 / (100 - case.fits_margin);
        s.pol.fits_rt = case.fits_rt.into();
        s.waker = waker_state(case.wakee);
        s.burst = case.wakee_burst;
        s.left_at = NOW - case.wakee_slept;
        let s = &mut self.waker.state;
        s.weight = case.waker_weight;
        s.runnable_avg = CAPACITY_SCALE;
        s.folded_at = NOW;
        s.waker = waker_state(case.waker);
        s.burst = case.waker_burst;
        if !case.waker_ours {
            machine.world.cpu_mut(case.this).idle_waker = waker_state(case.waker);
        }
    }

    /// The C's decision. The counters start at 0.
    pub fn native(&mut self, machine: &mut Machine, case: &Case) -> Decision {
        self.decide(machine, case, World::place)
    }

    /// The same, natively or as BPF.
    pub fn run(&mut self, by: &mut By, machine: &mut Machine, case: &Case) -> Decision {
        self.decide(machine, case, |world, wakeup| match by {
            By::Native => world.place(wakeup),
            By::Bpf(jit) => jit.place(world, wakeup).expect("BPF_PROG_RUN works"),
        })
    }

    fn decide(
        &mut self,
        machine: &mut Machine,
        case: &Case,
        place: impl FnOnce(&mut World, Wakeup<'_>) -> placement,
    ) -> Decision {
        self.arm(machine, case);
        machine.world.clear_counters();
        let mut wakeup = Wakeup::new(&mut self.wakee, case.this, case.prev, &machine.facts);
        wakeup.waker = case.waker_ours.then_some(&mut self.waker);
        wakeup.waker_pid = WAKER;
        wakeup.now = NOW;
        wakeup.features = case.features.bits();
        wakeup.fork = case.fork;
        wakeup.sync = case.sync;
        wakeup.waker_pcpu_kthread = case.waker_pcpu_kthread;
        let at = place(&mut machine.world, wakeup);
        let s = &self.wakee.state;
        let delayed = (s.delay_at > 0).then(|| s.delay_cpu as usize - 1);
        assert!(delayed.is_none() || s.delay_at == NOW + u64::from(s.pol.delay_ns));
        let (claims, claims_core) = taken_back(machine, at.cpu);
        let left = if case.waker_ours {
            self.waker.state.waker
        } else {
            machine.world.cpu(case.this).idle_waker
        };
        Decision {
            cpu: usize::try_from(at.cpu).unwrap_or(usize::MAX),
            rung: stat_name(at.rung),
            affine: affine_counter(&machine.world),
            how: match at.how {
                PLACE_IDLE => model::How::Idle,
                PLACE_NEXT => model::How::Next,
                _ => model::How::Busy,
            },
            recent: usize::try_from(self.wakee.state.recent_cpu - 1).ok(),
            waker: model_waker(left),
            wakee: model_waker(self.wakee.state.waker),
            claims,
            claims_core,
            delayed,
        }
    }

    /// The model's decision on the same case. Task loads and utilisation come from the C's signals,
    /// which signals.rs tests.
    pub fn model(&mut self, machine: &mut Machine, case: &Case) -> Decision {
        self.arm(machine, case);
        let load = machine.world.task_load(&mut self.wakee, NOW);
        let util = machine.world.task_util_est(&self.wakee);
        let waker_load = machine.world.task_load(&mut self.waker, NOW);
        let now = model::Now {
            machine: &machine.topology,
            cpus: &machine.cpus,
            llcs: &machine.llcs,
            imbalance_pct: kernel_tunables().imbalance_pct.into(),
            claim_ttl: CLAIM_TTL,
        };
        model::decide(
            &now,
            &model::Wake {
                task: TaskNow {
                    pid: WAKEE,
                    allowed: &case.allowed,
                    recent: case.recent,
                    load,
                    util,
                    sched_idle: case.wakee_sched_idle,
                    waker: case.wakee,
                    burst: case.wakee_burst,
                    slept: case.wakee_slept,
                },
                waker: WakerNow {
                    pid: WAKER,
                    ours: case.waker_ours,
                    waker: case.waker,
                    load: waker_load,
                    burst: case.waker_burst,
                    pcpu_kthread: case.waker_pcpu_kthread,
                },
                now: NOW,
                this: case.this,
                prev: case.prev,
                fork: case.fork,
                sync: case.sync,
                features: case.features,
                fits_margin: case.fits_margin,
                fits_rt: case.fits_rt,
                threshold: case.threshold,
            },
        )
    }
}

/// Takes back the claims of a decision, so that the next one finds the same machine. Returns the
/// claimed CPU, and the first thread of the claimed core.
fn taken_back(machine: &mut Machine, cpu: i32) -> (Option<usize>, Option<usize>) {
    let released = machine.world.count(STAT_claim_release);
    if released > 0 {
        // A CPU was claimed, then the move to it was delayed and its claim released.
        // The lowest bit of a stamp marks a plain claim.
        let made = |stamp: u64| stamp & !1;
        let was = |c: usize| machine.cpus[c].claim_age.map_or(0, |age| NOW - age);
        for c in machine.topology.online() {
            let claim = made(machine.world.cpu(c).claim);
            assert!(
                [0, made(NOW), made(was(c))].contains(&claim),
                "CPU {c}: {claim}"
            );
        }
    }
    let set = machine.world.count(STAT_claim_set) - released;
    assert!(set < 2, "{set} CPUs were claimed");
    let answer = claim_of(machine, cpu, set);
    if released > 0 {
        for c in 0..machine.topology.nr_cpu_ids() {
            machine.set(c, machine.cpus[c]);
        }
    }
    answer
}

fn claim_of(machine: &mut Machine, cpu: i32, set: u64) -> (Option<usize>, Option<usize>) {
    if set == 0 {
        return (None, None);
    }
    let cpu = usize::try_from(cpu).expect("a claim has an answer");
    let siblings = machine.topology.siblings(cpu);
    let first = siblings.iter().copied().chain([cpu]).min().unwrap_or(cpu);
    // The lowest bit marks a plain claim.
    let made_now = |stamp: u64| stamp & !1 == NOW;
    assert!(made_now(machine.world.cpu(cpu).claim), "CPU {cpu}");
    let core = made_now(machine.world.cpu(first).core_claim);
    for c in [cpu, first] {
        machine.set(c, machine.cpus[c]);
    }
    (Some(cpu), core.then_some(first))
}

/// The counter of wake_affine that moved, if any.
fn affine_counter(world: &World) -> &'static str {
    let moved: Vec<&str> = (STAT_wa_idle_this..=STAT_wa_same)
        .filter(|&s| world.count(s) > 0)
        .map(stat_name)
        .collect();
    assert!(moved.len() < 2, "wake_affine answered twice: {moved:?}");
    moved.first().copied().unwrap_or("")
}

/// The counters of placement that moved.
pub fn moved(world: &World) -> Vec<&'static str> {
    PLACEMENT_STATS
        .filter(|&s| world.count(s) > 0)
        .map(stat_name)
        .collect()
}
