// SPDX-License-Identifier: GPL-2.0-only
//! What a CPU runs: picks and switches, what they cost, and how it goes idle and wakes up.

use super::{Engine, On};
use crate::cost::Move;
use crate::sched::Scheduler;
use crate::speed::FULL;
use crate::task::TaskState;
use crate::watch::{Stop, Watch, What};
use scx_roost::native::TaskId;

impl<S: Scheduler, W: Watch> Engine<S, W> {
    /// A task that is in the kernel comes out of it first, unless the kernel may be preempted.
    pub(super) fn told_to_pick(&mut self, cpu: usize) {
        let running = self.cpus[cpu].running.map(|task| &mut self.tasks[task]);
        match running.filter(|task| task.state == TaskState::Runnable && task.in_kernel()) {
            Some(task) if !self.sched.preempts_kernel() => task.resched = true,
            _ => self.pick(cpu),
        }
    }

    pub(super) fn pick(&mut self, cpu: usize) {
        self.settle(cpu);
        let before = self.cpus[cpu].running;
        if let Some(before) = before {
            self.tasks[before].resched = false;
        }
        let next = self.sched.pick(cpu, &mut self.orders);
        if next != before {
            self.switch(cpu, before, next);
        } else if let Some(task) = next
            && self.tasks[task].state == TaskState::Runnable
        {
            self.time(cpu);
        }
        self.obey(cpu);
        self.rests(cpu);
    }

    /// The CPU runs `next` from now on, no longer `before`.
    fn switch(&mut self, cpu: usize, before: Option<TaskId>, next: Option<TaskId>) {
        if before.is_none() {
            self.wakes(cpu);
        }
        self.cpus[cpu].running = next;
        for (task, on_cpu) in [(before, false), (next, true)] {
            if let Some(task) = task {
                self.tasks[task].on_cpu = on_cpu;
            }
        }
        let preempted = before.filter(|&task| self.tasks[task].state == TaskState::Runnable);
        if let Some(before) = preempted {
            self.tasks[before].gives_way();
            self.stops(cpu, before, Stop::GivesWay);
        }
        match next {
            Some(task) => self.put_on_cpu(task, cpu, preempted.is_some()),
            None => self.clock.clear(self.slot(cpu, On::Tick)),
        }
        if before.is_some() != next.is_some() {
            self.see(match next {
                Some(_) => What::Busy { cpu },
                None => What::Idle { cpu },
            });
            self.turns(cpu, next.is_some());
        }
        if before.is_none() {
            self.start_tick(cpu);
        }
        self.time(cpu);
    }

    /// Wakes the idle CPU. Returns the ns until it is awake.
    pub(super) fn wakes(&mut self, cpu: usize) -> u64 {
        let (exit, emptied) = self.cstates.wakes(cpu, self.clock.now());
        if emptied {
            self.caches.emptied(cpu);
        }
        exit
    }

    /// A CPU that is awake, and has nothing to run now or soon, goes idle.
    pub(super) fn rests(&mut self, cpu: usize) {
        let soon = self.clock.due(self.slot(cpu, On::Pick)).is_some();
        if self.cpus[cpu].running.is_some() || soon || !self.cstates.awake(cpu) {
            return;
        }
        self.cstates.begins(cpu, self.clock.now());
    }

    /// The task begins to run: its wait ends, and it pays for the switch and for cold caches.
    fn put_on_cpu(&mut self, task: TaskId, cpu: usize, preempts: bool) {
        let now = self.clock.now();
        let woken_at = &mut self.tasks[task].woken_at;
        self.measured.runs(now - *woken_at, woken_at);
        let from = self.tasks[task].cpu.replace(cpu);
        self.see(What::Runs { task, cpu, from });
        let from = from.map(|from| (from, self.costs.how_far(from, cpu)));
        let set = self.wait.set_of(self.tasks[task].group);
        let first_touch = match from {
            Some((from, moved)) => {
                self.caches.leaves(task, from, moved);
                if matches!(moved, Move::OtherLlc | Move::OtherNode) {
                    self.tasks[task].far = moved;
                }
                0
            }
            None => {
                self.caches.fills(task, cpu, set);
                self.first_touch(task)
            }
        };
        let migrates = from.is_some_and(|(from, _)| from != cpu);
        self.measured
            .switches(from.map(|(_, moved)| moved), migrates);
        let switch = if preempts {
            self.costs.preempt
        } else {
            self.costs.switch
        };
        self.tasks[task].left += (switch + first_touch) * FULL;
        self.touch(cpu, task);
    }

    /// The work that the task is about to do takes longer where caches do not hold its data.
    pub(super) fn touch(&mut self, cpu: usize, task: TaskId) {
        let of = &self.tasks[task];
        if of.until.is_some() {
            return;
        }
        let set = self.wait.set_of(of.group);
        let cold = self.caches.touches(task, cpu, set, of.left / FULL, of.far);
        self.tasks[task].begins(cold);
    }

    fn start_tick(&mut self, cpu: usize) {
        self.clock
            .set(self.slot(cpu, On::Tick), self.next_tick(cpu));
    }

    /// Ticks of different CPUs are staggered.
    fn next_tick(&self, cpu: usize) -> u64 {
        let now = self.clock.now();
        let period = self.costs.tick_period;
        let shift = cpu as u64 * period / self.cpus.len() as u64;
        let at = (now + period - shift) / period * period + shift;
        at.max(now + 1)
    }
}
