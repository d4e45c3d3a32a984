// SPDX-License-Identifier: GPL-2.0-only
//! What each task did, from the events of a recording: how long it computed between two wakeups,
//! which task woke it and where in the waker's own work that was, what it forked.
//!
//! Method: a walk over the events, with the state of each CPU and each task. A task that is seen
//! for the first time was there from the start: it ran, if its CPU leaves it; it waited, if a CPU
//! takes it; it slept, if it is woken.
//!
//! Work is counted at full speed, without what the model adds by itself for a switch, a wakeup or a
//! cache line. So a replay on the same machine takes the same time. Limits: the recording does not
//! say how fast a CPU ran, nor which data a task used.

use super::parse::{Event, Stops, Text, What as Said};
use crate::sim::cost::Costs;
use crate::sim::machines::Hardware;
use crate::sim::measure::Measured;
use crate::sim::sched::Wake;
use crate::sim::speed::FULL;
use crate::sim::watch::{Stop, Watch, What};
use std::collections::{BTreeMap, HashMap};

/// A part of a task's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// ns of work.
    Run(u64),
    /// Sleeps for so many ns, until a timer or a device wakes it.
    Sleep(u64),
    /// Sleeps until a task wakes it.
    Wait(usize),
    Wake(usize),
    Fork(usize),
    Exec,
}

/// A task. Numbers of tasks that have ended are used again, and are then another task.
#[derive(Clone, Debug)]
pub struct Life {
    pub task: u32,
    /// Its name and number.
    pub name: String,
    /// When it is first runnable, ns; None: another task forks it.
    pub born: Option<u64>,
    pub acts: Vec<Act>,
    /// The CPU on which it ran. None: several, or none.
    pub only: Option<u16>,
}

/// What came of a recording.
pub struct Told<W> {
    pub lives: Vec<Life>,
    pub measured: Measured,
    pub watch: W,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Forked, and not woken yet.
    New,
    /// Since, ns.
    Asleep(u64),
    /// Since the wakeup, ns; None: it gave way, or the wakeup is not recorded.
    Waits(Option<u64>),
    Runs(usize),
    Ended,
}

struct Now {
    state: State,
    /// Work that is in no act yet, in 1/FULL ns.
    work: u64,
    /// ns of its work that the model adds by itself.
    paid: u64,
    cpu: Option<usize>,
    /// A wakeup that began while it still ran, and the waker.
    early: Option<u32>,
    /// Its last waker and the CPU of that, until it runs.
    waker: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Default)]
struct OnCpu {
    life: Option<usize>,
    settled: u64,
}

struct Story<'a, W> {
    text: &'a Text,
    hardware: &'a Hardware,
    /// Work per ns beside a busy thread of the core.
    smt: u64,
    watch: W,
    measured: Measured,
    now: u64,
    cpus: Vec<OnCpu>,
    lives: Vec<Life>,
    states: Vec<Now>,
    known: HashMap<u32, usize>,
    /// The CPU that last used what a waker and a sleeper share.
    shared: HashMap<(usize, usize), usize>,
}

/// Walks over the events up to `until` ns from the first one. The CPUs of all events exist.
pub fn tell<W: Watch>(text: &Text, hardware: &Hardware, smt: f64, until: u64, watch: W) -> Told<W> {
    let since = text.events.first().map_or(0, |event| event.at);
    let mut story = Story {
        text,
        hardware,
        smt: (smt * FULL as f64) as u64,
        watch,
        measured: Measured::empty(),
        now: 0,
        cpus: vec![OnCpu::default(); hardware.facts.cpus.len()],
        lives: Vec::new(),
        states: Vec::new(),
        known: HashMap::new(),
        shared: HashMap::new(),
    };
    story.begin();
    let ran_on = ran_on(&text.events);
    for (event, ran_on) in text.events.iter().zip(ran_on) {
        if event.at - since > until {
            break;
        }
        story.now = event.at - since;
        story.event(event, ran_on.unwrap_or(event.cpu).into());
    }
    story.finish(until)
}

/// For each event, the CPU on which its task next runs.
fn ran_on(events: &[Event]) -> Vec<Option<u16>> {
    let mut next: HashMap<u32, u16> = HashMap::new();
    let mut all: Vec<Option<u16>> = Vec::with_capacity(events.len());
    for event in events.iter().rev() {
        all.push(match event.what {
            Said::Waking { task, .. } | Said::Woken { task, .. } => next.get(&task).copied(),
            _ => None,
        });
        if let Said::Switch { next: task, .. } = event.what {
            next.insert(task, event.cpu);
        }
    }
    all.reverse();
    all
}

impl<W: Watch> Story<'_, W> {
    fn costs(&self) -> &Costs {
        &self.hardware.costs
    }

    fn see(&mut self, what: What) {
        self.watch.happens(self.now, what);
    }

    /// The tasks that CPUs leave first ran there from the start.
    fn begin(&mut self) {
        self.measured.warm(0, Vec::new(), None);
        self.see(What::Warm);
        let mut first: BTreeMap<u16, u32> = BTreeMap::new();
        for event in &self.text.events {
            if let Said::Switch { prev, .. } = event.what {
                first.entry(event.cpu).or_insert(prev);
            }
        }
        for (cpu, task) in first {
            if task != 0 && !self.known.contains_key(&task) {
                let life = self.first_seen(task);
                self.enters(life, cpu.into());
            }
        }
    }

    fn event(&mut self, event: &Event, ran_on: usize) {
        let cpu = usize::from(event.cpu);
        match event.what {
            Said::Switch { prev, stops, next } => self.switch(cpu, prev, stops, next),
            Said::Waking { task, by } => self.wakes(cpu, task, by, ran_on, true),
            Said::Woken { task, by } => self.wakes(cpu, task, by, ran_on, false),
            Said::Fork { parent, child } => self.fork(parent, child),
            Said::Exec { task } => {
                if let Some(&life) = self.known.get(&task) {
                    self.acts(life, Act::Exec);
                }
            }
        }
    }

    fn finish(mut self, until: u64) -> Told<W> {
        let last = self.text.events.last().zip(self.text.events.first());
        self.now = last
            .map_or(0, |(last, first)| last.at - first.at)
            .min(until);
        for cpu in 0..self.cpus.len() {
            self.settle(cpu);
            if let Some(life) = self.cpus[cpu].life {
                self.flush(life);
            }
        }
        self.measured.end(self.now, Vec::new(), None);
        self.see(What::Over);
        Told {
            lives: self.lives,
            measured: self.measured,
            watch: self.watch,
        }
    }

    // ---- tasks ----

    fn new_life(&mut self, task: u32, born: Option<u64>, state: State) -> usize {
        let life = self.lives.len();
        let name = self.text.names.get(&task).map_or("", String::as_str);
        self.lives.push(Life {
            task,
            name: format!("{name}-{task}"),
            born,
            acts: Vec::new(),
            only: None,
        });
        self.states.push(Now {
            state,
            work: 0,
            paid: 0,
            cpu: None,
            early: None,
            waker: None,
        });
        self.known.insert(task, life);
        self.see(What::Begins {
            task: life,
            group: life,
            mask: 0,
        });
        life
    }

    /// A task that was runnable from the start.
    fn first_seen(&mut self, task: u32) -> usize {
        let life = self.new_life(task, Some(0), State::Waits(None));
        self.see(What::Arrives { task: life });
        life
    }

    /// Adds an act after the work so far.
    fn acts(&mut self, life: usize, act: Act) {
        if let State::Runs(cpu) = self.states[life].state {
            self.settle(cpu);
        }
        self.flush(life);
        self.lives[life].acts.push(act);
    }

    /// Makes an act of the work so far, less what the model adds by itself.
    fn flush(&mut self, life: usize) {
        let state = &mut self.states[life];
        let ns = state.work / FULL;
        state.work %= FULL;
        let less = ns.min(state.paid);
        state.paid -= less;
        match self.lives[life].acts.last_mut() {
            _ if ns == less => {}
            Some(Act::Run(before)) => *before += ns - less,
            _ => self.lives[life].acts.push(Act::Run(ns - less)),
        }
    }

    // ---- CPUs ----

    /// Accounts for the time on the CPU until now.
    fn settle(&mut self, cpu: usize) {
        let shared = self.shares(cpu);
        let at = &mut self.cpus[cpu];
        let ns = self.now - std::mem::replace(&mut at.settled, self.now);
        if let Some(life) = at.life.filter(|_| ns > 0) {
            let rate = self.rate(cpu, shared);
            self.states[life].work += ns * rate;
            self.measured.ran(ns, shared);
        }
    }

    fn siblings(&self, cpu: usize) -> Vec<usize> {
        let row = &self.hardware.facts.cpus[cpu];
        let siblings = row.sib[..usize::from(row.nr_sib)].iter();
        siblings.map(|&s| s.into()).collect()
    }

    /// Another thread of its core is busy.
    fn shares(&self, cpu: usize) -> bool {
        let busy = |s: usize| self.cpus[s].life.is_some();
        self.siblings(cpu).into_iter().any(busy)
    }

    fn rate(&self, cpu: usize, shared: bool) -> u64 {
        let capacity = u64::from(self.hardware.facts.cpus[cpu].capacity);
        let speed = if shared { self.smt } else { FULL };
        speed * capacity / u64::from(crate::bpf::intf::CAPACITY_SCALE)
    }

    /// The CPU runs another task or none: its siblings have another speed from now on.
    fn puts(&mut self, cpu: usize, life: Option<usize>) {
        self.settle(cpu);
        let turns = self.cpus[cpu].life.is_some() != life.is_some();
        let siblings = self.siblings(cpu);
        for &sibling in siblings.iter().filter(|_| turns) {
            self.settle(sibling);
        }
        self.cpus[cpu].life = life;
        for &cpu in siblings.iter().filter(|_| turns) {
            let rate = self.rate(cpu, self.shares(cpu));
            self.see(What::Speed { cpu, rate });
        }
    }

    /// The task begins to run.
    fn enters(&mut self, life: usize, cpu: usize) {
        self.puts(cpu, Some(life));
        let state = &mut self.states[life];
        state.state = State::Runs(cpu);
        state.early = None;
        let from = state.cpu.replace(cpu);
        let only = &mut self.lives[life].only;
        *only = match from {
            None => Some(cpu as u16),
            Some(from) => only.filter(|_| from == cpu),
        };
        self.see(What::Runs {
            task: life,
            cpu,
            from,
        });
    }

    /// The task stops running on the CPU.
    fn leaves(&mut self, life: usize, cpu: usize, stops: Stops) {
        self.puts(cpu, None);
        self.flush(life);
        let (state, why) = match stops {
            Stops::Runnable => (State::Waits(None), Stop::GivesWay),
            Stops::Sleeps => (State::Asleep(self.now), Stop::Sleeps),
            Stops::Ends => (State::Ended, Stop::Ends),
        };
        self.states[life].state = state;
        self.see(What::Stops {
            task: life,
            cpu,
            why,
        });
        if stops == Stops::Ends {
            self.known.remove(&self.lives[life].task);
        }
    }

    /// Where events are missing, a task may run that should not.
    fn vacates(&mut self, cpu: usize) {
        if let Some(life) = self.cpus[cpu].life {
            self.leaves(life, cpu, Stops::Runnable);
        }
    }

    fn switch(&mut self, cpu: usize, prev: u32, stops: Stops, next: u32) {
        if prev != 0 {
            let life = self.known.get(&prev).copied();
            let life = life.unwrap_or_else(|| self.first_seen(prev));
            if self.cpus[cpu].life != Some(life) {
                self.takes(life, cpu, false);
            }
            self.leaves(life, cpu, stops);
        }
        self.vacates(cpu);
        if next != 0 {
            let life = self.known.get(&next).copied();
            let life = life.unwrap_or_else(|| self.first_seen(next));
            self.takes(life, cpu, prev != 0 && stops == Stops::Runnable);
        }
    }

    /// The CPU switches to the task.
    fn takes(&mut self, life: usize, cpu: usize, preempts: bool) {
        self.vacates(cpu);
        match self.states[life].state {
            State::Runs(other) => self.leaves(life, other, Stops::Runnable),
            State::Asleep(since) => {
                // The wakeup is not recorded, or began before the task slept.
                let by = self.states[life].early;
                self.wakened(life, since, by, (cpu, cpu));
            }
            State::New => {
                self.states[life].state = State::Waits(None);
                self.see(What::Arrives { task: life });
            }
            State::Waits(_) | State::Ended => {}
        }
        if let State::Waits(Some(woken)) = self.states[life].state {
            self.measured.waits(self.now - woken);
        }
        let from = self.states[life].cpu;
        let moved = from.map(|from| self.costs().how_far(from, cpu));
        let migrates = from.is_some_and(|from| from != cpu);
        self.measured.switches(moved, migrates);
        let waker = self.states[life].waker.take();
        let lines = self.costs().message_lines;
        let lines = waker.map_or(0, |(_, from)| self.costs().transfer(lines, from, cpu));
        if let Some((waker, _)) = waker {
            self.shared.insert((waker, life), cpu);
        }
        let switch = match preempts {
            true => self.costs().preempt,
            false => self.costs().switch,
        };
        self.states[life].paid += switch + lines;
        self.enters(life, cpu);
    }

    // ---- wakeups ----

    fn wakes(&mut self, cpu: usize, task: u32, by: Option<u32>, ran_on: usize, begins: bool) {
        let Some(&life) = self.known.get(&task) else {
            let life = self.new_life(task, Some(self.now), State::Asleep(self.now));
            self.arrives(life, None, (cpu, ran_on), Wake::by(cpu));
            return;
        };
        match self.states[life].state {
            State::Asleep(since) => {
                let early = self.states[life].early.filter(|_| !begins);
                self.wakened(life, since, early.or(by), (cpu, ran_on));
            }
            State::New if !begins => {
                let waker = by.and_then(|by| self.known.get(&by).copied());
                if let Some(waker) = waker {
                    self.pays_for_arrival(waker, (cpu, ran_on), false);
                }
                self.arrives(life, waker, (cpu, ran_on), Wake::fork(cpu));
            }
            State::Runs(_) if begins => self.states[life].early = by,
            _ => {}
        }
    }

    /// A task that slept since then is woken on a CPU, for another.
    fn wakened(&mut self, life: usize, since: u64, by: Option<u32>, (cpu, to): (usize, usize)) {
        let waker = by.and_then(|by| self.known.get(&by).copied());
        let waker = waker.filter(|&waker| waker != life);
        match waker {
            Some(waker) => {
                self.shares_lines(waker, life, cpu);
                self.states[waker].paid += self.costs().select;
                self.acts(waker, Act::Wake(life));
                self.acts(life, Act::Wait(waker));
                let idle = self.cpus[to].life.is_none();
                let queued = self.costs().queues_wakeup(cpu, to, idle);
                self.pays_for_arrival(waker, (cpu, to), queued);
            }
            None => self.acts(life, Act::Sleep(self.now - since)),
        }
        self.arrives(life, waker, (cpu, to), Wake::by(cpu));
    }

    fn arrives(&mut self, life: usize, waker: Option<usize>, at: (usize, usize), wake: Wake) {
        self.states[life].state = State::Waits(Some(self.now));
        self.see(What::Placed {
            task: life,
            cpu: at.1,
            wake,
            waker,
        });
        self.see(What::Arrives { task: life });
    }

    /// The model makes the waker do its part of a wakeup, by the rules of the newest kernel.
    fn pays_for_arrival(&mut self, waker: usize, (cpu, to): (usize, usize), queued: bool) {
        self.states[waker].paid += self.costs().wakeup(cpu, to, queued).0;
    }

    /// The model moves lines with a message: to the sleeper that finds none, to the waker, and to
    /// the sleeper again.
    fn shares_lines(&mut self, waker: usize, life: usize, cpu: usize) {
        let slept = self.states[life].cpu.unwrap_or(cpu);
        let last = self.shared.insert((waker, life), cpu).unwrap_or(slept);
        let costs = self.costs();
        let lines = |from, to| costs.transfer(costs.message_lines, from, to);
        let (before, by) = (lines(last, slept), lines(slept, cpu));
        self.states[life].paid += before;
        self.states[waker].paid += by;
        self.states[life].waker = Some((waker, cpu));
    }

    fn fork(&mut self, parent: u32, child: u32) {
        let parent = self.known.get(&parent).copied();
        let life = self.new_life(child, parent.is_none().then_some(self.now), State::New);
        if let Some(parent) = parent {
            self.states[parent].paid += self.costs().fork;
            self.acts(parent, Act::Fork(life));
        }
    }
}
