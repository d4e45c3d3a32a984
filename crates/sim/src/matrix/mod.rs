// SPDX-License-Identifier: GPL-2.0-only
//! Our own choice beside the kernel's scheduler, on the machines and workloads of data/matrix.tsv.
//! The worst cell comes first.

mod cases;
mod metric;

pub use cases::Effort;

use anyhow::{Context, Result, bail};
use cases::{Case, Outcomes};
use metric::{Behind, Gain, Metric};
use serde::Serialize;
use std::collections::BTreeSet;

const MATRIX: &str = include_str!("../data/matrix.tsv");
const BASE: &str = "eevdf";
const OURS: &str = "roost";
/// Points that ours may be behind the base.
const BEHIND: f64 = 2.0;

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

    /// How much better its metric is under ours than under the base. None: it was not run.
    fn gain(&self, outcomes: &Outcomes) -> Option<Gain> {
        let of = |policy| outcomes.values(self.case(policy), self.metric).ok();
        Some(self.metric.gain(&of(BASE)?, &of(OURS)?))
    }
}

/// A machine and a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Square {
    pub machine: &'static str,
    pub workload: &'static str,
    pub metric: String,
    /// Per cent better than the base. None: it could not be run.
    pub gain: Option<Gain>,
    /// How far ours is behind the base, if that is more than it may be.
    pub behind: Option<Behind>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Matrix {
    /// Runs of each cell.
    pub seeds: u64,
    pub short: bool,
    /// Parameters with other values than in params.tsv.
    pub params: Vec<String>,
    /// The worst first.
    pub squares: Vec<Square>,
}

/// Runs the matrix. Errors: matrix.tsv is malformed.
pub fn matrix(effort: &Effort) -> Result<Matrix> {
    let cells = cells()?;
    let of = |cell: &Cell| [BASE, OURS].map(|policy| cell.case(policy));
    let cases: BTreeSet<Case> = cells.iter().flat_map(of).collect();
    let outcomes = Outcomes::of(&cases, effort)?;
    let square = |cell: &Cell| {
        let gain = cell.gain(&outcomes);
        Square {
            machine: cell.machine,
            workload: cell.load,
            metric: cell.metric.to_string(),
            gain,
            behind: gain.and_then(|gain| gain.behind(BEHIND)),
        }
    };
    let mut squares: Vec<Square> = cells.iter().map(square).collect();
    squares.sort_by(|a, b| b.excess().total_cmp(&a.excess()));
    Ok(Matrix {
        seeds: effort.runs(),
        short: effort.short,
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

impl Square {
    /// How many points ours is behind. A cell without our figure is the worst.
    fn excess(&self) -> f64 {
        self.gain.map_or(f64::INFINITY, |gain| -gain.value)
    }

    fn verdict(&self) -> String {
        let told = self.behind.map(|behind| {
            let undecided = if behind.undecided { " (undecided)" } else { "" };
            format!("{:.1}{undecided}", behind.points)
        });
        told.unwrap_or_default()
    }

    fn cells(&self) -> Vec<String> {
        let none = || "-".to_string();
        let percent = |gain: Gain| format!("{:+.1}%", gain.value);
        let error = self.gain.and_then(|gain| gain.error);
        vec![
            self.machine.to_string(),
            self.workload.to_string(),
            self.metric.clone(),
            self.gain.map_or_else(none, percent),
            error.map_or_else(none, |error| format!("{error:.1}")),
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
            "roost is behind",
        ];
        let rows: Vec<Vec<String>> = self.squares.iter().map(Square::cells).collect();
        let heads: Vec<String> = heads.map(String::from).into();
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
        let behind: Vec<Behind> = self.squares.iter().filter_map(|s| s.behind).collect();
        let decided = behind.iter().filter(|b| !b.undecided).count();
        format!(
            "Of {} cells roost is more than {BEHIND} points behind eevdf in {} ({decided} decided).\n",
            self.squares.len(),
            behind.len()
        )
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
