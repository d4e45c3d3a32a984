// SPDX-License-Identifier: GPL-2.0-only
//! Our own choice beside the kernel's scheduler, on the machines and workloads of data/matrix.tsv.
//! The worst cell comes first.

mod cases;
mod metric;

pub use cases::Effort;

use super::model;
use anyhow::{Context, Result, bail};
use cases::{Case, Outcomes};
use metric::{Behind, Figure, Gain, Metric};
use serde::Serialize;
use std::collections::BTreeSet;

const MATRIX: &str = include_str!("../data/matrix.tsv");
const BASE: &str = "eevdf";
const OURS: &str = "roost";
/// The kernel with one source's patch.
const SOURCES: [&str; 5] = [
    "eevdf:lawall",
    "eevdf:smove",
    "eevdf:patra",
    "eevdf:roy-v7",
    "eevdf:desnoyers",
];
/// The columns that only `beside` has.
const OF_BESIDE: std::ops::Range<usize> = 5..9;
const PINNED: &str = "pinned";
const ORACLE: &str = "oracle";
/// Points that ours may be behind the base, and behind the best source.
const BEHIND_BASE: f64 = 2.0;
const BEHIND_SOURCE: f64 = 3.0;

/// What is compared, and on which machine.
struct Cell {
    machine: &'static str,
    /// Name and PARAM=VALUE settings.
    load: &'static str,
    metric: Metric,
}

impl Cell {
    fn case(&self, policy: &'static str) -> Case {
        Case {
            machine: self.machine,
            load: self.load,
            policy,
        }
    }

    /// How much better its metric is under `policy` than under the base. None: it was not run.
    fn gain(&self, policy: &'static str, outcomes: &Outcomes) -> Option<Gain> {
        let of = |policy| outcomes.values(self.case(policy), self.metric).ok();
        let (base, variant) = (of(BASE)?, of(policy)?);
        Some(Gain {
            variant: policy,
            gain: self.metric.gain(&base, &variant),
            runs: base.len() as u64,
        })
    }

    /// The base keeps more CPUs busy than there are cores, so threads cannot have a core each.
    fn crowded(&self, outcomes: &Outcomes) -> bool {
        let busy = outcomes.busy_cpus(self.case(BASE));
        let cores = model(self.machine).map(|model| model.machine.nr_cores);
        let both = busy.zip(cores);
        both.is_some_and(|(busy, cores)| busy > f64::from(cores))
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct MatrixPlan {
    pub effort: Effort,
    /// Also the sources, pinned threads and the oracle.
    pub beside: bool,
}

/// A machine and a workload. Gains are per cent better than the base. None: it was not or could not
/// be run.
#[derive(Clone, Debug, Serialize)]
pub struct Square {
    pub machine: &'static str,
    pub workload: &'static str,
    pub metric: String,
    pub ours: Option<Gain>,
    pub source: Option<Gain>,
    pub pinned: Option<Gain>,
    pub oracle: Option<Gain>,
    /// How far ours is behind the base and the best source, if that is more than it may be.
    pub behind_base: Option<Behind>,
    pub behind_source: Option<Behind>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Matrix {
    /// Runs of each cell.
    pub seeds: u64,
    pub short: bool,
    pub beside: bool,
    /// Parameters with other values than in params.tsv.
    pub params: Vec<String>,
    /// The worst first.
    pub squares: Vec<Square>,
}

/// Runs the matrix. Errors: matrix.tsv is malformed.
pub fn matrix(plan: &MatrixPlan) -> Result<Matrix> {
    let (cells, effort) = (cells()?, &plan.effort);
    let mut policies = vec![BASE, OURS];
    if plan.beside {
        policies.extend([PINNED, ORACLE].into_iter().chain(SOURCES));
    }
    let of = |cell: &Cell| policies.iter().map(|&policy| cell.case(policy)).collect();
    let cases: BTreeSet<Case> = cells
        .iter()
        .flat_map(|cell| -> Vec<Case> { of(cell) })
        .collect();
    let outcomes = Outcomes::of(&cases, effort)?;
    let mut squares: Vec<Square> = cells
        .iter()
        .map(|cell| square(cell, &policies, &outcomes))
        .collect();
    squares.sort_by(|a, b| b.excess().total_cmp(&a.excess()));
    Ok(Matrix {
        seeds: effort.runs(),
        short: effort.short,
        beside: plan.beside,
        params: effort.params.clone(),
        squares,
    })
}

fn cells() -> Result<Vec<Cell>> {
    let cell = |line: &'static str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[machine, load, metric] = &cells[..] else {
            bail!("matrix.tsv: {line:?} where 3 columns were expected");
        };
        Ok(Cell {
            machine,
            load,
            metric: Metric::parse(metric).with_context(|| format!("matrix.tsv: {line:?}"))?,
        })
    };
    MATRIX.lines().skip(1).map(cell).collect()
}

fn square(cell: &Cell, policies: &[&str], outcomes: &Outcomes) -> Square {
    let of = |policy| match policies.contains(&policy) {
        true => cell.gain(policy, outcomes),
        false => None,
    };
    let sources = SOURCES.iter().filter_map(|&policy| of(policy));
    let source = sources.max_by(|a, b| a.gain.value.total_cmp(&b.gain.value));
    let ours = of(OURS);
    // The base's gain over itself.
    let base = ours.as_ref().map(|ours| Gain {
        variant: BASE,
        gain: Figure {
            value: 0.0,
            error: ours.gain.error.map(|_| 0.0),
        },
        runs: ours.runs,
    });
    let behind = |other: &Option<Gain>, limit| ours.as_ref()?.behind(other.as_ref()?, limit);
    Square {
        machine: cell.machine,
        workload: cell.load,
        metric: cell.metric.to_string(),
        behind_base: behind(&base, BEHIND_BASE),
        behind_source: behind(&source, BEHIND_SOURCE),
        source,
        pinned: of(PINNED).filter(|_| !cell.crowded(outcomes)),
        oracle: of(ORACLE),
        ours,
    }
}

impl Square {
    /// How many points ours is more behind than it may be; below 0: it is not. A cell without our
    /// figure is the worst.
    fn excess(&self) -> f64 {
        let Some(ours) = &self.ours else {
            return f64::INFINITY;
        };
        let source = self.source.as_ref().map_or(f64::NEG_INFINITY, |source| {
            source.gain.value - BEHIND_SOURCE
        });
        source.max(-BEHIND_BASE) - ours.gain.value
    }

    fn verdict(&self) -> String {
        let words = [
            ("eevdf", &self.behind_base),
            ("source", &self.behind_source),
        ];
        let told = |(other, behind): &(&str, &Option<Behind>)| {
            let behind = behind.as_ref()?;
            let undecided = if behind.undecided { " (undecided)" } else { "" };
            Some(format!("{other} {:.1}{undecided}", behind.points))
        };
        let told: Vec<String> = words.iter().filter_map(told).collect();
        told.join(", ")
    }

    fn cells(&self) -> Vec<String> {
        let percent = |gain: &Option<Gain>| {
            let value = gain.as_ref().map(|g| g.gain.value);
            value.map_or("-".to_string(), |value| format!("{value:+.1}%"))
        };
        let error = self.ours.as_ref().and_then(|ours| ours.gain.error);
        let which = self.source.as_ref().map_or("-", |source| source.variant);
        vec![
            self.machine.to_string(),
            self.workload.to_string(),
            self.metric.clone(),
            percent(&self.ours),
            error.map_or("-".to_string(), |error| format!("{error:.1}")),
            percent(&self.source),
            which.trim_start_matches("eevdf:").to_string(),
            percent(&self.pinned),
            percent(&self.oracle),
            self.verdict(),
        ]
    }
}

impl Matrix {
    pub fn text(&self) -> String {
        let heads = [
            "machine",
            "workload",
            "metric",
            "roost",
            "se",
            "best source",
            "which",
            "pinned",
            "oracle",
            "roost is behind",
        ];
        let rows = self.squares.iter().map(Square::cells);
        let mut rows: Vec<Vec<String>> = rows.collect();
        let mut heads: Vec<String> = heads.map(String::from).into();
        if !self.beside {
            rows.iter_mut()
                .chain([&mut heads])
                .for_each(|cells| drop(cells.drain(OF_BESIDE)));
        }
        let short = if self.short { ", short" } else { "" };
        let params = match self.params.is_empty() {
            true => String::new(),
            false => format!(" with {}", self.params.join(", ")),
        };
        format!(
            "Runs of each: {}{short}{params}; per cent better than eevdf. A model, not a \
             measurement.\n\n{}\n{}",
            self.seeds,
            aligned(&heads, &rows),
            self.tally()
        )
    }

    fn tally(&self) -> String {
        let count = |of: &dyn Fn(&Square) -> Option<Behind>| {
            let behind = self.squares.iter().filter_map(of);
            let decided: Vec<bool> = behind.map(|b| !b.undecided).collect();
            (decided.iter().filter(|d| **d).count(), decided.len())
        };
        let (base, base_all) = count(&|s| s.behind_base);
        let (source, source_all) = count(&|s| s.behind_source);
        let mut text = format!(
            "Of {} cells roost is more than {BEHIND_BASE} points behind eevdf in {base_all} ({base} \
             decided)",
            self.squares.len()
        );
        if self.beside {
            text += &format!(
                ", and more than {BEHIND_SOURCE} behind the best source in {source_all} ({source} \
                 decided)"
            );
        }
        text + ".\n"
    }
}

/// A table as text. All but the first and the last column are right-aligned.
fn aligned(heads: &Vec<String>, rows: &[Vec<String>]) -> String {
    let all = || [heads].into_iter().chain(rows);
    let last = heads.len() - 1;
    let width = |at: usize| {
        all()
            .map(|cells| cells[at].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..=last).map(width).collect();
    let line = |cells: &Vec<String>| {
        let cell = |(at, text): (usize, &String)| match at {
            0 => format!("{text:<0$}", widths[0]),
            _ if at == last => format!("  {text}"),
            _ => format!("  {text:>0$}", widths[at]),
        };
        let line: String = cells.iter().enumerate().map(cell).collect();
        line.trim_end().to_string() + "\n"
    };
    all().map(line).collect()
}
