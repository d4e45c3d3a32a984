// SPDX-License-Identifier: GPL-2.0-only
//! How much of a task's data the caches hold. A cache holds what was used last. A running task
//! touches its data at a steady pace, so a short run loads only a part of what the cache lacks. It
//! pushes out what does not fit beside its own data, the data of the task that ran longest ago
//! first. Threads of a core share its L2: while both run, what does not fit beside the other's data
//! is loaded again and again, so that both are slower.

use super::cost::Move;
use super::params::Params;
use scx_roost::machine::Machine;
use scx_roost::native::TaskId;
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

    /// The task touches `touched` of its `set` bytes, of which the cache holds at most `most`.
    /// Returns how many bytes it loads: those of the touched ones that were not held.
    fn touch(&mut self, task: TaskId, set: u64, touched: u64, most: u64) -> u64 {
        let most = set.min(most).min(self.size);
        let had = self.forget(task).min(most);
        let loads = (u128::from(most - had) * u128::from(touched)).div_ceil(u128::from(set)) as u64;
        self.held.push_back((task, had + loads));
        self.sum += had + loads;
        while self.sum > self.size {
            let (_, oldest) = &mut self.held[0];
            let cut = (*oldest).min(self.sum - self.size);
            *oldest -= cut;
            self.sum -= cut;
            if *oldest == 0 {
                self.held.pop_front();
            }
        }
        loads
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

/// The CPUs that share a cache.
#[derive(Clone, Default)]
struct Users {
    cpus: Vec<usize>,
    sum: u64,
}

pub struct Caches {
    /// The L2 of each core, and each LLC.
    l2: Vec<Cache>,
    llc: Vec<Cache>,
    /// The core and the LLC of each CPU.
    core_of: Vec<usize>,
    llc_of: Vec<usize>,
    /// For each CPU: bytes that its running task uses again and again. For each core and LLC: its
    /// CPUs, and the sum of their bytes.
    used: Vec<u64>,
    of_core: Vec<Users>,
    of_llc: Vec<Users>,
    /// ns of work in which a task touches a MB of its data.
    pace: u64,
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
        let mut of_core = vec![Users::default(); machine.nr_cores.into()];
        let mut of_llc = vec![Users::default(); machine.llcs.len()];
        for cpu in &machine.cpus {
            core_of[usize::from(cpu.id)] = cpu.core.into();
            llc_of[usize::from(cpu.id)] = cpu.llc.into();
            of_core[usize::from(cpu.core)].cpus.push(cpu.id.into());
            of_llc[usize::from(cpu.llc)].cpus.push(cpu.id.into());
        }
        let llc = |l: &scx_roost::machine::Llc| Cache::new(llc(l.size_kb), decay);
        Caches {
            l2: vec![Cache::new(params.bytes("l2"), decay); machine.nr_cores.into()],
            llc: machine.llcs.iter().map(llc).collect(),
            core_of,
            llc_of,
            used: vec![0; machine.nr_cpu_ids.into()],
            of_core,
            of_llc,
            // At least a ns: it divides.
            pace: params.ns("touch").max(1),
            near: params.ns("refill_llc"),
            far: params.ns("refill_other_llc"),
            node: params.ns("refill_node"),
            idle_loses: params.part("refill_idle_l2"),
        }
    }

    /// Tasks touch a MB of their data in `ns` of work.
    pub fn set_pace(&mut self, ns: u64) {
        // At least a ns: it divides.
        self.pace = ns.max(1);
    }

    /// The task that runs on the CPU from now on uses `set` bytes again and again. 0: nothing runs.
    /// True: other threads of the core may become slower or faster by that.
    pub fn uses(&mut self, cpu: usize, set: u64) -> bool {
        let before = std::mem::replace(&mut self.used[cpu], set);
        let sum = |users: &mut Users| users.sum = users.sum + set - before;
        sum(&mut self.of_core[self.core_of[cpu]]);
        sum(&mut self.of_llc[self.llc_of[cpu]]);
        before != set
    }

    /// The most that a cache of `size` bytes holds of one running task, if all use their sets again
    /// and again. Smaller sets are held whole; larger ones get equal parts of the rest.
    fn share(&self, size: u64, users: &Users) -> u64 {
        if users.sum <= size {
            return size;
        }
        let mut share = 0;
        loop {
            let (mut rest, mut larger) = (size, 0);
            for &cpu in &users.cpus {
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

    fn l2_share(&self, cpu: usize) -> u64 {
        let core = self.core_of[cpu];
        self.share(self.l2[core].size, &self.of_core[core])
    }

    /// `rate`, less what the running task loses since other threads of the core use its L2 too.
    /// What its L2 would lack anyway is a part of its work.
    pub fn beside(&self, cpu: usize, rate: u64) -> u64 {
        let core = self.core_of[cpu];
        let set = self.used[cpu];
        if self.of_core[core].sum == set {
            return rate;
        }
        let size = self.l2[core].size;
        let lacks = set.min(size) - set.min(self.l2_share(cpu));
        // In the time of `set` bytes, `lacks` bytes are loaded.
        let (work, loads) = (set * self.pace, lacks * self.near);
        match work {
            0 => rate,
            _ => (u128::from(rate) * u128::from(work) / u128::from(work + loads)) as u64,
        }
    }

    /// The CPU's core was in an idle state that empties its L2.
    pub fn emptied(&mut self, cpu: usize) {
        self.l2[self.core_of[cpu]].lose(self.idle_loses);
    }

    /// The task, which uses `set` bytes again and again, comes from `from`. It writes its data here
    /// from now on, so what it left elsewhere is stale.
    pub fn leaves(&mut self, task: TaskId, from: usize, moved: Move) {
        if moved != Move::SameCore {
            self.l2[self.core_of[from]].forget(task);
        }
        if matches!(moved, Move::OtherLlc | Move::OtherNode) {
            self.llc[self.llc_of[from]].forget(task);
        }
    }

    /// The task loads all of its data, as a part of its work.
    pub fn fills(&mut self, task: TaskId, cpu: usize, set: u64) {
        self.touches(task, cpu, set, u64::MAX, Move::SameCore);
    }

    /// The task works for `work` ns on the CPU. Returns the ns by which that is longer, because the
    /// caches do not hold its data. `far`: how far it moved from what the LLC does not hold.
    pub fn touches(&mut self, task: TaskId, cpu: usize, set: u64, work: u64, far: Move) -> u64 {
        let touched = (u128::from(work) * 1_000_000 / u128::from(self.pace)).min(set.into()) as u64;
        if touched == 0 {
            return 0;
        }
        let (core, llc) = (self.core_of[cpu], self.llc_of[cpu]);
        let share = self.share(self.llc[llc].size, &self.of_llc[llc]);
        let l2_share = self.l2_share(cpu);
        let l2 = self.l2[core].touch(task, set, touched, l2_share);
        let llc = self.llc[llc].touch(task, set, touched, share);
        let far = match far {
            Move::OtherNode => self.node,
            _ => self.far,
        };
        let ns = |bytes: u64, per_mb: u64| bytes * per_mb / 1_000_000;
        ns(l2.saturating_sub(llc), self.near) + ns(llc, far)
    }
}
