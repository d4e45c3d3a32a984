// SPDX-License-Identifier: GPL-2.0-only
//! What tasks do to each other: messages, locks, barriers, children. A task goes through the steps
//! of its program until a step is work or a wait.

use super::Rng;
use super::cost::Costs;
use super::load::{Expr, Load, Step, Vary, Which};
use super::measure::Measured;
use super::speed::FULL;
use super::task::{Task, Then};
use scx_roost::native::TaskId;
use std::collections::VecDeque;
use std::sync::Arc;

/// After this many steps without work or a wait, a task is taken to loop forever.
pub const MOST_IDLE_STEPS: u64 = 100_000;

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    Works,
    /// Until a time, ns. None: until another task wakes it.
    Sleeps(Option<u64>),
    Yields,
    /// It comes out of the kernel, where its CPU was told to pick.
    GivesWay,
    Ends,
    /// It loops without work, so time would never advance.
    Circles,
}

pub(super) struct Message {
    from: i64,
    tag: usize,
    stamp: u64,
}

impl Message {
    /// A message from the task, about `tag`.
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

/// The state of a running load.
pub struct Wait {
    pub load: Arc<Load>,
    loops: usize,
    timers: usize,
    pub(super) channels: Vec<Channel>,
    locks: Vec<Lock>,
    /// The tasks that wait for each condition.
    pub(super) conds: Vec<VecDeque<TaskId>>,
    /// The tasks that wait at each barrier.
    barriers: Vec<Vec<TaskId>>,
    masks: Vec<usize>,
    pub seed: u64,
    rng: Rng,
}

impl Wait {
    /// `masks`: the scheduler's number of the CPU set of each group.
    pub fn new(load: Load, masks: Vec<usize>, seed: u64) -> Wait {
        Wait {
            loops: load.depth(),
            timers: load.timers(),
            conds: vec![VecDeque::new(); load.conds],
            channels: load.channels.iter().map(|_| Channel::default()).collect(),
            locks: (0..load.locks).map(|_| Lock::default()).collect(),
            barriers: load.barriers.iter().map(|_| Vec::new()).collect(),
            masks,
            seed,
            rng: Rng::new(seed),
            load: Arc::new(load),
        }
    }

    /// The number of the group's tasks at the start. None: others fork them.
    pub fn starts(&self, group: usize) -> Option<u64> {
        let group = &self.load.groups[group];
        (!group.forked).then_some(group.count)
    }

    pub fn mask(&self, group: usize) -> usize {
        self.masks[group]
    }

    /// A new task, number `me` of its group.
    pub fn task(&self, group: usize, me: i64) -> Task {
        let of = &self.load.groups[group];
        Task {
            mask: self.masks[group],
            ..Task::new(group, of, me, self.loops, self.timers)
        }
    }

    pub fn set_of(&self, group: usize) -> u64 {
        self.load.groups[group].set
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
            Came::Circles => {}
            _ => of.idle_steps = 0,
        }
        came
    }

    /// Goes through steps until one takes time, and counts those that take none.
    fn walks(
        &mut self,
        tasks: &mut [Task],
        task: TaskId,
        now: u64,
        costs: &Costs,
        measured: &mut Measured,
    ) -> Came {
        // A separate handle, since the steps borrow `self` mutably.
        let load = Arc::clone(&self.load);
        loop {
            if let Some(then) = tasks[task].todo.pop_front() {
                let ns = match then {
                    Then::Fork(_) => costs.fork,
                    _ => costs.select,
                };
                tasks[task].left += ns * FULL;
                tasks[task].then = then;
                return Came::Works;
            }
            if tasks[task].resched && !tasks[task].in_kernel() {
                return Came::GivesWay;
            }
            let step = &load.groups[tasks[task].group].program[tasks[task].pc];
            // Pending work is done before anything else happens.
            if tasks[task].left > 0 && !matches!(step, Step::Run(..)) {
                tasks[task].then = Then::Step;
                return Came::Works;
            }
            tasks[task].idle_steps += 1;
            if tasks[task].idle_steps > MOST_IDLE_STEPS {
                return Came::Circles;
            }
            if let Some(came) = self.step(step, tasks, task, now, measured) {
                return came;
            }
        }
    }

    /// Every task but the last sleeps until all have come.
    fn barrier(&mut self, at: usize, tasks: &mut [Task], id: TaskId) -> Option<Came> {
        let there = &mut self.barriers[at];
        if there.len() + 1 < self.load.barriers[at] as usize {
            there.push(id);
            return Some(Came::Sleeps(None));
        }
        let wakes = there.drain(..).map(|other| Then::Wake(other, false));
        tasks[id].todo.extend(wakes);
        None
    }

    /// None: the step is done, and took no time.
    fn step(
        &mut self,
        step: &Step,
        tasks: &mut [Task],
        id: TaskId,
        now: u64,
        measured: &mut Measured,
    ) -> Option<Came> {
        let task = &mut tasks[id];
        task.pc += 1;
        match *step {
            Step::Run(ref ns, vary) => return Some(self.work(ns, vary, task)),
            Step::Runtime(ns) => return Wait::runs_until(ns, task, now),
            Step::Sleep(ref ns, vary) => return Some(self.sleep(ns, vary, task, now)),
            Step::Until(ref period) => return Some(Wait::sleep_until(period, task, now)),
            Step::Timer { at, first, period } => {
                return Wait::timer(at, first, period, task, now);
            }
            Step::Yield => return Some(Came::Yields),
            Step::Send(ref which, tag) => return self.send(which, tag, task, id),
            Step::Receive(ref which) => return self.receive(which, task, id),
            Step::Lock(ref which) => return self.lock(which, task, id),
            Step::Unlock(ref which) => self.unlock(which, task),
            Step::Barrier(at) => return self.barrier(at, tasks, id),
            Step::Join(cond) => self.joins(cond, task, id),
            Step::Block => return Wait::blocks(task),
            Step::Signal(cond, all) => self.signals(cond, all, tasks, id),
            Step::Fork(group, ref count) => Wait::fork(group, count, task),
            Step::Wait => return Wait::wait(task),
            Step::Exit => return Wait::exit(tasks, id),
            Step::Stamp => task.stamp = now,
            Step::Keep => task.known.kept = task.known.from,
            Step::Count(mark, ref by) => measured.mark(mark, by.value(&task.known).max(0) as u64),
            Step::Latency(mark) => measured.latency(mark, now - task.stamp),
            Step::Turns(slot, ref count) => self.begin_loop(slot, count, task),
            Step::Again(slot, to) => Wait::end_turn(slot, to, task),
            Step::Unless(tag, _) if task.tag == tag => {}
            Step::Jump(to) | Step::Unless(_, to) => task.pc = to,
        }
        None
    }

    fn work(&mut self, ns: &Expr, vary: Vary, task: &mut Task) -> Came {
        let ns = self.drawn(ns.value(&task.known), vary);
        task.left += ns * FULL;
        task.then = Then::Step;
        Came::Works
    }

    fn sleep(&mut self, ns: &Expr, vary: Vary, task: &Task, now: u64) -> Came {
        let ns = self.drawn(ns.value(&task.known), vary);
        Came::Sleeps(Some(now + ns))
    }

    /// Sleeps until the next multiple of `period`.
    fn sleep_until(period: &Expr, task: &Task, now: u64) -> Came {
        let period = period.value(&task.known).max(1) as u64;
        Came::Sleeps(Some((now + period) / period * period))
    }

    fn send(&mut self, which: &Which, tag: usize, task: &mut Task, id: TaskId) -> Option<Came> {
        let at = self.which(which, task);
        let of = self.load.channels[at];
        let channel = &mut self.channels[at];
        if channel.messages.len() as u64 >= of.capacity {
            channel.writers.push_back(id);
            return Some(Wait::sleep_and_repeat(task));
        }
        channel.messages.push_back(Message::of(task, tag));
        if let Some(reader) = channel.readers.pop_front() {
            task.todo.push_back(Then::Wake(reader, of.sync));
        }
        None
    }

    fn receive(&mut self, which: &Which, task: &mut Task, id: TaskId) -> Option<Came> {
        let at = self.which(which, task);
        let of = self.load.channels[at];
        let channel = &mut self.channels[at];
        let Some(message) = channel.messages.pop_front() else {
            channel.readers.push_back(id);
            return Some(Wait::sleep_and_repeat(task));
        };
        message.read_by(task);
        if let Some(writer) = channel.writers.pop_front() {
            task.todo.push_back(Then::Wake(writer, of.sync));
        }
        None
    }

    fn lock(&mut self, which: &Which, task: &mut Task, id: TaskId) -> Option<Came> {
        let at = self.which(which, task);
        let lock = &mut self.locks[at];
        if lock.holder.is_some() {
            lock.waiters.push_back(id);
            return Some(Wait::sleep_and_repeat(task));
        }
        lock.holder = Some(id);
        None
    }

    fn fork(group: usize, count: &Expr, task: &mut Task) {
        let count = count.value(&task.known).max(0) as usize;
        task.todo
            .extend(std::iter::repeat_n(Then::Fork(group), count));
    }

    /// Waits until a child has ended. Each ended child is waited for once.
    fn wait(task: &mut Task) -> Option<Came> {
        if task.ended == 0 {
            task.waits = true;
            return Some(Wait::sleep_and_repeat(task));
        }
        task.ended -= 1;
        None
    }

    /// Ends the task. Before that, while it still runs, it wakes its parent if that waits (kernel:
    /// do_exit() calls exit_notify() before do_task_dead()). The wakeup counts as not sync:
    /// select_task_rq_fair() ignores WF_SYNC from an exiting task.
    fn exit(tasks: &mut [Task], task: TaskId) -> Option<Came> {
        let Some(parent) = tasks[task].parent.take() else {
            return Some(Came::Ends);
        };
        tasks[parent].ended += 1;
        if !std::mem::take(&mut tasks[parent].waits) {
            return Some(Came::Ends);
        }
        tasks[task].todo.push_back(Then::Wake(parent, false));
        tasks[task].pc -= 1;
        None
    }

    /// As with a futex, the owner is not checked.
    fn unlock(&mut self, which: &Which, task: &mut Task) {
        let at = self.which(which, task);
        let lock = &mut self.locks[at];
        lock.holder = None;
        if let Some(waiter) = lock.waiters.pop_front() {
            task.todo.push_back(Then::Wake(waiter, false));
        }
    }

    /// Sleeps until another task wakes this one, which then tries the step again.
    fn sleep_and_repeat(task: &mut Task) -> Came {
        task.pc -= 1;
        Came::Sleeps(None)
    }

    fn begin_loop(&self, slot: usize, count: &Expr, task: &mut Task) {
        let count = count.value(&task.known);
        task.turns[slot] = (0, count);
        task.known.turn = 0;
        if count <= 0 {
            task.pc = self.load.groups[task.group].behind(slot, task.pc);
        }
    }

    fn end_turn(slot: usize, to: usize, task: &mut Task) {
        let (turn, count) = task.turns[slot];
        task.turns[slot].0 = turn + 1;
        if turn + 1 < count {
            task.known.turn = turn + 1;
            task.pc = to;
        }
    }
}
