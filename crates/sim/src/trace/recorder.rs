// SPDX-License-Identifier: GPL-2.0-only
//! Records what happens within the window: from the end of the warm-up to the end of the run.

use super::{Span, Speed, Trace, Wakeup};
use crate::load::Load;
use crate::sched::Wake;
use crate::speed::FULL;
use crate::watch::{Stop, Watch, What};
use scx_roost::native::TaskId;

pub struct Recorder {
    trace: Trace,
    /// For each group: its name, how many tasks it has had, and whether they are kernel threads.
    groups: Vec<(String, usize, bool)>,
    on: bool,
    /// For each task number: the task that has it now, and its last wakeup if it has not run since.
    who: Vec<(usize, Option<usize>)>,
    /// For each CPU: the task that runs there, since when, and how fast the CPU is.
    running: Vec<Option<(usize, u64)>>,
    rate: Vec<u64>,
    waiting: usize,
}

impl Recorder {
    pub fn new(variant: &str, load: &Load, cpus: usize) -> Recorder {
        Recorder {
            trace: Trace {
                variant: variant.to_string(),
                since: 0,
                until: 0,
                tasks: Vec::new(),
                groups: load
                    .groups
                    .iter()
                    .filter(|g| !g.kernel)
                    .map(|g| (g.name.clone(), Vec::new()))
                    .collect(),
                spans: Vec::new(),
                speeds: Vec::new(),
                wakeups: Vec::new(),
                waiting: Vec::new(),
            },
            groups: load
                .groups
                .iter()
                .map(|g| (g.name.clone(), 0, g.kernel))
                .collect(),
            on: false,
            who: Vec::new(),
            running: vec![None; cpus],
            rate: vec![FULL; cpus],
            waiting: 0,
        }
    }

    pub fn trace(self) -> Trace {
        self.trace
    }

    fn begins(&mut self, task: TaskId, group: usize) {
        let (name, count, kernel) = &mut self.groups[group];
        self.trace.tasks.push(format!("{name} {count}"));
        *count += 1;
        // Groups of the kernel come after those of the workload, so the index fits.
        if !*kernel {
            let number = self.trace.tasks.len() - 1;
            self.trace.groups[group].1.push(number);
        }
        if self.who.len() <= task {
            self.who.resize(task + 1, (0, None));
        }
        self.who[task] = (self.trace.tasks.len() - 1, None);
    }

    fn warm(&mut self, now: u64) {
        self.on = true;
        self.trace.since = now;
        self.running
            .iter_mut()
            .flatten()
            .for_each(|(_, at)| *at = now);
        for (cpu, &rate) in self.rate.iter().enumerate() {
            self.trace.speeds.push(Speed { at: now, cpu, rate });
        }
        self.trace.waiting.push((now, self.waiting));
    }

    fn span(&mut self, cpu: usize, to: u64, why: &'static str) {
        let Some((task, from)) = self.running[cpu].take() else {
            return;
        };
        if self.on {
            self.trace.spans.push(Span {
                cpu,
                task,
                from,
                to,
                why,
            });
        }
    }

    fn wakeup(&mut self, now: u64, task: TaskId, cpu: usize, wake: Wake, waker: Option<TaskId>) {
        let kind = match (wake.fork, wake.sync, waker) {
            (true, ..) => "fork",
            (_, true, _) => "sync wakeup",
            (.., None) => "timer",
            _ => "wakeup",
        };
        self.who[task].1 = Some(self.trace.wakeups.len());
        self.trace.wakeups.push(Wakeup {
            task: self.who[task].0,
            at: now,
            here: wake.cpu,
            waker: waker.map(|w| self.who[w].0),
            kind,
            to: cpu,
            ran: None,
        });
    }

    fn waits(&mut self, now: u64, waiting: usize) {
        self.waiting = waiting;
        if self.on {
            self.trace.waiting.push((now, waiting));
        }
    }
}

impl Watch for Recorder {
    fn happens(&mut self, now: u64, what: What) {
        match what {
            What::Begins { task, group, .. } => self.begins(task, group),
            What::Placed {
                task,
                cpu,
                wake,
                waker,
            } if self.on => self.wakeup(now, task, cpu, wake, waker),
            What::Arrives { .. } => self.waits(now, self.waiting + 1),
            What::Runs { task, cpu, .. } => {
                self.waits(now, self.waiting - 1);
                let (who, woken) = &mut self.who[task];
                self.running[cpu] = Some((*who, now));
                if let Some(wakeup) = woken.take() {
                    self.trace.wakeups[wakeup].ran = Some((cpu, now));
                }
            }
            What::Stops { cpu, why, .. } => {
                let told = match why {
                    Stop::Sleeps => "sleeps",
                    Stop::Ends => "ends",
                    Stop::Moves => "moves",
                    Stop::GivesWay => "gives way",
                };
                self.span(cpu, now, told);
                if why == Stop::GivesWay {
                    self.waits(now, self.waiting + 1);
                }
            }
            What::Speed { cpu, rate } => {
                self.rate[cpu] = rate;
                if self.on {
                    self.trace.speeds.push(Speed { at: now, cpu, rate });
                }
            }
            What::Warm => self.warm(now),
            What::Over => {
                (0..self.running.len()).for_each(|cpu| self.span(cpu, now, ""));
                self.trace.until = now;
            }
            _ => {}
        }
    }
}
