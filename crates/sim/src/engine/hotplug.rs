// SPDX-License-Identifier: GPL-2.0-only
//! CPU hotplug under a scheduler without callbacks for it. The kernel ends such a scheduler and
//! asks for a restart (kernel: handle_hotplug()). Another one begins, without knowledge of the
//! tasks, on the machine as it is then. The restart takes no time here.

use super::{Anew, Engine, On};
use crate::sched::Scheduler;
use crate::task::{TaskState, Wake};
use crate::watch::{Stop, Watch, What};
use anyhow::Result;
use scx_roost::native::TaskId;

impl<S: Scheduler, W: Watch> Engine<S, W> {
    /// What all schedulers of the run have counted.
    pub(super) fn counters(&self) -> Vec<u64> {
        let mut counters = self.sched.counters();
        let before = counters.iter_mut().zip(&self.counted);
        before.for_each(|(counter, before)| *counter += before);
        counters
    }

    pub(super) fn hotplug(&mut self, anew: &Anew<'_, S>) -> Result<()> {
        let period = self.wait.load.faults.hotplug;
        self.clock.set(self.hotplugs(), self.clock.now() + period);
        let Some((cpu, away)) = self.turns_up() else {
            return Ok(());
        };
        let ran: Vec<TaskId> = self.cpus.iter().filter_map(|c| c.running).collect();
        // Every CPU runs the kernel's stopper thread (stop_machine()).
        (0..self.cpus.len()).for_each(|cpu| self.empties(cpu));
        let now = self.clock.now();
        if away {
            self.away.push(cpu);
            self.cstates.leaves(cpu, now);
        } else {
            self.away.retain(|&c| c != cpu);
            self.cstates.returns(cpu, now);
        }
        self.see(What::Away { cpu, away });
        self.restart(anew, &ran)
    }

    fn online(&self) -> Vec<usize> {
        let there = |c: &usize| self.facts.cpus[*c].online != 0 && !self.away.contains(c);
        (0..self.cpus.len()).filter(there).collect()
    }

    /// The CPU that goes away (true) or comes back (false). No cache loses its last CPU. None: none
    /// can.
    fn turns_up(&mut self) -> Option<(usize, bool)> {
        let online = self.online();
        let cpu = online[self.chance.below(online.len() as u64) as usize];
        let llc = |c: usize| self.facts.cpus[c].llc;
        let last = online.iter().filter(|&&c| llc(c) == llc(cpu)).count() == 1;
        let returns = !self.away.is_empty() && (last || self.chance.below(2) == 0);
        match returns {
            true => Some((self.away[0], false)),
            false => (!last).then_some((cpu, true)),
        }
    }

    /// The task that runs here waits from now on.
    fn empties(&mut self, cpu: usize) {
        for on in [On::Segment, On::Pick, On::Tick, On::Slice, On::Delay] {
            self.clock.clear(self.slot(cpu, on));
        }
        self.settle(cpu);
        if let Some(task) = self.cpus[cpu].running.take() {
            self.tasks[task].on_cpu = false;
            self.stops(cpu, task, Stop::GivesWay);
            self.see(What::Idle { cpu });
            self.turns(cpu, false);
        }
        self.rests(cpu);
    }

    /// Starts a new scheduler. Tasks stay on their CPUs; those that `ran` come first.
    fn restart(&mut self, anew: &Anew<'_, S>, ran: &[TaskId]) -> Result<()> {
        self.see(What::Restarts);
        self.counted = self.counters();
        let (sched, daemon) = anew(&self.away)?;
        let mut before = std::mem::replace(&mut self.sched, sched);
        self.daemon = daemon;
        self.sched.set_now(self.clock.now());
        self.takes_over();
        let online = self.online();
        for (task, at) in self.tasks.iter_mut().enumerate() {
            if at.state == TaskState::Free {
                continue;
            }
            let cpu = before.kernel().map(|kernel| kernel.cpu_of(task));
            self.sched.begin(task, at.mask, cpu.or(at.cpu).unwrap_or(0));
            self.sched.set_attr(task, &at.attr);
            // The task's sleep timer has moved to another CPU.
            if !online.contains(&at.wake.cpu) {
                at.wake.cpu = online[0];
            }
        }
        let waits = |&t: &TaskId| self.tasks[t].state == TaskState::Runnable && !ran.contains(&t);
        let waiting = (0..self.tasks.len()).filter(waits);
        let wake = Wake::fork(online[0]);
        for task in ran.iter().copied().chain(waiting.collect::<Vec<_>>()) {
            self.sched.arrive(wake, task, &mut self.orders);
        }
        self.obey(wake.cpu);
        let now = self.clock.now();
        for cpu in online {
            self.clock.set(self.slot(cpu, On::Pick), now);
        }
        Ok(())
    }
}
