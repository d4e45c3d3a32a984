// SPDX-License-Identifier: GPL-2.0-only
//! Callbacks in any order, with the minimum that the kernel does between them.

use super::TASKS;
use crate::targets::bytes::Bytes;
use scx_roost::native::sys::{self, CAPACITY_SCALE, ENQ_LAST, ENQ_PLACED, ENQ_REENQ, ENQ_WAKEUP};
use scx_roost::native::{Act, Attr, Insert, Kernel, SchedPolicy, TaskId, To};

pub struct Play {
    pub kernel: Kernel,
    now: u64,
    /// core_mask of each CPU: a fact that is stored with its state.
    pub core_masks: Vec<u64>,
    online: Vec<usize>,
    current: Vec<Option<TaskId>>,
    masks: Vec<usize>,
    acts: Vec<Act>,
}

impl Play {
    pub fn new(mut kernel: Kernel, now: u64) -> Play {
        let cpus = kernel.facts().cpus.len();
        let online = (0..cpus).filter(|&c| kernel.facts().cpus[c].online != 0);
        let online: Vec<usize> = online.collect();
        let core_masks = (0..cpus).map(|c| kernel.world().cpu(c).core_mask);
        let core_masks = core_masks.collect();
        let masks = masks(&mut kernel, &online);
        kernel.set_now(now);
        (0..TASKS).for_each(|task| kernel.begin(task, 0, online[task % online.len()]));
        Play {
            core_masks,
            current: vec![None; cpus],
            acts: Vec::new(),
            now,
            kernel,
            online,
            masks,
        }
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn set_now(&mut self, now: u64) {
        self.now = now;
        self.kernel.set_now(now);
    }

    /// A CPU that is online.
    pub fn cpu(&self, bytes: &mut Bytes) -> usize {
        self.online[bytes.below(self.online.len())]
    }

    pub fn callback(&mut self, bytes: &mut Bytes) {
        let (cpu, task) = (self.cpu(bytes), bytes.below(TASKS));
        match bytes.below(14) {
            0 => self.select_cpu(cpu, task, bytes),
            1 | 2 => self.enqueue(cpu, task, bytes),
            3 | 4 => self.dispatch(cpu, bytes),
            5 => self.running(cpu, task),
            6 => self.kernel.tick(self.kernel.cpu_of(task), task),
            7 => self.stopping(task, bytes),
            8 => self.kernel.yields(self.kernel.cpu_of(task), task),
            9 => self.disable(task),
            10 => self.timer(cpu, bytes),
            11 => self.attr(task, bytes),
            12 => self
                .kernel
                .set_affinity(task, self.masks[bytes.below(self.masks.len())]),
            _ => self.kernel.world_mut().cgroup_sweep(),
        }
        // The kernel moves a task that its new affinity forbids to stay.
        let at = self.kernel.cpu_of(task);
        let at = self.kernel.usable(task, at);
        self.kernel.set_cpu(task, at);
    }

    fn select_cpu(&mut self, here: usize, task: TaskId, bytes: &mut Bytes) {
        let flags = u64::from(bytes.byte()) & u64::from(sys::WAKE_FORK | sys::WAKE_SYNC);
        let prev = self.kernel.usable(task, self.cpu(bytes));
        self.kernel.set_cpu(task, prev);
        let current = self.current[here];
        let cpu = self.kernel.select_cpu(here, current, task, flags);
        assert!(self.is_online(cpu), "CPU {cpu} was chosen");
        self.kernel.set_cpu(task, self.kernel.usable(task, cpu));
        if let Some(insert) = self.kernel.inserted() {
            self.put(insert);
        }
    }

    fn enqueue(&mut self, here: usize, task: TaskId, bytes: &mut Bytes) {
        let bits = bytes.byte();
        let flag = |bit: u8, flag: u64| if bits & bit != 0 { flag } else { 0 };
        let flags = flag(1, u64::from(ENQ_WAKEUP))
            | flag(2, ENQ_PLACED)
            | flag(4, ENQ_REENQ)
            | flag(8, ENQ_LAST);
        self.kernel.unqueue(task);
        self.kernel.set_runnable(task, true, false);
        self.kernel.enqueue(here, self.current[here], task, flags);
        let insert = self
            .kernel
            .inserted()
            .expect("an enqueued task goes somewhere");
        self.put(insert);
    }

    fn dispatch(&mut self, cpu: usize, bytes: &mut Bytes) {
        let prev = self.current[cpu].filter(|_| bytes.flag());
        self.kernel.dispatch(cpu, prev);
        let next = self.kernel.local(cpu).pop_front();
        if let Some(task) = next.or(prev) {
            self.current[cpu] = Some(task);
        }
    }

    fn running(&mut self, cpu: usize, task: TaskId) {
        self.kernel.unqueue(task);
        let cpu = self.kernel.usable(task, cpu);
        self.kernel.set_cpu(task, cpu);
        self.current[cpu] = Some(task);
        self.kernel.set_runnable(task, true, false);
        self.kernel.running(cpu, task);
    }

    fn stopping(&mut self, task: TaskId, bytes: &mut Bytes) {
        let cpu = self.kernel.cpu_of(task);
        let bits = bytes.byte();
        self.kernel.set_runnable(task, bits & 1 != 0, bits & 2 != 0);
        self.kernel.stopping(cpu, task, bits & 1 != 0);
        self.current[cpu] = None;
    }

    fn disable(&mut self, task: TaskId) {
        self.kernel.unqueue(task);
        self.kernel.disable(self.kernel.cpu_of(task), task);
    }

    fn timer(&mut self, cpu: usize, bytes: &mut Bytes) {
        let which = match bytes.flag() {
            true => sys::TIMER_DELAY,
            false => sys::TIMER_SLICE,
        };
        self.kernel.timer(which, cpu, self.current[cpu]);
    }

    fn attr(&mut self, task: TaskId, bytes: &mut Bytes) {
        let policies = [SchedPolicy::Other, SchedPolicy::Batch, SchedPolicy::Idle];
        let attr = Attr {
            nice: bytes.below(40) as i32 - 20,
            policy: policies[bytes.below(3)],
            // The kernel's bounds (sched_setattr()).
            slice_ns: bytes
                .flag()
                .then(|| 100_000 + bytes.number(0) % 100_000_000),
        };
        self.kernel.set_attr(task, &attr);
    }

    fn is_online(&self, cpu: usize) -> bool {
        self.kernel
            .facts()
            .cpus
            .get(cpu)
            .is_some_and(|c| c.online != 0)
    }

    /// The kernel ends a scheduler that puts a task on a CPU which the task may not use.
    fn put(&mut self, insert: Insert) {
        let task = insert.task;
        self.kernel.unqueue(task);
        self.kernel.set_slice(task, insert.slice);
        match insert.to {
            To::Local => {
                let at = self.kernel.cpu_of(task);
                self.kernel.local(at).push_back(task);
            }
            To::LocalOn(cpu) => {
                assert!(self.is_online(cpu) && self.kernel.allowed(task, cpu));
                self.kernel.local(cpu).push_back(task);
            }
            To::Queue(queue, key) => {
                let cpu = queue % sys::MAX_CPUS as usize;
                assert!(self.is_online(cpu) && self.kernel.allowed(task, cpu));
                self.kernel.queue(task, queue, key);
            }
        }
    }

    /// Checked after every step.
    pub fn holds(&mut self) {
        let mut acts = std::mem::take(&mut self.acts);
        self.kernel.acts(&mut acts);
        for act in acts.drain(..) {
            match act {
                Act::Timer {
                    which: sys::TIMER_PARK,
                    cpu: queue,
                    ..
                } => assert!(queue < sys::PARK_QUEUES as usize),
                Act::Kick { cpu, .. } | Act::Timer { cpu, .. } => assert!(self.is_online(cpu)),
                Act::AskSpeed { cpu, speed } => {
                    assert!(self.is_online(cpu));
                    assert!(speed <= CAPACITY_SCALE, "a speed of {speed}");
                }
                Act::Moved { task, cpu, .. } => {
                    assert!(self.is_online(cpu) && self.kernel.allowed(task, cpu));
                }
            }
        }
        self.acts = acts;
        for (at, facts) in self.kernel.facts().llcs.iter().enumerate() {
            let sets = &self.kernel.world().llc(at).set;
            let beyond = |set: &[u64; 16]| {
                let word = usize::from(facts.nr_cpus) / 64;
                let rest = set.get(word).map_or(0, |w| w >> (facts.nr_cpus % 64));
                rest != 0 || set.iter().skip(word + 1).any(|w| *w != 0)
            };
            assert!(
                !sets.iter().any(beyond),
                "LLC {at} has a CPU that it has not"
            );
        }
    }
}

/// Masks: every CPU, the first, the last, every other one, those beyond the first word.
fn masks(kernel: &mut Kernel, online: &[usize]) -> Vec<usize> {
    let words = kernel.facts().cpus.len().div_ceil(64);
    let of = |cpus: &mut dyn Iterator<Item = usize>| {
        let mut mask = vec![0u64; words];
        cpus.for_each(|cpu| mask[cpu / 64] |= 1 << (cpu % 64));
        mask
    };
    let some = [
        of(&mut online.iter().copied().take(1)),
        of(&mut online.iter().copied().skip(online.len() - 1)),
        of(&mut online.iter().copied().step_by(2)),
        of(&mut online.iter().copied().filter(|cpu| *cpu >= 64)),
    ];
    let masks = some.iter().map(|mask| kernel.mask(mask));
    std::iter::once(0).chain(masks).collect()
}
