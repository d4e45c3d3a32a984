// SPDX-License-Identifier: GPL-2.0-only
//! A task of the simulator: where in its program it is, and what it still has to do there.

use super::caches::Cold;
use super::cost::Move;
use super::load::{Group, Known};
use super::speed::FULL;
use scx_roost::native::{Attr, sys};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskState {
    /// No task has this number.
    Free,
    Asleep,
    /// Placed, and not on the run queue yet.
    Coming,
    /// Runs, or waits to run.
    Runnable,
}

/// Why a task comes to a CPU: a wakeup or a fork.
#[derive(Clone, Copy, Debug)]
pub struct Wake {
    /// The CPU on which it happens.
    pub cpu: usize,
    /// The waker said that it is about to sleep (kernel: WF_SYNC).
    pub sync: bool,
    pub fork: bool,
}

impl Wake {
    /// An ordinary wakeup.
    pub fn by(cpu: usize) -> Wake {
        Wake {
            cpu,
            sync: false,
            fork: false,
        }
    }

    pub fn fork(cpu: usize) -> Wake {
        Wake {
            fork: true,
            ..Wake::by(cpu)
        }
    }

    /// The wake flags for the policy (kernel: WF_FORK, WF_SYNC).
    pub fn flags(self) -> u64 {
        let fork = if self.fork {
            u64::from(sys::WAKE_FORK)
        } else {
            0
        };
        let sync = if self.sync {
            u64::from(sys::WAKE_SYNC)
        } else {
            0
        };
        fork | sync
    }
}

/// What happens at the end of a segment of work.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// The next step.
    Step,
    /// Another task is woken; true: by a sync wakeup.
    Wake(usize, bool),
    /// A new task of a group is forked.
    Fork(usize),
}

#[derive(Clone, Debug)]
pub struct Task {
    pub state: TaskState,
    pub group: usize,
    pub pc: usize,
    pub turns: Vec<(i64, i64)>,
    pub known: Known,
    /// What the message received last is about.
    pub tag: usize,
    pub stamp: u64,
    /// It runs now.
    pub on_cpu: bool,
    /// Its CPU picks as soon as it comes out of the kernel (kernel: TIF_NEED_RESCHED).
    pub resched: bool,
    /// It sleeps until another wakes it.
    pub stuck: bool,
    /// It waits for a condition: asleep, or about to sleep.
    pub blocked: bool,
    /// It runs until this time, ns, however much work that is.
    pub until: Option<u64>,
    /// When its timers were last due, ns.
    pub timers: Vec<Option<u64>>,
    pub attr: Attr,
    /// The scheduler's number of the set of CPUs that it may use.
    pub mask: usize,
    /// Work left of the segment, in 1/FULL ns at full speed.
    pub left: u64,
    /// How it began this turn or segment, and what was left then.
    pub cold: (Cold, u64),
    pub then: Then,
    /// Steps since it last worked or waited.
    pub idle_steps: u64,
    /// What it does before its next step.
    pub todo: VecDeque<Then>,
    pub wake: Wake,
    pub woken_at: u64,
    /// The CPU on which it last ran, and how far away the LLC or node is that it came from last.
    pub cpu: Option<usize>,
    pub far: Move,
    pub parent: Option<usize>,
    /// Children that have ended and have not been waited for, and whether it waits now.
    pub ended: u64,
    pub waits: bool,
}

impl Task {
    /// True if it does what the kernel does for it: wakes or forks a task.
    pub fn in_kernel(&self) -> bool {
        !matches!(self.then, Then::Step)
    }

    /// Its work takes longer, as the caches lack its data.
    pub fn begins(&mut self, cold: Cold) {
        self.left += cold.loads * FULL;
        self.cold = (cold, self.left);
    }

    /// Others run now and push its data out of the caches, so what it has not loaded yet is counted
    /// when it runs again. Without this a task whose data take a whole turn to load would never do
    /// any work.
    pub fn gives_way(&mut self) {
        let (Cold { work, loads }, from) = std::mem::take(&mut self.cold);
        let ran = u128::from(from.saturating_sub(self.left));
        let all = u128::from((work + loads) * FULL);
        if ran < all {
            let worked = ran * u128::from(work) / u128::from(work + loads);
            self.left = from - loads * FULL - worked as u64;
        }
    }

    /// Task number `me` of group number `group`, which is `of`. `loops`: how deep loops are nested;
    /// `timers`: how many timers a task has.
    pub fn new(group: usize, of: &Group, me: i64, loops: usize, timers: usize) -> Task {
        Task {
            state: TaskState::Free,
            group,
            pc: 0,
            turns: vec![(0, 0); loops],
            known: Known {
                me,
                ..Known::default()
            },
            tag: usize::MAX,
            stamp: 0,
            on_cpu: false,
            resched: false,
            stuck: false,
            blocked: false,
            until: None,
            timers: vec![None; timers],
            attr: of.attr,
            mask: 0,
            left: 0,
            cold: (Cold::default(), 0),
            then: Then::Step,
            idle_steps: 0,
            todo: VecDeque::new(),
            wake: Wake::fork(0),
            woken_at: 0,
            cpu: None,
            far: Move::SameCore,
            parent: None,
            ended: 0,
            waits: false,
        }
    }
}
