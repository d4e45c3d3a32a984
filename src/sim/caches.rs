// SPDX-License-Identifier: GPL-2.0-only
//! How much of a task's data the caches still hold when it runs again. A cache holds what was used
//! last. A running task pushes out what does not fit beside its own data, the data of the task that
//! ran longest ago first.

use super::cost::Move;
use super::params::Params;
use crate::machine::Machine;
use crate::native::TaskId;
use std::collections::VecDeque;

/// A cache: how many bytes it holds of each task, the task that ran longest ago first. A task is in
/// one cache of each kind, so all caches together have no more entries than there are tasks.
#[derive(Clone)]
struct Cache {
    size: u64,
    held: VecDeque<(TaskId, u64)>,
    sum: u64,
}

impl Cache {
    fn new(bytes: u64, decay: f64) -> Cache {
        Cache {
            size: (bytes as f64 / decay) as u64,
            held: VecDeque::new(),
            sum: 0,
        }
    }

    /// The task uses `set` bytes, and the cache holds as many as fit. Returns how many it did not
    /// hold.
    fn hold(&mut self, task: TaskId, set: u64) -> u64 {
        let set = set.min(self.size);
        let had = self.forget(task).min(set);
        self.held.push_back((task, set));
        self.sum += set;
        while self.sum > self.size {
            let (_, oldest) = &mut self.held[0];
            let cut = (*oldest).min(self.sum - self.size);
            *oldest -= cut;
            self.sum -= cut;
            if *oldest == 0 {
                self.held.pop_front();
            }
        }
        set - had
    }

    /// Drops the task's bytes. Returns how many there were.
    fn forget(&mut self, task: TaskId) -> u64 {
        let at = self.held.iter().rposition(|(t, _)| *t == task);
        let (_, bytes) = at.and_then(|at| self.held.remove(at)).unwrap_or_default();
        self.sum -= bytes;
        bytes
    }

    fn lose(&mut self, part: f64) {
        for (_, bytes) in &mut self.held {
            let lost = (*bytes as f64 * part) as u64;
            *bytes -= lost;
            self.sum -= lost;
        }
    }
}

pub struct Caches {
    /// The L2 of each core, and each LLC.
    l2: Vec<Cache>,
    llc: Vec<Cache>,
    /// The core and the LLC of each CPU.
    core_of: Vec<usize>,
    llc_of: Vec<usize>,
    /// For each CPU: bytes that its running task uses again and again. For each LLC: its CPUs, and
    /// the sum of their bytes.
    used: Vec<u64>,
    cpus_of: Vec<Vec<usize>>,
    used_of: Vec<u64>,
    /// ns to load a MB: into the L2, into the LLC, and from another node.
    near: u64,
    far: u64,
    node: u64,
    /// The part of an L2 that a deep idle state loses.
    idle_loses: f64,
}

impl Caches {
    pub fn new(params: &Params, machine: &Machine) -> Caches {
        let decay = params.part("warmth_decay");
        let llc = |kb: Option<u32>| kb.map_or(params.bytes("l3"), |kb| u64::from(kb) * 1000);
        let (mut core_of, mut llc_of) = (Vec::new(), Vec::new());
        core_of.resize(machine.nr_cpu_ids.into(), 0);
        llc_of.resize(machine.nr_cpu_ids.into(), 0);
        let mut cpus_of = vec![Vec::new(); machine.llcs.len()];
        for cpu in &machine.cpus {
            core_of[usize::from(cpu.id)] = cpu.core.into();
            llc_of[usize::from(cpu.id)] = cpu.llc.into();
            cpus_of[usize::from(cpu.llc)].push(cpu.id.into());
        }
        let llc = |l: &crate::machine::Llc| Cache::new(llc(l.size_kb), decay);
        Caches {
            l2: vec![Cache::new(params.bytes("l2"), decay); machine.nr_cores.into()],
            llc: machine.llcs.iter().map(llc).collect(),
            core_of,
            llc_of,
            used: vec![0; machine.nr_cpu_ids.into()],
            used_of: vec![0; cpus_of.len()],
            cpus_of,
            near: params.ns("refill_llc"),
            far: params.ns("refill_other_llc"),
            node: params.ns("refill_node"),
            idle_loses: params.part("refill_idle_l2"),
        }
    }

    /// The task that runs on the CPU from now on uses `set` bytes again and again. 0: nothing runs.
    pub fn uses(&mut self, cpu: usize, set: u64) {
        let sum = &mut self.used_of[self.llc_of[cpu]];
        *sum = *sum + set - std::mem::replace(&mut self.used[cpu], set);
    }

    /// The most that an LLC holds of one running task, if all use their sets again and again.
    /// Smaller sets are held whole; larger ones get equal parts of the rest.
    fn share(&self, llc: usize) -> u64 {
        let size = self.llc[llc].size;
        if self.used_of[llc] <= size {
            return size;
        }
        let mut share = 0;
        loop {
            let (mut rest, mut larger) = (size, 0);
            for &cpu in &self.cpus_of[llc] {
                match self.used[cpu] {
                    set if set > share => larger += 1,
                    set => rest -= set,
                }
            }
            // Sets that fit into this share leave room for a larger one.
            let next = rest / larger;
            if next <= share {
                return share;
            }
            share = next;
        }
    }

    /// The CPU's core was in an idle state that empties its L2.
    pub fn emptied(&mut self, cpu: usize) {
        self.l2[self.core_of[cpu]].lose(self.idle_loses);
    }

    /// The task, which uses `set` bytes again and again, runs on `cpu` and last ran on `from`.
    /// Returns ns until the caches hold these bytes again. `from` is None for a task that has not
    /// run: it loads them as a part of its work.
    pub fn runs(&mut self, task: TaskId, cpu: usize, from: Option<(usize, Move)>, set: u64) -> u64 {
        self.uses(cpu, set);
        if set == 0 {
            return 0;
        }
        // The task writes its data here from now on, so what it left elsewhere is stale.
        if let Some((from, moved)) = from {
            if moved != Move::SameCore {
                self.l2[self.core_of[from]].forget(task);
            }
            if matches!(moved, Move::OtherLlc | Move::OtherNode) {
                self.llc[self.llc_of[from]].forget(task);
            }
        }
        let set = set.min(self.share(self.llc_of[cpu]));
        let l2 = self.l2[self.core_of[cpu]].hold(task, set);
        let llc = self.llc[self.llc_of[cpu]].hold(task, set);
        let ns = |bytes: u64, per_mb: u64| bytes * per_mb / 1_000_000;
        match from {
            None => 0,
            Some((_, Move::SameCore | Move::SameLlc)) => {
                ns(l2.saturating_sub(llc), self.near) + ns(llc, self.far)
            }
            Some((_, Move::OtherLlc)) => ns(set, self.far),
            Some((_, Move::OtherNode)) => ns(set, self.node),
        }
    }
}
