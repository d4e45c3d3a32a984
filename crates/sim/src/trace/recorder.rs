// SPDX-License-Identifier: GPL-2.0-only
//! Records what happens within the window: from the end of the warm-up to the end of the run.

use super::{Span, Trace};
use crate::load::Load;
use crate::watch::{Watch, What};
use scx_roost::native::TaskId;

pub struct Recorder {
    trace: Trace,
    on: bool,
    /// For each task number: the task that has it now.
    who: Vec<usize>,
    /// For each CPU: the task that runs there and since when.
    running: Vec<Option<(usize, u64)>>,
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
                    .map(|g| (g.name.clone(), Vec::new()))
                    .collect(),
                spans: Vec::new(),
            },
            on: false,
            who: Vec::new(),
            running: vec![None; cpus],
        }
    }

    pub fn trace(self) -> Trace {
        self.trace
    }

    fn begins(&mut self, task: TaskId, group: usize) {
        let number = self.trace.tasks.len();
        let (name, tasks) = &mut self.trace.groups[group];
        self.trace.tasks.push(format!("{name} {}", tasks.len()));
        tasks.push(number);
        if self.who.len() <= task {
            self.who.resize(task + 1, 0);
        }
        self.who[task] = number;
    }

    fn warm(&mut self, now: u64) {
        self.on = true;
        self.trace.since = now;
        self.running
            .iter_mut()
            .flatten()
            .for_each(|(_, at)| *at = now);
    }

    fn span(&mut self, cpu: usize, to: u64) {
        let Some((task, from)) = self.running[cpu].take() else {
            return;
        };
        if self.on {
            self.trace.spans.push(Span {
                cpu,
                task,
                from,
                to,
            });
        }
    }
}

impl Watch for Recorder {
    fn happens(&mut self, now: u64, what: What) {
        match what {
            What::Begins { task, group, .. } => self.begins(task, group),
            What::Runs { task, cpu, .. } => {
                self.running[cpu] = Some((self.who[task], now));
            }
            What::Stops { cpu, .. } => self.span(cpu, now),
            What::Warm => self.warm(now),
            What::Over => {
                (0..self.running.len()).for_each(|cpu| self.span(cpu, now));
                self.trace.until = now;
            }
            _ => {}
        }
    }
}
