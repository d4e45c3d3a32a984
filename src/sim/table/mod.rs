// SPDX-License-Identifier: GPL-2.0-only
//! Published results beside simulated ones, row by row.
//!
//! `rows`: the published rows; `cells`: what represents them here; `cases`: what is run;
//! `metric`: what is read of a run; `verdict`: whether it agrees; `score`: how many rows agree, and
//! for how many "always 0 %" would; `record`: the scores of the tables at full length; `beside`:
//! our own choice beside the sources'; `matrix`: the same on machines and workloads that no source
//! has; `sensitivity`: which verdicts depend on which parameter; `frozen`: since when the model is
//! unchanged; `predicted`: effects from before they were published; `show`: how tables are printed.

mod beside;
mod cases;
mod cells;
mod frozen;
mod matrix;
mod metric;
mod predicted;
mod record;
mod rows;
mod score;
mod sensitivity;
mod show;
mod verdict;

pub use beside::Compared;
pub use cases::Effort;
pub use frozen::Frozen;
pub use matrix::{MatrixPlan, matrix};
pub use metric::change;
pub use record::Record;
pub use score::Scores;
#[cfg(feature = "internals")]
pub use score::UNDECIDED_TOO;
pub use sensitivity::sensitivity;
pub use show::document;
pub use verdict::{Demand, Verdict};

use anyhow::{Context, Result, ensure};
use beside::Wanted;
use cases::{Case, Outcomes};
use cells::{Cell, Cells};
use metric::mean;
use predicted::prediction;
use rows::{Row, Use, rows};
use serde::Serialize;
use std::collections::BTreeSet;

const NOTES: &str = include_str!("../data/notes.tsv");
/// All sources.
pub const ALL: &str = "all";

/// Which tables to make.
#[derive(Clone, Debug)]
pub struct TablePlan {
    /// A source such as 003, or ALL.
    pub source: String,
    pub effort: Effort,
    /// Show our own choice too.
    pub beside: bool,
    /// Show the changes of the model since it was frozen.
    pub changes: bool,
    /// Instead of runs, take the effects as they were predicted.
    pub predicted: bool,
}

/// A figure and its standard error.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Figure {
    pub value: f64,
    pub error: Option<f64>,
}

/// A published row and its simulated counterpart. Effects are changes of the metric from base to
/// variant, percent.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    pub source: &'static str,
    pub row: &'static str,
    pub machine: &'static str,
    pub workload: &'static str,
    pub metric: &'static str,
    pub unit: &'static str,
    /// lower, higher or none.
    pub better: &'static str,
    #[serde(rename = "use")]
    pub used: &'static str,
    #[serde(skip)]
    message: &'static str,
    #[serde(skip)]
    used_as: Use,
    #[serde(skip)]
    in_source: bool,
    #[serde(skip)]
    run: [&'static str; 4],
    #[serde(skip)]
    demand: Demand,
    /// None: no figure was published, which means no effect.
    pub published: Option<Figure>,
    pub published_base: Option<f64>,
    pub published_variant: Option<f64>,
    pub simulated: Option<Figure>,
    /// The base in the published unit. None: that has no counterpart here, or no figure was
    /// published.
    pub level: Option<f64>,
    /// In the simulator's unit.
    pub simulated_base: Option<f64>,
    pub simulated_variant: Option<f64>,
    /// Simulated minus published, points.
    pub difference: Option<f64>,
    pub verdict: Verdict,
    /// Pairs of runs. 0: not modelled.
    pub runs: u64,
    /// The true effect may be on either side of a limit; this many runs should decide it.
    pub undecided_seeds: Option<u64>,
    /// Why it is not modelled.
    pub why: Option<String>,
    /// What is known of why the verdict is not `ok`.
    pub notes: Vec<&'static str>,
}

/// The rows of one source and their results.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    pub source: &'static str,
    pub message: &'static str,
    /// Runs of each case, and the most of cases with short runs.
    pub seeds: u64,
    pub most_seeds: u64,
    pub short: bool,
    pub predicted: bool,
    pub frozen: Frozen,
    /// The changes since, if they are asked for.
    #[serde(skip)]
    pub log: Option<String>,
    /// Parameters with other values than in params.tsv.
    pub params: Vec<String>,
    /// Rows of the source itself, and of other messages.
    pub rows: Vec<Line>,
    pub others: Vec<Line>,
    /// Rows that do not count: other schedulers, tails, sentences about many runs.
    pub apart: Vec<Line>,
    /// Of the rows of the source, of those to which nothing was fitted, and of other messages.
    /// None: there are no such rows, or the runs are short.
    pub score: Option<Scores>,
    pub score_unfitted: Option<Scores>,
    pub score_others: Option<Scores>,
    pub beside: Vec<Compared>,
}

/// Published rows and their cells, or why there is none.
struct Rows(Vec<(Row, Result<Cell, String>)>);

impl Rows {
    /// Errors: there is no such source; a table is malformed.
    fn of(source: &str) -> Result<Rows> {
        let (all, cells) = (rows()?, Cells::read()?);
        let mut sources: Vec<&str> = all.iter().map(|r| r.source).collect();
        sources.dedup();
        ensure!(
            source == ALL || sources.contains(&source),
            "there is no table {source}; there are: {} {ALL}",
            sources.join(" ")
        );
        let of = all
            .into_iter()
            .filter(|r| [ALL, r.source].contains(&source));
        let with_cell = |row: Row| {
            let cell = cells.of(&row);
            let cell = cell.with_context(|| format!("{} {}", row.source, row.name))?;
            Ok((row, cell))
        };
        Ok(Rows(of.map(with_cell).collect::<Result<_>>()?))
    }

    fn that_count(mut self) -> Rows {
        self.0.retain(|(row, _)| row.used.counts());
        self
    }

    fn machines(&self) -> BTreeSet<&'static str> {
        let cells = self.0.iter().filter_map(|(_, cell)| cell.as_ref().ok());
        cells.map(|cell| cell.machine).collect()
    }

    fn cases(&self) -> BTreeSet<Case> {
        let cells = self.0.iter().filter_map(|(_, cell)| cell.as_ref().ok());
        cells
            .flat_map(|cell| cell.cases(&[cell.base, cell.variant]))
            .collect()
    }

    fn lines(&self, outcomes: &Outcomes) -> Result<Vec<Line>> {
        let lines = self.0.iter();
        let of = |(row, cell): &(Row, _)| line(row, simulated(row, cell, outcomes));
        lines.map(of).collect()
    }

    /// Errors: the source has no prediction, or that is malformed.
    fn predicted(&self, source: &str) -> Result<Vec<Line>> {
        let prediction = prediction(source)?;
        let of = |(row, _): &(Row, _)| {
            let predicted = prediction.get(row.name);
            let (effect, runs) = *predicted.ok_or("not predicted")?;
            Ok(Simulated {
                effect,
                runs,
                ..Simulated::default()
            })
        };
        self.0
            .iter()
            .map(|known| line(&known.0, of(known)))
            .collect()
    }
}

/// Rows that cannot be run: source, row, and why. Errors: a table is malformed, or does not know a
/// row; a workload is invalid.
#[cfg(feature = "internals")]
pub fn not_modelled() -> Result<Vec<(&'static str, &'static str, String)>> {
    let mut all = Vec::new();
    for (row, cell) in Rows::of(ALL)?.0 {
        let why = match cell {
            Err(why) => Some(why),
            Ok(cell) => {
                let cases = cell.cases(&[cell.base, cell.variant]);
                let whys = cases.iter().map(|case| case.not_ready());
                whys.collect::<Result<Vec<_>>>()?
                    .into_iter()
                    .flatten()
                    .next()
            }
        };
        all.extend(why.map(|why| (row.source, row.name, why)));
    }
    Ok(all)
}

/// Runs what the rows ask for. Errors: there is no such source; a table is malformed.
pub fn tables(plan: &TablePlan) -> Result<Vec<Table>> {
    let rows = Rows::of(&plan.source)?;
    if plan.predicted {
        return tables_of(plan, &rows.predicted(&plan.source)?, |_| Vec::new());
    }
    let beside = match plan.beside {
        true => beside::wanted(&rows.0, &Cells::read()?)?,
        false => Vec::new(),
    };
    let mut cases = rows.cases();
    cases.extend(beside.iter().flat_map(Wanted::cases));
    let (outcomes, _) = Outcomes::of(&cases, &plan.effort, &[])?;
    tables_of(plan, &rows.lines(&outcomes)?, |source| {
        let of = beside.iter().filter(|w| w.source == source);
        of.map(|w| w.compared(&outcomes)).collect()
    })
}

/// One table for each source of the lines.
fn tables_of(
    plan: &TablePlan,
    lines: &[Line],
    beside: impl Fn(&str) -> Vec<Compared>,
) -> Result<Vec<Table>> {
    let frozen = Frozen::read()?;
    let table = |lines: &[Line]| {
        let source = lines[0].source;
        let (counted, apart): (Vec<Line>, _) = lines.iter().cloned().partition(Line::counts);
        let (rows, others): (Vec<Line>, Vec<Line>) = counted.into_iter().partition(|l| l.in_source);
        let score = |lines: &[Line], fitted: bool| {
            let lines = lines.iter().filter(|l| fitted || !l.calibrates());
            Scores::of(lines).filter(|_| !plan.effort.short)
        };
        Table {
            source,
            message: lines[0].message,
            seeds: plan.effort.runs(),
            most_seeds: plan.effort.most(),
            short: plan.effort.short,
            predicted: plan.predicted,
            frozen: frozen.clone(),
            log: plan.changes.then(|| frozen.log(source)),
            params: plan.effort.params.clone(),
            score: score(&rows, true),
            score_unfitted: score(&rows, false),
            score_others: score(&others, true),
            rows,
            others,
            apart,
            beside: beside(source),
        }
    };
    let of_sources = lines.chunk_by(|a, b| a.source == b.source);
    Ok(of_sources.map(table).collect())
}

impl Line {
    /// True if a parameter was fitted to the row.
    fn calibrates(&self) -> bool {
        self.used_as == Use::Calibrates
    }

    fn counts(&self) -> bool {
        self.used_as.counts()
    }
}

/// What the model says of a row.
#[derive(Default)]
struct Simulated {
    effect: Figure,
    runs: u64,
    /// The means of base and variant, and the base in the published unit.
    means: Option<(f64, f64)>,
    level: Option<f64>,
}

fn simulated(
    row: &Row,
    cell: &Result<Cell, String>,
    outcomes: &Outcomes,
) -> Result<Simulated, String> {
    let cell = cell.as_ref().map_err(String::clone)?;
    let (base, variant) = outcomes.pairs(cell, cell.base, cell.variant)?;
    Ok(Simulated {
        effect: change(&base, &variant),
        runs: base.len() as u64,
        means: Some((mean(&base), mean(&variant))),
        level: cell.level(row, mean(&base)),
    })
}

fn line(row: &Row, simulated: Result<Simulated, String>) -> Result<Line> {
    let known = simulated.as_ref().ok();
    let runs = known.map_or(0, |s| s.runs);
    let effect = known.map(|s| s.effect);
    let means = known.and_then(|s| s.means);
    let demand = Demand::of(row);
    let sealed = row.used == Use::Sealed;
    let verdict = match effect {
        None => Verdict::NotModelled,
        Some(_) if sealed => Verdict::Sealed,
        Some(effect) => demand.judge(effect, runs),
    };
    let undecided = effect.filter(|_| !sealed);
    let undecided_seeds = undecided.and_then(|e| demand.undecided(e, runs));
    let published = row.effect.map(|value| Figure {
        value,
        error: row.error,
    });
    Ok(Line {
        source: row.source,
        row: row.name,
        machine: row.machine,
        workload: row.workload,
        metric: row.metric,
        unit: row.unit,
        better: row.better,
        used: row.used.name(),
        message: row.message,
        used_as: row.used,
        in_source: row.in_source(),
        run: row.run(),
        demand,
        published,
        published_base: row.base_value,
        published_variant: row.variant_value,
        simulated: effect,
        runs,
        level: known.and_then(|s| s.level),
        simulated_base: means.map(|m| m.0),
        simulated_variant: means.map(|m| m.1),
        difference: undecided.map(|e| e.value - row.effect.unwrap_or(0.0)),
        verdict,
        undecided_seeds,
        why: simulated.err(),
        notes: match verdict {
            Verdict::NotModelled | Verdict::Underpowered | Verdict::Sealed => Vec::new(),
            Verdict::Ok if undecided_seeds.is_none() => Vec::new(),
            _ => notes(row)?,
        },
    })
}

/// All notes in notes.tsv that name the row.
fn notes(row: &Row) -> Result<Vec<&'static str>> {
    let mut notes = Vec::new();
    for line in NOTES.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let &[source, name, note] = &cells[..] else {
            anyhow::bail!("notes.tsv: {line:?} where 3 columns were expected");
        };
        let named = match name.strip_suffix('*') {
            Some(start) => row.name.starts_with(start),
            None => row.name == name,
        };
        if source == row.source && named {
            notes.push(note);
        }
    }
    Ok(notes)
}
