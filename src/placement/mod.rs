// SPDX-License-Identifier: GPL-2.0-only
//! The placement decision a second time, to compare the C with. It is written from
//! kernel/sched/fair.c and the published semantics of each feature, not from our C. It looks at one
//! CPU after another and keeps no sets.
//!
//! Where the scheduler differs from the kernel on purpose, so does the model; each such place is
//! marked "ours:".

mod claims;
mod delay;
mod features;
mod fits;
mod fork;
#[cfg(feature = "internals")]
pub mod idle;
mod search;
pub mod spread;
pub mod topology;

#[cfg(feature = "internals")]
pub use delay::STALE_MS;
pub use features::Features;

use topology::Topology;

/// The state of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuNow {
    /// available_idle_cpu()
    pub idle: bool,
    pub nr_running: u32,
    /// A SCHED_IDLE task runs.
    pub sched_idle: bool,
    /// cpu_load()
    pub load: u64,
    /// cfs_rq.avg.util_avg, 0..1024 of the CPU's own time
    pub util: u64,
    /// How long it has been idle, ns; None: for long.
    pub idle_for: Option<u64>,
    /// How long ago a wakeup claimed it, ns; None: not claimed.
    pub claim_age: Option<u64>,
    /// The same for its core, kept with the core's first thread.
    pub core_claim_age: Option<u64>,
    /// cfs_rq.avg.util_est
    pub est: u64,
    /// The part of its capacity that it lacks now, of 1024.
    pub pressure: u32,
    /// cpu_util_rt(), cpu_util_dl(), cpu_util_irq()
    pub rt: u32,
    /// Its frequency when it was last read, kHz; 0: unknown.
    pub khz: u32,
    pub khz_age_ms: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct LlcNow {
    /// nr_idle_scan
    pub budget: usize,
    /// The sum of the CPUs' loads when it was last updated.
    pub load: u64,
    /// The same for utilisation, scaled by capacity.
    pub util: u64,
    /// Runnable tasks.
    pub nr_running: usize,
    /// How long ago load, util, nr_running and budget were updated, ns.
    pub age: u64,
    /// How many CPUs a scan is worth by their idle periods; 0: unknown.
    pub worth: usize,
    /// How long `worth` stays valid, ms; below 0: it has expired.
    pub worth_left_ms: i32,
}

pub struct Now<'a> {
    pub machine: &'a Topology,
    pub cpus: &'a [CpuNow],
    pub llcs: &'a [LlcNow],
    pub imbalance_pct: u64,
    /// ns
    pub claim_ttl: u64,
}

/// What a task remembers about its wakeups of others (wake_wide()).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waker {
    pub last_wakee: u32,
    pub flips: u32,
    /// ns
    pub decay_at: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct TaskNow<'a> {
    pub pid: u32,
    pub allowed: &'a [bool],
    pub recent: Option<usize>,
    /// task_h_load()
    pub load: u64,
    /// task_util_est()
    pub util: u64,
    pub sched_idle: bool,
    pub waker: Waker,
    /// How long it usually runs, ns; 0: unknown.
    pub burst: u64,
    /// How long it has slept, ns.
    pub slept: u64,
}

/// The waker. If it is no task of ours (the idle task), only `waker` is known.
#[derive(Clone, Copy, Debug)]
pub struct WakerNow {
    pub pid: u32,
    pub ours: bool,
    pub waker: Waker,
    pub load: u64,
    pub burst: u64,
    pub pcpu_kthread: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Wake<'a> {
    pub task: TaskNow<'a>,
    pub waker: WakerNow,
    pub now: u64,
    pub this: usize,
    pub prev: usize,
    pub fork: bool,
    pub sync: bool,
    pub features: Features,
    /// The part of the capacity that must stay free, percent.
    pub fits_margin: u32,
    pub fits_rt: bool,
    /// kHz
    pub threshold: u32,
}

/// How the task takes the CPU: waits there, runs at once because the CPU is idle, or runs next
/// after the waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Busy,
    Idle,
    Next,
}

impl How {
    pub fn idle(idle: bool) -> How {
        if idle { How::Idle } else { How::Busy }
    }
}

/// The decision, the rung that made it, and its side effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub cpu: usize,
    pub rung: &'static str,
    /// The answer of wake_affine; empty if it was not asked.
    pub affine: &'static str,
    pub how: How,
    pub recent: Option<usize>,
    pub waker: Waker,
    /// The same for the wakee.
    pub wakee: Waker,
    /// The CPU that the decision claimed.
    pub claims: Option<usize>,
    /// The first thread of the core that the decision claimed.
    pub claims_core: Option<usize>,
    /// The CPU to which the task moves if it has not run within the delay.
    pub delayed: Option<usize>,
}

const MSEC: u64 = 1_000_000;
/// The cost of an idle exit plus an interrupt on both sides (sync_local.h), ns.
const SHORT_BURST: u64 = 100_000;

impl Now<'_> {
    fn online(&self, c: usize) -> bool {
        self.machine.cpus[c].online
    }

    fn idle(&self, c: usize) -> bool {
        self.online(c) && self.cpus[c].idle
    }

    /// sched_idle_cpu(): a SCHED_IDLE task and nothing else.
    fn only_sched_idle(&self, c: usize) -> bool {
        self.online(c) && self.cpus[c].sched_idle && self.cpus[c].nr_running == 1
    }

    /// Ours: an offline CPU counts as one of the first LLC, since it can still be a task's previous
    /// CPU.
    fn llc(&self, c: usize) -> usize {
        if self.online(c) {
            self.machine.cpus[c].llc
        } else {
            0
        }
    }

    fn share_cache(&self, a: usize, b: usize) -> bool {
        self.llc(a) == self.llc(b)
    }

    /// The threads of the core of `c`, without `c`, in order of number.
    fn other_threads(&self, c: usize) -> &[usize] {
        self.machine.siblings(c)
    }

    fn core_idle(&self, c: usize) -> bool {
        self.idle(c) && self.other_threads(c).iter().all(|&s| self.idle(s))
    }

    fn llc_cpus(&self, llc: usize) -> &[usize] {
        self.machine.llc_cpus(llc)
    }

    /// Ours: where idle CPUs are only counted, a CPU that runs a SCHED_IDLE task counts as idle,
    /// also if other tasks wait behind it.
    fn counts_as_idle(&self, c: usize) -> bool {
        self.idle(c) || (self.online(c) && self.cpus[c].sched_idle)
    }

    /// test_idle_cores(). Ours: exact. The kernel has a hint, which a failed search corrects.
    fn has_idle_core(&self, llc: usize) -> bool {
        self.machine.smt()
            && self
                .llc_cpus(llc)
                .iter()
                .any(|&c| self.core_counts_as_idle(c))
    }

    fn core_counts_as_idle(&self, c: usize) -> bool {
        let threads = self.other_threads(c).iter().copied();
        threads.chain([c]).all(|t| self.counts_as_idle(t))
    }
}

/// A decision in the making.
struct Ladder<'a> {
    now: &'a Now<'a>,
    w: &'a Wake<'a>,
}

pub fn decide(now: &Now<'_>, w: &Wake<'_>) -> Decision {
    let ladder = Ladder { now, w };
    ladder.delay(if w.fork {
        ladder.fork()
    } else {
        ladder.wakeup()
    })
}

impl Ladder<'_> {
    fn ok(&self, c: usize) -> bool {
        self.now.online(c) && self.w.task.allowed[c]
    }

    /// choose_idle_cpu(): a CPU that runs only a SCHED_IDLE task is free, unless the wakee is
    /// SCHED_IDLE too.
    fn free(&self, c: usize) -> bool {
        let free = self.now.idle(c) || (!self.w.task.sched_idle && self.now.only_sched_idle(c));
        free && !self.claimed(c)
    }

    fn fits(&self, c: usize) -> bool {
        self.w.task.util * 1280 < self.capacity_of(c) * 1024
    }

    /// asym_fits_cpu()
    fn asym_fits(&self, c: usize) -> bool {
        if !self.now.machine.asym() {
            return true;
        }
        let quiet =
            !self.now.machine.smt() || self.now.other_threads(c).iter().all(|&s| self.now.idle(s));
        quiet && self.fits(c)
    }

    fn at(&self, cpu: usize, rung: &'static str) -> Decision {
        Decision {
            cpu,
            rung,
            affine: "",
            how: How::idle(self.now.idle(cpu)),
            recent: self.w.task.recent,
            waker: self.w.waker.waker,
            wakee: self.w.task.waker,
            claims: None,
            claims_core: None,
            delayed: None,
        }
    }

    // ---- wakeup ----

    fn wakeup(&self) -> Decision {
        // Ours: sync_local looks at the pair as it was before this wakeup.
        let local = self.sync_local();
        let waker = self.record_wakee();
        let mut decision = if local {
            Decision {
                how: How::Next,
                ..self.at(self.w.this, "sync_local")
            }
        } else if let Some(cpu) = self.pack() {
            self.taken(cpu, "pack")
        } else if self.prev_core() {
            self.core_taken(self.w.prev, "prev_core")
        } else {
            let (target, affine) = self.target(waker.flips);
            Decision {
                affine,
                ..self.select_idle_sibling(target)
            }
        };
        decision.waker = waker;
        decision
    }

    fn record_wakee(&self) -> Waker {
        let mut waker = self.w.waker.waker;
        if self.w.now - waker.decay_at > 1000 * MSEC {
            waker.flips /= 2;
            waker.decay_at = self.w.now;
        }
        if waker.last_wakee != self.w.task.pid {
            waker.last_wakee = self.w.task.pid;
            waker.flips += 1;
        }
        waker
    }

    /// A sync wakeup of the waker's partner, while the waker runs alone. Partners: each woke the
    /// other last, and both run in short bursts.
    fn sync_local(&self) -> bool {
        let w = self.w;
        let short = |burst: u64| burst > 0 && burst <= SHORT_BURST;
        w.features.sync_local
            && w.sync
            && self.ok(w.this)
            && w.waker.ours
            && w.waker.waker.last_wakee == w.task.pid
            && w.task.waker.last_wakee == w.waker.pid
            && short(w.task.burst)
            && short(w.waker.burst)
            && self.now.cpus[w.this].nr_running == 1
    }

    /// pack, ours: of the node where the task was, the first LLC with a free CPU; in it one beside
    /// a busy thread, else any.
    pub(super) fn pack(&self) -> Option<usize> {
        let machine = self.now.machine;
        if !self.w.features.pack || machine.asym() {
            return None;
        }
        let node_of = |c: usize| {
            if self.now.online(c) {
                machine.cpus[c].node
            } else {
                0
            }
        };
        (0..machine.nr_llcs())
            .map(|llc| self.now.llc_cpus(llc))
            .filter(|cpus| machine.cpus[cpus[0]].node == node_of(self.w.prev))
            .find_map(|cpus| {
                let free = || cpus.iter().copied().filter(|&c| self.ok(c) && self.free(c));
                let beside = |&c: &usize| machine.smt() && !self.now.core_counts_as_idle(c);
                free().find(beside).or_else(|| free().next())
            })
    }

    /// is_idle_core(prev). Ours: the CPU has to be allowed, and no vacant core is bigger.
    fn prev_core(&self) -> bool {
        let prev = self.w.prev;
        self.w.features.prev_core
            && self.ok(prev)
            && self.is_idle_core(prev)
            && self.biggest_vacant(prev)
    }

    /// On a machine of unequal CPUs: no vacant core that the task may use is bigger by over
    /// 5 % (capacity_greater()).
    fn biggest_vacant(&self, than: usize) -> bool {
        let machine = self.now.machine;
        let bigger = |c: usize| self.capacity_of(c) * 1024 > self.capacity_of(than) * 1078;
        let vacant = |c: usize| self.now.core_idle(c) && !self.claimed(c) && self.vacant(c);
        let mut cpus = 0..machine.cpus.len();
        !machine.asym()
            || machine.cpus[than].capacity == 1024
            || !cpus.any(|c| self.ok(c) && bigger(c) && vacant(c))
    }

    /// is_idle_core() of the source: a SCHED_IDLE task counts as idle, also if the wakee is
    /// SCHED_IDLE.
    fn is_idle_core(&self, c: usize) -> bool {
        let free = |t: usize| self.now.idle(t) || self.now.only_sched_idle(t);
        let core = free(c) && self.now.other_threads(c).iter().all(|&s| free(s));
        core && !self.core_claimed(c)
    }

    fn wake_wide(&self, waker_flips: u32) -> bool {
        let wakee_flips = self.w.task.waker.flips;
        let master = u64::from(waker_flips.max(wakee_flips));
        let slave = u64::from(waker_flips.min(wakee_flips));
        let factor = self.now.llc_cpus(self.now.llc(self.w.this)).len() as u64;
        slave >= factor && master >= slave * factor
    }

    fn target(&self, waker_flips: u32) -> (usize, &'static str) {
        let (this, prev) = (self.w.this, self.w.prev);
        if !self.ok(prev) {
            // Ours: the kernel would search around the forbidden CPU and then fall back.
            return (if self.ok(this) { this } else { prev }, "wa_same");
        }
        if self.wake_wide(waker_flips) {
            return (prev, "wa_wide");
        }
        if !self.ok(this) || this == prev {
            return (prev, "wa_same");
        }
        if self.idle_unclaimed(this) && self.now.share_cache(this, prev) {
            return if self.idle_unclaimed(prev) {
                (prev, "wa_idle_prev")
            } else {
                (this, "wa_idle_this")
            };
        }
        if self.w.sync && self.now.cpus[this].nr_running == 1 {
            return (this, "wa_sync");
        }
        if self.w.features.prev_idle && self.idle_unclaimed(prev) {
            return (prev, "wa_prev_idle");
        }
        if self.this_is_lighter() {
            (this, "wa_weight_this")
        } else {
            (prev, "wa_weight_prev")
        }
    }

    /// wake_affine_weight()
    fn this_is_lighter(&self) -> bool {
        let (this, prev) = (self.w.this, self.w.prev);
        let cpus = &self.now.machine.cpus;
        let mut this_eff = i128::from(self.now.cpus[this].load);
        if self.w.sync {
            let current = if self.w.waker.ours {
                i128::from(self.w.waker.load)
            } else {
                0
            };
            if current > this_eff {
                return true;
            }
            this_eff -= current;
        }
        let load = i128::from(self.w.task.load);
        let smt_pair = cpus[this].core == cpus[prev].core;
        let pct = if smt_pair {
            110
        } else {
            i128::from(self.now.imbalance_pct)
        };
        this_eff = (this_eff + load) * 100 * i128::from(cpus[prev].capacity);
        let mut prev_eff = i128::from(self.now.cpus[prev].load) - load;
        prev_eff *= (100 + (pct - 100) / 2) * i128::from(cpus[this].capacity);
        if self.w.sync {
            prev_eff += 1;
        }
        this_eff < prev_eff
    }

    // ---- select_idle_sibling ----

    /// Its core counts as idle and is not claimed.
    fn core_whole(&self, c: usize) -> bool {
        self.now.core_counts_as_idle(c) && !self.core_claimed(c)
    }

    fn has_vacant_core(&self, llc: usize) -> bool {
        let mut cpus = self.now.llc_cpus(llc).iter();
        self.now.machine.smt() && cpus.any(|&c| self.core_whole(c) && self.vacant(c))
    }

    /// Is a free CPU known by name good enough? core_first, ours: not if its sibling is busy while
    /// a search, if allowed, can find a vacant core.
    fn will_do(&self, c: usize) -> bool {
        let llc = self.now.llc(c);
        let search = !self.w.features.sis_util || self.budget(llc) > 0;
        let better = self.w.features.core_first
            && search
            && !self.core_whole(c)
            && self.has_vacant_core(llc);
        self.free(c) && !better && self.asym_fits(c)
    }

    fn select_idle_sibling(&self, target: usize) -> Decision {
        if let Some(cpu) = self.spread(target) {
            return Decision {
                recent: Some(self.w.prev),
                ..self.core_taken(cpu, "spread_wakeup")
            };
        }
        if !self.w.features.recent_core {
            return self.rest_of_siblings(target);
        }
        let decision = match self.recent(target) {
            Some(c) if self.is_idle_core(c) => self.core_taken(c, "recent_core"),
            _ => self.rest_of_siblings(target),
        };
        Decision {
            recent: Some(self.w.prev),
            ..decision
        }
    }

    fn rest_of_siblings(&self, target: usize) -> Decision {
        let w = self.w;
        // SELECT_BIAS_PREV: the previous CPU is tried first, and not again after the target.
        let bias = w.features.bias_prev;
        let early = if bias { self.known_prev(target) } else { None };
        let again = bias && w.prev == target && self.ok(target);
        let found = early.or_else(|| {
            if again {
                None
            } else {
                self.known_target(target)
            }
        });
        let late = !bias && w.prev != target;
        if let Some(d) = found.or_else(|| if late { self.known_prev(target) } else { None }) {
            return d;
        }
        if self.behind_kthread() {
            return Decision {
                how: How::Busy,
                ..self.at(w.prev, "sis_kthread")
            };
        }
        let decision = self.search(target);
        Decision {
            recent: Some(w.prev),
            ..decision
        }
    }

    /// A per-CPU kthread wakes the task on its own CPU, which is the task's previous CPU and runs
    /// nothing else.
    fn behind_kthread(&self) -> bool {
        let w = self.w;
        w.waker.pcpu_kthread
            && self.ok(w.prev)
            && w.prev == w.this
            && self.now.cpus[w.this].nr_running <= 1
            && self.asym_fits(w.prev)
    }

    /// recent_used_cpu, if it is allowed, shares the target's cache, and is neither the target nor
    /// the previous CPU.
    fn recent(&self, target: usize) -> Option<usize> {
        let w = self.w;
        w.task.recent.filter(|&c| {
            c != w.prev && c != target && self.now.share_cache(c, target) && self.ok(c)
        })
    }
}
