// SPDX-License-Identifier: GPL-2.0-only
//! Plays the kernel around sched_ext's callbacks: puts tasks where the callbacks say, and does what
//! they ask for.

use crate::setup::{MAINLINE, NOW, STALE_MS, THRESHOLD};
use crate::topology::{Tables, kernel_arm, kernel_tunables};
use scx_roost::bpf::intf::{arm, task_policy};
use scx_roost::machine::Facts;
use scx_roost::native::sys::{ENQ_PLACED, ENQ_WAKEUP, MAX_CPUS, roost_stat};
use scx_roost::native::{Act, Insert, Kernel, TaskId, To, World};
use scx_roost::placement::Features;
use scx_roost::placement::topology::Topology;

pub const SLICE: u64 = 2_800_000;
/// A new task starts with half a request.
pub const FIRST: u64 = SLICE / 2;
/// The flags of a wakeup that select_cpu has placed.
pub const WAKEUP: u64 = ENQ_WAKEUP as u64 | ENQ_PLACED;
pub const DELAY: u32 = 50_000;
/// The most tasks of a test; the first eight are there from the beginning.
const TASKS: usize = 32;

/// A kernel with CPUs of one LLC by default. It does the minimum of what the kernel's core does.
pub struct Machine {
    pub kernel: Kernel,
    pub now: u64,
    pub current: Vec<Option<TaskId>>,
}

impl Machine {
    pub fn new(cpus: usize, features: Features) -> Machine {
        Machine::on(&Topology::regular(1, cpus, 1, 1, false), features)
    }

    /// All CPUs are nohz_full.
    pub fn nohz(cpus: usize) -> Machine {
        let mut facts = Topology::regular(1, cpus, 1, 1, false).facts();
        facts.machine.nohz = 1;
        facts.cpus.iter_mut().for_each(|cpu| cpu.nohz = 1);
        Machine::of(facts, MAINLINE)
    }

    pub fn on(topology: &Topology, features: Features) -> Machine {
        Machine::of(topology.facts(), features)
    }

    pub fn of(facts: Facts, features: Features) -> Machine {
        let everybody = arm {
            task: task_policy {
                features: features.bits(),
                delay_ns: DELAY,
                ..kernel_arm().task
            },
            ..kernel_arm()
        };
        let cpus = facts.cpus.len();
        let mut world = World::new(facts, everybody, kernel_tunables(), 1);
        world.policy_mut().threshold[0].fill(THRESHOLD);
        world.policy_mut().freq_stale_ms = STALE_MS;
        // Frequencies are read at NOW; ages are relative to a clock at 0.
        let age = 0u32.wrapping_sub((NOW / 1_000_000) as u32);
        (0..cpus).for_each(|cpu| world.set_freq(cpu, THRESHOLD, age));
        let mut machine = Machine {
            kernel: Kernel::new(world, TASKS),
            now: NOW,
            current: vec![None; cpus],
        };
        machine.at(NOW);
        (0..8).for_each(|task| machine.kernel.begin(task, 0, 0));
        (0..cpus).for_each(|cpu| assert_eq!(machine.dispatch(cpu), None));
        machine
    }

    pub fn at(&mut self, now: u64) {
        self.now = now;
        self.kernel.set_now(now);
    }

    pub fn view(&mut self, cpu: usize) {
        let idle = self.current[cpu].is_none();
        let waiting = self.kernel.queue_length(cpu) as u32;
        let (view, run) = self.kernel.view(cpu);
        view.idle = idle.into();
        view.nr_running = u32::from(!idle) + waiting;
        run.curr_idle = idle.into();
    }

    pub fn acts(&mut self) -> Vec<Act> {
        let mut acts = Vec::new();
        self.kernel.acts(&mut acts);
        acts
    }

    /// Dispatches, and takes the next task from the CPU's local queue. `run` makes it run.
    pub fn dispatch(&mut self, cpu: usize) -> Option<TaskId> {
        self.kernel.dispatch(cpu, self.current[cpu]);
        let next = self.kernel.local(cpu).pop_front();
        self.view(cpu);
        next
    }

    pub fn run(&mut self, cpu: usize, task: TaskId) {
        self.kernel.set_runnable(task, true, false);
        self.kernel.set_cpu(task, cpu);
        self.kernel.running(cpu, task);
        self.current[cpu] = Some(task);
        self.view(cpu);
    }

    pub fn tick(&mut self, cpu: usize) {
        let task = self.current[cpu].expect("a task runs there");
        self.kernel.tick(cpu, task);
    }

    /// The running task goes to sleep.
    pub fn sleep(&mut self, cpu: usize) {
        let task = self.current[cpu].take().expect("a task runs there");
        self.kernel.set_runnable(task, false, true);
        self.kernel.stopping(cpu, task, false);
        self.view(cpu);
    }

    /// The running task waits again.
    pub fn put(&mut self, cpu: usize, flags: u64) -> Insert {
        let task = self.current[cpu].expect("a task runs there");
        self.kernel.stopping(cpu, task, true);
        let insert = self.enqueue(task, flags);
        self.current[cpu] = None;
        self.view(cpu);
        insert
    }

    /// The task running on `here` wakes `task`, which last ran on `prev`. Returns the CPU, and the
    /// insertion if select_cpu made one.
    pub fn wake(&mut self, here: usize, task: TaskId, prev: usize) -> (usize, Option<Insert>) {
        self.kernel.set_cpu(task, prev);
        let waker = self.current[here];
        let cpu = self.kernel.select_cpu(here, waker, task, 0);
        self.kernel.set_cpu(task, cpu);
        (cpu, self.kernel.inserted())
    }

    pub fn enqueue(&mut self, task: TaskId, flags: u64) -> Insert {
        let cpu = self.kernel.cpu_of(task);
        self.kernel.set_runnable(task, true, false);
        self.kernel.enqueue(cpu, self.current[cpu], task, flags);
        let insert = self.kernel.inserted().expect("enqueue says where to");
        if let To::Queue(queue, key) = insert.to {
            self.kernel.queue(task, queue, key);
            self.view(queue % MAX_CPUS as usize);
        }
        insert
    }

    pub fn count(&self, stat: roost_stat) -> u64 {
        self.kernel.world().count(stat)
    }
}

pub trait ToQueue {
    /// The number of the queue that the task goes to; None: a local queue.
    fn to_queue(&self) -> Option<usize>;
}

impl ToQueue for Insert {
    fn to_queue(&self) -> Option<usize> {
        match self.to {
            To::Queue(queue, _) => Some(queue),
            _ => None,
        }
    }
}

pub fn queued_on(insert: &Insert) -> Option<usize> {
    Some(insert.to_queue()? % MAX_CPUS as usize)
}
