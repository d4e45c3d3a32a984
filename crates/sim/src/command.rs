// SPDX-License-Identifier: GPL-2.0-only
//! Runs all variants with all seeds, and makes a table of the results.

use super::args::{Asked, Plan, Wanted};
use super::load::Measure;
use super::workloads::WORKLOADS;
use super::{MACHINES, Measured, Scenario, matrix, params, policy, runs, swarm, trace};
use anyhow::{Context, Result};
use scx_roost::native::stat_name;
use scx_roost::util::print;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The results of one variant over its seeds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub variant: String,
    /// In the unit of the workload, one for each run.
    pub results: Vec<f64>,
    pub mean: f64,
    /// Percent better than the first variant.
    pub gain_percent: f64,
    /// Standard error of the mean, percent of the mean. 0 with one run.
    pub error_percent: f64,
    /// Percent of the CPU time in which another thread of the core was busy.
    pub shared_percent: f64,
    /// Moves to another core of the LLC, and to another LLC, per second.
    pub moves: f64,
    pub far_moves: f64,
    /// Context switches to a task, per second.
    pub switches: f64,
    /// The mean number of busy CPUs.
    pub busy_cpus: f64,
    /// The mean number of cores in an idle state that empties their L2. None: it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deep_cores: Option<f64>,
    /// Time from a wakeup to running, us.
    pub wakeup_p50_us: f64,
    pub wakeup_p99_us: f64,
    pub events: u64,
    /// The policy's counters per run, by the names of `scx_roost stats`. Empty if the scheduler is
    /// not ours.
    pub counters: BTreeMap<&'static str, f64>,
}

/// The results of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub workload: String,
    pub machine: String,
    /// The unit of `mean`.
    pub unit: String,
    /// `mean` is a time in ns.
    #[serde(skip)]
    time: bool,
    pub seeds: u64,
    pub rows: Vec<Row>,
}

/// Does what is asked for, and prints the results.
pub fn perform(asked: &Asked) -> Result<()> {
    let printed = match asked {
        Asked::Text(text) => print::text(text),
        Asked::Run { wanted, json } => show(wanted, *json),
    };
    printed.map(|_| ())
}

fn show(wanted: &Wanted, json: bool) -> Result<bool> {
    match wanted {
        Wanted::List => print::text(&list()),
        Wanted::Compare(plan) => {
            let report = run(plan)?;
            let counters = || plan.counters.then(|| report.counters());
            shown(json, &report, || {
                report.text() + &counters().unwrap_or_default()
            })
        }
        Wanted::Matrix(effort) => {
            let matrix = matrix::matrix(effort)?;
            shown(json, &matrix, || matrix.text())
        }
        Wanted::Swarm(seeds) => {
            let done = swarm(seeds)?;
            shown(json, &done, || done.text())
        }
    }
}

/// Prints `report` as JSON or as text.
fn shown(json: bool, report: &impl Serialize, text: impl Fn() -> String) -> Result<bool> {
    match json {
        true => print::json(report),
        false => print::text(&text()),
    }
}

/// Runs the plan. Errors: a scenario cannot be run; a check fails; a picture cannot be written.
pub fn run(plan: &Plan) -> Result<Report> {
    let jobs: Vec<(usize, u64)> = (0..plan.variants.len())
        .flat_map(|variant| plan.seeds.clone().map(move |seed| (variant, seed)))
        .collect();
    let measured = runs::all(jobs.len(), |at| {
        let (variant, seed) = jobs[at];
        let scenario = Scenario {
            model: &plan.model,
            load: plan.load.clone(),
            policy: &plan.variants[variant].policy,
            seed,
        };
        if !plan.check {
            return scenario.run();
        }
        let variant = &plan.variants[variant].name;
        let again = || {
            format!(
                "{} --variant {variant} --seed {seed} --seeds 1 --check",
                plan.again
            )
        };
        scenario.checked().with_context(again)
    })?;
    trace::write(plan)?;
    let seeds = (plan.seeds.end - plan.seeds.start) as usize;
    let better = measured[0].more_is_better();
    let mut rows: Vec<Row> = Vec::new();
    for (variant, runs) in plan.variants.iter().zip(measured.chunks(seeds)) {
        let base = rows.first().map(|row| row.mean);
        rows.push(row(&variant.name, runs, base, better));
    }
    Ok(Report {
        workload: plan.workload.clone(),
        machine: plan.model.name.clone(),
        unit: measured[0].unit(&plan.load),
        time: !matches!(plan.load.measure, Measure::Rate(_)),
        seeds: seeds as u64,
        rows,
    })
}

fn row(variant: &str, runs: &[Measured], base: Option<f64>, more_is_better: bool) -> Row {
    let results: Vec<f64> = runs.iter().map(Measured::result).collect();
    let n = results.len() as f64;
    let mean = results.iter().sum::<f64>() / n;
    let spread = results.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
    let error = if n > 1.0 {
        (spread / (n - 1.0) / n).sqrt()
    } else {
        0.0
    };
    let base = base.unwrap_or(mean);
    let gain = if more_is_better {
        mean / base
    } else {
        base / mean
    };
    let sum = |of: &dyn Fn(&Measured) -> f64| runs.iter().map(of).sum::<f64>();
    let seconds = sum(&|m| m.ns() as f64 / 1e9);
    let wakeup = |permille| sum(&|m| m.wakeups.quantile(permille).unwrap_or(0) as f64 / 1e3) / n;
    Row {
        variant: variant.to_string(),
        mean,
        gain_percent: (gain - 1.0) * 100.0,
        error_percent: error / mean * 100.0,
        shared_percent: sum(&|m| m.shared_ns as f64) / sum(&|m| m.busy_ns as f64) * 100.0,
        moves: sum(&|m| m.moves[1] as f64) / seconds,
        far_moves: sum(&|m| (m.moves[2] + m.moves[3]) as f64) / seconds,
        switches: sum(&|m| m.switches as f64) / seconds,
        busy_cpus: sum(&|m| m.busy_ns as f64 / 1e9) / seconds,
        deep_cores: runs
            .iter()
            .map(|m| Some(m.slept_ns? as f64 / 1e9 / seconds))
            .sum(),
        wakeup_p50_us: wakeup(500),
        wakeup_p99_us: wakeup(990),
        counters: counters(runs),
        events: runs.iter().map(|m| m.events).sum(),
        results,
    }
}

fn counters(runs: &[Measured]) -> BTreeMap<&'static str, f64> {
    let counted = runs.iter().map(|m| m.counters.len()).min().unwrap_or(0);
    let mean =
        |at: usize| runs.iter().map(|m| m.counters[at] as f64).sum::<f64>() / runs.len() as f64;
    (0..counted)
        .map(|at| (stat_name(at as u32), mean(at)))
        .collect()
}

impl Report {
    /// How many CPUs are busy and cores sleep deeply, and each counter that is above 0 in any
    /// variant, with a column for each variant.
    pub fn counters(&self) -> String {
        let names: BTreeSet<&str> = self
            .rows
            .iter()
            .flat_map(|row| &row.counters)
            .filter(|(_, n)| **n > 0.0)
            .map(|(name, _)| *name)
            .collect();
        let line = |name: &str, cell: &dyn Fn(&Row) -> String| {
            let cells = self.rows.iter().map(|row| format!(" {:>16}", cell(row)));
            format!("{name:<24}{}\n", cells.collect::<String>())
        };
        let count = |name: &str, row: &Row| {
            row.counters
                .get(name)
                .map_or("-".into(), |n| format!("{n:.1}"))
        };
        let lines = names
            .into_iter()
            .map(|name| line(name, &|row| count(name, row)));
        let head = line("on average", &|row| row.variant.clone());
        let busy = line("busy_cpus", &|row| format!("{:.1}", row.busy_cpus));
        let deep = |row: &Row| row.deep_cores.map_or("-".into(), |n| format!("{n:.1}"));
        let deep = line("deep_cores", &deep);
        let counted = lines.collect::<String>();
        format!("\n{head}{busy}{deep}counted, a run\n{counted}")
    }

    /// The divisor and the unit of means as shown. All use the unit that suits the mean of the
    /// first variant.
    fn scale(&self) -> (f64, String) {
        if !self.time {
            return (1.0, self.unit.clone());
        }
        let ns = self.rows.first().map_or(0.0, |row| row.mean);
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
        let fits = |unit: &&(f64, &str)| ns >= unit.0;
        let &(scale, unit) = units.iter().find(fits).unwrap_or(&units[3]);
        let words = self.unit.split(' ').map(|word| match word {
            "ns" => unit,
            word => word,
        });
        (scale, words.collect::<Vec<_>>().join(" "))
    }

    pub fn text(&self) -> String {
        let (scale, unit) = self.scale();
        let mut text = format!(
            "{} on {}, {}; {}\n\n{:<24} {:>12} {:>8} {:>7} {:>8} {:>9} {:>9} {:>9} {:>9}\n",
            self.workload,
            self.machine,
            match self.seeds {
                1 => "one run each".to_string(),
                n => format!("{n} runs each"),
            },
            unit,
            "variant",
            "mean",
            "better",
            "error",
            "shared",
            "moves/s",
            "far/s",
            "p50 us",
            "p99 us"
        );
        let line = |row: &Row, better: String, error: String| {
            format!(
                "{:<24} {:>12.4} {better:>8} {error:>7} {:>7.1}% {:>9.0} {:>9.0} {:>9.1} {:>9.1}\n",
                row.variant,
                row.mean / scale,
                row.shared_percent,
                row.moves,
                row.far_moves,
                row.wakeup_p50_us,
                row.wakeup_p99_us
            )
        };
        for row in &self.rows {
            let better = format!("{:.1}%", tenths(row.gain_percent));
            text += &line(row, better, format!("{:.1}%", row.error_percent));
        }
        text + "\nA model, not a measurement: docs/simulator.md says how far to trust it.\n"
    }
}

/// Rounded to tenths, without a minus before 0.
fn tenths(percent: f64) -> f64 {
    (percent * 10.0).round() / 10.0 + 0.0
}

/// The machines, workloads, variants and parameters, as text.
pub fn list() -> String {
    let machines = MACHINES
        .iter()
        .map(|(name, what)| format!("  {name:<20} {what}\n"));
    let what = |text: &str| {
        text.lines()
            .next()
            .unwrap_or_default()
            .trim_start_matches("# ")
            .to_string()
    };
    let loads = WORKLOADS
        .iter()
        .map(|(name, text)| format!("  {name:<20} {}\n", what(text)));
    let variants = policy::NAMES
        .iter()
        .map(|(name, what)| format!("  {name:<20} {what}\n"));
    let (machines, loads): (String, String) = (machines.collect(), loads.collect());
    let variants: String = variants.collect();
    let params = params::text();
    format!(
        "Machines:\n{machines}Workloads:\n{loads}Variants:\n{variants}Parameters, of which machine, and in what range:\n{params}"
    )
}
