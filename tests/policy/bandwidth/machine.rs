// SPDX-License-Identifier: GPL-2.0-only
//! A model of the kernel with some CPUs, on which tasks in groups live their whole lives. It does
//! the minimum of what the kernel's core does.

use crate::topology::{Tables, kernel_arm, kernel_tunables};
use scx_roost::native::sys::{
    ENQ_LAST, ENQ_PLACED, ENQ_PREEMPT, ENQ_WAKEUP, KICK_IDLE, KICK_PREEMPT, MAX_CPUS,
    STAT_park_owed, TIMER_PARK, timer_kind,
};
use scx_roost::native::{Act, Insert, Kernel, TaskId, To, World};
use scx_roost::placement::topology::Topology;
use std::collections::HashSet;

pub const USEC: u64 = 1_000;
pub const MSEC: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MSEC;
pub const PERIOD: u64 = 100 * MSEC;
pub const STEP: u64 = 25 * USEC;
const TICK: u64 = 4 * MSEC;
const RETURN: u64 = MSEC;

#[derive(Clone, Copy)]
pub struct Life {
    pub group: usize,
    /// The task runs for `run` and sleeps for `sleep` in turn; 0: it never sleeps.
    pub run: u64,
    pub sleep: u64,
    /// It polls: it yields after each moment that it runs.
    pub yields: bool,
    /// It is in kernel mode, but for a moment at each `RETURN`.
    pub in_kernel: bool,
    /// Each time that it runs it is another task, which exits.
    pub exits: bool,
}

struct Task {
    life: Life,
    left: u64,
    wakes_at: Option<u64>,
    used: u64,
    /// Since when it is runnable and has not run.
    waits_since: Option<u64>,
    longest_wait: u64,
}

pub struct Machine {
    pub kernel: Kernel,
    pub now: u64,
    pub current: Vec<Option<TaskId>>,
    resched: Vec<bool>,
    timers: Vec<(timer_kind, usize, u64)>,
    tasks: Vec<Task>,
    /// The first tasks, which run one after the other: each wakes the next as it goes to sleep.
    ring: usize,
}

impl Machine {
    /// `groups`: the parent of each group. The first group is number 1, the root is 0.
    pub fn new(cpus: usize, groups: &[u32], lives: &[Life]) -> Machine {
        let facts = Topology::regular(1, cpus, 1, 1, false).facts();
        let mut world = World::new(facts, kernel_arm(), kernel_tunables(), groups.len() + 1);
        for (i, &parent) in groups.iter().enumerate() {
            world.cgroup_mut(i + 1).parent = parent;
            world.cgroup_weigh(i + 1, 16384, false);
        }
        let mut machine = Machine {
            kernel: Kernel::new(world, lives.len()),
            now: SECOND,
            current: vec![None; cpus],
            resched: vec![true; cpus],
            timers: Vec::new(),
            tasks: Vec::new(),
            ring: 0,
        };
        machine.kernel.set_now(machine.now);
        for (id, &life) in lives.iter().enumerate() {
            machine.kernel.begin(id, 0, id % cpus);
            machine.kernel.set_cgroup(id, life.group);
            machine.kernel.set_attr(id, &Default::default());
            machine.kernel.set_in_kernel(id, life.in_kernel);
            machine.kernel.set_exits(id, life.exits);
            machine.tasks.push(Task {
                life,
                left: life.run,
                wakes_at: Some(machine.now),
                used: 0,
                waits_since: None,
                longest_wait: 0,
            });
        }
        machine
    }

    pub fn ring(&mut self, count: usize) {
        self.ring = count;
        for task in 1..count {
            self.tasks[task].wakes_at = None;
        }
    }

    pub fn limit(&mut self, group: usize, quota: u64, burst: u64) {
        self.kernel.set_limit(group, PERIOD, quota, burst);
        self.act();
    }

    fn view(&mut self, cpu: usize) {
        let idle = self.current[cpu].is_none();
        let local = self.kernel.local(cpu).len() as u32;
        let (view, run) = self.kernel.view(cpu);
        view.idle = (idle && local == 0).into();
        view.nr_running = u32::from(!idle) + local;
        run.curr_idle = idle.into();
        run.local = local;
    }

    fn act(&mut self) {
        let mut acts = Vec::new();
        self.kernel.acts(&mut acts);
        for act in acts {
            match act {
                Act::Kick { cpu, flags } => self.kick(cpu, flags),
                Act::Timer { which, cpu, ns } => {
                    self.timers.retain(|t| (t.0, t.1) != (which, cpu));
                    self.timers.push((which, cpu, self.now + ns));
                }
                Act::Moved { cpu, .. } => self.resched[cpu] = true,
                Act::AskSpeed { .. } => {}
            }
        }
    }

    fn kick(&mut self, cpu: usize, flags: u64) {
        if flags & u64::from(KICK_IDLE) != 0 && self.current[cpu].is_some() {
            return;
        }
        if let Some(task) = self.current[cpu]
            && flags & u64::from(KICK_PREEMPT) != 0
        {
            self.kernel.set_slice(task, 0);
        }
        self.resched[cpu] = true;
    }

    fn insert(&mut self, insert: Insert) {
        let task = insert.task;
        self.kernel.set_slice(task, insert.slice);
        let cpu = match insert.to {
            To::Queue(queue, key) => {
                let parks = queue >= 2 * MAX_CPUS as usize;
                assert!(
                    !parks
                        || !self.tasks[task].life.in_kernel
                        || self.kernel.state(task).returning == 1,
                    "task {task} is parked in the kernel"
                );
                let exits = self.tasks[task].life.exits;
                assert!(!parks || !exits, "task {task} is parked as it exits");
                self.kernel.queue(task, queue, key);
                return;
            }
            To::Local => self.kernel.cpu_of(task),
            To::LocalOn(cpu) => cpu,
        };
        self.kernel.set_cpu(task, cpu);
        if insert.flags & ENQ_PREEMPT != 0 {
            self.kernel.local(cpu).push_front(task);
            self.kick(cpu, u64::from(KICK_PREEMPT));
        } else {
            self.kernel.local(cpu).push_back(task);
            self.resched[cpu] |= self.current[cpu].is_none();
        }
        self.view(cpu);
    }

    fn enqueue(&mut self, task: TaskId, flags: u64) {
        let cpu = self.kernel.cpu_of(task);
        self.kernel.set_runnable(task, true, false);
        self.kernel.enqueue(cpu, self.current[cpu], task, flags);
        let insert = self.kernel.inserted().expect("enqueue says where to");
        self.insert(insert);
        self.act();
        // The CPU looks for work, as after a wakeup.
        self.resched[cpu] |= self.current[cpu].is_none();
    }

    fn wake(&mut self, task: TaskId) {
        self.tasks[task].wakes_at = None;
        self.tasks[task].waits_since = Some(self.now);
        let cpu = self.kernel.select_cpu(0, self.current[0], task, 0);
        self.kernel.set_cpu(task, cpu);
        self.act();
        match self.kernel.inserted() {
            Some(insert) => {
                self.kernel.set_runnable(task, true, false);
                self.insert(insert);
            }
            None => self.enqueue(task, u64::from(ENQ_WAKEUP) | ENQ_PLACED),
        }
    }

    fn sleep(&mut self, cpu: usize) {
        let task = self.current[cpu].take().expect("a task runs there");
        self.kernel.set_runnable(task, false, true);
        self.kernel.stopping(cpu, task, false);
        self.act();
        let now = self.now;
        let life = &mut self.tasks[task];
        (life.left, life.wakes_at) = (life.life.run, Some(now + life.life.sleep));
        if task < self.ring {
            life.wakes_at = None;
            self.tasks[(task + 1) % self.ring].wakes_at = Some(now);
        }
        self.view(cpu);
        self.resched[cpu] = true;
    }

    fn schedule(&mut self, cpu: usize) {
        self.resched[cpu] = false;
        let prev = self.current[cpu];
        if prev.is_some_and(|task| self.kernel.slice(task) > 0) {
            return;
        }
        if self.kernel.local(cpu).is_empty() {
            self.kernel.dispatch(cpu, prev);
            self.act();
            if prev.is_some_and(|task| self.kernel.slice(task) > 0) {
                return;
            }
        }
        let last = self.kernel.local(cpu).is_empty();
        if let Some(task) = prev {
            self.kernel.stopping(cpu, task, true);
            self.act();
            self.current[cpu] = None;
            self.view(cpu);
            self.tasks[task].waits_since = Some(self.now);
            self.enqueue(task, if last { ENQ_LAST } else { 0 });
        }
        if let Some(task) = self.kernel.local(cpu).pop_front() {
            self.run(cpu, task);
        }
        self.view(cpu);
    }

    fn run(&mut self, cpu: usize, task: TaskId) {
        self.kernel.set_cpu(task, cpu);
        self.current[cpu] = Some(task);
        let life = &mut self.tasks[task];
        if let Some(since) = life.waits_since.take() {
            life.longest_wait = life.longest_wait.max(self.now - since);
        }
        self.kernel.running(cpu, task);
        self.act();
        self.view(cpu);
    }

    fn fire(&mut self) {
        let now = self.now;
        let due: Vec<_> = self.timers.extract_if(.., |t| t.2 <= now).collect();
        for (which, of, _) in due {
            let parked: Vec<_> = self.kernel.parked().collect();
            let cpu = if which == TIMER_PARK { 0 } else { of };
            self.kernel.timer(which, of, self.current[cpu]);
            self.act();
            let left: Vec<_> = self.kernel.parked().collect();
            self.check_order(&parked, &left);
        }
    }

    /// In each group, tasks that are still parked came later than those released, unless a task was
    /// released because it had waited too long.
    fn check_order(&self, before: &[TaskId], left: &[TaskId]) {
        if self.kernel.world().count(STAT_park_owed) > 0 {
            return;
        }
        let left: HashSet<_> = left.iter().collect();
        let mut passed = HashSet::new();
        for task in before {
            let group = self.tasks[*task].life.group;
            if left.contains(task) {
                passed.insert(group);
            } else {
                assert!(!passed.contains(&group), "task {task} came later");
            }
        }
    }

    /// Lets all CPUs and waiting tasks go on for `ns`.
    pub fn goes_on(&mut self, ns: u64) {
        let end = self.now + ns;
        while self.now < end {
            self.now += STEP;
            self.kernel.set_now(self.now);
            self.fire();
            for task in 0..self.tasks.len() {
                if self.tasks[task].wakes_at.is_some_and(|at| at <= self.now) {
                    self.wake(task);
                }
            }
            for cpu in 0..self.current.len() {
                self.step(cpu);
            }
        }
    }

    fn step(&mut self, cpu: usize) {
        if let Some(task) = self.current[cpu] {
            self.kernel.ran(task, STEP);
            let life = &mut self.tasks[task];
            life.used += STEP;
            life.left = life.left.saturating_sub(STEP);
            if life.life.sleep > 0 && life.left == 0 {
                self.sleep(cpu);
            } else if self.now.is_multiple_of(TICK) {
                self.kernel.tick(cpu, task);
                self.act();
                self.resched[cpu] |= self.kernel.slice(task) == 0;
            }
        }
        if let Some(task) = self.current[cpu].filter(|&task| self.tasks[task].life.in_kernel)
            && self.now.is_multiple_of(RETURN)
        {
            self.kernel.returns(cpu, task);
            self.act();
        }
        if let Some(task) = self.current[cpu].filter(|&task| self.tasks[task].life.yields) {
            self.kernel.yields(cpu, task);
            self.act();
            self.resched[cpu] = true;
        }
        // A callback may ask for a kick of its own CPU.
        for _ in 0..8 {
            if !self.resched[cpu] {
                return;
            }
            self.schedule(cpu);
        }
        panic!("CPU {cpu} never settles");
    }

    /// A waiting task moves to another group: the kernel dequeues it and enqueues it again.
    pub fn move_to(&mut self, task: TaskId, group: usize) {
        if self.tasks[task].waits_since.is_none() {
            return;
        }
        let cpu = self.kernel.cpu_of(task);
        if self.kernel.local(cpu).contains(&task) {
            return;
        }
        self.kernel.unqueue(task);
        self.kernel.set_cgroup(task, group);
        self.tasks[task].life.group = group;
        self.enqueue(task, 0);
    }

    pub fn used(&self, group: usize) -> u64 {
        let of = self.tasks.iter().filter(|t| t.life.group == group);
        of.map(|t| t.used).sum()
    }

    /// The time that each group uses in the next `ns`.
    pub fn measure(&mut self, ns: u64) -> Vec<u64> {
        let groups = self.tasks.iter().map(|t| t.life.group).max().unwrap_or(0) + 1;
        let before: Vec<u64> = (0..groups).map(|g| self.used(g)).collect();
        self.goes_on(ns);
        (0..groups).map(|g| self.used(g) - before[g]).collect()
    }

    pub fn longest_wait(&self) -> u64 {
        let waits = |t: &Task| t.waits_since.map_or(0, |since| self.now - since);
        let all = self.tasks.iter().map(|t| t.longest_wait.max(waits(t)));
        all.max().unwrap_or(0)
    }
}
