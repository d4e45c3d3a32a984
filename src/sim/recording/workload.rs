// SPDX-License-Identifier: GPL-2.0-only
//! The workload that a recording makes: a group for each task, with what it did as its program. A
//! wakeup is a message: the sleeper goes on once its waker has come as far as in the recording, and
//! does not sleep if the waker came there first.

use super::parse::Text;
use super::story::{Act, Life};
use crate::native::Attr;
use crate::sim::load::{Channel, Expr, Faults, Group, Load, Measure, Step, Vary, Which};
use std::collections::HashMap;
use std::sync::Arc;

/// Priorities of the fair class begin here (kernel: MAX_RT_PRIO); 20 above is nice 0.
const FIRST_FAIR: i32 = 100;
const NICE_0: i32 = 120;
/// Between tasks that ran already when the recording began, ns. Each finds the CPUs that those
/// before it took. At one instant they would crowd, as they did not.
const APART: u64 = 50_000;

/// `set`: bytes that each task uses again and again.
pub fn load(lives: &[Life], text: &Text, set: u64) -> Load {
    let mut channels = Channels::default();
    let mut running = (0..).map(|n| n * APART);
    let groups = lives.iter().enumerate();
    let groups = groups
        .map(|(at, life)| Group {
            name: life.name.clone(),
            kernel: false,
            forked: life.born.is_none(),
            count: 1,
            set,
            memory: 0,
            attr: Attr {
                nice: nice(text.prios.get(&life.task).copied()),
                ..Attr::default()
            },
            cpus: cpus(life, text),
            start: match life.born {
                Some(0) => running.next().unwrap_or(0),
                born => born.unwrap_or(0),
            },
            program: Arc::new(program(at, life, &mut channels)),
        })
        .collect();
    Load {
        channels: vec![
            Channel {
                capacity: u64::MAX,
                sync: false,
                paged: None,
            };
            channels.0.len()
        ],
        locks: 0,
        conds: 0,
        timers: 0,
        barriers: Vec::new(),
        groups,
        warmup: 0,
        duration: None,
        measure: Measure::Time,
        marks: Vec::new(),
        parallel: false,
        recorded: true,
        faults: Faults::default(),
        touch: None,
    }
}

/// The channel of each waker and sleeper.
#[derive(Default)]
struct Channels(HashMap<(usize, usize), usize>);

impl Channels {
    fn of(&mut self, waker: usize, sleeper: usize) -> Which {
        let next = self.0.len();
        Which {
            first: *self.0.entry((waker, sleeper)).or_insert(next),
            count: 1,
            at: Expr::number(0),
        }
    }
}

fn program(me: usize, life: &Life, channels: &mut Channels) -> Vec<Step> {
    let number = |ns: u64| Expr::number(i64::try_from(ns).unwrap_or(i64::MAX));
    let step = |act: &Act| match *act {
        Act::Run(ns) => Step::Run(number(ns), Vary::No),
        Act::Sleep(ns) => Step::Sleep(number(ns), Vary::No),
        Act::Wait(waker) => Step::Receive(channels.of(waker, me)),
        Act::Wake(sleeper) => Step::Send(channels.of(me, sleeper), 0),
        Act::Fork(child) => Step::Fork(child, Expr::number(1)),
        Act::Exec => Step::Exec,
    };
    let steps = life.acts.iter().map(step);
    steps.chain([Step::Exit]).collect()
}

/// The simulator has no class above the fair one: such tasks get the highest weight.
fn nice(prio: Option<i32>) -> i32 {
    match prio {
        Some(prio) if prio < FIRST_FAIR => -20,
        Some(prio) => (prio - NICE_0).min(19),
        None => 0,
    }
}

/// The CPUs that a task may use, as ranges; empty: all. Where the recording does not say so, a
/// thread with the name of a per-CPU kernel thread that ran on that CPU alone belongs there.
fn cpus(life: &Life, text: &Text) -> Vec<(u16, u16)> {
    if let Some(cpus) = text.cpus.get(&life.task) {
        let ranges = cpus.chunk_by(|a, b| a + 1 == *b);
        return ranges.map(|r| (r[0], r[r.len() - 1])).collect();
    }
    let name = text.names.get(&life.task).map_or("", String::as_str);
    let of = name.split_once('/').map(|(_, rest)| rest);
    let of = of.and_then(|rest| rest.split(':').next()?.parse().ok());
    match life.only {
        Some(cpu) if of == Some(cpu) => vec![(cpu, cpu)],
        _ => Vec::new(),
    }
}
