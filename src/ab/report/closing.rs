// SPDX-License-Identifier: GPL-2.0-only
//! The result of a suite: the comparisons of all workloads, corrected together, and sums or means
//! of five runs as the source reports them.

use super::{
    MetricReport, Report, VariantReport, effect, number, percent, printable, ratio_text,
    verdict_name,
};
use crate::ab::result::Recorded;
use crate::ab::stats::pairs::Scale;
use crate::ab::stats::plan::Plan;
use crate::ab::stats::sample::mean;
use crate::ab::stats::verdict::{Direction, Judged, Rule, Verdict};
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
    /// In the order of the variants.
    pub means: Vec<Mean>,
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

/// The geometric mean of a variant's ratios to the first variant, one for each workload: that of
/// its first metric, inverted if higher is better. So less than 1 is better. It is not tested.
#[derive(Clone, Debug, Serialize)]
pub struct Mean {
    pub variant: String,
    pub ratio: f64,
    /// Those with a ratio. A difference, as where a value is 0, has none.
    pub workloads: usize,
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
        let (mut logs, mut fives) = (Vec::new(), Vec::new());
        for part in parts {
            let report = Report::new(part.recorded)?;
            logs.extend(report.metrics.first().into_iter().flat_map(logs_of));
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
            means: means_of(&logs),
            rows: marked(rows, &rule),
            fives,
            failed: Vec::new(),
        })
    }

    pub fn text(&self) -> String {
        printable(&(self.title() + &self.table() + &self.notes()))
    }

    /// What is true of all of its comparisons, without these.
    pub fn notes(&self) -> String {
        let mut text = String::new();
        for failed in &self.failed {
            let _ = writeln!(text, "  {} failed: {}", failed.workload, failed.error);
        }
        text += &self.means();
        for fives in &self.fives {
            text += &fives.text();
        }
        text
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

    fn means(&self) -> String {
        let mut text = match self.means.len() {
            0 => return String::new(),
            _ => "\nGeometric mean of the changes, one of each workload (its first metric); less is better; not tested\n".to_string(),
        };
        let variant = width(self.means.iter().map(|m| &m.variant));
        for mean in &self.means {
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

/// Logarithms of the ratios of a workload by variant, below 0 where it is better.
fn logs_of(metric: &MetricReport) -> Vec<(String, f64)> {
    let turned = match metric.better {
        Direction::Lower => 1.0,
        Direction::Higher => -1.0,
    };
    let log = |variant: &VariantReport| {
        let judged = variant.judged.as_ref()?;
        let known = judged.scale == Scale::Ratio && judged.blocks > 0;
        known.then(|| (variant.variant.clone(), turned * judged.effect.value.ln()))
    };
    metric.variants.iter().filter_map(log).collect()
}

/// Of variants with two workloads or more.
fn means_of(logs: &[(String, f64)]) -> Vec<Mean> {
    let mut variants: Vec<&String> = Vec::new();
    for (variant, _) in logs {
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    let mean_of = |variant: &String| {
        let own = logs.iter().filter(|(name, _)| name == variant);
        let logs: Vec<f64> = own.map(|(_, log)| *log).collect();
        (logs.len() > 1).then(|| Mean {
            variant: variant.clone(),
            ratio: mean(&logs).exp(),
            workloads: logs.len(),
        })
    };
    variants.into_iter().filter_map(mean_of).collect()
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
        let width = width(self.values.iter().map(|(v, _)| v));
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
