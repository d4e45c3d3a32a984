// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost sim calibrate`: measures the machine that it runs on, as far as a program can, and
//! writes the parameters that `--params` reads. `measure` has the threads that measure.
//!
//! A parameter that cannot be measured here keeps its default, and the report says why.

mod measure;

use super::params::{Params, Unit};
use crate::machine::Machine;
use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Repetitions; the median counts.
const TIMES: usize = 7;
/// Pairs of CPUs of each kind.
const PAIRS: usize = 3;
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
    /// In `unit`, with the lowest and the highest of the repetitions. None: not measured.
    pub value: Option<[f64; 3]>,
    pub default: f64,
    pub unit: String,
    /// Why it is not measured.
    pub why: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Calibrated {
    /// The tasks that wanted to run before, on average over a minute.
    pub load: f64,
    pub lines: Vec<Line>,
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
    fn of(machine: &Machine) -> Pairs {
        let find = |fits: &dyn Fn(&crate::machine::Cpu, &crate::machine::Cpu) -> bool| {
            let mut pairs: Vec<(u16, u16)> = Vec::new();
            for a in &machine.cpus {
                let b = machine.cpus.iter().find(|b| b.id > a.id && fits(a, b));
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

/// Measures. It takes some seconds, and other work disturbs it. Errors: the machine cannot be read.
pub fn calibrate() -> Result<Calibrated> {
    let machine = Machine::read(Path::new("/sys"))?;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|n| n.parse().ok());
    let pairs = Pairs::of(&machine);
    let l2 = l2_bytes(Path::new("/sys"), &machine);
    let params = Params::of("*");
    let mut lines = vec![line(&params, "smt_speed", &pairs.smt, NO_SMT, |&(a, b)| {
        Ok(measure::speed(&[a, b])? / measure::speed(&[a])?)
    })];
    for (name, pairs, why) in [
        ("transfer_smt", &pairs.smt, NO_SMT),
        ("transfer_llc", &pairs.llc, NO_LLC),
        ("transfer_other_llc", &pairs.other_llc, NO_OTHER),
        ("transfer_node", &pairs.node, NO_NODE),
    ] {
        lines.push(line(&params, name, pairs, why, |&(a, b)| {
            measure::transfer(a, b)
        }));
    }
    let near = [&pairs.llc, &pairs.other_llc, &pairs.node, &pairs.smt];
    let near = near.into_iter().find(|p| !p.is_empty());
    let two = near.cloned().unwrap_or_default();
    for (name, idle, times) in [("idle_c1_exit", SHORT, 200), ("idle_deep_exit", LONG, 20)] {
        lines.push(line(&params, name, &two, NO_TWO, |&(a, b)| {
            let awake = measure::wakeup(a, b, SHORT, 200, true)?;
            let exit = measure::wakeup(a, b, idle, times, false)? - awake;
            (exit > 0.0)
                .then_some(exit)
                .context("a wakeup of an idle CPU is no later than one of a busy CPU")
        }));
    }
    for (name, pairs, why, bytes) in [
        ("refill_llc", &pairs.llc, NO_LLC, l2 * 3 / 4),
        ("refill_other_llc", &pairs.other_llc, NO_OTHER, FAR_SET),
        ("refill_node", &pairs.node, NO_NODE, FAR_SET),
    ] {
        lines.push(line(&params, name, pairs, why, |&(a, b)| {
            let mut all = Vec::new();
            for _ in 0..TIMES {
                all.push(measure::refill(a, b, bytes)?);
            }
            let ns = median(&mut all);
            (ns > 0.0)
                .then_some(ns * 1e6 / bytes as f64)
                .context("the first walk over the data takes no longer than later ones")
        }));
    }
    Ok(Calibrated {
        load: load.unwrap_or(0.0),
        lines,
    })
}

const NO_SMT: &str = "no core has two threads";
const NO_LLC: &str = "no two cores share a last-level cache";
const NO_OTHER: &str = "no node has two last-level caches";
const NO_NODE: &str = "there is one node";
const NO_TWO: &str = "there is one CPU";

/// Measures a parameter on all pairs, some times. `measure` returns ns, ns for a MB, or a part.
fn line(
    params: &Params,
    name: &'static str,
    pairs: &[(u16, u16)],
    lacks: &str,
    measure: impl Fn(&(u16, u16)) -> Result<f64>,
) -> Line {
    let param = params.get(name).expect("params.tsv has it");
    let scale = match param.unit {
        Unit::Us | Unit::UsPerMb => 1e3,
        _ => 1.0,
    };
    let measured = || -> Result<[f64; 3]> {
        let mut all = Vec::new();
        for pair in pairs
            .iter()
            .flat_map(|pair| std::iter::repeat_n(pair, TIMES))
        {
            all.push(measure(pair)? / scale);
        }
        let middle = median(&mut all);
        let ends = all.first().zip(all.last());
        let (&low, &high) = ends.ok_or_else(|| anyhow!("{lacks}"))?;
        Ok([middle, low, high].map(rounded))
    };
    let measured = measured();
    Line {
        name,
        default: param.default,
        unit: param.unit.to_string(),
        why: measured.as_ref().err().map(|e| format!("{e:#}")),
        value: measured.ok(),
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
                "{:<20} {value:>8} {:<6} {low} to {high}; default {}\n",
                l.name, l.unit, l.default
            ),
            (None, why) => format!(
                "{:<20} {:>8} {:<6} not measured: {}\n",
                l.name,
                l.default,
                l.unit,
                why.as_deref().unwrap_or_default()
            ),
        };
        let lines: String = self.lines.iter().map(line).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::model;

    #[test]
    fn pairs_of_each_distance() {
        let pairs = Pairs::of(&model("epyc-12-nodes").unwrap().machine);
        assert_eq!(pairs.smt, [(0, 96), (1, 97), (2, 98)]);
        assert_eq!(pairs.llc, [(0, 1), (2, 3), (4, 5)]);
        assert_eq!(pairs.other_llc, []);
        assert_eq!(pairs.node[0], (0, 8));
        let pairs = Pairs::of(&model("odd-17").unwrap().machine);
        assert_eq!(
            (pairs.smt.len(), pairs.other_llc.len(), pairs.node.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn what_is_measured_is_read_again() {
        let params = Params::of("*");
        let lines = vec![
            line(&params, "transfer_llc", &[(0, 1)], NO_LLC, |_| Ok(123.456)),
            line(&params, "refill_llc", &[(0, 1)], NO_LLC, |_| Ok(54_321.0)),
            line(&params, "transfer_node", &[], NO_NODE, |_| Ok(1.0)),
            line(&params, "idle_c1_exit", &[(0, 1)], "", |_| {
                anyhow::bail!("no luck")
            }),
        ];
        let calibrated = Calibrated { load: 2.5, lines };
        let mut read = Params::of("tr-3970x");
        read.read(&calibrated.file()).unwrap();
        assert_eq!(read.ns("transfer_llc"), 123);
        assert_eq!(read.get("refill_llc").unwrap().value, 54.3);
        // Defaults of any machine do not replace what is known of this one.
        assert_eq!(read.ns("idle_c1_exit"), 1000);
        let text = calibrated.text();
        assert!(text.contains("not measured: there is one node"), "{text}");
        assert!(text.contains("not measured: no luck"), "{text}");
        assert!(text.contains("The load average is 2.5"), "{text}");
    }

    #[test]
    fn three_digits() {
        for (value, told) in [
            (0.61234, 0.612),
            (1234.5, 1230.0),
            (9.996, 10.0),
            (0.0, 0.0),
        ] {
            assert_eq!(rounded(value), told);
        }
    }
}
