// SPDX-License-Identifier: GPL-2.0-only
//! smt_spread, ours: one thread per core is where a machine that is not full comes to rest.

use super::Ladder;
use crate::topology::Topology;

/// "Who runs for less is not worth a move." ns, the kernel's sysctl_sched_migration_cost.
pub(super) const MIGRATION_COST: u64 = 500_000;

/// "A core is vacant for who slept for so long, or leaves a CPU that was busy for so long, when each thread of it has been idle for as long: more than a migration costs, and no
/// more than ten times that." ns
pub(super) fn vacant_after(ns: u64) -> u64 {
    ns.clamp(MIGRATION_COST, 10 * MIGRATION_COST)
}

impl Ladder<'_> {
    /// Whoever left that core did not leave with the task: it has been idle for twice as long as the task has slept.
    pub(super) fn vacant(&self, c: usize) -> bool {
        let least = vacant_after(2 * self.w.task.slept);
        let long = |c: usize| {
            let now = &self.now.cpus[c];
            now.idle && now.idle_for.is_none_or(|ns| ns >= least)
        };
        long(c) && self.now.other_threads(c).iter().all(|&s| long(s))
    }

    /// A core of its own, of the node, then of the machine, where the target's LLC has none to give.
    pub(super) fn spread(&self, target: usize) -> Option<usize> {
        let machine = self.now.machine;
        let asked = self.w.features.smt_spread && self.w.task.burst >= MIGRATION_COST;
        let apt = machine.smt() && !machine.asym() && !self.behind_kthread();
        if !asked || !apt || self.has_vacant_core(self.now.llc(target)) {
            return None;
        }
        // "Who has an idle core of its own there keeps it."
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

/// What decides on a running task: for how long each CPU has been busy or idle, how long ago its core last sent one away, ns.
#[derive(Debug)]
pub struct Core {
    pub idle: Vec<bool>,
    pub busy_for: Vec<u64>,
    pub idle_for: Vec<u64>,
    pub sent: u64,
    /// For how long the task has run since it woke; who wakes it in turn stays with it (sync_local).
    pub ran: u64,
    pub partners: bool,
    pub allowed: Vec<bool>,
    pub slice: u64,
}

/// Seen from the first CPU of a cache. "Two tasks that have been running on two threads of one core for a slice while another core is vacant: one moves."
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
    // The nearest: the LLC, the node, then by number of the LLC and of the CPU.
    let far = |c: usize| {
        let there = &machine.cpus[c];
        (there.llc != own.llc, there.node != own.node, there.llc, c)
    };
    (0..machine.len())
        .filter(|&c| now.allowed[c] && vacant(c))
        .min_by_key(|&c| far(c))
}
