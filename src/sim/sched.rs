// SPDX-License-Identifier: GPL-2.0-only
//! What the engine asks of a scheduler, whichever it is.

use super::task::Task;
use crate::bpf::intf::CAPACITY_SCALE;
use crate::native::sys::{self, timer_kind};
use crate::native::{Attr, Kernel, TaskId};

/// Why a task comes to a CPU: a wakeup, a fork or an exec.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    /// On which CPU it happens, by the task that runs there.
    pub cpu: usize,
    /// The waker said that it is about to sleep.
    pub sync: bool,
    pub fork: bool,
    /// It ran, and goes on here with a new program.
    pub exec: bool,
}

impl Wake {
    /// A wakeup.
    pub fn by(cpu: usize) -> Wake {
        Wake {
            cpu,
            sync: false,
            fork: false,
            exec: false,
        }
    }

    pub fn fork(cpu: usize) -> Wake {
        Wake {
            fork: true,
            ..Wake::by(cpu)
        }
    }

    pub fn exec(cpu: usize) -> Wake {
        Wake {
            exec: true,
            ..Wake::by(cpu)
        }
    }

    /// As the policy is told (kernel: WF_FORK, WF_SYNC).
    pub fn flags(self) -> u64 {
        let fork = if self.fork { sys::WAKE_FORK as u64 } else { 0 };
        let sync = if self.sync { sys::WAKE_SYNC as u64 } else { 0 };
        fork | sync
    }
}

/// What a scheduler wants of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The CPU shall pick anew.
    Reschedule(usize),
    /// Started anew, if it was started.
    Timer {
        which: timer_kind,
        cpu: usize,
        ns: u64,
    },
    /// The CPU shall have a part of the highest frequency, of CAPACITY_SCALE.
    Speed { cpu: usize, speed: u32 },
}

/// Each call is an instant; what it wants goes into `orders`. A CPU that runs nothing has nothing runnable in its hand.
pub trait Scheduler {
    /// The policy's memory, if it has one: userspace publishes into it, and ticks tell it frequencies.
    fn kernel(&mut self) -> Option<&mut Kernel> {
        None
    }
    /// What it asks of every CPU's frequency as it begins, a part of CAPACITY_SCALE: all, under sched_ext (kernel: whoever
    /// enables a scheduler sets each scx.cpuperf_target to SCX_CPUPERF_ONE). None: nothing, and schedutil goes by what is used.
    fn first_speed(&self) -> Option<u32> {
        Some(CAPACITY_SCALE)
    }
    /// The time of what follows, ns.
    fn set_now(&mut self, now: u64);
    /// A task that may use the CPUs of a mask; it has run nowhere, and counts as on `cpu`.
    fn begin(&mut self, task: TaskId, mask: usize, cpu: usize);
    /// It is given a nice level, a policy, a slice; right after its beginning, and perhaps again.
    fn set_attr(&mut self, task: TaskId, attr: &Attr);
    /// The same of a task that may run or wait (kernel: sched_setattr() of another's). False: this scheduler is not asked so.
    fn change_attr(&mut self, _: TaskId, _: &Attr, _: &mut Vec<Order>) -> bool {
        false
    }
    /// It may use other CPUs (kernel: sched_setaffinity()): waiting or running on one that it may not use any more, it waits on one that it
    /// may. True: it ran there, and no longer does; the CPU picks next. Not called between placement and arrival.
    fn set_affinity(&mut self, task: TaskId, mask: usize, orders: &mut Vec<Order>) -> bool;
    /// Which CPU shall the task, which wakes or is new, run on?
    fn place(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>) -> usize;
    /// It is there.
    fn arrive(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>);
    /// The running task has run for so long, until now.
    fn ran(&mut self, task: TaskId, ns: u64);
    /// The running task gives way (kernel: sched_yield()); the CPU picks next.
    fn yields(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// The running task begins a new program: on which CPU (kernel: sched_exec())? If on another, this one picks next, and the
    /// task arrives there.
    fn exec(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) -> usize;
    /// The running task sleeps; the CPU picks next.
    fn sleeps(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// The same for the last time.
    fn ends(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// Who runs on the CPU now.
    fn pick(&mut self, cpu: usize, orders: &mut Vec<Order>) -> Option<TaskId>;
    /// Every tick of a CPU that runs a task.
    fn tick(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>);
    /// What the policy has counted, as the rows of stats.tbl.h; nothing, if it is none of ours.
    fn counters(&self) -> Vec<u64> {
        Vec::new()
    }
    /// What it believes, to be compared with what is. None: it does not say.
    fn belief(&self) -> Option<&dyn Belief> {
        None
    }
    /// What it keeps to; docs/simulator.md says why.
    fn bounds(&self) -> Bounds {
        Bounds::default()
    }
    /// A timer that it started.
    fn timer(&mut self, cpu: usize, which: timer_kind, orders: &mut Vec<Order>);
}

/// What a scheduler says of itself when it is asked.
pub trait Belief {
    /// Adds who waits for the CPU, in whichever of its queues.
    fn waiting(&self, cpu: usize, to: &mut Vec<TaskId>);
    /// How many tasks run or wait there.
    fn nr_running(&self, cpu: usize) -> usize;
    /// It is seen as idle.
    fn idle(&self, cpu: usize) -> bool;
    /// A search for idle CPUs finds it.
    fn listed(&self, cpu: usize) -> bool;
    /// The virtual run time of a task that is runnable, which goes around, and whether it is ns.
    fn vruntime(&self, task: TaskId) -> (u64, bool);
    /// The virtual time of the CPU, which goes around and never goes back.
    fn progress(&self, cpu: usize) -> u64;
    /// What is wrong in what it keeps for itself.
    fn audit(&self, now: u64, tasks: &[Task]) -> Result<(), String>;
}

/// ns; u64::MAX: there is no bound.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// So long a CPU may idle beside a task that waits and may run there, and so much longer for each task that waits.
    pub idle: u64,
    pub idle_each: u64,
    /// So long a task that may run may wait, for each that there is, and so much besides.
    pub turn: u64,
    pub late: u64,
    /// Tasks share by weight, and all that are in queues now weigh so much: `turn` is for each time that this is a task's own weight, and
    /// `unfair` for who weighs NICE0. None: tasks of unequal weight are not compared.
    pub weight: Option<u64>,
    /// More of that where tasks are unequal.
    pub unequal: u64,
    /// And no longer, whoever competes.
    pub longest: u64,
    /// So far apart may the run times be of tasks that shared a CPU for a while, by weight.
    pub unfair: u64,
    /// Who yields gives up time that it is owed, and so has less than others.
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
    /// The same where what hangs on a timer or a tick is so late, ns.
    pub fn later(self, ns: u64) -> Bounds {
        Bounds {
            idle: self.idle.saturating_add(2 * ns),
            idle_each: self.idle_each + ns,
            turn: self.turn.saturating_add(2 * ns),
            late: self.late + 4 * ns,
            unequal: self.unequal + 4 * ns,
            // Each slice may end so late, and how many there are hangs on how many wait.
            longest: if ns > 0 { u64::MAX } else { self.longest },
            unfair: self.unfair.saturating_add(4 * ns),
            ..self
        }
    }
}
