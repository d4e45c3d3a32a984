// SPDX-License-Identifier: GPL-2.0-only
//! The simulated counterpart of a published row. data/cells.tsv says which workload, policies and
//! metric represent the published words.

use super::cases::Case;
use super::metric::Metric;
use super::rows::Row;
use anyhow::{Context, Result, bail, ensure};

pub(super) const CELLS: &str = include_str!("../data/cells.tsv");
/// Applies to any source.
const ANY: &str = "*";
/// There is no counterpart; the note says why.
const NONE: &str = "-";

/// A line of cells.tsv.
#[derive(Clone, Copy, Debug)]
struct Line {
    kind: &'static str,
    source: &'static str,
    published: &'static str,
    ours: &'static str,
    note: &'static str,
}

/// What is compared, and on which machine.
#[derive(Clone, Debug)]
pub struct Cell {
    pub machine: &'static str,
    /// Workloads that run one after the other: a name and PARAM=VALUE settings each.
    pub loads: Vec<&'static str>,
    pub base: &'static str,
    pub variant: &'static str,
    pub metric: Metric,
    /// Counted items of one published run. None: not known.
    pub items: Option<f64>,
}

impl Cell {
    /// The value of a policy in the unit of the row. None: it has no counterpart there.
    pub fn level(&self, row: &Row, value: f64) -> Option<f64> {
        row.base_value?;
        match (self.metric, row.unit) {
            (Metric::Time, "s") => Some(value * self.items? / 1e9),
            (Metric::Rate, "Mops") => Some(value / 1e6),
            (Metric::Quantile(_), "us") | (Metric::BusyCpus, "CPUs") => Some(value),
            (Metric::Migrations | Metric::Switches, "M") => Some(value * self.items? / 1e6),
            (Metric::MigrationsBusy | Metric::SwitchesBusy, "K/s of task clock") => {
                Some(value / 1e3)
            }
            _ => None,
        }
    }

    /// Each of its workloads with each of the policies.
    pub fn cases(&self, policies: &[&'static str]) -> Vec<Case> {
        let of = |&policy| {
            self.loads.iter().map(move |&load| Case {
                machine: self.machine,
                load,
                policy,
            })
        };
        policies.iter().flat_map(of).collect()
    }
}

/// What kind of policy is shown beside a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Our own choice.
    Ours,
    /// One source's idea alone.
    Source,
    Pinned,
    Oracle,
}

/// The whole of cells.tsv.
pub struct Cells(Vec<Line>);

impl Cells {
    /// Errors: a line is malformed.
    pub fn read() -> Result<Cells> {
        let line = |text: &'static str| {
            let cells: Vec<&str> = text.split('\t').collect();
            let &[kind, source, published, ours, note] = &cells[..] else {
                bail!("cells.tsv: {text:?} where 5 columns were expected");
            };
            ensure!(
                ["load", "items", "policy", "metric", "beside"].contains(&kind),
                "cells.tsv: there is no kind {kind}"
            );
            Ok(Line {
                kind,
                source,
                published,
                ours,
                note,
            })
        };
        let lines = CELLS.lines().skip(1).map(line);
        Ok(Cells(lines.collect::<Result<_>>()?))
    }

    /// The cell of a row, or why there is none. Errors: cells.tsv does not know a word of the row.
    pub fn of(&self, row: &Row) -> Result<Result<Cell, String>> {
        let mut why = String::new();
        let mut ours = |kind, published| -> Result<&'static str> {
            let line = self.line(kind, row.source, published)?;
            if line.ours == NONE && why.is_empty() {
                let note = if line.note.is_empty() {
                    "not modelled"
                } else {
                    line.note
                };
                why = format!("{published}: {note}");
            }
            Ok(line.ours)
        };
        let loads = ours("load", row.workload)?;
        let (base, variant) = (ours("policy", row.base)?, ours("policy", row.variant)?);
        let metric = ours("metric", row.metric)?;
        if !why.is_empty() {
            return Ok(Err(why));
        }
        Ok(Ok(Cell {
            machine: row.machine,
            loads: loads.split(';').map(str::trim).collect(),
            base,
            variant,
            metric: Metric::parse(metric).with_context(|| format!("cells.tsv: {metric}"))?,
            items: self.items(row)?,
        }))
    }

    /// Errors: cells.tsv has no number there.
    fn items(&self, row: &Row) -> Result<Option<f64>> {
        let Ok(line) = self.line("items", row.source, row.workload) else {
            return Ok(None);
        };
        let told = || {
            format!(
                "cells.tsv: {} where a number of items was expected",
                line.ours
            )
        };
        line.ours.parse().map(Some).with_context(told)
    }

    fn line(&self, kind: &str, source: &str, published: &str) -> Result<Line> {
        let of = |source: &str| {
            let mut lines = self.0.iter();
            lines.find(|l| (l.kind, l.source, l.published) == (kind, source, published))
        };
        of(source)
            .or_else(|| of(ANY))
            .copied()
            .with_context(|| format!("cells.tsv says nothing of {kind} {source} {published:?}"))
    }

    /// The policies that the rows of a source are compared with. Errors: an unknown kind.
    pub fn beside(&self, source: &str) -> Result<Vec<(Beside, &'static str)>> {
        let of = |l: &&Line| l.kind == "beside" && [ANY, source].contains(&l.source);
        let lines = self.0.iter().filter(of);
        let read = |line: &Line| {
            let what = match line.published {
                "ours" => Beside::Ours,
                "source" => Beside::Source,
                "pinned" => Beside::Pinned,
                "oracle" => Beside::Oracle,
                other => bail!(
                    "cells.tsv: '{other}' is no policy to compare with: ours, source, pinned and oracle are possible"
                ),
            };
            Ok((what, line.ours))
        };
        lines.map(read).collect()
    }
}
