// SPDX-License-Identifier: GPL-2.0-only
//! The policy of src/bpf/policy/, compiled natively and run over memory that a [`World`] owns.
//! Tests, benches and the simulator call the C only through this module. It decides nothing itself:
//! the C is the same as in the kernel.

mod claims;
mod delay;
mod kernel;
mod queues;
pub mod sys;
mod task;

pub use claims::Placer;
pub use kernel::{Act, Attr, Insert, Kernel, SchedPolicy, TaskId, To};
pub use queues::Queues;
pub use task::{Task, Wakeup};

use crate::bpf::intf::{MAX_ARMS, arm, policy_image, tunables};
use crate::machine::Facts;
use crate::publish::image;
use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::ptr;

/// Memory that C changes through raw pointers; in some tests on several threads.
struct Shared<T>(Box<[UnsafeCell<T>]>);

// SAFETY: C changes what threads share by atomics only, or on the one thread that owns the CPU
// (policy/state.h).
unsafe impl<T> Sync for Shared<T> {}

impl<T: Default> Shared<T> {
    fn new(len: usize) -> Self {
        Shared((0..len).map(|_| UnsafeCell::new(T::default())).collect())
    }

    fn ptr(&self) -> *mut T {
        UnsafeCell::raw_get(self.0.as_ptr())
    }

    /// An element. No C may run on another thread meanwhile.
    fn get(&self, index: usize) -> &T {
        // SAFETY: the element exists, and by the rule above nothing changes it.
        unsafe { &*self.0[index].get() }
    }

    fn get_mut(&mut self, index: usize) -> &mut T {
        self.0[index].get_mut()
    }
}

/// One machine: its facts, all of the policy's state, and the kernel's view of its CPUs.
pub struct World {
    facts: Box<Facts>,
    tunables: tunables,
    policy: Box<policy_image>,
    views: Shared<sys::cpu_view>,
    cpus: Shared<sys::cpu_state>,
    llcs: Shared<sys::llc_state>,
    llc_sets: Shared<sys::llc_sets>,
    domains: Shared<sys::domains>,
    cgroups: Shared<sys::cgroup_state>,
    bandwidths: Shared<sys::bandwidth>,
    limits: Shared<sys::limits>,
    parks: Shared<sys::park>,
    freqs: Vec<u64>,
    llc_scans: Vec<u64>,
    counters: Vec<u64>,
    /// How far each read of the clock advances it, ns.
    pub clock_step: u64,
}

impl World {
    /// A world as right after the load: all CPUs are busy and the sets are empty. All tasks are on
    /// `arm`. `cgroups` is the size of the table of cgroups, including the root.
    pub fn new(facts: Facts, arm: arm, tunables: tunables, cgroups: usize) -> Self {
        let mut world = World {
            tunables,
            policy: Box::new(image(&[arm], &facts.capacities())),
            views: Shared::new(facts.cpus.len()),
            cpus: Shared::new(facts.cpus.len()),
            llcs: Shared::new(facts.llcs.len()),
            llc_sets: Shared::new(1),
            domains: Shared::new(1),
            cgroups: Shared::new(cgroups.max(1)),
            bandwidths: Shared::new(cgroups.max(1)),
            limits: Shared::new(1),
            parks: Shared::new(sys::PARK_QUEUES as usize),
            freqs: vec![0; facts.cpus.len()],
            llc_scans: vec![0; facts.llcs.len()],
            counters: no_counters(),
            facts: Box::new(facts),
            clock_step: 0,
        };
        for cpu in 0..world.facts.cpus.len() {
            if world.facts.cpus[cpu].online == 0 {
                world.domains.get_mut(0).away[cpu] = 1;
                continue;
            }
            // SAFETY: the CPU exists.
            world.run(|w| unsafe { sys::roost_cpu_begins(w, cpu as i32) });
        }
        world
    }

    /// Calls the policy on this world.
    fn run<R>(&mut self, call: impl FnOnce(*mut sys::world) -> R) -> R {
        let counters = self.counters.as_mut_ptr();
        call(&mut self.raw(counters))
    }

    /// The world for C. Its pointers are valid as long as `self`.
    fn raw(&self, counters: *mut u64) -> sys::world {
        sys::world {
            machine: self.facts.machine,
            tunables: self.tunables,
            policy: &raw const *self.policy,
            cpus: self.facts.cpus.as_ptr(),
            llcs: self.facts.llcs.as_ptr(),
            nodes: self.facts.nodes.as_ptr(),
            llc_cpus: self.facts.llc_cpus.as_ptr(),
            views: self.views.ptr(),
            cpu_states: self.cpus.ptr(),
            llc_states: self.llcs.ptr(),
            llc_sets: self.llc_sets.ptr(),
            domains: self.domains.ptr(),
            cgroups: self.cgroups.ptr(),
            bandwidths: self.bandwidths.ptr(),
            limits: self.limits.ptr(),
            parks: self.parks.ptr(),
            nr_cgroups: self.cgroups.0.len() as u64,
            freqs: self.freqs.as_ptr(),
            llc_scans: self.llc_scans.as_ptr(),
            wakeup: sys::wakeup::default(),
            counters,
            yields: false,
            clock: 0,
            clock_step: self.clock_step,
            queues: ptr::null_mut(),
            queue_take: None,
            queue_length: None,
            queue_next: None,
            queued_move: None,
            queued_requeue: None,
            times: ptr::null_mut(),
            kernel: ptr::null(),
            self_: ptr::null_mut(),
            runs: ptr::null(),
            current: ptr::null_mut(),
            this_cpu: 0,
            immed: 0,
        }
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    pub fn tunables(&self) -> &tunables {
        &self.tunables
    }

    pub fn policy(&self) -> &policy_image {
        &self.policy
    }

    pub fn policy_mut(&mut self) -> &mut policy_image {
        &mut self.policy
    }

    pub fn nr_cpus(&self) -> usize {
        self.facts.cpus.len()
    }

    pub fn cpu(&self, cpu: usize) -> &sys::cpu_state {
        self.cpus.get(cpu)
    }

    pub fn cpu_mut(&mut self, cpu: usize) -> &mut sys::cpu_state {
        self.cpus.get_mut(cpu)
    }

    pub fn llc(&self, llc: usize) -> &sys::llc_state {
        self.llcs.get(llc)
    }

    pub fn llc_mut(&mut self, llc: usize) -> &mut sys::llc_state {
        self.llcs.get_mut(llc)
    }

    /// Sets how many CPUs of the LLC a scan may visit; 0: unknown. Valid for `left_ms` more, by a
    /// clock that does not advance; below 0: no longer valid.
    pub fn set_scan(&mut self, llc: usize, worth: u32, left_ms: i32) {
        let until = (self.clock_step / 1_000_000) as u32;
        let until = until.wrapping_add_signed(left_ms);
        self.llc_scans[llc] = u64::from(until) << 32 | u64::from(worth);
    }

    /// What `set_scan` has set.
    pub fn llc_scans(&self) -> &[u64] {
        &self.llc_scans
    }

    pub fn llc_sets(&self) -> &sys::llc_sets {
        self.llc_sets.get(0)
    }

    pub fn cgroup(&self, index: usize) -> &sys::cgroup_state {
        self.cgroups.get(index)
    }

    pub fn cgroup_mut(&mut self, index: usize) -> &mut sys::cgroup_state {
        self.cgroups.get_mut(index)
    }

    /// The CPU limit of a group and its accounting.
    pub fn bandwidth(&self, index: usize) -> &sys::bandwidth {
        self.bandwidths.get(index)
    }

    /// A queue of parked tasks.
    pub fn park(&self, queue: usize) -> &sys::park {
        self.parks.get(queue)
    }

    pub fn view(&self, cpu: usize) -> &sys::cpu_view {
        self.views.get(cpu)
    }

    pub fn view_mut(&mut self, cpu: usize) -> &mut sys::cpu_view {
        self.views.get_mut(cpu)
    }

    /// Makes the CPU idle, for the kernel and for the policy.
    pub fn set_idle(&mut self, cpu: usize) {
        *self.view_mut(cpu) = sys::cpu_view {
            idle: 1,
            domain: self.view(cpu).domain,
            ..Default::default()
        };
        self.mark_idle(cpu);
    }

    /// Makes the CPU run one task.
    pub fn set_busy(&mut self, cpu: usize) {
        *self.view_mut(cpu) = sys::cpu_view {
            nr_running: 1,
            domain: self.view(cpu).domain,
            ..Default::default()
        };
        self.mark_busy(cpu);
    }

    // ---- counters ----

    /// The value of a counter of stats.tbl.h, over all arms.
    pub fn count(&self, stat: sys::roost_stat) -> u64 {
        (0..MAX_ARMS).map(|arm| self.count_for(arm, stat)).sum()
    }

    /// As `count`, for one arm. Events without a task count for arm 0.
    pub fn count_for(&self, arm: u32, stat: sys::roost_stat) -> u64 {
        self.counters[(arm * sys::ROOST_NR_STATS + stat) as usize]
    }

    /// A row of ROOST_NR_STATS for each arm.
    pub fn counters_mut(&mut self) -> &mut [u64] {
        &mut self.counters
    }

    pub fn clear_counters(&mut self) {
        self.counters.fill(0);
    }

    // ---- placement ----

    /// Chooses the CPU of a wakeup or fork. Like a wakeup, this changes the waker's record, the
    /// recently used CPU and the counters.
    pub fn place(&mut self, wakeup: Wakeup<'_>) -> sys::placement {
        let mut port = wakeup.port();
        let raw = wakeup.raw();
        let task = &raw mut wakeup.task.state;
        let waker = wakeup.waker.map_or(ptr::null_mut(), |w| &raw mut w.state);
        // SAFETY: the world and the tasks live through the call.
        self.run(|w| unsafe { sys::roost_place(w, &mut port, task, waker, &raw) })
    }

    // ---- domains of load balance ----

    /// Sets the domain of the CPU, as the kernel would report it.
    pub fn set_domain(&mut self, cpu: usize, domain: u32) {
        self.views.get_mut(cpu).domain = domain;
    }

    /// Checks the next few CPUs, as a tick does.
    pub fn look_at_domains(&mut self) {
        // SAFETY: the world lives through the call.
        self.run(|w| unsafe { sys::roost_domains_look(w) });
    }

    // ---- sets ----

    pub fn mark_idle(&mut self, cpu: usize) {
        self.check(cpu);
        // SAFETY: the CPU exists.
        self.run(|w| unsafe { sys::roost_mark_idle(w, cpu as i32) });
    }

    pub fn mark_busy(&mut self, cpu: usize) {
        self.check(cpu);
        // SAFETY: the CPU exists.
        self.run(|w| unsafe { sys::roost_mark_busy(w, cpu as i32) });
    }

    pub fn mark_waiting(&mut self, cpu: usize) {
        self.check(cpu);
        // SAFETY: the CPU exists.
        self.run(|w| unsafe { sys::roost_mark_waiting(w, cpu as i32) });
    }

    pub fn unmark_waiting(&mut self, cpu: usize) {
        self.check(cpu);
        // SAFETY: the CPU exists.
        self.run(|w| unsafe { sys::roost_unmark_waiting(w, cpu as i32) });
    }

    /// The same sets for one more thread, which must be the only one to mark its CPUs.
    pub fn marker(&self) -> Marker<'_> {
        Marker {
            world: self,
            counters: no_counters(),
        }
    }

    fn check(&self, cpu: usize) {
        assert!(
            self.facts.cpus.get(cpu).is_some_and(|c| c.online != 0),
            "CPU {cpu} is not online in this world"
        );
    }

    // ---- cgroups ----

    /// The task becomes runnable.
    pub fn cgroup_enter(&mut self, task: &mut Task) {
        // SAFETY: the task lives through the call; C checks the index of its group.
        self.run(|w| unsafe { sys::roost_cgroup_enter(w, &mut task.state) });
    }

    /// The task sleeps or leaves.
    pub fn cgroup_leave(&mut self, task: &mut Task) {
        // SAFETY: see `cgroup_enter`.
        self.run(|w| unsafe { sys::roost_cgroup_leave(w, &mut task.state) });
    }

    /// The task's group or nice weight changed.
    pub fn cgroup_follow(&mut self, task: &mut Task) {
        // SAFETY: see `cgroup_enter`.
        self.run(|w| unsafe { sys::roost_cgroup_follow(w, &mut task.state) });
    }

    /// The task goes to another group, awake or asleep.
    pub fn cgroup_move(&mut self, task: &mut Task, index: usize) {
        // SAFETY: the task lives through the call; C checks the index.
        self.run(|w| unsafe { sys::roost_cgroup_move(w, &mut task.state, index as u32) });
    }

    /// One sweep of all cgroups, as CPUs do every SWEEP_NS.
    pub fn cgroup_sweep(&mut self) {
        // SAFETY: only what the world owns is touched.
        self.run(|w| unsafe { sys::roost_cgroup_sweep(w) });
    }

    /// Sets cpu.weight, scaled to `NICE0_WEIGHT` = 100, and cpu.idle of a group.
    pub fn cgroup_weigh(&mut self, index: usize, cpu_weight: u32, idle: bool) {
        // SAFETY: C checks the index.
        self.run(|w| unsafe { sys::roost_cgroup_weigh(w, index as u32, cpu_weight, idle) });
    }

    /// The task takes over the current weight and cpu.idle of its group.
    pub fn cgroup_apply(&mut self, task: &mut Task, now: u64) {
        // SAFETY: the task lives through the call; C checks the index of its group.
        self.run(|w| unsafe { sys::roost_cgroup_apply(w, &mut task.state, now) });
    }

    pub fn cgroup_task_weight(&mut self, index: usize, nice_weight: u32) -> u32 {
        // SAFETY: C checks the index.
        self.run(|w| unsafe { sys::roost_cgroup_task_weight(w, index as u32, nice_weight) })
    }
}

/// Marks CPUs in the sets of a world, from one thread.
pub struct Marker<'a> {
    world: &'a World,
    counters: Vec<u64>,
}

impl Marker<'_> {
    pub fn mark(&mut self, cpu: usize, idle: bool) {
        self.world.check(cpu);
        let mut raw = self.world.raw(self.counters.as_mut_ptr());
        // SAFETY: the CPU exists; sets change by atomics only.
        unsafe {
            if idle {
                sys::roost_mark_idle(&mut raw, cpu as i32);
            } else {
                sys::roost_mark_busy(&mut raw, cpu as i32);
            }
        }
    }
}

/// One row of counters per arm.
fn no_counters() -> Vec<u64> {
    vec![0; (MAX_ARMS * sys::ROOST_NR_STATS) as usize]
}

/// The name of a counter, as in stats.tbl.h.
pub fn stat_name(stat: sys::roost_stat) -> &'static str {
    // SAFETY: C answers with a static string, or NULL.
    let name = unsafe { sys::roost_stat_name(stat) };
    assert!(!name.is_null(), "there is no counter {stat}");
    // SAFETY: as above; the rows of the table are ASCII.
    unsafe { CStr::from_ptr(name) }
        .to_str()
        .expect("names of counters are ASCII")
}

/// The counter with that name.
pub fn stat_of(name: &str) -> Option<sys::roost_stat> {
    (0..sys::ROOST_NR_STATS).find(|&s| stat_name(s) == name)
}

/// A signal after `ns` without activity (signal.h).
pub fn decayed(avg: u64, ns: u64) -> u64 {
    // SAFETY: pure.
    unsafe { sys::roost_decayed(avg, ns) }
}

/// How many CPUs of an LLC of utilisation `util` a wakeup may visit (select_idle.h).
pub fn scan_budget(util: u64, nr_cpus: u32) -> u32 {
    assert!(nr_cpus > 0, "an LLC has CPUs");
    // SAFETY: pure.
    unsafe { sys::roost_scan_budget(util, nr_cpus) }
}

/// The weight of a nice level, -20..=19, of `sys::NICE0_WEIGHT` (settings.h).
pub fn nice_weight(nice: i32) -> u32 {
    // SAFETY: pure.
    unsafe { sys::roost_nice_weight(nice) }
}

/// Index of the lowest set bit of a word, which must not be 0 (bits.h).
pub fn lowest_bit(word: u64) -> u32 {
    // SAFETY: pure.
    unsafe { sys::roost_lowest_bit(word) }
}

pub fn count_bits(word: u64) -> u32 {
    // SAFETY: pure.
    unsafe { sys::roost_count_bits(word) }
}
