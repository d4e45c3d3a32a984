// SPDX-License-Identifier: GPL-2.0-only
//! Files of rt-app (its doc/tutorial.txt), as far as tests/guest/agree.json uses them: so one file
//! runs in a real kernel and here. Everything else is refused by name.

use super::{Expr, Faults, Group, Load, Measure, Step, Vary, Which};
use anyhow::{Context, Result, bail, ensure};
use scx_roost::native::Attr;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// An rt-app microsecond, ns.
const US: u64 = 1_000;
/// The mark that counts loops.
const LOOPS: usize = 0;
/// An event is a key that begins with one of these.
const EVENTS: [&str; 9] = [
    "runtime", "sleep", "timer", "lock", "unlock", "wait", "signal", "suspend", "resume",
];

/// The members of an object in their order, which serde_json's own map does not keep.
struct Members<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Members<T>, D::Error> {
        from.deserialize_map(Reader(PhantomData))
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
    type Value = Members<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Members<T>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = from.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[derive(serde::Deserialize)]
struct File {
    global: Global,
    tasks: Members<Members<Value>>,
}

/// The other keys of `global` only say how rt-app calibrates and logs.
#[derive(serde::Deserialize)]
struct Global {
    /// s
    duration: u32,
}

/// Names of one kind, numbered.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn number(&mut self, name: &str) -> usize {
        let known = self.0.iter().position(|n| n == name);
        known.unwrap_or_else(|| {
            self.0.push(name.to_string());
            self.0.len() - 1
        })
    }

    /// The lock of that name.
    fn one(&mut self, name: &str) -> Which {
        Which {
            first: self.number(name),
            count: 1,
            at: Expr::number(0),
        }
    }
}

/// What tasks share.
#[derive(Default)]
struct Shared {
    locks: Names,
    conds: Names,
}

/// Reads a file of rt-app. Errors name task and key, and say what was expected.
pub fn parse(text: &str) -> Result<Load> {
    let file: File = serde_json::from_str(text).context("this is not an rt-app file")?;
    let mut shared = Shared::default();
    let read = |(name, members): &(String, Members<Value>)| {
        let group = shared.task(name, &members.0);
        group.with_context(|| format!("task {name}"))
    };
    let groups = file.tasks.0.iter().map(read).collect::<Result<Vec<_>>>()?;
    ensure!(!groups.is_empty(), "there are no tasks");
    ensure!(file.global.duration > 0, "a duration above 0 was expected");
    Ok(Load {
        channels: Vec::new(),
        locks: shared.locks.0.len(),
        conds: shared.conds.0.len(),
        barriers: Vec::new(),
        groups,
        warmup: 0,
        duration: Some(u64::from(file.global.duration) * 1_000_000_000),
        measure: Measure::Rate(LOOPS),
        marks: vec!["loops".to_string()],
        faults: Faults::default(),
        touch: None,
    })
}

impl Shared {
    /// A task that goes through its events for ever.
    fn task(&mut self, name: &str, members: &[(String, Value)]) -> Result<Group> {
        let (mut count, mut delay) = (1, 0);
        let mut timers = Names::default();
        let mut program = Vec::new();
        for (key, value) in members {
            match key.as_str() {
                "instance" => count = number(value).context("instance")?,
                "delay" => delay = number(value).context("delay")? * US,
                _ => {
                    let steps = self.event(name, key, value, &mut timers, delay);
                    program.extend(steps.with_context(|| key.clone())?);
                }
            }
        }
        ensure!(!program.is_empty(), "there are no events");
        let mut whole = Vec::new();
        if delay > 0 {
            whole.push(Step::Timer {
                at: timers.number("delay"),
                first: 0,
                period: delay,
            });
        }
        let begin = whole.len();
        whole.extend(program);
        whole.push(Step::Count(LOOPS, Expr::number(1)));
        whole.push(Step::Jump(begin));
        Ok(Group {
            name: name.to_string(),
            forked: false,
            count,
            set: 0,
            attr: Attr::default(),
            cpus: Vec::new(),
            program: Arc::new(whole),
        })
    }

    /// The steps of an event of the task. `delay`: when its first period begins, ns.
    fn event(
        &mut self,
        task: &str,
        key: &str,
        value: &Value,
        timers: &mut Names,
        delay: u64,
    ) -> Result<Vec<Step>> {
        let event = EVENTS.iter().find(|event| key.starts_with(**event));
        Ok(match *event.unwrap_or(&"") {
            "runtime" => vec![Step::Runtime(number(value)? * US)],
            "sleep" => {
                let ns = number(value)? * US;
                vec![Step::Sleep(Expr::number(ns as i64), Vary::No)]
            }
            "timer" => {
                let name = member(value, "ref")?;
                ensure!(
                    name.starts_with("unique"),
                    "{name}: only timers of one thread are modelled, whose names begin with unique"
                );
                vec![Step::Timer {
                    at: timers.number(name),
                    first: delay,
                    period: number(&value["period"]).context("period")? * US,
                }]
            }
            "lock" => vec![Step::Lock(self.locks.one(string(value)?))],
            "unlock" => vec![Step::Unlock(self.locks.one(string(value)?))],
            // pthread_cond_wait(), with the lock that it is called with.
            "wait" => {
                let lock = self.locks.one(member(value, "mutex")?);
                vec![
                    Step::Join(self.conds.number(member(value, "ref")?)),
                    Step::Unlock(lock.clone()),
                    Step::Block,
                    Step::Lock(lock),
                ]
            }
            "signal" => vec![Step::Signal(self.conds.number(string(value)?), false)],
            "suspend" => vec![Step::Join(self.conds.number(task)), Step::Block],
            "resume" => vec![Step::Signal(self.conds.number(string(value)?), true)],
            _ => bail!(
                "it is not modelled; instance, delay and these are: {}",
                EVENTS.join(" ")
            ),
        })
    }
}

fn number(value: &Value) -> Result<u64> {
    let number = value.as_u64().filter(|&number| number < 1 << 40);
    number.context("a whole number was expected, not below 0")
}

fn string(value: &Value) -> Result<&str> {
    value.as_str().context("a string was expected")
}

fn member<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    string(&value[key]).with_context(|| key.to_string())
}
