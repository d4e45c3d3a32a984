// SPDX-License-Identifier: GPL-2.0-only
//! Invariants of any scheduler, checked at every event: what the engine saw is compared with what
//! the scheduler says of itself.

mod peaks;
mod shares;

use super::fair::weight_of;
use super::load::Load;
use super::sched::{Belief, Bounds, Scheduler};
use super::task::Task;
use super::watch::{Sight, Stop, Watch, What};
use anyhow::{Result, bail};
use peaks::Peaks;
use scx_roost::native::{Attr, SchedPolicy, TaskId};
use shares::WINDOW;
use std::collections::VecDeque;

/// A CPU that becomes idle may be missing from searches for this long, ns, on its way to look for
/// work.
const UNLISTED: u64 = 100_000;
/// After CLOSE events, expensive checks run only at every SELDOM-th event: all queues, sums, sets
/// and claims.
const CLOSE: u64 = 100_000;
const SELDOM: u64 = 64;
/// The longest period of a tick, ns.
const TICK: u64 = 4_000_000;
/// The most events of a millisecond, for each CPU.
const STORM: u64 = 10_000;
/// The number of last events that an error lists.
const TOLD: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskPhase {
    Nowhere,
    Asleep,
    Coming,
    Waits { since: u64 },
    Runs { cpu: usize },
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    place: TaskPhase,
    mask: usize,
    /// Since when it may use these CPUs, ns.
    affine: u64,
    /// ns that it has run since it was put on its CPU, and its virtual run time at that moment.
    ran: u64,
    began: Option<u64>,
    /// In this window: ns that it has run, on which CPU, and whether it was runnable there all the
    /// time.
    window: u64,
    home: Option<usize>,
    whole: bool,
    /// Its attributes as the window began.
    attr: Attr,
    /// It has yielded in this window.
    yielded: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    running: Option<TaskId>,
    idle_since: Option<u64>,
    busy_since: Option<u64>,
    busy: u64,
    ran: u64,
    progress: u64,
}

/// Checks a run, and ends it when something is wrong.
pub struct Check {
    /// The CPUs of each group. None: every CPU.
    masks: Vec<Option<Vec<u64>>>,
    /// The longest slice that a runnable task has asked for, ns.
    slice: u64,
    /// How late timers and ticks may be because of faults, ns.
    faults: u64,
    tasks: Vec<Seen>,
    lanes: Vec<Lane>,
    /// CPUs that are away (hotplug).
    away: Vec<bool>,
    /// The tasks that wait, according to the events.
    waiting: Vec<TaskId>,
    /// The tasks that began to run and that stopped in this event.
    started: Vec<TaskId>,
    stopped: Vec<TaskId>,
    /// The number of runnable tasks, the total queued weight, and the number of tasks that are not
    /// of nice 0 and the default policy.
    runnable: Peaks,
    weight: Peaks,
    unequal: Peaks,
    window_ends: u64,
    now: u64,
    events: u64,
    /// The current millisecond, and the number of events before it.
    millisecond: (u64, u64),
    told: VecDeque<(u64, What)>,
    wrong: Option<String>,
    scratch: Vec<TaskId>,
}

impl Check {
    pub fn new(cpus: usize, load: &Load) -> Check {
        let words = cpus.div_ceil(64);
        Check {
            masks: load.groups.iter().map(|g| g.mask(words)).collect(),
            slice: 0,
            faults: load.faults.late(TICK),
            tasks: Vec::new(),
            lanes: vec![Lane::default(); cpus],
            away: vec![false; cpus],
            waiting: Vec::new(),
            started: Vec::new(),
            stopped: Vec::new(),
            runnable: Peaks::default(),
            weight: Peaks::default(),
            unequal: Peaks::default(),
            window_ends: WINDOW,
            now: 0,
            events: 0,
            millisecond: (0, 0),
            told: VecDeque::with_capacity(TOLD),
            wrong: None,
            scratch: Vec::new(),
        }
    }

    fn may_use(&self, task: TaskId, cpu: usize) -> bool {
        let Some(mask) = &self.masks[self.tasks[task].mask] else {
            return !self.away[cpu];
        };
        let within = |cpu: usize| mask[cpu / 64] >> (cpu % 64) & 1 != 0;
        // A task without a CPU left may use any other.
        let stranded = || !(0..self.away.len()).any(|c| within(c) && !self.away[c]);
        !self.away[cpu] && (within(cpu) || stranded())
    }

    /// Keeps the first error only.
    fn wrong(&mut self, told: impl FnOnce() -> String) {
        if self.wrong.is_none() {
            self.wrong = Some(told());
        }
    }

    fn expect(&mut self, task: TaskId, fits: impl FnOnce(TaskPhase) -> bool, what: &str) {
        let place = self.tasks[task].place;
        if !fits(place) {
            self.wrong(|| format!("task {task} {what}, and it was {place:?}"));
        }
    }

    fn begins(&mut self, task: TaskId, group: usize) {
        if self.tasks.len() <= task {
            let none = Seen {
                place: TaskPhase::Nowhere,
                mask: 0,
                affine: 0,
                ran: 0,
                began: None,
                window: 0,
                home: None,
                whole: false,
                attr: Attr::default(),
                yielded: false,
            };
            self.tasks.resize(task + 1, none);
        }
        self.expect(task, |p| p == TaskPhase::Nowhere, "begins");
        self.tasks[task] = Seen {
            place: TaskPhase::Asleep,
            mask: group,
            ..self.tasks[task]
        };
    }

    fn waits(&mut self, task: TaskId) {
        self.tasks[task].place = TaskPhase::Waits { since: self.now };
        self.waiting.push(task);
    }

    fn placed(&mut self, task: TaskId, cpu: usize) {
        self.expect(task, |p| p == TaskPhase::Asleep, "is placed");
        if !self.may_use(task, cpu) {
            self.wrong(|| format!("task {task} is placed on CPU {cpu}, which it may not use"));
        }
        self.tasks[task].place = TaskPhase::Coming;
    }

    fn runs(&mut self, task: TaskId, cpu: usize) {
        self.expect(task, |p| matches!(p, TaskPhase::Waits { .. }), "runs");
        if !self.may_use(task, cpu) {
            self.wrong(|| format!("task {task} runs on CPU {cpu}, which it may not use"));
        }
        if let Some(other) = self.lanes[cpu].running {
            self.wrong(|| format!("task {task} runs on CPU {cpu}, and so does task {other}"));
        }
        self.waiting.retain(|&t| t != task);
        self.lanes[cpu].running = Some(task);
        self.started.push(task);
        let seen = &mut self.tasks[task];
        seen.place = TaskPhase::Runs { cpu };
        (seen.ran, seen.began) = (0, None);
        seen.whole &= seen.home.is_none_or(|home| home == cpu);
        seen.home = Some(cpu);
    }

    fn stops(&mut self, task: TaskId, cpu: usize, why: Stop) {
        self.expect(task, |p| p == TaskPhase::Runs { cpu }, "stops");
        self.lanes[cpu].running = None;
        self.stopped.push(task);
        self.tasks[task].whole &= why == Stop::GivesWay;
        match why {
            Stop::GivesWay => self.waits(task),
            Stop::Sleeps => self.tasks[task].place = TaskPhase::Asleep,
            Stop::Ends => self.tasks[task].place = TaskPhase::Nowhere,
        }
    }

    fn goes(&mut self, cpu: usize, away: bool) {
        self.away[cpu] = away;
        self.lanes[cpu].idle_since = (!away).then_some(self.now);
    }

    /// A new scheduler knows nothing of tasks and CPUs.
    fn restarts(&mut self) {
        for &task in &self.waiting {
            self.tasks[task].place = TaskPhase::Waits { since: self.now };
        }
        for seen in &mut self.tasks {
            (seen.began, seen.whole) = (None, false);
        }
        for lane in &mut self.lanes {
            lane.progress = 0;
            lane.idle_since = lane.idle_since.map(|_| self.now);
        }
    }

    /// Busy time of a CPU must be the run time of its tasks.
    fn idle(&mut self, cpu: usize) {
        let lane = &mut self.lanes[cpu];
        lane.idle_since = Some(self.now);
        if let Some(since) = lane.busy_since.take() {
            lane.busy += self.now - since;
        }
        let (busy, ran) = (lane.busy, lane.ran);
        if busy != ran {
            self.wrong(|| format!("CPU {cpu} was busy for {busy} ns, and its tasks ran for {ran}"));
        }
    }

    /// The scheduler's queues must hold each waiting task once.
    fn queues(&mut self, belief: &dyn Belief) -> Result<(), String> {
        let mut queued = std::mem::take(&mut self.scratch);
        queued.clear();
        for cpu in 0..self.lanes.len() {
            let before = queued.len();
            belief.waiting(cpu, &mut queued);
            for &task in &queued[before..] {
                let seen = &mut self.tasks[task];
                seen.whole &= seen.home.is_none_or(|home| home == cpu);
                seen.home = Some(cpu);
            }
            let there = queued.len() - before + usize::from(self.lanes[cpu].running.is_some());
            let told = belief.nr_running(cpu);
            if told != there {
                return Err(format!(
                    "CPU {cpu} has {there} tasks that run or wait, and the scheduler counts {told}"
                ));
            }
        }
        for (cpu, lane) in self.lanes.iter().enumerate() {
            let told = belief.idle(cpu);
            let free = belief.nr_running(cpu) == 0 && lane.running.is_none();
            if told && !free || !told && free && lane.idle_since.is_some() {
                let what = if told { "idle, and is" } else { "busy, and is" };
                return Err(format!("CPU {cpu} is seen as {what} not"));
            }
            let long = lane.idle_since.is_some_and(|at| self.now - at > UNLISTED);
            if long && free && !belief.listed(cpu) {
                return Err(format!("CPU {cpu} is idle, and no wakeup will find it"));
            }
        }
        for &task in &queued {
            let place = self.tasks[task].place;
            if !matches!(place, TaskPhase::Waits { .. }) {
                return Err(format!("task {task} is in a queue, and {place:?}"));
            }
        }
        let all = queued.len();
        queued.sort_unstable();
        queued.dedup();
        if queued.len() < all {
            return Err("a task is in two places of queues at once".to_string());
        }
        if all < self.waiting.len() {
            let lost = self
                .waiting
                .iter()
                .find(|t| queued.binary_search(t).is_err());
            let lost = lost.copied().unwrap_or_default();
            return Err(format!("task {lost} waits, and is in no queue"));
        }
        self.scratch = queued;
        Ok(())
    }

    fn progresses(&mut self, belief: &dyn Belief) -> Result<(), String> {
        for cpu in 0..self.lanes.len() {
            let progress = belief.progress(cpu);
            let before = std::mem::replace(&mut self.lanes[cpu].progress, progress);
            if (progress.wrapping_sub(before) as i64) < 0 {
                return Err(format!("the virtual time of CPU {cpu} goes back"));
            }
        }
        Ok(())
    }

    /// A task's virtual time must grow by what it ran.
    fn charges(&mut self, belief: &dyn Belief) -> Result<(), String> {
        for task in self.started.drain(..) {
            self.tasks[task].began = Some(belief.vruntime(task).0);
        }
        for task in self.stopped.drain(..) {
            let seen = &self.tasks[task];
            let (vruntime, in_ns) = belief.vruntime(task);
            let Some(began) = seen.began.filter(|_| in_ns) else {
                continue;
            };
            // A task that was sent elsewhere was placed again there.
            let aged = vruntime.wrapping_sub(began);
            if aged != seen.ran && !matches!(seen.place, TaskPhase::Runs { .. }) {
                return Err(format!(
                    "task {task} ran for {} ns, and was charged {aged}",
                    seen.ran
                ));
            }
        }
        Ok(())
    }

    /// Notes the current competitors, which bound how long tasks may wait.
    fn competes(&mut self, bounds: Bounds, tasks: &[Task]) {
        let running = self.lanes.iter().filter_map(|l| l.running);
        let (mut runnable, mut unequal) = (0, 0);
        for task in running.chain(self.waiting.iter().copied()) {
            let attr = &tasks[task].attr;
            self.slice = self.slice.max(attr.slice_ns.unwrap_or(0));
            runnable += 1;
            unequal += u64::from(attr.nice != 0 || attr.policy != SchedPolicy::default());
        }
        self.runnable.is(self.now, runnable);
        self.unequal.is(self.now, unequal);
        self.weight.is(self.now, bounds.weight.unwrap_or(0));
    }

    /// The longest that the task may have waited since `since`.
    fn late(&self, bounds: Bounds, task: &Task, since: u64) -> u64 {
        let turns = match bounds.weight {
            Some(_) => self
                .weight
                .since(since)
                .div_ceil(weight_of(&task.attr) as u64),
            None => self.runnable.since(since),
        };
        let unequal = match self.unequal.since(since) {
            0 => 0,
            _ => bounds.unequal,
        };
        let turn = bounds.turn.saturating_add(2 * self.slice);
        let late = turn.saturating_mul(turns).saturating_add(bounds.late);
        late.saturating_add(unequal).min(bounds.longest)
    }

    /// When the longest wait of a task that still waits began, ns.
    fn waits_since(&self) -> u64 {
        let since = |&task: &TaskId| match self.tasks[task].place {
            TaskPhase::Waits { since } => Some(since),
            _ => None,
        };
        self.waiting
            .iter()
            .filter_map(since)
            .min()
            .unwrap_or(self.now)
    }

    /// No task may wait too long, beside an idle CPU or at all.
    fn waits_end(&mut self, bounds: Bounds, tasks: &[Task]) -> Result<(), String> {
        let first = self.waits_since();
        for peaks in [&mut self.runnable, &mut self.weight, &mut self.unequal] {
            peaks.forget(first);
        }
        let each = bounds.idle_each.saturating_mul(self.waiting.len() as u64);
        let idle = bounds.idle.saturating_add(each);
        let idle_since = self.lanes.iter().filter_map(|l| l.idle_since).min();
        for &task in &self.waiting {
            let TaskPhase::Waits { since } = self.tasks[task].place else {
                continue;
            };
            let (waited, late) = (self.now - since, self.late(bounds, &tasks[task], since));
            if waited > late {
                return Err(format!(
                    "task {task} has waited for {waited} ns, and the bound is {late}"
                ));
            }
            let since = since.max(self.tasks[task].affine);
            let both = |at: u64| self.now - since.max(at) > idle;
            if !idle_since.is_some_and(both) {
                continue;
            }
            let beside = (0..self.lanes.len())
                .find(|&c| self.lanes[c].idle_since.is_some_and(both) && self.may_use(task, c));
            if let Some(cpu) = beside {
                return Err(format!(
                    "task {task} has waited for {waited} ns beside CPU {cpu}, which is idle; the bound is {idle}"
                ));
            }
        }
        Ok(())
    }

    /// Time must go on: no storm of timers or kicks.
    fn time_passes(&mut self) -> Result<(), String> {
        let millisecond = self.now / 1_000_000;
        if self.millisecond.0 != millisecond {
            self.millisecond = (millisecond, self.events);
        }
        let events = self.events - self.millisecond.1;
        match events > STORM * self.lanes.len() as u64 {
            true => Err(format!("within a millisecond there are {events} events")),
            false => Ok(()),
        }
    }

    fn look<S: Scheduler>(&mut self, sched: &S, tasks: &[Task]) -> Result<(), String> {
        self.time_passes()?;
        let bounds = sched.bounds().later(self.faults);
        let closely = self.events < CLOSE || self.events.is_multiple_of(SELDOM);
        if let Some(belief) = sched.belief() {
            self.charges(belief)?;
            if closely {
                self.queues(belief)?;
                self.progresses(belief)?;
                belief.audit(self.now, tasks)?;
            }
        }
        self.competes(bounds, tasks);
        if closely {
            self.waits_end(bounds, tasks)?;
        }
        self.shares(bounds, tasks)
    }
}

impl Watch for Check {
    fn happens(&mut self, now: u64, what: What) {
        if now < self.now {
            self.wrong(|| "time goes back".to_string());
        }
        self.now = now;
        match what {
            What::Begins { task, group, .. } => self.begins(task, group),
            What::Affine { task, group, .. } => {
                // The task is taken out and put in again, with a new virtual time.
                let seen = &mut self.tasks[task];
                (seen.mask, seen.affine, seen.began) = (group, now, None);
            }
            What::Attr { task } => self.tasks[task].began = None,
            What::Away { cpu, away } => self.goes(cpu, away),
            What::Restarts => self.restarts(),
            What::Placed { task, cpu, .. } => self.placed(task, cpu),
            What::Yields { task } => {
                // What it forfeits ages it too.
                let seen = &mut self.tasks[task];
                (seen.yielded, seen.began) = (true, None);
            }
            What::Arrives { task } => {
                self.expect(task, |p| p == TaskPhase::Coming, "arrives");
                self.waits(task);
            }
            What::Runs { task, cpu, .. } => self.runs(task, cpu),
            What::Stops { task, cpu, why } => self.stops(task, cpu, why),
            What::Ran { task, cpu, ns } => {
                self.expect(task, |p| p == TaskPhase::Runs { cpu }, "ran");
                self.lanes[cpu].ran += ns;
                self.tasks[task].ran += ns;
                self.tasks[task].window += ns;
            }
            What::Busy { cpu } => {
                self.lanes[cpu].idle_since = None;
                self.lanes[cpu].busy_since = Some(now);
            }
            What::Idle { cpu } => self.idle(cpu),
            _ => {}
        }
        if !matches!(what, What::Ran { .. }) {
            if self.told.len() == TOLD {
                self.told.pop_front();
            }
            self.told.push_back((now, what));
        }
    }

    fn after<S: Scheduler>(&mut self, sight: &Sight<'_, S>) -> Result<()> {
        self.events += 1;
        self.now = sight.now;
        let seen = match self.wrong.take() {
            Some(wrong) => Err(wrong),
            None => self.look(sight.sched, sight.tasks),
        };
        let Err(wrong) = seen else {
            return Ok(());
        };
        let told: Vec<String> = self
            .told
            .iter()
            .map(|(at, what)| format!("\n  {at} {what:?}"))
            .collect();
        bail!(
            "event {}, at {} ns: {wrong}. What happened last:{}",
            self.events,
            self.now,
            told.concat()
        )
    }
}

#[cfg(test)]
mod tests;
