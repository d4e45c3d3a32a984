// SPDX-License-Identifier: GPL-2.0-only
//! The result of a suite: the comparisons of all workloads, corrected together, and sums or means
//! of five runs as the source reports them.

use super::{Report, effect, number, verdict_name};
use crate::ab::result::Recorded;
use crate::ab::stats::plan::Plan;
use crate::ab::stats::verdict::{Judged, Rule, Verdict};
use crate::ab::suite::Five;
use anyhow::Result;
use serde::Serialize;
use std::fmt::Write;

/// Runs that the source combines.
const RUNS: usize = 5;

#[derive(Clone, Debug, Serialize)]
pub struct Closing {
    /// Chance of reporting any difference in the suite if there is none.
    pub alpha: f64,
    pub rows: Vec<Row>,
    pub fives: Vec<Fives>,
    /// They are not in the table.
    pub failed: Vec<Failed>,
}

/// A workload that did not run to its end.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    pub workload: String,
    pub error: String,
}

/// A comparison of a workload.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub workload: String,
    pub metric: String,
    pub variant: String,
    #[serde(skip)]
    unit: &'static str,
    /// As in the workload's own report, which is corrected for all comparisons of the suite.
    pub judged: Judged,
    /// This many blocks cannot show a difference among this many comparisons.
    pub too_few: bool,
}

/// The first counted runs of each variant, combined as the source does.
#[derive(Clone, Debug, Serialize)]
pub struct Fives {
    pub workload: String,
    pub metric: String,
    /// Number of runs, five at most.
    pub runs: usize,
    pub mean: bool,
    /// By variant.
    pub values: Vec<(String, f64)>,
}

/// A workload of the suite with its runs.
pub struct Part<'a> {
    pub name: &'a str,
    pub five: Option<Five>,
    pub recorded: &'a Recorded,
}

impl Closing {
    pub fn new(parts: &[Part]) -> Result<Closing> {
        let mut rows = Vec::new();
        let mut fives = Vec::new();
        for part in parts {
            let report = Report::new(part.recorded)?;
            rows.extend(rows_of(part.name, &report));
            fives.extend(
                part.five
                    .and_then(|five| fives_of(part.name, five, &report)),
            );
        }
        let rule = parts.first().map(|p| p.recorded.header.rule);
        let rule = rule.unwrap_or(Rule::new(Plan::Fixed(1)));
        let alpha = rule.alpha;
        Ok(Closing {
            alpha,
            rows: marked(rows, &rule),
            fives,
            failed: Vec::new(),
        })
    }

    pub fn text(&self) -> String {
        let mut text = match self.rows.len() {
            0 => String::new(),
            _ => self.table(),
        };
        for failed in &self.failed {
            let _ = writeln!(text, "  {} failed: {}", failed.workload, failed.error);
        }
        for fives in &self.fives {
            text += &fives.text();
        }
        text
    }

    fn table(&self) -> String {
        let mut text = format!(
            "\nThe suite: {} comparisons, corrected together (over workloads, variants and metrics): if nothing differs, at most {} % of suites report a difference\n",
            self.rows.len(),
            (self.alpha * 1e4).round() / 1e2
        );
        let width = |names: &mut dyn Iterator<Item = &str>| {
            names.map(|n| n.chars().count()).max().unwrap_or(0)
        };
        let workload = width(&mut self.rows.iter().map(|r| r.workload.as_str()));
        let variant = width(&mut self.rows.iter().map(|r| r.variant.as_str()));
        for row in &self.rows {
            let _ = writeln!(
                text,
                "  {:workload$} {:variant$}  {:<25} {:>8.4}  {:<13} {}{}",
                row.workload,
                row.variant,
                effect(&row.judged, row.unit),
                row.judged.p_adjusted,
                verdict_name(row.judged.verdict),
                row.metric,
                row.remark()
            );
        }
        text
    }
}

impl Row {
    fn remark(&self) -> String {
        match self.too_few {
            true => format!(": {} blocks are too few", self.judged.blocks),
            false => String::new(),
        }
    }
}

fn rows_of(workload: &str, report: &Report) -> Vec<Row> {
    let mut rows = Vec::new();
    for metric in &report.metrics {
        for variant in &metric.variants {
            rows.extend(variant.judged.as_ref().map(|judged| Row {
                workload: workload.to_string(),
                metric: metric.metric.clone(),
                variant: variant.variant.clone(),
                unit: metric.unit,
                judged: judged.clone(),
                too_few: false,
            }));
        }
    }
    rows
}

/// Marks the rows that could show no difference, whatever was measured.
fn marked(mut rows: Vec<Row>, rule: &Rule) -> Vec<Row> {
    let can_tell = rule.plan.can_tell(rows.len().max(rule.suite), rule.alpha);
    for row in &mut rows {
        row.too_few = row.judged.verdict == Verdict::Inconclusive && !can_tell;
    }
    rows
}

/// For the workload's first metric. None: some variant has no run yet.
fn fives_of(workload: &str, five: Five, report: &Report) -> Option<Fives> {
    let metric = report.metrics.first()?;
    let runs = metric
        .variants
        .iter()
        .map(|v| v.runs.len())
        .min()?
        .min(RUNS);
    let mean = five == Five::Mean;
    let value = |values: &[(usize, f64)]| {
        let sum: f64 = values[..runs].iter().map(|(_, value)| value).sum();
        if mean { sum / runs as f64 } else { sum }
    };
    (runs > 0).then(|| Fives {
        workload: workload.to_string(),
        metric: metric.metric.clone(),
        runs,
        mean,
        values: metric
            .variants
            .iter()
            .map(|v| (v.variant.clone(), value(&v.runs)))
            .collect(),
    })
}

impl Fives {
    /// The first variant is 100 %, as in the source.
    fn text(&self) -> String {
        let how = if self.mean { "mean" } else { "sum" };
        let mut text = format!(
            "\n{}: {how} of the first {} runs, {}\n",
            self.workload, self.runs, self.metric
        );
        let width = self.values.iter().map(|(v, _)| v.chars().count()).max();
        let width = width.unwrap_or(0);
        let base = self.values.first().map_or(0.0, |(_, value)| *value);
        for (variant, value) in &self.values {
            let percent = match base == 0.0 {
                true => "-".to_string(),
                false => format!("{:.1} %", 100.0 * value / base),
            };
            let _ = writeln!(
                text,
                "  {variant:width$} {:>12} {percent:>9}",
                number(*value)
            );
        }
        text
    }
}
