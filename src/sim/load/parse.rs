// SPDX-License-Identifier: GPL-2.0-only
//! From text to a workload. Blocks are indented by four spaces; what was expected is named with each error.

use super::expr::{Atom, Expr};
use super::{Barrier, Channel, Faults, Group, Load, Measure, Paged, Settings, Step, Vary, Which};
use crate::native::Attr;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;

const INDENT: usize = 4;
/// Messages of a channel whose capacity is not given.
const CAPACITY: i64 = 1 << 16;
/// Bytes of a page.
const PAGE: u64 = 4096;

struct Line<'a> {
    number: usize,
    depth: usize,
    words: Vec<&'a str>,
}

enum Object {
    Channel(usize, usize),
    Lock(usize, usize),
    Barrier(usize),
}

#[derive(Default)]
struct Parser<'a> {
    params: BTreeMap<&'a str, i64>,
    objects: BTreeMap<&'a str, Object>,
    groups: BTreeMap<&'a str, usize>,
    tags: Vec<&'a str>,
    marks: Vec<String>,
    channels: Vec<Channel>,
    locks: usize,
    barriers: Vec<Barrier>,
}

pub fn parse(text: &str, settings: &Settings) -> Result<Load> {
    let lines = lines(text)?;
    let mut parser = Parser::default();
    parser.declare(&lines, settings)?;
    let mut load = Load {
        channels: Vec::new(),
        locks: 0,
        conds: 0,
        timers: 0,
        barriers: Vec::new(),
        groups: Vec::new(),
        warmup: 0,
        duration: None,
        measure: Measure::Time,
        marks: Vec::new(),
        parallel: false,
        faults: Faults::default(),
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
        "a workload has a task: 'task NAME:' with steps below"
    );
    (load.channels, load.locks) = (parser.channels, parser.locks);
    (load.barriers, load.marks) = (parser.barriers, parser.marks);
    Ok(load)
}

fn at(line: &Line) -> String {
    format!("line {}: {:?}", line.number, line.words.join(" "))
}

fn lines(text: &str) -> Result<Vec<Line<'_>>> {
    let mut lines: Vec<Line> = Vec::new();
    for (number, raw) in (1..).zip(text.lines()) {
        let line = raw.split('#').next().unwrap_or_default();
        // `x[i]` is a name and an index.
        let words: Vec<&str> = split(line);
        if words.is_empty() {
            continue;
        }
        let spaces = line.len() - line.trim_start_matches(' ').len();
        ensure!(
            spaces % INDENT == 0,
            "line {number}: blocks are indented by {INDENT} spaces, here are {spaces}"
        );
        let depth = spaces / INDENT;
        let most = lines
            .last()
            .map_or(0, |l: &Line| l.depth + usize::from(opens(l)));
        ensure!(
            depth <= most,
            "line {number}: {line:?} is indented further than what it is below"
        );
        lines.push(Line {
            number,
            depth,
            words,
        });
    }
    for pair in lines.windows(2) {
        ensure!(
            !opens(&pair[0]) || pair[1].depth == pair[0].depth + 1,
            "line {}: a block was opened, an indented line was expected below",
            pair[0].number
        );
    }
    Ok(lines)
}

/// Words, and the signs [ ] , : as words of their own.
fn split(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let mut rest = word;
        while let Some(at) = rest.find(['[', ']', ',', ':']) {
            words.extend(
                [&rest[..at], &rest[at..at + 1]]
                    .iter()
                    .filter(|w| !w.is_empty()),
            );
            rest = &rest[at + 1..];
        }
        words.extend([rest].iter().filter(|w| !w.is_empty()));
    }
    words
}

fn opens(line: &Line) -> bool {
    line.words.last() == Some(&":")
        || matches!(line.words[0], "forever" | "repeat" | "on" | "first")
}

/// `words` up to one of `ends`, and the rest.
fn until<'a, 'b>(words: &'b [&'a str], ends: &[&str]) -> (&'b [&'a str], &'b [&'a str]) {
    let end = words.iter().position(|w| ends.contains(w));
    words.split_at(end.unwrap_or(words.len()))
}

impl<'a> Parser<'a> {
    /// Names first, so that a line may be about what stands below it.
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
            bail!("there is no param {name}; there are: {}", known.join(" "));
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
        let value = self.fixed(value)?;
        let value = settings.get(*name).copied().unwrap_or(value);
        self.params.insert(name, value);
        Ok(())
    }

    fn object(&mut self, line: &Line<'a>) -> Result<()> {
        let kind = line.words[0];
        if !matches!(kind, "pipe" | "socket" | "lock" | "barrier") {
            return Ok(());
        }
        let name = *line.words.get(1).context("a name was expected")?;
        let rest = &line.words[2..];
        let object = match kind {
            "barrier" => self.barrier(rest)?,
            _ => {
                let (count, rest) = match rest {
                    ["[", ..] => {
                        let (count, rest) = until(&rest[1..], &["]"]);
                        (self.fixed(count)?, rest.get(1..).context("] was expected")?)
                    }
                    _ => (1, rest),
                };
                let count = usize::try_from(count)
                    .ok()
                    .filter(|&c| c > 0)
                    .context("a count above 0 was expected")?;
                match kind {
                    "lock" => {
                        self.locks += count;
                        Object::Lock(self.locks - count, count)
                    }
                    _ => self.channel(kind, rest, count)?,
                }
            }
        };
        ensure!(
            self.objects.insert(name, object).is_none(),
            "{name} is there already"
        );
        Ok(())
    }

    fn channel(&mut self, kind: &str, rest: &[&str], count: usize) -> Result<Object> {
        let channel = match (kind, rest) {
            ("pipe", ["message", value @ ..]) => Channel {
                capacity: 0,
                sync: true,
                paged: Some(self.paged(value)?),
            },
            _ => self.queue(rest)?,
        };
        self.channels.extend(vec![channel; count]);
        Ok(Object::Channel(self.channels.len() - count, count))
    }

    /// `words`: SIZE hold TIME.
    fn paged(&self, words: &[&str]) -> Result<Paged> {
        let (size, hold) = until(words, &["hold"]);
        let hold = hold.get(1..).context("'hold TIME' was expected")?;
        let size = self.time(size)?;
        ensure!(
            (1..=PAGE).contains(&size),
            "a message of {size} bytes where 1 to {PAGE}, a page, were expected"
        );
        Ok(Paged {
            of_page: PAGE / size,
            hold: self.time(hold)?,
        })
    }

    fn queue(&self, rest: &[&str]) -> Result<Channel> {
        let (rest, futex) = match rest {
            [rest @ .., "futex"] => (rest, true),
            _ => (rest, false),
        };
        let capacity = match rest {
            [] => CAPACITY,
            ["capacity", value @ ..] => self.fixed(value)?,
            _ => bail!(
                "{:?} where 'capacity N', 'futex' or, of a pipe, 'message SIZE hold TIME' was expected",
                rest.join(" ")
            ),
        };
        ensure!(capacity > 0, "capacity {capacity} is not above 0");
        Ok(Channel {
            capacity: capacity as u64,
            sync: !futex,
            paged: None,
        })
    }

    fn barrier(&mut self, rest: &[&str]) -> Result<Object> {
        let (tasks, spin) = until(rest, &["spin"]);
        let tasks = self.fixed(tasks)?;
        let spin = if spin.is_empty() {
            0
        } else {
            self.fixed(&spin[1..])?
        };
        ensure!(
            tasks > 0 && spin >= 0,
            "a barrier of {tasks} tasks, spinning for {spin} ns, is none"
        );
        self.barriers.push(Barrier {
            tasks: tasks as u64,
            spin: spin as u64,
        });
        Ok(Object::Barrier(self.barriers.len() - 1))
    }

    fn setting(&mut self, line: &Line<'a>, load: &mut Load) -> Result<()> {
        match &line.words[..] {
            ["param" | "pipe" | "socket" | "lock" | "barrier", ..] => {}
            ["parallel"] => load.parallel = true,
            ["fault", "timers", "lost", value @ ..] => {
                load.faults.timers_lost = self.time(value)?
            }
            ["fault", "timers", "late", value @ ..] => {
                load.faults.timers_late = self.time(value)?
            }
            ["fault", "ticks", "stop", value @ ..] => load.faults.ticks_stop = self.time(value)?,
            ["fault", "affinity", value @ ..] => load.faults.affinity = self.time(value)?,
            ["fault", "hotplug", value @ ..] => load.faults.hotplug = self.time(value)?,
            ["warmup", value @ ..] => load.warmup = self.time(value)?,
            ["duration", value @ ..] => load.duration = Some(self.time(value)?),
            ["measure", "time"] => load.measure = Measure::Time,
            ["measure", "rate", name] => load.measure = Measure::Rate(self.mark(name)),
            ["measure", "latency", name] => load.measure = Measure::Latency(self.mark(name)),
            _ => bail!(
                "param, pipe, socket, lock, barrier, warmup, duration, measure, parallel, fault or task was expected"
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
            ["x", count @ ..] => self.fixed(count)?,
            _ => bail!("{:?} where 'x COUNT' was expected", rest.join(" ")),
        };
        ensure!(count > 0, "{count} tasks are none");
        let mut group = Group {
            name: name.to_string(),
            kernel: false,
            forked,
            count: count as u64,
            set: 0,
            memory: 0,
            attr: Attr::default(),
            cpus: Vec::new(),
            start: 0,
            program: Vec::new(),
        };
        for part in parts {
            match part {
                ["set", value @ ..] => group.set = self.time(value)?,
                ["memory", value @ ..] => {
                    group.memory = self.time(value)?;
                    ensure!(group.memory <= 100, "memory is at most 100 %");
                }
                ["start", value @ ..] => group.start = self.time(value)?,
                ["nice", value] => {
                    let nice = value.parse().ok().filter(|n| (-20..20).contains(n));
                    group.attr.nice = nice.context("a nice level, -20 to 19, was expected")?;
                }
                ["cpus", list] => group.cpus = vec![range(list)?],
                [list] if !group.cpus.is_empty() => group.cpus.push(range(list)?),
                _ => bail!(
                    "{:?} where set, memory, start, nice or cpus was expected",
                    part.join(" ")
                ),
            }
        }
        self.block(body, 1, 0, &mut group.program)?;
        group.program.push(Step::Exit);
        Ok(group)
    }

    /// The lines of `depth` and what is below them; `slot`: the counter of the next loop.
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
                    let count = self.expr(count).with_context(|| at(line))?;
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
                ["first"] => {
                    to.push(Step::UnlessFirst(0));
                    self.block(body, depth + 1, slot, to)?;
                    to[begin] = Step::UnlessFirst(to.len());
                }
                words => to.push(self.step(words).with_context(|| at(line))?),
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
            ["until", rest @ ..] => Step::Until(self.expr(rest)?),
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
                    ["x", count @ ..] => self.expr(count)?,
                    _ => bail!("{:?} where 'x COUNT' was expected", rest.join(" ")),
                };
                Step::Fork(group, count)
            }
            ["vfork", name] => Step::Vfork(self.group_of(name)?),
            ["wait"] => Step::Wait,
            ["exec"] => Step::Exec,
            ["exit"] => Step::Exit,
            ["yield"] => Step::Yield,
            ["stamp"] => Step::Stamp,
            ["keep"] => Step::Keep,
            ["count", name] => Step::Count(self.mark(name), Expr::number(1)),
            ["count", name, by @ ..] => Step::Count(self.mark(name), self.expr(by)?),
            ["latency", name] => Step::Latency(self.mark(name)),
            _ => bail!(
                "a step was expected: run, sleep, until, send, receive, lock, unlock, barrier, fork, vfork, wait, exec, exit, yield, \
                 stamp, keep, count, latency, or a block: forever, repeat, on, first"
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
        Ok((self.expr(length)?, vary))
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
            "me" => Some(Atom::Me),
            "from" => Some(Atom::From),
            "kept" => Some(Atom::Kept),
            "turn" => Some(Atom::Turn),
            _ => self.params.get(name).copied().map(Atom::Number),
        };
        Expr::parse(words, &names)
    }

    fn fixed(&self, words: &[&str]) -> Result<i64> {
        let value = self.expr(words)?.fixed();
        value.context("a number that is known from the start was expected")
    }

    /// ns, or bytes; not below 0.
    fn time(&self, words: &[&str]) -> Result<u64> {
        u64::try_from(self.fixed(words)?).context("it is below 0")
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
    Ok((number(first)?, number(last)?))
}
