// SPDX-License-Identifier: GPL-2.0-only
//! What the engine asks of any scheduler.

use super::task::{Task, Wake};
use scx_roost::bpf::intf::CAPACITY_SCALE;
use scx_roost::native::sys::timer_kind;
use scx_roost::native::{Attr, Kernel, TaskId};

/// What a scheduler asks of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Make the CPU pick again.
    Reschedule(usize),
    /// Arm a timer, again if it is armed already.
    Timer {
        which: timer_kind,
        cpu: usize,
        ns: u64,
    },
    /// The CPU has looked for work on other CPUs for so long.
    Looks { cpu: usize, ns: u64 },
    /// Ask for a frequency of the CPU, as a part of the highest in units of CAPACITY_SCALE.
    Speed { cpu: usize, speed: u32 },
}

/// A scheduler. Calls take no simulated time, and append what the scheduler asks for to `orders`.
/// While a CPU runs nothing, the scheduler has no runnable current task for it.
pub trait Scheduler {
    /// The policy's memory, if the scheduler has one. Userspace publishes into it, and ticks write
    /// frequencies.
    fn kernel(&mut self) -> Option<&mut Kernel> {
        None
    }
    /// The frequency that a new scheduler asks of every CPU, as a part of CAPACITY_SCALE. sched_ext
    /// asks for the highest (kernel: enabling a scheduler sets scx.cpuperf_target to
    /// SCX_CPUPERF_ONE). None: it asks for nothing, and schedutil goes by utilisation.
    fn first_speed(&self) -> Option<u32> {
        Some(CAPACITY_SCALE)
    }
    /// Sets the time of the calls that follow, ns.
    fn set_now(&mut self, now: u64);
    /// A new task, which may use the CPUs of a mask. It has not run yet, and counts as on `cpu`.
    fn begin(&mut self, task: TaskId, mask: usize, cpu: usize);
    /// Sets a task's nice level, policy and slice. Called right after `begin`, and perhaps again.
    fn set_attr(&mut self, task: TaskId, attr: &Attr);
    /// The same for a task that may be running or waiting (kernel: sched_setattr() of another
    /// task). False: not supported.
    fn change_attr(&mut self, _: TaskId, _: &Attr, _: &mut Vec<Order>) -> bool {
        false
    }
    /// The task may use other CPUs (kernel: sched_setaffinity()). If it runs or waits on a CPU that
    /// it may no longer use, it goes to wait on one that it may. True: it ran and was stopped, so
    /// the CPU picks next. Not called between placement and arrival.
    fn set_affinity(&mut self, task: TaskId, mask: usize, orders: &mut Vec<Order>) -> bool;
    /// True if a task that is in the kernel can lose its CPU there. The fair class lets it come out
    /// first: without full preemption it always did, and with lazy preemption it asks by
    /// resched_curr_lazy() (since 6.13). sched_ext asks by resched_curr().
    fn preempts_kernel(&self) -> bool {
        false
    }
    /// Chooses a CPU for a task that wakes or is new.
    fn place(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>) -> usize;
    /// The task is on the run queue of its CPU.
    fn arrive(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>);
    /// The running task has run for `ns` until now.
    fn ran(&mut self, task: TaskId, ns: u64);
    /// The running task gives way (kernel: sched_yield()). The CPU picks next.
    fn yields(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// The running task sleeps. The CPU picks next.
    fn sleeps(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// The running task ends. The CPU picks next.
    fn ends(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// Chooses the task that runs next.
    fn pick(&mut self, cpu: usize, orders: &mut Vec<Order>) -> Option<TaskId>;
    /// The tick of a CPU that runs a task.
    fn tick(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// The policy's counters, by the rows of stats.tbl.h. Empty if the scheduler is not ours.
    fn counters(&self) -> Vec<u64> {
        Vec::new()
    }
    /// What the scheduler says of itself, for `check`. None: it says nothing.
    fn belief(&self) -> Option<&dyn Belief> {
        None
    }
    /// The bounds that the scheduler keeps; docs/simulator.md says why.
    fn bounds(&self) -> Bounds {
        Bounds::default()
    }
    /// A timer fires that the scheduler armed.
    fn timer(&mut self, cpu: usize, which: timer_kind, orders: &mut Vec<Order>);
}

/// What a scheduler says of itself.
pub trait Belief {
    /// Appends the tasks that wait for the CPU, in any of its queues.
    fn waiting(&self, cpu: usize, to: &mut Vec<TaskId>);
    /// The number of tasks that run or wait on the CPU.
    fn nr_running(&self, cpu: usize) -> usize;
    /// True if the scheduler sees the CPU as idle.
    fn idle(&self, cpu: usize) -> bool;
    /// True if a search for idle CPUs finds it.
    fn listed(&self, cpu: usize) -> bool;
    /// The virtual run time of a runnable task, and whether it is in ns. It wraps around.
    fn vruntime(&self, task: TaskId) -> (u64, bool);
    /// The virtual time of the CPU. It wraps around and never goes back.
    fn progress(&self, cpu: usize) -> u64;
    /// Checks the scheduler's own bookkeeping. Errors: what is wrong.
    fn audit(&self, now: u64, tasks: &[Task]) -> Result<(), String>;
}

/// Bounds, ns. u64::MAX: no bound.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A CPU may idle this long beside a waiting task that it may run, plus `idle_each` for each
    /// waiting task.
    pub idle: u64,
    pub idle_each: u64,
    /// A runnable task may wait this long for each runnable task, plus `late` once.
    pub turn: u64,
    pub late: u64,
    /// The weight of all queued tasks, where tasks share by weight. `turn` then counts once for
    /// each multiple of the task's own weight, and `unfair` is for a task of weight NICE0. None:
    /// tasks of unequal weight are not compared.
    pub weight: Option<u64>,
    /// Added once while a runnable task has another nice level or policy than the default.
    pub unequal: u64,
    /// The longest wait, whatever competes.
    pub longest: u64,
    /// Run times of tasks that shared a CPU for a while may differ by this much, by weight.
    pub unfair: u64,
    /// A task that yields gives up time that it is owed, so it may have less than others.
    pub yields: bool,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            idle: u64::MAX,
            idle_each: 0,
            turn: u64::MAX,
            late: 0,
            weight: None,
            unequal: 0,
            longest: u64::MAX,
            unfair: u64::MAX,
            yields: false,
        }
    }
}

impl Bounds {
    /// The same bounds where timers and ticks may be `ns` late.
    pub fn later(self, ns: u64) -> Bounds {
        Bounds {
            idle: self.idle.saturating_add(2 * ns),
            idle_each: self.idle_each + ns,
            turn: self.turn.saturating_add(2 * ns),
            late: self.late + 4 * ns,
            unequal: self.unequal + 4 * ns,
            // Each slice may end this late, and the number of slices depends on the number of
            // waiting tasks.
            longest: if ns > 0 { u64::MAX } else { self.longest },
            unfair: self.unfair.saturating_add(4 * ns),
            ..self
        }
    }
}
