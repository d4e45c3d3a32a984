// SPDX-License-Identifier: GPL-2.0-only
//! The result of a suite: the comparisons of all workloads, corrected together.

use super::{MetricReport, Report, effect, percent, ratio_text, verdict_name};
use crate::ab::stats::pairs::Scale;
use crate::ab::stats::sample::mean;
use crate::ab::stats::verdict::{Direction, Judged, Verdict};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// What the means of variants are.
pub const MEANS: &str = "Geometric mean of the changes, one of each workload (its first metric); less is better; not tested";

#[derive(Clone, Debug, Serialize)]
pub struct Closing {
    /// Chance of reporting any difference in the suite if there is none.
    pub alpha: f64,
    pub rows: Vec<Row>,
    /// In the order of the variants.
    pub means: Vec<Mean>,
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

/// The geometric mean of a variant's ratios to the first variant, one for each workload: that of
/// its first metric, inverted if higher is better. So less than 1 is better. It is not tested.
#[derive(Clone, Debug, Serialize)]
pub struct Mean {
    pub variant: String,
    pub ratio: f64,
    /// Those with a ratio. A difference, as where a value is 0, has none.
    pub workloads: usize,
}

impl Closing {
    pub fn new(reports: &[Report], failed: Vec<Failed>) -> Closing {
        Closing {
            alpha: reports.first().map_or(0.0, |r| r.plan.rule.alpha),
            rows: rows_of(reports),
            means: means_of(reports),
            failed,
        }
    }

    pub fn text(&self) -> String {
        self.title() + &self.table() + &self.notes()
    }

    /// What is true of all of its comparisons, without these.
    pub fn notes(&self) -> String {
        let mut text = String::new();
        for failed in &self.failed {
            let _ = writeln!(text, "  {} failed: {}", failed.workload, failed.error);
        }
        text + &means_text(&self.means)
    }

    pub fn title(&self) -> String {
        match self.rows.len() {
            0 => String::new(),
            n => format!(
                "\nThe suite: {n} comparisons, corrected together (over workloads, variants and metrics): if nothing differs, at most {} of suites report a difference\n",
                percent(self.alpha)
            ),
        }
    }

    fn table(&self) -> String {
        let mut text = String::new();
        let workload = width(self.rows.iter().map(|r| &r.workload));
        let variant = width(self.rows.iter().map(|r| &r.variant));
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

/// The table of these means. Empty if there are none.
pub fn means_text(means: &[Mean]) -> String {
    if means.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{MEANS}\n");
    let variant = width(means.iter().map(|m| &m.variant));
    for mean in means {
        let _ = writeln!(
            text,
            "  {:variant$} {:>9}  {} workloads",
            mean.variant,
            ratio_text(mean.ratio),
            mean.workloads
        );
    }
    text
}

/// Characters of the longest name.
fn width<'a>(names: impl Iterator<Item = &'a String>) -> usize {
    names.map(|n| n.chars().count()).max().unwrap_or(0)
}

impl Row {
    fn remark(&self) -> String {
        match self.too_few {
            true => format!(": {} blocks are too few", self.judged.blocks),
            false => String::new(),
        }
    }
}

/// Marks the rows that could show no difference, whatever was measured.
fn rows_of(reports: &[Report]) -> Vec<Row> {
    let mut rows = Vec::new();
    for report in reports {
        for metric in &report.metrics {
            rows.extend(metric.judged().map(|(variant, judged)| Row {
                workload: report.plan.workload.clone().unwrap_or_default(),
                metric: metric.metric.clone(),
                variant: variant.to_string(),
                unit: metric.unit,
                judged: judged.clone(),
                too_few: judged.verdict == Verdict::Inconclusive,
            }));
        }
    }
    let all = rows.len();
    let can_tell = reports.first().is_none_or(|report| {
        let rule = report.plan.rule;
        rule.plan.can_tell(all.max(rule.suite), rule.alpha)
    });
    rows.iter_mut().for_each(|row| row.too_few &= !can_tell);
    rows
}

/// Those of files, unless two have one workload: they would be no mean of workloads.
pub fn means_of_files(reports: &[Report]) -> Vec<Mean> {
    let of = |r: &Report| (r.plan.workload.clone(), r.plan.command.clone());
    let workloads: BTreeSet<_> = reports.iter().map(of).collect();
    match workloads.len() == reports.len() {
        true => means_of(reports),
        false => Vec::new(),
    }
}

/// Of variants with two workloads or more.
fn means_of(reports: &[Report]) -> Vec<Mean> {
    let mean_of = |variant: &String| {
        let first = reports.iter().filter_map(|report| report.metrics.first());
        let logs: Vec<f64> = first.filter_map(|metric| log_of(metric, variant)).collect();
        (logs.len() > 1).then(|| Mean {
            variant: variant.clone(),
            ratio: mean(&logs).exp(),
            workloads: logs.len(),
        })
    };
    let variants = reports.first().map_or(&[][..], |r| &r.plan.variants[1..]);
    variants.iter().filter_map(mean_of).collect()
}

/// Logarithm of the ratio to the first variant, below 0 where it is better.
fn log_of(metric: &MetricReport, variant: &str) -> Option<f64> {
    let (_, judged) = metric.judged().find(|(name, _)| *name == variant)?;
    let log = judged.effect.value.ln();
    (judged.scale == Scale::Ratio && judged.blocks > 0).then_some(match metric.better {
        Direction::Lower => log,
        Direction::Higher => -log,
    })
}
