// SPDX-License-Identifier: GPL-2.0-only
//! From text to a workload. Blocks are indented by four spaces. Errors say what was expected.

use super::expr::{Atom, Expr, Unit};
use super::text::{Line, at, lines, until};
use super::whole::MOST;
use super::{Channel, Faults, Group, Load, Measure, Settings, Step, Vary, Which};
use anyhow::{Context, Result, bail, ensure};
use scx_roost::native::{Attr, SchedPolicy};
use scx_roost::util::names::instead;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod objects;

/// The total that `timers lost` refers to.
const THOUSAND: u64 = 1000;
const UNKNOWN: &str = "a number that is known from the start was expected";

enum Object {
    Channel(usize, usize),
    Lock(usize, usize),
    Barrier(usize),
}

#[derive(Default)]
struct Parser<'a> {
    params: BTreeMap<&'a str, (i64, Unit)>,
    objects: BTreeMap<&'a str, Object>,
    groups: BTreeMap<&'a str, usize>,
    tags: Vec<&'a str>,
    marks: Vec<String>,
    channels: Vec<Channel>,
    locks: usize,
    barriers: Vec<u64>,
    /// Lines for errors: what is measured, and where each lock is unlocked.
    measured: String,
    unlocked: BTreeMap<&'a str, String>,
    locked: BTreeSet<&'a str>,
}

pub fn parse(text: &str, settings: &Settings) -> Result<Load> {
    let lines = lines(text)?;
    let mut parser = Parser::default();
    parser.declare(&lines, settings)?;
    let mut load = Load {
        channels: Vec::new(),
        locks: 0,
        conds: 0,
        barriers: Vec::new(),
        groups: Vec::new(),
        warmup: 0,
        duration: None,
        measure: Measure::Time,
        marks: Vec::new(),
        faults: Faults::default(),
        touch: None,
    };
    let mut rest = &lines[..];
    while let Some((line, below)) = rest.split_first() {
        let block = below.iter().take_while(|l| l.depth > 0).count();
        let (body, after) = below.split_at(block);
        let read = match line.words[0] {
            "task" => parser
                .group(line, body)
                .map(|group| load.groups.push(group)),
            _ => parser.setting(line, &mut load),
        };
        read.with_context(|| at(line))?;
        rest = after;
    }
    ensure!(
        !load.groups.is_empty(),
        "a workload needs a task: 'task NAME:' with steps below"
    );
    parser.check_locks()?;
    (load.channels, load.locks) = (parser.channels, parser.locks);
    (load.barriers, load.marks) = (parser.barriers, parser.marks);
    load.check_measure().with_context(|| parser.measured)?;
    Ok(load)
}

/// The params of a workload: the value and unit of each.
pub fn params(text: &str) -> Result<BTreeMap<&str, (i64, Unit)>> {
    let mut parser = Parser::default();
    parser.declare(&lines(text)?, &Settings::new())?;
    Ok(parser.params)
}

impl<'a> Parser<'a> {
    /// Reads names first, so that a line may refer to one below it.
    fn declare(&mut self, lines: &[Line<'a>], settings: &Settings) -> Result<()> {
        let top = lines.iter().filter(|l| l.depth == 0);
        let (params, others): (Vec<&Line>, Vec<&Line>) = top.partition(|l| l.words[0] == "param");
        for line in &params {
            self.param(line, settings).with_context(|| at(line))?;
        }
        if let Some(name) = settings
            .keys()
            .find(|k| !self.params.contains_key(k.as_str()))
        {
            let known: Vec<&str> = self.params.keys().copied().collect();
            bail!("there is no param {name}: {}", instead(name, &known));
        }
        for line in others.iter().filter(|l| l.words[0] == "task") {
            let name = *line
                .words
                .get(1)
                .with_context(|| format!("{}: a name was expected", at(line)))?;
            let number = self.groups.len();
            ensure!(
                self.groups.insert(name, number).is_none(),
                "{}: {name} is there already",
                at(line)
            );
        }
        for line in &others {
            self.object(line).with_context(|| at(line))?;
        }
        Ok(())
    }

    fn param(&mut self, line: &Line<'a>, settings: &Settings) -> Result<()> {
        let [_, name, "=", value @ ..] = &line.words[..] else {
            bail!("'param NAME = VALUE' was expected");
        };
        let (value, _range) = until(value, &["in"]);
        let expr = self.expr(value)?;
        let value = settings.get(*name).copied();
        let value = value.or(expr.fixed()).context(UNKNOWN)?;
        self.params.insert(name, (value, expr.unit()));
        Ok(())
    }

    fn setting(&mut self, line: &Line<'a>, load: &mut Load) -> Result<()> {
        match &line.words[..] {
            ["param" | "pipe" | "socket" | "lock" | "barrier", ..] => {}
            ["fault", fault @ ..] => self.fault(fault, &mut load.faults)?,
            ["touch", value @ ..] => load.touch = Some(self.time(value)?),
            ["warmup", value @ ..] => load.warmup = self.time(value)?,
            ["duration", value @ ..] => {
                let duration = self.time(value)?;
                ensure!(duration > 0, "a duration above 0 was expected");
                load.duration = Some(duration);
            }
            ["measure", what @ ..] => {
                load.measure = self.measure(what)?;
                self.measured = at(line);
            }
            _ => bail!(
                "param, pipe, socket, lock, barrier, warmup, duration, measure, fault or task was expected"
            ),
        }
        Ok(())
    }

    fn measure(&mut self, words: &[&str]) -> Result<Measure> {
        Ok(match words {
            ["time"] => Measure::Time,
            ["rate", name] => Measure::Rate(self.mark(name)),
            ["latency", name] => Measure::Latency(self.mark(name)),
            _ => bail!(
                "{:?} where 'time', 'rate NAME' or 'latency NAME' was expected",
                words.join(" ")
            ),
        })
    }

    fn fault(&self, words: &[&str], faults: &mut Faults) -> Result<()> {
        match words {
            ["timers", "lost", value @ ..] => {
                faults.timers_lost = self.known(value, Unit::None)?;
                ensure!(
                    faults.timers_lost <= THOUSAND,
                    "at most {THOUSAND} of {THOUSAND} timers can be lost"
                );
            }
            ["timers", "late", value @ ..] => faults.timers_late = self.time(value)?,
            ["ticks", "stop", value @ ..] => faults.ticks_stop = self.time(value)?,
            ["affinity", value @ ..] => faults.affinity = self.time(value)?,
            ["attr", value @ ..] => faults.attr = self.time(value)?,
            ["watchdog", value @ ..] => faults.watchdog = self.time(value)?,
            ["hotplug", value @ ..] => faults.hotplug = self.time(value)?,
            _ => bail!(
                "{:?} where 'timers lost N', 'timers late TIME', 'ticks stop TIME', 'affinity TIME', 'attr TIME', 'watchdog TIME' or 'hotplug TIME' was expected",
                words.join(" ")
            ),
        }
        Ok(())
    }

    fn group(&mut self, line: &Line<'a>, body: &[Line<'a>]) -> Result<Group> {
        let head = line.words[1..]
            .strip_suffix(&[":"])
            .context(": was expected at the end")?;
        let mut parts = head.split(|w| *w == ",");
        let first = parts.next().context("a name was expected")?;
        let (name, rest) = first.split_first().context("a name was expected")?;
        let (forked, rest) = match rest {
            ["from", _, rest @ ..] => (true, rest),
            _ => (false, rest),
        };
        let count = match rest {
            [] => 1,
            ["x", count @ ..] => self.several(count)?,
            _ => bail!("{:?} where 'x COUNT' was expected", rest.join(" ")),
        };
        let mut group = Group {
            name: name.to_string(),
            forked,
            count,
            set: 0,
            attr: Attr::default(),
            cpus: Vec::new(),
            program: Arc::default(),
        };
        for part in parts {
            self.attribute(&mut group, part)?;
        }
        let mut program = Vec::new();
        self.block(body, 1, 0, &mut program)?;
        program.push(Step::Exit);
        group.program = Arc::new(program);
        Ok(group)
    }

    /// What follows a comma in the head of a group.
    fn attribute(&mut self, group: &mut Group, part: &[&'a str]) -> Result<()> {
        match part {
            ["set", value @ ..] => group.set = self.known(value, Unit::Size)?,
            ["nice", value] => {
                let nice = value.parse().ok().filter(|n| (-20..20).contains(n));
                group.attr.nice = nice.context("a nice level, -20 to 19, was expected")?;
            }
            ["policy", value @ ..] => {
                group.attr.policy = match self.known(value, Unit::None)? {
                    0 => SchedPolicy::Other,
                    3 => SchedPolicy::Batch,
                    5 => SchedPolicy::Idle,
                    other => bail!(
                        "policy {other} where 0, 3 (SCHED_BATCH) or 5 (SCHED_IDLE) was expected"
                    ),
                };
            }
            ["cpus", list] => group.cpus = vec![range(list)?],
            [list] if !group.cpus.is_empty() => group.cpus.push(range(list)?),
            _ => bail!(
                "{:?} where set, nice, policy or cpus was expected",
                part.join(" ")
            ),
        }
        Ok(())
    }

    /// Reads the lines of `depth` and those below them. `slot`: the counter of the next loop.
    fn block(
        &mut self,
        lines: &[Line<'a>],
        depth: usize,
        slot: usize,
        to: &mut Vec<Step>,
    ) -> Result<()> {
        let mut rest = lines;
        while let Some((line, below)) = rest.split_first() {
            let inside = below.iter().take_while(|l| l.depth > depth).count();
            let (body, after) = below.split_at(inside);
            let begin = to.len();
            match &line.words[..] {
                ["forever"] => {
                    self.block(body, depth + 1, slot, to)?;
                    to.push(Step::Jump(begin));
                }
                ["repeat", count @ ..] => {
                    let count = self.of(count, Unit::None).with_context(|| at(line))?;
                    to.push(Step::Turns(slot, count));
                    self.block(body, depth + 1, slot + 1, to)?;
                    to.push(Step::Again(slot, begin + 1));
                }
                ["on", tag] => {
                    let tag = self.tag(tag);
                    to.push(Step::Unless(tag, 0));
                    self.block(body, depth + 1, slot, to)?;
                    to[begin] = Step::Unless(tag, to.len());
                }
                words => {
                    self.uses(line);
                    to.push(self.step(words).with_context(|| at(line))?);
                }
            }
            rest = after;
        }
        Ok(())
    }

    fn step(&mut self, words: &[&'a str]) -> Result<Step> {
        Ok(match words {
            ["run", rest @ ..] => {
                let (length, vary) = self.length(rest)?;
                Step::Run(length, vary)
            }
            ["sleep", rest @ ..] => {
                let (length, vary) = self.length(rest)?;
                Step::Sleep(length, vary)
            }
            ["until", rest @ ..] => {
                let period = self.of(rest, Unit::Time)?;
                ensure!(period.fixed() != Some(0), "a period above 0 was expected");
                Step::Until(period)
            }
            ["send", rest @ ..] => {
                let (which, tag) = until(rest, &["as"]);
                let tag = match tag {
                    [_, tag] => self.tag(tag),
                    _ => usize::MAX,
                };
                Step::Send(self.which(which, "a pipe or socket")?, tag)
            }
            ["receive", rest @ ..] => Step::Receive(self.which(rest, "a pipe or socket")?),
            ["lock", rest @ ..] => Step::Lock(self.which(rest, "a lock")?),
            ["unlock", rest @ ..] => Step::Unlock(self.which(rest, "a lock")?),
            ["barrier", name] => match self.objects.get(name) {
                Some(Object::Barrier(barrier)) => Step::Barrier(*barrier),
                _ => bail!("there is no barrier {name}"),
            },
            ["fork", name, rest @ ..] => {
                let group = self.group_of(name)?;
                let count = match rest {
                    [] => Expr::number(1),
                    ["x", count @ ..] => self.of(count, Unit::None)?,
                    _ => bail!("{:?} where 'x COUNT' was expected", rest.join(" ")),
                };
                ensure!(
                    count.fixed().is_none_or(|n| n <= MOST as i64),
                    "{MOST} at most were expected"
                );
                Step::Fork(group, count)
            }
            ["wait"] => Step::Wait,
            ["exit"] => Step::Exit,
            ["yield"] => Step::Yield,
            ["stamp"] => Step::Stamp,
            ["keep"] => Step::Keep,
            ["count", name] => Step::Count(self.mark(name), Expr::number(1)),
            ["count", name, by @ ..] => Step::Count(self.mark(name), self.expr(by)?),
            ["latency", name] => Step::Latency(self.mark(name)),
            _ => bail!(
                "a step was expected: run, sleep, until, send, receive, lock, unlock, barrier, fork, wait, exit, yield, \
                 stamp, keep, count, latency, or a block: forever, repeat, on"
            ),
        })
    }

    fn group_of(&self, name: &str) -> Result<usize> {
        let group = self.groups.get(name);
        Ok(*group.with_context(|| format!("there is no task {name}"))?)
    }

    fn length(&self, words: &[&str]) -> Result<(Expr, Vary)> {
        let (length, vary) = match words {
            [length @ .., "exp"] => (length, Vary::Exponential),
            [length @ .., "+-", percent] => {
                let percent = percent
                    .trim_end_matches('%')
                    .parse()
                    .context("a percentage was expected after +-")?;
                ensure!(percent <= 100, "a run varies by 100% at most");
                (length, Vary::Even(percent))
            }
            length => (length, Vary::No),
        };
        Ok((self.of(length, Unit::Time)?, vary))
    }

    /// `words`: NAME, or NAME [ INDEX ].
    fn which(&self, words: &[&str], what: &str) -> Result<Which> {
        let (name, index) = words
            .split_first()
            .with_context(|| format!("{what} was expected"))?;
        let (first, count) = match (self.objects.get(name), what) {
            (Some(Object::Channel(first, count)), "a pipe or socket") => (*first, *count),
            (Some(Object::Lock(first, count)), "a lock") => (*first, *count),
            _ => bail!("{name} where {what} was expected"),
        };
        let at = match index {
            [] => Expr::number(0),
            ["[", index @ .., "]"] => self.expr(index)?,
            _ => bail!("{:?} where an index in [] was expected", index.join(" ")),
        };
        Ok(Which { first, count, at })
    }

    fn expr(&self, words: &[&str]) -> Result<Expr> {
        let names = |name: &str| match name {
            "me" => Some((Atom::Me, Unit::None)),
            "from" => Some((Atom::From, Unit::None)),
            "kept" => Some((Atom::Kept, Unit::None)),
            "turn" => Some((Atom::Turn, Unit::None)),
            _ => {
                let param = self.params.get(name);
                param.map(|&(value, unit)| (Atom::Number(value), unit))
            }
        };
        Expr::parse(words, &names)
    }

    /// An expression of that unit, not below 0 if it is fixed.
    fn of(&self, words: &[&str], unit: Unit) -> Result<Expr> {
        let expr = self.expr(words)?;
        let fixed = expr.fixed();
        let told = words.join(" ");
        ensure!(
            expr.unit() == unit || fixed == Some(0),
            "{told:?} where {} was expected",
            unit.expected()
        );
        ensure!(fixed.is_none_or(|n| n >= 0), "{told:?} is below 0");
        Ok(expr)
    }

    fn known(&self, words: &[&str], unit: Unit) -> Result<u64> {
        let value = self.of(words, unit)?.fixed();
        Ok(value.context(UNKNOWN)? as u64)
    }

    /// A time, ns.
    fn time(&self, words: &[&str]) -> Result<u64> {
        self.known(words, Unit::Time)
    }

    /// A number of tasks or objects.
    fn several(&self, words: &[&str]) -> Result<u64> {
        let count = self.known(words, Unit::None)?;
        ensure!(
            (1..=MOST).contains(&count),
            "{count} where 1 to {MOST} were expected"
        );
        Ok(count)
    }

    /// Notes that the line locks or unlocks a lock.
    fn uses(&mut self, line: &Line<'a>) {
        match &line.words[..] {
            ["lock", name, ..] => drop(self.locked.insert(name)),
            ["unlock", name, ..] => drop(self.unlocked.insert(name, at(line))),
            _ => {}
        }
    }

    fn check_locks(&self) -> Result<()> {
        let never = |name: &&&str| !self.locked.contains(**name);
        let name = self.unlocked.keys().find(never);
        name.map_or(Ok(()), |name| {
            bail!("{}: no task locks {name}", self.unlocked[name])
        })
    }

    fn tag(&mut self, tag: &'a str) -> usize {
        let known = self.tags.iter().position(|t| *t == tag);
        known.unwrap_or_else(|| {
            self.tags.push(tag);
            self.tags.len() - 1
        })
    }

    fn mark(&mut self, mark: &str) -> usize {
        let known = self.marks.iter().position(|m| m == mark);
        known.unwrap_or_else(|| {
            self.marks.push(mark.to_string());
            self.marks.len() - 1
        })
    }
}

/// A CPU, or FIRST-LAST.
fn range(text: &str) -> Result<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| {
        text.parse()
            .with_context(|| format!("{text:?} where a CPU was expected"))
    };
    let (first, last) = (number(first)?, number(last)?);
    ensure!(first <= last, "{text}: the first CPU is after the last");
    Ok((first, last))
}
