// SPDX-License-Identifier: GPL-2.0-only
//! sched_ext's callbacks of the policy, for a caller that plays the kernel: the simulator. This
//! module keeps the queues of waiting tasks and records what the policy requests from the kernel.
//! The caller carries that out after the callback has returned.

mod affinity;
mod limits;
mod placement;
mod side;

use super::{Shared, World, sys};
use crate::machine::Facts;
use side::Side;
use std::collections::VecDeque;
use std::ptr;

/// The index of a task in the tables; its pid is one more.
pub type TaskId = usize;

/// Where a placed or queued task goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insert {
    pub task: TaskId,
    pub to: To,
    /// How long it may run, ns.
    pub slice: u64,
    /// Bits of `sys::ENQ_*`, and `sys::IMMED`.
    pub flags: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// Next on its own CPU.
    Local,
    /// Next on that CPU.
    LocalOn(usize),
    /// Into that queue (numbered as in aging.h), by key.
    Queue(usize, u64),
}

/// A request of a callback to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Bits of `sys::KICK_*`; 0: choose the next task again.
    Kick { cpu: usize, flags: u64 },
    Timer {
        which: sys::timer_kind,
        cpu: usize,
        ns: u64,
    },
    /// A part of CAPACITY_SCALE.
    AskSpeed { cpu: usize, speed: u32 },
    /// The task, which was on `from`, left its queue and runs next on `cpu`.
    Moved {
        task: TaskId,
        from: usize,
        cpu: usize,
    },
}

/// Scheduling policies of normal tasks (uapi: SCHED_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchedPolicy {
    #[default]
    Other = 0,
    Batch = 3,
    Idle = 5,
}

/// The scheduling attributes of a task (kernel: struct sched_attr).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// -20..=19
    pub nice: i32,
    pub policy: SchedPolicy,
    /// ns; None: the slice of its arm.
    pub slice_ns: Option<u64>,
}

/// A machine whose tasks are scheduled by the policy.
pub struct Kernel {
    world: World,
    raw: Box<sys::world>,
    ports: Shared<sys::port_task>,
    states: Shared<sys::task_state>,
    runs: Shared<sys::run_view>,
    times: Shared<sys::times>,
    side: Shared<Side>,
    table: Box<sys::kernel>,
    masks: Vec<Box<[u64]>>,
    /// The first CPU that each task may use.
    first_allowed: Vec<usize>,
    idle_task: Box<sys::port_task>,
}

impl Kernel {
    /// A machine on `world` with at most `tasks` tasks at once.
    pub fn new(world: World, tasks: usize) -> Kernel {
        let cpus = world.nr_cpus();
        let side = Shared::new(1);
        let mut kernel = Kernel {
            raw: Box::default(),
            ports: Shared::new(tasks),
            states: Shared::new(tasks),
            runs: Shared::new(cpus),
            times: Shared::new((sys::MAX_ARMS * sys::ROOST_NR_HISTS) as usize),
            side,
            table: Box::new(side::table()),
            masks: Vec::new(),
            first_allowed: vec![0; tasks],
            idle_task: Box::default(),
            world,
        };
        *kernel.side.get_mut(0) = Side::new(cpus, kernel.ports.ptr());
        let counters = kernel.world.counters.as_mut_ptr();
        let mut raw = kernel.world.raw(counters);
        raw.queues = kernel.side.ptr().cast();
        side::add_queues(&mut raw);
        raw.kernel = &raw const *kernel.table;
        raw.self_ = kernel.side.ptr().cast();
        raw.runs = kernel.runs.ptr();
        raw.times = kernel.times.ptr();
        raw.immed = sys::IMMED;
        *kernel.raw = raw;
        let all = vec![u64::MAX; cpus.div_ceil(64)];
        kernel.mask(&all);
        for cpu in 0..cpus {
            kernel.runs.get_mut(cpu).speed = sys::CAPACITY_SCALE;
        }
        kernel
    }

    pub fn facts(&self) -> &Facts {
        self.world.facts()
    }

    pub fn world(&self) -> &World {
        &self.world
    }

    /// For changes of the policy's counters and of what is published.
    pub fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// Sets how many CPUs of each LLC a scan may visit, valid for `counts_ms` from now.
    pub fn set_scans(&mut self, worth: &[u32], counts_ms: u32) {
        let now = (self.raw.clock / 1_000_000) as u32;
        let until = u64::from(now.wrapping_add(counts_ms)) << 32;
        for (told, worth) in self.world.llc_scans.iter_mut().zip(worth) {
            *told = until | u64::from(*worth);
        }
    }

    /// Sets the time of all that follows, ns. At least 1, because 0 means "not at all" in the
    /// policy's state.
    pub fn set_now(&mut self, now: u64) {
        self.raw.clock = now.max(1);
    }

    /// From now on each read of the clock takes so long, ns.
    pub fn set_clock_step(&mut self, step: u64) {
        self.raw.clock_step = step;
    }

    // ---- tasks ----

    /// Starts a new task without history, on that CPU or the first that it may use.
    pub fn begin(&mut self, task: TaskId, mask: usize, cpu: usize) {
        *self.states.get_mut(task) = sys::task_state::default();
        let state = &raw mut *self.states.get_mut(task);
        *self.ports.get_mut(task) = sys::port_task {
            state,
            pid: task as u32 + 1,
            ..Default::default()
        };
        self.set_affinity(task, mask);
        self.set_cpu(task, self.usable(task, cpu));
        let now = self.raw.clock;
        // SAFETY: the task's state is in the table.
        unsafe { sys::roost_task_begins(&mut *self.raw, state, now) };
    }

    /// Sets the nice level, policy and slice of a task. Needed for every new task, before it is
    /// placed.
    pub fn set_attr(&mut self, task: TaskId, attr: &Attr) {
        let (policy, slice) = (attr.policy as u32, attr.slice_ns.unwrap_or(0));
        let now = self.raw.clock;
        let state = &raw mut *self.states.get_mut(task);
        // SAFETY: the task's state is in the table.
        unsafe { sys::roost_set_attr(&mut *self.raw, state, attr.nice, policy, slice, now) };
    }

    pub fn cpu_of(&self, task: TaskId) -> usize {
        self.ports.get(task).cpu as usize
    }

    pub fn set_cpu(&mut self, task: TaskId, cpu: usize) {
        self.ports.get_mut(task).cpu = cpu as i32;
    }

    pub fn slice(&self, task: TaskId) -> u64 {
        self.ports.get(task).slice
    }

    pub fn set_slice(&mut self, task: TaskId, ns: u64) {
        self.ports.get_mut(task).slice = ns;
    }

    /// Accounts `ns` that the task has run until now.
    pub fn ran(&mut self, task: TaskId, ns: u64) {
        let port = self.ports.get_mut(task);
        port.slice = port.slice.saturating_sub(ns);
        port.ran += ns;
    }

    /// The task exits (kernel: PF_EXITING).
    pub fn set_exits(&mut self, task: TaskId, is: bool) {
        self.ports.get_mut(task).exits = is;
    }

    /// The task is in kernel mode. The caller calls `returns` before it runs in user mode again.
    pub fn set_in_kernel(&mut self, task: TaskId, is: bool) {
        self.ports.get_mut(task).in_kernel = is;
    }

    /// The task is a kernel thread (kernel: PF_KTHREAD).
    pub fn set_kthread(&mut self, task: TaskId, is: bool) {
        self.ports.get_mut(task).kthread = is;
    }

    pub fn set_runnable(&mut self, task: TaskId, runnable: bool, sleeps: bool) {
        let port = self.ports.get_mut(task);
        port.runnable = runnable;
        port.sleeps = sleeps;
    }

    /// It runs, or waits to run.
    pub fn runnable(&self, task: TaskId) -> bool {
        self.ports.get(task).runnable
    }

    pub fn state(&self, task: TaskId) -> &sys::task_state {
        self.states.get(task)
    }

    pub fn state_mut(&mut self, task: TaskId) -> &mut sys::task_state {
        self.states.get_mut(task)
    }

    /// Behaves like Linux before 7.1, which has no SCX_ENQ_IMMED.
    pub fn without_immed(&mut self) {
        self.raw.immed = 0;
    }

    /// What the policy sees of a CPU.
    pub fn view(&mut self, cpu: usize) -> (&mut sys::cpu_view, &mut sys::run_view) {
        (self.world.views.get_mut(cpu), self.runs.get_mut(cpu))
    }

    // ---- what a callback left ----

    /// Where the last callback's task goes; None: the callback did not say.
    pub fn inserted(&mut self) -> Option<Insert> {
        self.side.get_mut(0).insert.take()
    }

    /// What else the callback wants, in order.
    pub fn acts(&mut self, to: &mut Vec<Act>) {
        to.append(&mut self.side.get_mut(0).acts);
    }

    /// How many tasks wait for the CPU.
    pub fn queue_length(&self, cpu: usize) -> usize {
        self.side.get(0).of(cpu).map(Vec::len).sum()
    }

    /// Puts the task into that queue.
    pub fn queue(&mut self, task: TaskId, queue: usize, key: u64) {
        self.ports.get_mut(task).key = key;
        self.side.get_mut(0).put(task, queue, key);
    }

    /// Takes a waiting task out of its queue, whichever that is.
    pub fn unqueue(&mut self, task: TaskId) {
        let side = self.side.get_mut(0);
        side.queues
            .iter_mut()
            .for_each(|q| q.retain(|w| w.task != task));
        side.local.iter_mut().for_each(|q| q.retain(|&t| t != task));
    }

    /// The tasks that wait for the CPU: those that run next, then those in its queues.
    pub fn waiting(&self, cpu: usize) -> impl Iterator<Item = TaskId> {
        let side = self.side.get(0);
        let queued = side.of(cpu).flatten().map(|w| w.task);
        side.local[cpu].iter().copied().chain(queued)
    }

    /// The tasks that run next on the CPU.
    pub fn local(&mut self, cpu: usize) -> &mut VecDeque<TaskId> {
        &mut self.side.get_mut(0).local[cpu]
    }

    // ---- callbacks; `here` is the CPU on which they run, `current` the task that runs there ----

    fn call(&mut self, here: usize, current: Option<TaskId>) -> *mut sys::world {
        self.side.get_mut(0).here = here;
        let current = match current {
            Some(task) => &raw mut *self.ports.get_mut(task),
            None => &raw mut *self.idle_task,
        };
        self.raw.this_cpu = here as i32;
        self.raw.current = current;
        &raw mut *self.raw
    }

    fn port(&mut self, task: TaskId) -> *mut sys::port_task {
        &raw mut *self.ports.get_mut(task)
    }

    /// `flags` are bits of `sys::WAKE_*`. Returns the chosen CPU.
    pub fn select_cpu(
        &mut self,
        here: usize,
        current: Option<TaskId>,
        task: TaskId,
        flags: u64,
    ) -> usize {
        let (port, prev) = (self.port(task), self.ports.get(task).cpu);
        let world = self.call(here, current);
        // SAFETY: the tables live as long as `self`, and C checks indexes; the same holds below.
        let cpu = unsafe { sys::roost_select_cpu(world, port, prev, flags) };
        cpu as usize
    }

    pub fn enqueue(&mut self, here: usize, current: Option<TaskId>, task: TaskId, flags: u64) {
        let port = self.port(task);
        let world = self.call(here, current);
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_enqueue(world, port, flags) }
    }

    pub fn dispatch(&mut self, cpu: usize, prev: Option<TaskId>) {
        let port = prev.map_or(ptr::null_mut(), |task| self.port(task));
        let world = self.call(cpu, prev);
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_dispatch(world, cpu as i32, port) }
    }

    pub fn running(&mut self, cpu: usize, task: TaskId) {
        let port = self.port(task);
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_running(world, port) }
    }

    pub fn tick(&mut self, cpu: usize, task: TaskId) {
        let port = self.port(task);
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_tick(world, port) }
    }

    pub fn stopping(&mut self, cpu: usize, task: TaskId, runnable: bool) {
        let port = self.port(task);
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_stopping(world, port, runnable) }
    }

    /// The running task is about to return to user mode.
    pub fn returns(&mut self, cpu: usize, task: TaskId) {
        let port = self.port(task);
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_task_returns(world, port) };
    }

    /// The running task yields.
    pub fn yields(&mut self, cpu: usize, task: TaskId) {
        let port = self.port(task);
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_yield(world, port, ptr::null_mut()) };
    }

    /// The running task yields to another (kernel: yield_to()); false: that one waits for no CPU.
    pub fn yields_to(&mut self, cpu: usize, task: TaskId, to: TaskId) -> bool {
        let (port, to) = (self.port(task), self.port(to));
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_yield(world, port, to) }
    }

    pub fn disable(&mut self, cpu: usize, task: TaskId) {
        let port = self.port(task);
        let world = self.call(cpu, Some(task));
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_disable(world, port) }
    }

    /// The CPU, which runs `current`, goes online or offline; when it goes, its waiting tasks are
    /// in its local queue afterwards.
    pub fn cpu_turns(&mut self, cpu: usize, current: Option<TaskId>, comes: bool) {
        let world = self.call(cpu, current);
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_cpu_turns(world, cpu as i32, comes) }
    }

    /// A timer of `cpu`, which runs `current`, fires.
    pub fn timer(&mut self, which: sys::timer_kind, cpu: usize, current: Option<TaskId>) {
        let world = self.call(cpu, current);
        // SAFETY: see `select_cpu`.
        unsafe { sys::roost_timer(world, which, cpu as i32) }
    }
}
