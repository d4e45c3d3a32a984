// SPDX-License-Identifier: GPL-2.0-only
//! How much of a task's data the caches hold. A cache holds what was used last. A running task
//! touches its data at a steady pace, so a short run loads only a part of what the cache lacks. It
//! pushes out what does not fit beside its own data, the data of the task that ran longest ago
//! first.

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
    fn new(bytes: u64) -> Cache {
        Cache {
            size: bytes,
            held: VecDeque::new(),
            sum: 0,
        }
    }

    /// The task touches `touched` of its `set` bytes. Returns how many it loads: those that were
    /// not held.
    fn touch(&mut self, task: TaskId, set: u64, touched: u64) -> u64 {
        let most = set.min(self.size);
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

    fn empty(&mut self) {
        self.held.clear();
        self.sum = 0;
    }
}

/// How a task begins whose data the caches do not hold: with `work` ns of work that touch them, and
/// `loads` ns more, mixed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cold {
    pub work: u64,
    pub loads: u64,
}

pub struct Caches {
    /// The L2 of each core, and each LLC.
    l2: Vec<Cache>,
    llc: Vec<Cache>,
    /// The core and the LLC of each CPU.
    core_of: Vec<usize>,
    llc_of: Vec<usize>,
    /// ns of work in which a task touches a MB of its data.
    pace: u64,
    /// ns to load a MB: into the L2, into the LLC, and from another node.
    near: u64,
    far: u64,
    node: u64,
}

impl Caches {
    pub fn new(params: &Params, machine: &Machine) -> Caches {
        let llc = |kb: Option<u32>| kb.map_or(params.bytes("l3"), |kb| u64::from(kb) * 1000);
        let (mut core_of, mut llc_of) = (Vec::new(), Vec::new());
        core_of.resize(machine.nr_cpu_ids.into(), 0);
        llc_of.resize(machine.nr_cpu_ids.into(), 0);
        for cpu in &machine.cpus {
            core_of[usize::from(cpu.id)] = cpu.core.into();
            llc_of[usize::from(cpu.id)] = cpu.llc.into();
        }
        let llc = |l: &scx_roost::machine::Llc| Cache::new(llc(l.size_kb));
        Caches {
            l2: vec![Cache::new(params.bytes("l2")); machine.nr_cores.into()],
            llc: machine.llcs.iter().map(llc).collect(),
            core_of,
            llc_of,
            // At least a ns: it divides.
            pace: params.ns("touch").max(1),
            near: params.ns("refill_llc"),
            far: params.ns("refill_other_llc"),
            node: params.ns("refill_node"),
        }
    }

    /// Tasks touch a MB of their data in `ns` of work.
    pub fn set_pace(&mut self, ns: u64) {
        // At least a ns: it divides.
        self.pace = ns.max(1);
    }

    /// The CPU's core was in an idle state that empties its L2.
    pub fn emptied(&mut self, cpu: usize) {
        self.l2[self.core_of[cpu]].empty();
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

    /// The task works for `work` ns on the CPU. `far`: how far it moved from what the LLC does not
    /// hold.
    pub fn touches(&mut self, task: TaskId, cpu: usize, set: u64, work: u64, far: Move) -> Cold {
        let touched = (u128::from(work) * 1_000_000 / u128::from(self.pace)).min(set.into()) as u64;
        if touched == 0 {
            return Cold::default();
        }
        let (core, llc) = (self.core_of[cpu], self.llc_of[cpu]);
        let l2 = self.l2[core].touch(task, set, touched);
        let llc = self.llc[llc].touch(task, set, touched);
        let far = match far {
            Move::OtherNode => self.node,
            _ => self.far,
        };
        let ns = |bytes: u64, per_mb: u64| bytes * per_mb / 1_000_000;
        Cold {
            work: ns(touched, self.pace),
            loads: ns(l2.saturating_sub(llc), self.near) + ns(llc, far),
        }
    }
}
