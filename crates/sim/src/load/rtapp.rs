// SPDX-License-Identifier: GPL-2.0-only
//! rt-app's files (its doc/tutorial.txt) as workloads. What is not modelled is refused by name.

mod event;

use super::json::{self, Node};
use super::{Barrier, Change, Channel, Expr, Faults, Group, Load, Measure, Step, Timer};
use anyhow::{Context, Result, bail, ensure};
use event::{EVENTS, Event};
use scx_roost::native::{Attr, SchedPolicy};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An rt-app microsecond, ns.
const US: i64 = 1_000;
/// Bytes of a write (mem_buffer_size).
const BUFFER: i64 = 4 << 20;
/// The range of a task's slice, ns (kernel: __setparam_fair()).
const SLICES: (u64, u64) = (100_000, 100_000_000);
/// The mark that counts loops.
const LOOPS: usize = 0;

const PHASE: [&str; 11] = [
    "loop",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "cpus",
    "util_min",
    "util_max",
    "nodes_membind",
    "taskgroup",
];
const TASK: [&str; 3] = ["instance", "delay", "phases"];
const GLOBAL: [&str; 13] = [
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
];
/// Keys that ask for something outside the model.
const REFUSED: [(&str, &str); 4] = [
    ("util_min", "utilisation clamps"),
    ("util_max", "utilisation clamps"),
    ("nodes_membind", "memory of nodes"),
    ("taskgroup", "cgroups"),
];

type Members = [(String, Node)];

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
}

#[derive(Default)]
struct Reader {
    policy: SchedPolicy,
    buffer: i64,
    device: bool,
    locks: Names,
    conds: Names,
    sems: Names,
    timers: Names,
    barriers: BTreeMap<String, (usize, u64)>,
    /// Tasks that are forked.
    forks: Names,
    absolute: Vec<String>,
}

/// A task while it is read.
struct Task<'a> {
    name: &'a str,
    instances: u64,
    /// ns
    delay: i64,
    attr: Attr,
    timers: Names,
    /// Locks that the task holds at this point of its program.
    held: Vec<String>,
    program: Vec<Step>,
}

/// Reads a file of rt-app. Errors name task, phase and key, and say what was expected.
pub fn parse(text: &str) -> Result<Load> {
    let file = json::parse(text)?;
    let members = object(&file).context("the file is not a JSON object")?;
    known(members, &["global", "tasks", "resources"], &[])?;
    let mut reader = Reader {
        buffer: BUFFER,
        ..Reader::default()
    };
    let global = get(members, "global").map(object).transpose();
    let duration = match global.context("global")? {
        Some(global) => reader.global(global).context("global")?,
        None => None,
    };
    let tasks = get(members, "tasks").context("there are no tasks")?;
    let tasks = object(tasks).context("tasks")?;
    ensure!(!tasks.is_empty(), "there are no tasks");
    reader.find_absolute(&file);
    let read = |(name, node): &(String, Node)| {
        let group = reader.task(name, node);
        group.with_context(|| format!("task {name}"))
    };
    let groups = tasks.iter().map(read).collect::<Result<Vec<_>>>()?;
    reader.load(groups, duration)
}

impl Reader {
    /// How long the run lasts, ns. None: to its end.
    fn global(&mut self, global: &Members) -> Result<Option<u64>> {
        known(global, &GLOBAL, &[])?;
        if let Some(policy) = text(global, "default_policy")? {
            self.policy = sched_policy(policy)?;
        }
        if let Some(Node::Bool(true)) = get(global, "pi_enabled") {
            bail!("pi_enabled: priority inheritance is not modelled");
        }
        self.device = text(global, "io_device")?.is_some_and(|d| d != "/dev/null");
        self.buffer = int(global, "mem_buffer_size")?.unwrap_or(BUFFER).max(1);
        let seconds = int(global, "duration")?.unwrap_or(-1);
        ensure!(
            seconds <= i64::from(i32::MAX),
            "duration: {seconds} s is more than rt-app accepts"
        );
        Ok((seconds > 0).then_some(seconds as u64 * 1_000_000_000))
    }

    /// A timer is absolute everywhere if one of its uses says so.
    fn find_absolute(&mut self, node: &Node) {
        match node {
            Node::Object(members) => {
                let mode = get(members, "mode") == Some(&Node::Text("absolute".into()));
                if let (true, Some(Node::Text(name))) = (mode, get(members, "ref")) {
                    self.absolute.push(name.clone());
                }
                members
                    .iter()
                    .for_each(|(_, node)| self.find_absolute(node));
            }
            Node::List(nodes) => nodes.iter().for_each(|node| self.find_absolute(node)),
            _ => {}
        }
    }

    fn task(&mut self, name: &str, node: &Node) -> Result<Group> {
        let members = object(node)?;
        let phases = get(members, "phases")
            .map(object)
            .transpose()
            .context("phases")?;
        let keys: Vec<&str> = PHASE.into_iter().chain(TASK).collect();
        let events: &[(&str, Event)] = if phases.is_some() { &[] } else { &EVENTS };
        known(members, &keys, events)?;
        let instances = int(members, "instance")?.unwrap_or(1);
        ensure!(
            instances >= 0,
            "instance: expected 0 threads or more, found {instances}"
        );
        let mut task = Task {
            name,
            instances: instances as u64,
            delay: int(members, "delay")?.unwrap_or(0).max(0) * US,
            attr: Attr {
                policy: self.policy,
                ..Attr::default()
            },
            timers: Names::default(),
            held: Vec::new(),
            program: Vec::new(),
        };
        refuse(members)?;
        if let Some(change) = change(members)? {
            change.apply(&mut task.attr);
        }
        if task.delay > 0 {
            let at = Timer::Own(task.timers.number("delay"));
            task.program.push(Step::Timer {
                at,
                first: 0,
                period: task.delay as u64,
                relative: false,
            });
        }
        let turns = int(members, "loop")?;
        match phases {
            None => {
                self.phase(&mut task, members, turns.unwrap_or(-1), 0)?;
            }
            Some([]) => bail!("phases: there are none"),
            Some(phases) => self.phases(&mut task, phases, turns.unwrap_or(-1))?,
        }
        task.program.push(Step::Exit);
        let cpus = cpus(members)?;
        Ok(Group {
            kernel: false,
            name: name.to_string(),
            forked: false,
            count: task.instances,
            set: 0,
            memory: 0,
            attr: task.attr,
            cpus,
            start: 0,
            program: Arc::new(task.program),
        })
    }

    fn phases(&mut self, task: &mut Task, phases: &Members, turns: i64) -> Result<()> {
        if turns == 0 {
            return Ok(());
        }
        let begin = opens(&mut task.program, 0, turns);
        for (name, node) in phases {
            let mut read = || {
                let phase = object(node)?;
                known(phase, &PHASE, &EVENTS)?;
                refuse(phase)?;
                ensure!(
                    get(phase, "cpus").is_none(),
                    "cpus: only a task's are modelled, not a phase's"
                );
                if let Some(change) = change(phase)? {
                    task.program.push(Step::Attr(change));
                }
                let turns = int(phase, "loop")?.unwrap_or(1);
                self.phase(task, phase, turns, 1)
            };
            read().with_context(|| format!("phase {name}"))?;
        }
        closes(&mut task.program, 0, turns, begin);
        Ok(())
    }

    /// Reads a phase. It is endless if `turns` is not above 0.
    fn phase(&mut self, task: &mut Task, phase: &Members, turns: i64, slot: usize) -> Result<()> {
        let begin = opens(&mut task.program, slot, turns);
        let steps = task.program.len();
        for (key, node) in phase {
            if let Some(event) = Event::of(key) {
                self.event(task, event, node).with_context(|| key.clone())?;
            }
        }
        ensure!(task.program.len() > steps, "there are no events");
        task.program.push(Step::Count(LOOPS, Expr::number(1)));
        closes(&mut task.program, slot, turns, begin);
        Ok(())
    }

    fn load(self, mut groups: Vec<Group>, duration: Option<u64>) -> Result<Load> {
        let endless = |g: &&Group| g.program.iter().any(|s| matches!(s, Step::Jump(_)));
        if let (None, Some(group)) = (duration, groups.iter().find(endless)) {
            bail!(
                "task {} never ends: set \"duration\" in \"global\", or \"loop\" of the task",
                group.name
            );
        }
        // Forked tasks are groups of their own, and forks refer to those.
        let first = groups.len();
        for name in &self.forks.0 {
            let forked = groups[..first].iter().find(|g| g.name == *name);
            let forked = forked.with_context(|| format!("fork: there is no task {name}"))?;
            groups.push(Group {
                forked: true,
                count: 1,
                ..forked.clone()
            });
        }
        let steps = groups
            .iter_mut()
            .flat_map(|g| Arc::make_mut(&mut g.program).iter_mut());
        for step in steps {
            if let Step::Fork(group, _) = step {
                *group += first;
            }
        }
        let mut barriers: Vec<(usize, u64)> = self.barriers.into_values().collect();
        barriers.sort_unstable();
        Ok(Load {
            channels: vec![
                Channel {
                    capacity: u64::MAX,
                    sync: false,
                };
                self.sems.0.len()
            ],
            locks: self.locks.0.len(),
            conds: self.conds.0.len(),
            timers: self.timers.0.len(),
            barriers: barriers
                .into_iter()
                .map(|(_, tasks)| Barrier { tasks, spin: 0 })
                .collect(),
            groups,
            warmup: 0,
            duration,
            measure: if duration.is_some() {
                Measure::Rate(LOOPS)
            } else {
                Measure::Time
            },
            marks: vec!["loops".to_string()],
            parallel: false,
            faults: Faults::default(),
            touch: None,
        })
    }
}

/// Opens a loop. Returns where its body begins.
fn opens(program: &mut Vec<Step>, slot: usize, turns: i64) -> usize {
    if turns > 0 {
        program.push(Step::Turns(slot, Expr::number(turns)));
    }
    program.len()
}

fn closes(program: &mut Vec<Step>, slot: usize, turns: i64, begin: usize) {
    program.push(match turns > 0 {
        true => Step::Again(slot, begin),
        false => Step::Jump(begin),
    });
}

/// The attributes that a task or phase asks for.
fn change(members: &Members) -> Result<Option<Change>> {
    for key in ["dl-period", "dl-deadline"] {
        ensure!(
            get(members, key).is_none(),
            "{key}: deadline tasks are not modelled"
        );
    }
    let policy = text(members, "policy")?
        .map(sched_policy)
        .transpose()
        .context("policy")?;
    let nice = int(members, "priority")?;
    let nice = nice.map(|n| {
        i32::try_from(n)
            .ok()
            .filter(|n| (-20..20).contains(n))
            .context("priority: a nice level, -20 to 19, was expected")
    });
    let slice = int(members, "dl-runtime")?.filter(|us| *us > 0);
    let slice_ns = slice.map(|us| (us as u64 * US as u64).clamp(SLICES.0, SLICES.1));
    let change = Change {
        policy,
        nice: nice.transpose()?,
        slice_ns,
    };
    Ok((change != Change::default()).then_some(change))
}

fn sched_policy(name: &str) -> Result<SchedPolicy> {
    Ok(match name {
        "SCHED_OTHER" => SchedPolicy::Other,
        "SCHED_BATCH" => SchedPolicy::Batch,
        "SCHED_IDLE" => SchedPolicy::Idle,
        "SCHED_RR" | "SCHED_FIFO" | "SCHED_DEADLINE" => bail!(
            "{name}: real-time and deadline tasks are not modelled; SCHED_OTHER, SCHED_BATCH and SCHED_IDLE are"
        ),
        _ => {
            bail!("there is no policy {name}; modelled are SCHED_OTHER, SCHED_BATCH and SCHED_IDLE")
        }
    })
}

fn refuse(members: &Members) -> Result<()> {
    for (key, what) in REFUSED {
        ensure!(
            get(members, key).is_none(),
            "{key}: {what} are not modelled"
        );
    }
    Ok(())
}

fn cpus(members: &Members) -> Result<Vec<(u16, u16)>> {
    let cpu = |node: &Node| match node {
        Node::Int(cpu) => u16::try_from(*cpu).ok().map(|cpu| (cpu, cpu)),
        _ => None,
    };
    let list = match get(members, "cpus") {
        None => Some(Vec::new()),
        Some(Node::List(list)) => list.iter().map(cpu).collect(),
        Some(_) => None,
    };
    list.context("cpus: a list of CPUs was expected")
}

/// Errors: a key is none of `keys` and begins with none of `events`; one of `keys` comes twice.
fn known(members: &Members, keys: &[&str], events: &[(&str, Event)]) -> Result<()> {
    for (at, (key, _)) in members.iter().enumerate() {
        if events.iter().any(|(name, _)| key.starts_with(name)) {
            continue;
        }
        if !keys.contains(&key.as_str()) {
            let names = keys.iter().chain(events.iter().map(|(name, _)| name));
            let known = names.copied().collect::<Vec<_>>().join(" ");
            bail!("unknown key {key:?} here; known are: {known}");
        }
        let twice = members[..at].iter().any(|(other, _)| other == key);
        ensure!(!twice, "{key} is given twice; only events may be");
    }
    Ok(())
}

fn get<'a>(members: &'a Members, key: &str) -> Option<&'a Node> {
    members
        .iter()
        .find(|(name, _)| name == key)
        .map(|(_, node)| node)
}

fn object(node: &Node) -> Result<&Members> {
    match node {
        Node::Object(members) => Ok(members),
        _ => bail!("an object was expected"),
    }
}

fn string(node: &Node) -> Result<&str> {
    match node {
        Node::Text(text) => Ok(text),
        _ => bail!("a string was expected"),
    }
}

fn positive(node: &Node) -> Result<i64> {
    match node {
        Node::Int(number) if (0..1 << 40).contains(number) => Ok(*number),
        _ => bail!("a whole number was expected, not below 0"),
    }
}

fn int(members: &Members, key: &str) -> Result<Option<i64>> {
    match get(members, key) {
        None => Ok(None),
        Some(Node::Int(number)) if number.unsigned_abs() < 1 << 40 => Ok(Some(*number)),
        Some(_) => bail!("{key}: a whole number was expected"),
    }
}

fn text<'a>(members: &'a Members, key: &str) -> Result<Option<&'a str>> {
    get(members, key)
        .map(string)
        .transpose()
        .with_context(|| key.to_string())
}
