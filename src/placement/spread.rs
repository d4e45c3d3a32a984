// SPDX-License-Identifier: GPL-2.0-only
//! smt_spread, ours: a machine that is not full should end with one thread per core.

use super::Ladder;
#[cfg(feature = "internals")]
use super::topology::Topology;

/// A task that usually runs for less is not worth a move. ns, the kernel's
/// sysctl_sched_migration_cost.
pub(super) const MIGRATION_COST: u64 = 500_000;

/// A core is vacant when each of its threads has been idle for this long. `ns` is twice the sleep
/// of a task that wakes, or the busy time of the CPU that a running task leaves. The result is
/// between one and ten migration costs. ns
pub(super) fn vacant_after(ns: u64) -> u64 {
    ns.clamp(MIGRATION_COST, 10 * MIGRATION_COST)
}

impl Ladder<'_> {
    /// Idle for twice as long as the task slept: the task that left this core probably does not
    /// wake together with this one.
    pub(super) fn vacant(&self, c: usize) -> bool {
        let least = vacant_after(2 * self.w.task.slept);
        let long = |c: usize| {
            let now = &self.now.cpus[c];
            now.idle && now.idle_for.is_none_or(|ns| ns >= least)
        };
        long(c) && self.now.other_threads(c).iter().all(|&s| long(s))
    }

    /// An idle core in another LLC of the node, then in another node, if the target's LLC has no
    /// vacant core.
    pub(super) fn spread(&self, target: usize) -> Option<usize> {
        let machine = self.now.machine;
        let asked = self.w.features.smt_spread && self.w.task.burst >= MIGRATION_COST;
        let apt = machine.smt() && !machine.asym() && !self.behind_kthread();
        if !asked || !apt || self.has_vacant_core(self.now.llc(target)) {
            return None;
        }
        // A task whose own core is idle keeps it.
        let prev = self.w.prev;
        if self.ok(prev) && self.now.share_cache(prev, target) && self.core_whole(prev) {
            return None;
        }
        let node = if self.now.online(target) {
            machine.cpus[target].node
        } else {
            0
        };
        let in_llcs = |near: bool| {
            let cpus = (0..machine.nr_llcs()).flat_map(|l| self.now.llc_cpus(l));
            let mut usable = cpus
                .copied()
                .filter(|&c| self.ok(c) && (!near || machine.cpus[c].node == node));
            usable.find(|&c| self.idle_core(c) && self.vacant(c))
        };
        in_llcs(true).or_else(|| in_llcs(false))
    }
}

/// The state that decides about a running task: how long each CPU has been busy or idle, and how
/// long ago its core last sent a task away. ns
#[cfg(feature = "internals")]
#[derive(Debug)]
pub struct Core {
    pub idle: Vec<bool>,
    pub busy_for: Vec<u64>,
    pub idle_for: Vec<u64>,
    pub sent: u64,
    /// How long the task has run since it woke. `partners`: sync_local is on, so the task's waker
    /// follows it.
    pub ran: u64,
    pub partners: bool,
    pub allowed: Vec<bool>,
    pub slice: u64,
}

/// Two threads of a core have run for a slice while another core is vacant: one task moves. The
/// search starts from the first CPU of a cache.
#[cfg(feature = "internals")]
pub fn leaves_for(machine: &Topology, now: &Core, cpu: usize) -> Option<usize> {
    let long = |c: usize| !now.idle[c] && now.busy_for[c] >= now.slice;
    let shares = long(cpu) && machine.siblings(cpu).iter().any(|&s| long(s));
    if !shares || now.busy_for[cpu] < MIGRATION_COST || now.sent < now.slice {
        return None;
    }
    if now.ran < MIGRATION_COST && !now.partners {
        return None;
    }
    let free = |c: usize| now.idle[c] && now.idle_for[c] >= vacant_after(now.busy_for[cpu]);
    let vacant = |c: usize| free(c) && machine.siblings(c).iter().all(|&s| free(s));
    let own = &machine.cpus[cpu];
    // The nearest first: the LLC, then the node, then by number of the LLC and of the CPU.
    let far = |c: usize| {
        let there = &machine.cpus[c];
        (there.llc != own.llc, there.node != own.node, there.llc, c)
    };
    (0..machine.nr_cpu_ids())
        .filter(|&c| now.allowed[c] && vacant(c))
        .min_by_key(|&c| far(c))
}
