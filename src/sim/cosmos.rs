// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler by the rules of scx_cosmos, in our own code, as Roy v7 ran it (`-m all -s 1250
//! -l 50000 -c 0 -p 0`). A task that wakes takes an idle CPU, a whole core before a thread, near
//! before far. Else it waits in a queue of its node, by deadline; with a busy threshold of 0 that
//! queue is always in use. A task beside a busy sibling leaves at the end of its slice if a CPU is
//! idle.

use super::cpus::Cpus;
use super::fair::{LLC, Levels, NICE0, weight};
use super::sched::{Order, Scheduler, Wake};
use crate::native::sys::timer_kind;
use crate::native::{Attr, Kernel, TaskId};
use std::collections::VecDeque;

/// Options -s and -l of Roy v7, ns.
const SLICE: u64 = 1_250_000;
const LAG: u64 = 50_000_000;
/// Wakeups in FREQ_PERIOD ns, at most FREQ_MAX, widen a task's credit.
const FREQ_PERIOD: u64 = 100_000_000;
const FREQ_MAX: u64 = 1024;

#[derive(Clone, Default)]
struct Entity {
    weight: u64,
    /// Virtual ns.
    vtime: u64,
    /// ns that it has run since it woke, no more than LAG.
    awake: u64,
    woken_at: u64,
    freq: u64,
    slice: u64,
    /// ns that it has run since it was picked.
    used: u64,
    /// Between placement and arrival: whether it goes straight to its CPU, and whether it was asked
    /// where it should run.
    direct: bool,
    asked: bool,
}

pub struct Cosmos {
    kernel: Kernel,
    cpus: Cpus,
    levels: Levels,
    entities: Vec<Entity>,
    /// Idle, and not chosen by a wakeup.
    idle: Vec<bool>,
    local: Vec<VecDeque<TaskId>>,
    /// The queue of each node: by deadline, then in order of arrival.
    shared: Vec<Vec<(u64, TaskId)>>,
    vtime: u64,
    now: u64,
}

impl Cosmos {
    pub fn new(mut kernel: Kernel, tasks: usize) -> Cosmos {
        let levels = Levels::new(kernel.facts());
        let nr_cpus = kernel.world().nr_cpus();
        Cosmos {
            cpus: Cpus::new(&mut kernel),
            entities: vec![Entity::default(); tasks],
            idle: vec![false; nr_cpus],
            local: vec![VecDeque::new(); nr_cpus],
            shared: vec![Vec::new(); levels.nodes.len()],
            vtime: 0,
            now: 0,
            levels,
            kernel,
        }
    }

    fn counts(&mut self, cpu: usize, more: i32) {
        self.cpus.counts(&mut self.kernel, cpu, more);
    }

    fn whole(&self, cpu: usize) -> bool {
        self.levels.threads(cpu).iter().all(|&c| self.idle[c])
    }

    /// True if another thread of its core is busy, and some CPU of the node is idle.
    fn contended(&self, cpu: usize) -> bool {
        let threads = self.levels.threads(cpu).iter();
        let beside = threads.filter(|&&c| c != cpu).any(|&c| !self.idle[c]);
        let node = &self.levels.nodes[self.levels.node[cpu]];
        beside && node.iter().any(|&c| self.idle[c])
    }

    /// Takes an idle CPU for the task (kernel: scx_bpf_select_cpu_and()).
    fn idle_cpu(&mut self, task: TaskId, prev: usize) -> Option<usize> {
        let may = |cpu: usize| self.idle[cpu] && self.kernel.allowed(task, cpu);
        let search = |able: &dyn Fn(usize) -> bool| {
            if able(prev) {
                return Some(prev);
            }
            let around = self.levels.around(prev);
            let mut levels = around[LLC..].iter();
            levels.find_map(|cpus| cpus.iter().copied().find(|&cpu| able(cpu)))
        };
        let found = search(&|cpu| may(cpu) && self.whole(cpu)).or_else(|| search(&may))?;
        self.idle[found] = false;
        Some(found)
    }

    /// A waker that is about to sleep keeps the task on its CPU. No task may wait there, and a CPU
    /// of the node must be idle.
    fn beside_waker(&mut self, wake: Wake, task: TaskId, prev: usize) -> Option<usize> {
        let this = wake.cpu;
        if !wake.sync || wake.fork {
            return None;
        }
        if self.levels.llc[this] == self.levels.llc[prev]
            && self.idle[prev]
            && self.kernel.allowed(task, prev)
        {
            self.idle[prev] = false;
            return Some(prev);
        }
        let node = &self.levels.nodes[self.levels.node[this]];
        let some = node.iter().any(|&c| self.idle[c]);
        (some && self.local[this].is_empty() && self.kernel.allowed(task, this)).then_some(this)
    }

    fn slice(&self, task: TaskId) -> u64 {
        SLICE * self.entities[task].weight / NICE0 as u64
    }

    fn deadline(&mut self, task: TaskId) -> u64 {
        let e = &mut self.entities[task];
        let credit = LAG * e.freq.max(1) * e.weight / NICE0 as u64;
        e.vtime = e.vtime.max(self.vtime.saturating_sub(credit));
        e.vtime + e.awake * NICE0 as u64 / e.weight
    }

    /// Puts the task in the CPU's local queue.
    fn insert(&mut self, task: TaskId, cpu: usize, orders: &mut Vec<Order>) {
        self.sets_cpu(task, cpu);
        self.entities[task].slice = self.slice(task);
        self.local[cpu].push_back(task);
        if self.cpus.current[cpu].is_none() {
            orders.push(Order::Reschedule(cpu));
        }
    }

    fn sets_cpu(&mut self, task: TaskId, cpu: usize) {
        let from = self.kernel.cpu_of(task);
        if from != cpu {
            self.kernel.set_cpu(task, cpu);
            self.counts(from, -1);
            self.counts(cpu, 1);
        }
    }

    /// `wakes`: it did not run just now, and no CPU was searched for it.
    fn enqueue(&mut self, task: TaskId, wakes: bool, orders: &mut Vec<Order>) {
        let cpu = self.kernel.cpu_of(task);
        let leaves = wakes || self.cpus.current[cpu].is_some() || self.contended(cpu);
        if leaves && let Some(to) = self.idle_cpu(task, cpu) {
            self.insert(task, to, orders);
            return;
        }
        let deadline = self.deadline(task);
        let shared = &mut self.shared[self.levels.node[cpu]];
        let at = shared.partition_point(|&(other, _)| other <= deadline);
        shared.insert(at, (deadline, task));
        if self.cpus.current[cpu].is_none() {
            orders.push(Order::Reschedule(cpu));
        }
    }

    /// Takes the first task in the node's queue that may run here.
    fn take_shared(&mut self, cpu: usize) -> Option<TaskId> {
        let kernel = &self.kernel;
        let shared = &mut self.shared[self.levels.node[cpu]];
        let at = shared
            .iter()
            .position(|&(_, task)| kernel.allowed(task, cpu))?;
        let (_, task) = shared.remove(at);
        self.sets_cpu(task, cpu);
        self.entities[task].slice = self.slice(task);
        Some(task)
    }

    fn stops(&mut self, task: TaskId) {
        let e = &mut self.entities[task];
        let used = std::mem::take(&mut e.used);
        e.vtime += used * NICE0 as u64 / e.weight;
        e.awake = (e.awake + used).min(LAG);
    }

    fn runs(&mut self, cpu: usize, next: Option<TaskId>) {
        self.cpus.current[cpu] = next;
        self.cpus.view(&mut self.kernel, cpu);
        self.idle[cpu] = next.is_none();
        if let Some(task) = next {
            self.vtime = self.vtime.max(self.entities[task].vtime);
        }
    }

    fn leaves(&mut self, cpu: usize, task: TaskId) {
        self.stops(task);
        self.kernel.set_runnable(task, false, true);
        self.counts(cpu, -1);
    }
}

impl Scheduler for Cosmos {
    fn preempts_kernel(&self) -> bool {
        true
    }

    fn set_now(&mut self, now: u64) {
        self.now = now;
    }

    fn begin(&mut self, task: TaskId, mask: usize, cpu: usize) {
        self.kernel.begin(task, mask, cpu);
        self.entities[task] = Entity {
            weight: NICE0 as u64,
            vtime: self.vtime,
            ..Entity::default()
        };
    }

    fn set_attr(&mut self, task: TaskId, attr: &Attr) {
        self.entities[task].weight = weight(attr.nice) as u64;
    }

    fn set_affinity(&mut self, task: TaskId, mask: usize, orders: &mut Vec<Order>) -> bool {
        self.kernel.set_affinity(task, mask);
        let cpu = self.kernel.cpu_of(task);
        let to = self.kernel.usable(task, cpu);
        let ran = self.cpus.current[cpu] == Some(task);
        if !self.kernel.runnable(task) || ran && to == cpu {
            return false;
        }
        if ran {
            self.stops(task);
            self.runs(cpu, None);
            self.idle[cpu] = false;
        } else {
            self.local[cpu].retain(|&t| t != task);
            self.shared
                .iter_mut()
                .for_each(|q| q.retain(|w| w.1 != task));
        }
        self.sets_cpu(task, to);
        self.enqueue(task, true, orders);
        ran
    }

    fn place(&mut self, wake: Wake, task: TaskId, _orders: &mut Vec<Order>) -> usize {
        let prev = self.kernel.cpu_of(task);
        let asked = !self.kernel.pinned(task);
        let mut to = None;
        if asked {
            to = self.beside_waker(wake, task, prev);
            to = to.or_else(|| self.idle_cpu(task, prev));
        }
        let e = &mut self.entities[task];
        (e.asked, e.direct) = (asked, to.is_some());
        let cpu = self.kernel.usable(task, to.unwrap_or(prev));
        self.kernel.set_cpu(task, cpu);
        cpu
    }

    fn arrive(&mut self, _wake: Wake, task: TaskId, orders: &mut Vec<Order>) {
        let cpu = self.kernel.cpu_of(task);
        self.kernel.set_runnable(task, true, false);
        self.counts(cpu, 1);
        let e = &mut self.entities[task];
        e.awake = 0;
        let freq = FREQ_PERIOD / (self.now - e.woken_at).max(1);
        e.freq = (e.freq - e.freq / 4 + freq / 4).min(FREQ_MAX);
        e.woken_at = self.now;
        if e.direct {
            self.insert(task, cpu, orders);
        } else {
            let wakes = !e.asked;
            self.enqueue(task, wakes, orders);
        }
    }

    fn ran(&mut self, task: TaskId, ns: u64) {
        let e = &mut self.entities[task];
        e.used += ns;
        e.slice = e.slice.saturating_sub(ns);
    }

    fn yields(&mut self, _cpu: usize, task: TaskId, _orders: &mut Vec<Order>) {
        self.entities[task].slice = 0;
    }

    fn exec(&mut self, cpu: usize, _task: TaskId, _orders: &mut Vec<Order>) -> usize {
        cpu
    }

    fn sleeps(&mut self, cpu: usize, task: TaskId, _orders: &mut Vec<Order>) {
        self.leaves(cpu, task);
    }

    fn ends(&mut self, cpu: usize, task: TaskId, _orders: &mut Vec<Order>) {
        self.leaves(cpu, task);
    }

    fn pick(&mut self, cpu: usize, orders: &mut Vec<Order>) -> Option<TaskId> {
        let runnable = |&task: &TaskId| self.kernel.runnable(task);
        let prev = self.cpus.current[cpu].filter(runnable);
        if prev.is_some_and(|p| self.entities[p].slice > 0) {
            return prev;
        }
        let next = self.local[cpu].pop_front();
        let next = next.or_else(|| self.take_shared(cpu));
        let Some(prev) = prev else {
            self.runs(cpu, next);
            return next;
        };
        if next.is_none() && (self.kernel.pinned(prev) || !self.contended(cpu)) {
            self.entities[prev].slice = self.slice(prev);
            return Some(prev);
        }
        self.stops(prev);
        self.enqueue(prev, false, orders);
        let next = next.or_else(|| self.local[cpu].pop_front());
        let next = next.or_else(|| self.take_shared(cpu));
        self.runs(cpu, next);
        next
    }

    fn tick(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        if self.entities[task].slice == 0 {
            orders.push(Order::Reschedule(cpu));
        }
    }

    fn timer(&mut self, _cpu: usize, _which: timer_kind, _orders: &mut Vec<Order>) {}
}
