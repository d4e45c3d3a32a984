// SPDX-License-Identifier: GPL-2.0-only
//! What tasks do to each other: messages, locks, barriers, children. A task goes through the steps of its program until one of them is
//! work, or makes it wait.

use super::Rng;
use super::cost::Costs;
use super::lines::{Lines, Shared};
use super::load::{Load, Step, Vary, Which};
use super::measure::Measured;
use super::pipe::{Pipe, Way};
use super::speed::FULL;
use super::task::{Memory, Task, Then};
use crate::native::TaskId;
use std::collections::VecDeque;
use std::sync::Arc;

/// Steps without work or a wait, after which there is none to come.
pub const MOST_IDLE_STEPS: u64 = 100_000;

/// How far a task came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Works,
    /// Until then, ns; None: until it is woken.
    Sleeps(Option<u64>),
    Yields,
    /// It begins a new program.
    Execs,
    /// It has other attributes.
    Changes,
    Ends,
    /// Nowhere: it goes round without work, and time stands still.
    Circles,
}

pub(super) struct Message {
    from: i64,
    tag: usize,
    stamp: u64,
}

impl Message {
    /// Of who sends it, about that.
    pub fn of(task: &Task, tag: usize) -> Message {
        Message {
            from: task.known.me,
            tag,
            stamp: task.stamp,
        }
    }

    pub fn read_by(&self, task: &mut Task) {
        task.known.from = self.from;
        task.tag = self.tag;
        task.stamp = self.stamp;
    }
}

#[derive(Default)]
pub(super) struct Channel {
    pub messages: VecDeque<Message>,
    pub readers: VecDeque<TaskId>,
    pub writers: VecDeque<TaskId>,
}

#[derive(Default)]
struct Lock {
    holder: Option<TaskId>,
    waiters: VecDeque<TaskId>,
}

/// The state of a load.
pub struct Wait {
    pub load: Arc<Load>,
    loops: usize,
    timers: usize,
    pub(super) channels: Vec<Channel>,
    /// Of each channel, what it has besides as a pipe of the kernel's.
    pub(super) pipes: Vec<Pipe>,
    locks: Vec<Lock>,
    /// Who waits for each condition.
    pub(super) conds: Vec<VecDeque<TaskId>>,
    /// When timers that are shared were last due, ns.
    pub(super) shared: Vec<Option<u64>>,
    /// Who waits at each barrier.
    barriers: Vec<Vec<TaskId>>,
    /// Who spins there no longer: the last has come.
    pub freed: Vec<TaskId>,
    pub(super) lines: Lines,
    masks: Vec<usize>,
    pub seed: u64,
    rng: Rng,
}

impl Wait {
    /// `masks`: of each group, as the scheduler numbers them.
    pub fn new(load: Load, masks: Vec<usize>, seed: u64) -> Wait {
        Wait {
            loops: load.depth(),
            timers: load.own_timers(),
            conds: vec![VecDeque::new(); load.conds],
            shared: vec![None; load.timers],
            channels: load.channels.iter().map(|_| Channel::default()).collect(),
            pipes: load.channels.iter().map(|_| Pipe::default()).collect(),
            locks: (0..load.locks).map(|_| Lock::default()).collect(),
            barriers: load.barriers.iter().map(|_| Vec::new()).collect(),
            freed: Vec::new(),
            lines: Lines::new(&load),
            masks,
            seed,
            rng: Rng::new(seed),
            load: Arc::new(load),
        }
    }

    /// How many tasks of the group are there from the start.
    pub fn starts(&self, group: usize) -> Option<u64> {
        let group = &self.load.groups[group];
        (!group.forked).then_some(group.count)
    }

    pub fn mask(&self, group: usize) -> usize {
        self.masks[group]
    }

    /// A new task of the group, the `me`-th.
    pub fn task(&self, group: usize, me: i64) -> Task {
        let of = &self.load.groups[group];
        Task {
            mask: self.masks[group],
            ..Task::new(group, of, me, self.loops, self.timers)
        }
    }

    /// Its tasks are the kernel's, not the workload's.
    pub fn kernel(&self, group: usize) -> bool {
        self.load.groups[group].kernel
    }

    pub fn set_of(&self, group: usize) -> u64 {
        self.load.groups[group].set
    }

    /// Who ends and has told nobody yet wakes the parent that waits for it, while it still runs (kernel: do_exit() calls exit_notify()
    /// before do_task_dead(); that wakeup is sync, but not from who is exiting: select_task_rq_fair()).
    fn exits(tasks: &mut [Task], task: TaskId) -> Option<Came> {
        let Some(parent) = Wait::notify(tasks, task) else {
            return Some(Came::Ends);
        };
        tasks[task].todo.push_back(Then::Wake(parent, false));
        tasks[task].pc -= 1;
        None
    }

    /// Tells the parent, once, that the task ends: the parent, if it waits for that.
    fn notify(tasks: &mut [Task], task: TaskId) -> Option<TaskId> {
        let missed = Wait::returns(tasks, task);
        let parent = tasks[task].parent.take()?;
        tasks[parent].ended += 1;
        let waits = std::mem::take(&mut tasks[parent].waits);
        missed.or(waits.then_some(parent))
    }

    /// The task uses its parent's memory no longer: its parent, if it sleeps for that (kernel: complete_vfork_done()).
    fn returns(tasks: &mut [Task], task: TaskId) -> Option<TaskId> {
        let parent = tasks[task].parent?;
        if !std::mem::take(&mut tasks[task].borrows) {
            return None;
        }
        let before = std::mem::replace(&mut tasks[parent].lends, Memory::Returned);
        (before == Memory::Missed).then_some(parent)
    }

    /// The step comes thrice: it forks, sleeps, and is done.
    fn vforks(group: usize, task: &mut Task) -> Option<Came> {
        task.pc -= 1;
        match task.lends {
            Memory::Own => {
                task.lends = Memory::Lent;
                task.todo.push_back(Then::Vfork(group));
                None
            }
            Memory::Returned => {
                task.lends = Memory::Own;
                task.pc += 1;
                None
            }
            Memory::Lent | Memory::Missed => {
                task.lends = Memory::Missed;
                Some(Came::Sleeps(None))
            }
        }
    }

    fn drawn(&mut self, ns: i64, vary: Vary) -> u64 {
        let ns = ns.max(0) as u64;
        match vary {
            Vary::No => ns,
            Vary::Even(percent) => {
                let width = ns * percent / 100;
                ns - width + self.rng.below(2 * width + 1)
            }
            Vary::Exponential => (-(self.rng.part()).ln() * ns as f64) as u64,
        }
    }

    fn which(&self, which: &Which, task: &Task) -> usize {
        let at = which.at.value(&task.known).rem_euclid(which.count as i64);
        which.first + at as usize
    }

    /// The task's next work, its wait, or its end.
    pub fn proceed(
        &mut self,
        tasks: &mut [Task],
        task: TaskId,
        now: u64,
        costs: &Costs,
        measured: &mut Measured,
    ) -> Came {
        let came = self.walks(tasks, task, now, costs, measured);
        let of = &mut tasks[task];
        match came {
            Came::Works if of.left == 0 => {}
            Came::Execs | Came::Changes | Came::Circles => {}
            _ => of.idle_steps = 0,
        }
        came
    }

    /// The same; steps that take no time are counted.
    fn walks(
        &mut self,
        tasks: &mut [Task],
        task: TaskId,
        now: u64,
        costs: &Costs,
        measured: &mut Measured,
    ) -> Came {
        // Beside what the steps change.
        let load = Arc::clone(&self.load);
        loop {
            if let Some(then) = tasks[task].todo.pop_front() {
                let ns = match then {
                    Then::Fork(_) | Then::Vfork(_) => costs.fork,
                    _ => costs.select,
                };
                tasks[task].left += ns * FULL;
                tasks[task].then = then;
                return Came::Works;
            }
            let step = &load.groups[tasks[task].group].program[tasks[task].pc];
            // What is left to pay for is paid for before anything else happens.
            if tasks[task].left > 0 && !matches!(step, Step::Run(..))
                || self.reaches(step, &mut tasks[task], costs)
            {
                tasks[task].then = Then::Step;
                return Came::Works;
            }
            tasks[task].idle_steps += 1;
            if tasks[task].idle_steps > MOST_IDLE_STEPS {
                return Came::Circles;
            }
            if let Some(came) = self.step(step, tasks, task, now, costs, measured) {
                return came;
            }
        }
    }

    /// Who is not the last spins, if the barrier says so, and comes here again when that was in vain.
    fn barrier(&mut self, at: usize, tasks: &mut [Task], id: TaskId) -> Option<Came> {
        let barrier = self.load.barriers[at];
        let there = &mut self.barriers[at];
        let task = &mut tasks[id];
        if std::mem::take(&mut task.spins) {
            return Some(Came::Sleeps(None));
        }
        task.first = there.len() + 1 == barrier.tasks as usize;
        if !task.first {
            there.push(id);
            if barrier.spin == 0 {
                return Some(Came::Sleeps(None));
            }
            task.spins = true;
            task.left += barrier.spin * FULL;
            task.pc -= 1;
            return Some(Came::Works);
        }
        for other in there.drain(..) {
            let waits = &mut tasks[other];
            if std::mem::take(&mut waits.spins) {
                waits.left = 0;
                waits.pc += 1;
                self.freed.push(other);
            } else {
                tasks[id].todo.push_back(Then::Wake(other, false));
            }
        }
        None
    }

    /// The task has to wait for the cache lines of what the step is about, which another CPU wrote. Once for each step: others may take
    /// them away again.
    fn reaches(&mut self, step: &Step, task: &mut Task, costs: &Costs) -> bool {
        let shared = match step {
            Step::Send(which, _) | Step::Receive(which) => {
                let at = self.which(which, task);
                // A pipe's come with its mutex.
                if self.load.channels[at].paged.is_some() {
                    return false;
                }
                Shared::Channel(at)
            }
            Step::Lock(which) | Step::Unlock(which) => Shared::Lock(self.which(which, task)),
            Step::Barrier(at) => Shared::Barrier(*at),
            _ => return false,
        };
        if task.spins || std::mem::take(&mut task.reached) {
            return false;
        }
        let cpu = task.cpu.expect("it runs");
        let ns = self.lines.come(shared, cpu, costs);
        task.left += ns * FULL;
        task.reached = ns > 0;
        ns > 0
    }

    /// None: the step is done, and took no time.
    fn step(
        &mut self,
        step: &Step,
        tasks: &mut [Task],
        id: TaskId,
        now: u64,
        costs: &Costs,
        measured: &mut Measured,
    ) -> Option<Came> {
        let task = &mut tasks[id];
        task.pc += 1;
        match *step {
            Step::Run(ref ns, vary) => {
                let ns = self.drawn(ns.value(&task.known), vary);
                task.left += ns * FULL;
                task.then = Then::Step;
                return Some(Came::Works);
            }
            Step::Sleep(ref ns, vary) => {
                let ns = self.drawn(ns.value(&task.known), vary);
                return Some(Came::Sleeps(Some(now + ns)));
            }
            Step::Until(ref period) => {
                let period = period.value(&task.known).max(1) as u64;
                return Some(Came::Sleeps(Some((now / period + 1) * period)));
            }
            Step::Send(ref which, tag) => {
                let at = self.which(which, task);
                let of = self.load.channels[at];
                if of.paged.is_some() {
                    return self.pipes(at, Way::Write(tag), tasks, id, costs);
                }
                let channel = &mut self.channels[at];
                if channel.messages.len() as u64 >= of.capacity {
                    channel.writers.push_back(id);
                    task.pc -= 1;
                    return Some(Came::Sleeps(None));
                }
                channel.messages.push_back(Message::of(task, tag));
                if let Some(reader) = channel.readers.pop_front() {
                    task.todo.push_back(Then::Wake(reader, of.sync));
                }
            }
            Step::Receive(ref which) => {
                let at = self.which(which, task);
                let of = self.load.channels[at];
                if of.paged.is_some() {
                    return self.pipes(at, Way::Read, tasks, id, costs);
                }
                let channel = &mut self.channels[at];
                let Some(message) = channel.messages.pop_front() else {
                    channel.readers.push_back(id);
                    task.pc -= 1;
                    return Some(Came::Sleeps(None));
                };
                message.read_by(task);
                if let Some(writer) = channel.writers.pop_front() {
                    task.todo.push_back(Then::Wake(writer, of.sync));
                }
            }
            Step::Lock(ref which) => {
                let at = self.which(which, task);
                let lock = &mut self.locks[at];
                if lock.holder.is_some() {
                    lock.waiters.push_back(id);
                    task.pc -= 1;
                    return Some(Came::Sleeps(None));
                }
                lock.holder = Some(id);
            }
            Step::Unlock(ref which) => {
                let at = self.which(which, task);
                let lock = &mut self.locks[at];
                // As a futex: it is not asked who locked it.
                lock.holder = None;
                if let Some(waiter) = lock.waiters.pop_front() {
                    task.todo.push_back(Then::Wake(waiter, false));
                }
            }
            Step::Join(cond) => self.joins(cond, task, id),
            Step::Block => return Wait::blocks(task),
            Step::Signal(cond, all) => self.signals(cond, all, tasks, id),
            Step::Timer {
                at,
                first,
                period,
                relative,
            } => {
                let late = if relative { Some(now) } else { None };
                return self.timer(at, first + period, period, late, task, now);
            }
            Step::Runtime(ns) => return Wait::runs_until(ns, task, now),
            Step::Memory(percent) => task.memory = percent,
            Step::Attr(change) => {
                change.apply(&mut task.attr);
                return Some(Came::Changes);
            }
            Step::Barrier(at) => return self.barrier(at, tasks, id),
            Step::Fork(group, ref count) => {
                let count = count.value(&task.known).max(0) as usize;
                task.todo
                    .extend(std::iter::repeat_n(Then::Fork(group), count));
            }
            Step::Vfork(group) => return Wait::vforks(group, task),
            Step::Wait => {
                if task.ended == 0 {
                    task.waits = true;
                    task.pc -= 1;
                    return Some(Came::Sleeps(None));
                }
                task.ended -= 1;
            }
            Step::Exit => return Wait::exits(tasks, id),
            Step::Exec => {
                if let Some(parent) = Wait::returns(tasks, id) {
                    tasks[id].todo.push_back(Then::Wake(parent, false));
                }
                return Some(Came::Execs);
            }
            Step::Yield => return Some(Came::Yields),
            Step::Stamp => task.stamp = now,
            Step::Keep => task.known.kept = task.known.from,
            Step::Count(mark, ref by) => measured.mark(mark, by.value(&task.known).max(0) as u64),
            Step::Latency(mark) => measured.latency(mark, now - task.stamp),
            Step::Jump(to) => task.pc = to,
            Step::Turns(slot, ref count) => {
                let count = count.value(&task.known);
                task.turns[slot] = (0, count);
                task.known.turn = 0;
                if count <= 0 {
                    task.pc = self.load.groups[task.group].behind(slot, task.pc);
                }
            }
            Step::Again(slot, to) => {
                let (turn, count) = task.turns[slot];
                task.turns[slot].0 = turn + 1;
                if turn + 1 < count {
                    task.known.turn = turn + 1;
                    task.pc = to;
                }
            }
            Step::Unless(tag, to) => {
                if task.tag != tag {
                    task.pc = to;
                }
            }
            Step::UnlessFirst(to) => {
                if !task.first {
                    task.pc = to;
                }
            }
        }
        None
    }
}
