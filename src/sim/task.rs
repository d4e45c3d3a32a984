// SPDX-License-Identifier: GPL-2.0-only
//! A task of the simulator: where in its program it is, and what it still has to do there.

use super::load::{Group, Known};
use super::pipe::AtPipe;
use super::sched::Wake;
use crate::native::Attr;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none of that number.
    Free,
    Asleep,
    /// Placed, and not there yet.
    Coming,
    /// Runs, or waits to.
    Runnable,
}

/// What a segment of work leads to.
#[derive(Clone, Copy, Debug)]
pub enum Then {
    /// The next step.
    Step,
    /// Another task is woken.
    Wake(usize, bool),
    /// A new task of a group is there.
    Fork(usize),
    /// The same, in the memory of its parent.
    Vfork(usize),
}

/// A task's memory, which a child of a vfork uses until it execs or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    Own,
    Lent,
    /// The same, and the task sleeps until it has it back.
    Missed,
    Returned,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub state: State,
    pub group: usize,
    pub pc: usize,
    pub turns: Vec<(i64, i64)>,
    pub known: Known,
    /// What was received last is about this.
    pub tag: usize,
    pub stamp: u64,
    /// It came last to a barrier.
    pub first: bool,
    /// It waits at a barrier, on its CPU.
    pub spins: bool,
    /// How far it has come with a pipe.
    pub pipe: AtPipe,
    /// It runs.
    pub on_cpu: bool,
    /// It sleeps until another wakes it.
    pub stuck: bool,
    /// Its CPU has the cache lines that its step is about.
    pub reached: bool,
    /// It waits for a condition, asleep or on its way.
    pub blocked: bool,
    /// It runs until then, ns, whatever it does.
    pub until: Option<u64>,
    /// When its timers were last due, ns.
    pub timers: Vec<Option<u64>>,
    /// Percent of its work that waits for memory.
    pub memory: u64,
    pub attr: Attr,
    /// The CPUs that it may use, as the scheduler numbers such sets.
    pub mask: usize,
    /// Work of the segment, in 1/FULL ns at full speed.
    pub left: u64,
    pub then: Then,
    /// Steps since it last worked or waited.
    pub idle_steps: u64,
    /// What is to be done before the next step.
    pub todo: VecDeque<Then>,
    pub wake: Wake,
    pub woken_at: u64,
    /// Where it last ran.
    pub cpu: Option<usize>,
    pub parent: Option<usize>,
    pub lends: Memory,
    /// It uses its parent's memory.
    pub borrows: bool,
    /// Of its children: those that have ended, and whether it waits for one.
    pub ended: u64,
    pub waits: bool,
}

impl Task {
    /// The `me`-th of a group: `of`, by its number; with so many loops within loops, and timers.
    pub fn new(group: usize, of: &Group, me: i64, loops: usize, timers: usize) -> Task {
        Task {
            state: State::Free,
            group,
            pc: 0,
            turns: vec![(0, 0); loops],
            known: Known {
                me,
                ..Known::default()
            },
            tag: usize::MAX,
            stamp: 0,
            first: false,
            spins: false,
            pipe: AtPipe::default(),
            on_cpu: false,
            stuck: false,
            reached: false,
            blocked: false,
            until: None,
            timers: vec![None; timers],
            memory: of.memory,
            attr: of.attr,
            mask: 0,
            left: 0,
            then: Then::Step,
            idle_steps: 0,
            todo: VecDeque::new(),
            wake: Wake::fork(0),
            woken_at: 0,
            cpu: None,
            parent: None,
            lends: Memory::Own,
            borrows: false,
            ended: 0,
            waits: false,
        }
    }
}
