// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost sim calibrate`: measures the machine that it runs on, as far as a program can, and
//! writes the parameters that `--params` reads. `measure` has the threads that measure.
//!
//! Method: each value is the median of some repetitions. A repetition that fails does not count,
//! nor does one that is further from the median than FAR times the median distance. More than half
//! must remain. A parameter that is not measured keeps its default, and the report says why.
//!
//! Everything runs in one thread and its children. They may wait for a CPU that they never get, so
//! nothing waits for them longer than LIMIT.

mod measure;
#[cfg(test)]
mod tests;

use super::params::{Params, Unit};
use crate::machine::{Cpu, Machine, cpulist_text};
use crate::util::affinity::Affinity;
use anyhow::{Context, Result, anyhow};
use measure::Here;
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Repetitions for each pair of CPUs.
const TIMES: usize = 7;
/// Pairs of CPUs of each kind.
const PAIRS: usize = 3;
/// Median distances from the median; beyond, other work disturbed the repetition.
const FAR: f64 = 5.0;
/// All measurements end after this; they take about 10 s on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);
/// A measurement that has begun ends within this, unless its threads get no CPU.
const GRACE: Duration = Duration::from_secs(5);
/// Idle periods of which the governor of idle states knows that they are short, or long.
const SHORT: Duration = Duration::from_micros(30);
const LONG: Duration = Duration::from_millis(5);
/// The load average of an idle machine is below this.
const IDLE: f64 = 0.5;
/// Data of a task, for a move to another cache, bytes.
const FAR_SET: usize = 2 << 20;

/// One parameter.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub name: &'static str,
    /// In `unit`, with the lowest and the highest of the repetitions that count. None: it is not
    /// measured.
    pub value: Option<[f64; 3]>,
    pub default: f64,
    pub unit: String,
    /// Repetitions that do not count.
    pub dropped: usize,
    /// Why it is not measured.
    pub why: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Calibrated {
    /// The tasks that wanted to run before, on average over a minute.
    pub load: f64,
    /// The CPUs that this process may not use.
    pub left_out: Vec<u16>,
    pub lines: Vec<Line>,
}

/// One measurement on two CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    /// Speed of two busy threads of a core, where one alone has 1.
    Smt(u16, u16),
    /// ns until a CPU has a cache line of the other one.
    Transfer(u16, u16),
    /// ns by which the wakeup of a CPU that was idle for so long is later than that of one awake.
    Exit(u16, u16, Duration),
    /// ns for a MB of so many bytes, after a move to the other CPU.
    Refill(u16, u16, usize),
}

impl Ask {
    /// What it means that nothing was measured.
    fn nothing(&self) -> &'static str {
        match self {
            Ask::Smt(..) | Ask::Transfer(..) => "it took no time",
            Ask::Exit(..) => "a wakeup of an idle CPU is no later than one of a busy CPU",
            Ask::Refill(..) => "the first walk over the data takes no longer than later ones",
        }
    }
}

/// What measures: this machine, or a test's numbers.
trait Bench {
    fn measure(&mut self, ask: &Ask) -> Result<f64>;
    /// Since the first measurement.
    fn elapsed(&self) -> Duration;
}

/// A parameter, and what to measure for it.
struct Wanted {
    name: &'static str,
    asks: Vec<Ask>,
    /// Why there is nothing to measure.
    lacks: String,
}

pub fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

/// Some pairs of CPUs of each kind of distance.
struct Pairs {
    smt: Vec<(u16, u16)>,
    llc: Vec<(u16, u16)>,
    other_llc: Vec<(u16, u16)>,
    node: Vec<(u16, u16)>,
}

impl Pairs {
    /// Of CPUs that this process may use.
    fn of(machine: &Machine, may: &dyn Fn(u16) -> bool) -> Pairs {
        let find = |fits: &dyn Fn(&Cpu, &Cpu) -> bool| {
            let mut pairs: Vec<(u16, u16)> = Vec::new();
            let cpus = || machine.cpus.iter().filter(|cpu| may(cpu.id));
            for a in cpus() {
                let b = cpus().find(|b| b.id > a.id && fits(a, b));
                let used = |cpu: u16| pairs.iter().any(|p| p.0 == cpu || p.1 == cpu);
                if let Some(b) = b.filter(|b| !used(a.id) && !used(b.id)) {
                    pairs.push((a.id, b.id));
                }
            }
            pairs.truncate(PAIRS);
            pairs
        };
        Pairs {
            smt: find(&|a, b| a.core == b.core),
            llc: find(&|a, b| a.core != b.core && a.llc == b.llc),
            other_llc: find(&|a, b| a.llc != b.llc && a.node == b.node),
            node: find(&|a, b| a.node != b.node),
        }
    }
}

const NO_SMT: &str = "no core has two threads";
const NO_LLC: &str = "no two cores share a last-level cache";
const NO_OTHER: &str = "no node has two last-level caches";
const NO_NODE: &str = "there is one node";
const NO_TWO: &str = "there is one CPU";

/// `l2`: bytes. `all`: the process may use all CPUs.
fn wanted(pairs: &Pairs, l2: usize, all: bool) -> Vec<Wanted> {
    let want = |name, pairs: &[(u16, u16)], lacks: &str, ask: &dyn Fn(u16, u16) -> Ask| Wanted {
        name,
        asks: pairs.iter().map(|&(a, b)| ask(a, b)).collect(),
        lacks: match all {
            true => lacks.to_string(),
            false => format!("{lacks} (only CPUs that this process may use count)"),
        },
    };
    let transfer = |name, pairs, lacks| want(name, pairs, lacks, &Ask::Transfer);
    let near = [&pairs.llc, &pairs.other_llc, &pairs.node, &pairs.smt];
    let near = near.into_iter().find(|p| !p.is_empty());
    let two = near.map_or(&[][..], Vec::as_slice);
    let exit = |name, idle| want(name, two, NO_TWO, &|a, b| Ask::Exit(a, b, idle));
    let refill = |name, pairs: &[(u16, u16)], lacks, bytes| {
        want(name, pairs, lacks, &|a, b| Ask::Refill(a, b, bytes))
    };
    vec![
        want("smt_speed", &pairs.smt, NO_SMT, &Ask::Smt),
        transfer("transfer_smt", &pairs.smt, NO_SMT),
        transfer("transfer_llc", &pairs.llc, NO_LLC),
        transfer("transfer_other_llc", &pairs.other_llc, NO_OTHER),
        transfer("transfer_node", &pairs.node, NO_NODE),
        exit("idle_c1_exit", SHORT),
        exit("idle_deep_exit", LONG),
        refill("refill_llc", &pairs.llc, NO_LLC, l2 * 3 / 4),
        refill("refill_other_llc", &pairs.other_llc, NO_OTHER, FAR_SET),
        refill("refill_node", &pairs.node, NO_NODE, FAR_SET),
    ]
}

/// Measures on the CPUs that this process may use. Other work disturbs it. Errors: the machine
/// cannot be read.
pub fn calibrate() -> Result<Calibrated> {
    let machine = Machine::read(Path::new("/sys"))?;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|n| n.parse().ok());
    let own = Affinity::of(0).context("cannot read the CPUs that this process may use")?;
    let mut left_out = machine.online();
    left_out.retain(|&cpu| !own.has(cpu));
    let pairs = Pairs::of(&machine, &|cpu| own.has(cpu));
    let l2 = l2_bytes(Path::new("/sys"), &machine);
    let wanted = Arc::new(wanted(&pairs, l2, left_out.is_empty()));
    let asked = wanted.clone();
    let (done, lines) = channel();
    let begin = Instant::now();
    thread::spawn(move || {
        let mut here = Here::begin();
        for want in asked.iter() {
            if done.send(line(want, &mut here)).is_err() {
                return;
            }
        }
    });
    let patience = || (LIMIT + GRACE).saturating_sub(begin.elapsed());
    Ok(Calibrated {
        load: load.unwrap_or(0.0),
        lines: collected(&wanted, &lines, &patience),
        left_out,
    })
}

/// The lines, with what is missing. `patience`: how long to wait for the next one.
fn collected(
    wanted: &[Wanted],
    lines: &Receiver<Line>,
    patience: &dyn Fn() -> Duration,
) -> Vec<Line> {
    let each = wanted.iter().map(|want| {
        let stuck = |_| {
            let why =
                "its threads got no CPU, or ended: other work, of a higher class, has the CPU";
            result(want.name, Err(anyhow!(why)))
        };
        lines.recv_timeout(patience()).unwrap_or_else(stuck)
    });
    each.collect()
}

/// Measures a parameter on all pairs, some times.
fn line(want: &Wanted, bench: &mut dyn Bench) -> Line {
    let planned = want.asks.len() * TIMES;
    let (mut all, mut failed) = (Vec::new(), None);
    // A disturbance of some time meets a repetition of each pair, not all of one.
    for ask in (0..TIMES).flat_map(|_| &want.asks) {
        if bench.elapsed() >= LIMIT {
            let (done, limit) = (all.len(), LIMIT.as_secs());
            failed = Some(anyhow!(
                "{limit} s were over after {done} of {planned} repetitions"
            ));
            break;
        }
        match bench.measure(ask) {
            Ok(value) if value.is_finite() => all.push(value),
            Ok(value) => failed = failed.or(Some(anyhow!("a repetition measured {value}"))),
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    let Some(first) = want.asks.first() else {
        return result(want.name, Err(anyhow!("{}", want.lacks)));
    };
    let why = || failed.unwrap_or_else(|| anyhow!("too few repetitions count"));
    let settled = settled(all, planned).ok_or_else(why);
    let some = settled.and_then(|s| match s.middle > 0.0 {
        true => Ok(s),
        false => Err(anyhow!(first.nothing())),
    });
    result(want.name, some)
}

/// What the repetitions say, and how many do not count.
struct Settled {
    middle: f64,
    low: f64,
    high: f64,
    dropped: usize,
}

/// None: at most half of those that were planned remain.
fn settled(mut all: Vec<f64>, planned: usize) -> Option<Settled> {
    let middle = median(&mut all);
    let mut distances: Vec<f64> = all.iter().map(|value| (value - middle).abs()).collect();
    let far = FAR * median(&mut distances);
    all.retain(|value| (value - middle).abs() <= far);
    if all.len() * 2 <= planned {
        return None;
    }
    // They are sorted. Noise around 0 is no time.
    let middle = median(&mut all);
    let low = all.iter().find(|value| **value > 0.0);
    Some(Settled {
        middle,
        low: low.copied().unwrap_or(middle),
        high: *all.last()?,
        dropped: planned - all.len(),
    })
}

/// ns in the parameter's unit.
fn result(name: &'static str, settled: Result<Settled>) -> Line {
    let params = Params::of("*");
    let param = params.get(name).expect("params.tsv has it");
    let scale = match param.unit {
        Unit::Us | Unit::UsPerMb => 1e3,
        _ => 1.0,
    };
    let value = |s: &Settled| [s.middle, s.low, s.high].map(|ns| rounded(ns / scale));
    Line {
        name,
        default: param.default,
        unit: param.unit.to_string(),
        why: settled.as_ref().err().map(|e| format!("{e:#}")),
        dropped: settled.as_ref().map_or(0, |s| s.dropped),
        value: settled.as_ref().ok().map(value),
    }
}

/// Three digits: more are noise.
fn rounded(value: f64) -> f64 {
    let digits = 2 - value.abs().max(1e-9).log10().floor() as i32;
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

/// The size of the first CPU's L2, bytes; where it is not known, that of the model.
fn l2_bytes(sys: &Path, machine: &Machine) -> usize {
    let cpu = machine.cpus.first().map_or(0, |cpu| cpu.id);
    let caches = sys.join(format!("devices/system/cpu/cpu{cpu}/cache"));
    let text = |file: &str, index: u32| {
        let text = fs::read_to_string(caches.join(format!("index{index}/{file}")));
        text.map(|t| t.trim().to_string()).unwrap_or_default()
    };
    let index = (0..8).find(|&index| text("level", index) == "2");
    let kb = index.and_then(|index| text("size", index).strip_suffix('K')?.parse().ok());
    let default = Params::of("*").bytes("l2") as usize;
    kb.map_or(default, |kb: usize| kb * 1024)
}

impl Calibrated {
    pub fn text(&self) -> String {
        let line = |l: &Line| match (&l.value, &l.why) {
            (Some([value, low, high]), _) => format!(
                "{:<20} {value:>8} {:<6} {low} to {high}; default {}{}\n",
                l.name,
                l.unit,
                l.default,
                match l.dropped {
                    0 => String::new(),
                    n => format!("; without {n} of its repetitions"),
                }
            ),
            (None, why) => format!(
                "{:<20} {:>8} {:<6} not measured: {}\n",
                l.name,
                l.default,
                l.unit,
                why.as_deref().unwrap_or_default()
            ),
        };
        let mut lines: String = self.lines.iter().map(line).collect();
        if !self.left_out.is_empty() {
            lines += &format!(
                "CPUs {} are left out: this process may not use them (affinity or cpuset).\n",
                cpulist_text(&self.left_out)
            );
        }
        if self.load < IDLE {
            return lines;
        }
        let load = self.load;
        lines
            + &format!(
                "The load average is {load}: other work disturbs this. Measure again when it is below {IDLE}.\n"
            )
    }

    /// The rows of data/params.tsv, with what was measured.
    pub fn file(&self) -> String {
        let params = Params::of("*");
        let mut text = "name\tmachine\tdefault\trange\tunit\twhat\tsource\n".to_string();
        for line in &self.lines {
            let what = params.get(line.name).map_or("", |param| param.what);
            let unit = &line.unit;
            text += &match (&line.value, &line.why) {
                (Some([value, low, high]), _) => format!(
                    "{}\tmeasured\t{value}\t{low}-{high}\t{unit}\t{what}\tscx_roost sim calibrate\n",
                    line.name
                ),
                (None, why) => format!(
                    "# {}: not measured: {}\n",
                    line.name,
                    why.as_deref().unwrap_or_default()
                ),
            };
        }
        text
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, self.file()).with_context(|| format!("cannot write {}", path.display()))
    }
}
