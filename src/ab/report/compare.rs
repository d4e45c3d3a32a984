// SPDX-License-Identifier: GPL-2.0-only
//! Result files side by side. Runs of two files are not paired: there is no verdict between them.
//! Each verdict is that of its file: no correction for the number of files.

use super::between::{self, Between, between};
use super::closing::{Mean, means_of_files, means_text};
use super::text::title;
use super::{
    MetricReport, Report, command, direction_text, effect, least_effect, level, summary, taken,
    verdict,
};
use crate::ab::stats::verdict::{Direction, Judged};
use anyhow::{Result, ensure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

const NOT_CORRECTED: &str = "note: each file is judged by itself, without a correction for the number of files: of twenty files without a difference one shows one by chance\n";

/// As data, which is also its JSON.
#[derive(Debug, Serialize)]
pub struct Beside<'a> {
    /// The variant that the others are compared with, in each file.
    pub base: &'a str,
    pub files: Vec<FileBeside<'a>>,
    /// The metrics of all files.
    pub metrics: Vec<MetricBeside<'a>>,
    /// Geometric means, if each file is of another workload.
    pub means: Vec<Mean>,
    /// What changed since the first file.
    pub between: Vec<Between<'a>>,
    #[serde(skip)]
    reports: &'a [Report<'a>],
}

#[derive(Debug, Serialize)]
pub struct FileBeside<'a> {
    pub file: &'a str,
    pub command: &'a [String],
    pub seed: u64,
    pub blocks: usize,
    pub host: &'a BTreeMap<String, String>,
    /// What spoils it.
    pub warnings: &'a [String],
}

#[derive(Debug, Serialize)]
pub struct MetricBeside<'a> {
    pub metric: &'a str,
    pub unit: &'static str,
    pub better: Direction,
    pub variants: Vec<VariantBeside<'a>>,
}

#[derive(Debug, Serialize)]
pub struct VariantBeside<'a> {
    pub variant: &'a str,
    /// In the order of the files; None: that file lacks the metric or variant.
    pub judged: Vec<Option<&'a Judged>>,
}

/// Fails if the files have different first variants, or a metric with different directions.
pub fn compare<'a>(names: &'a [String], reports: &'a [Report]) -> Result<Beside<'a>> {
    let first = &reports[0];
    for (name, report) in names.iter().zip(reports) {
        ensure!(
            report.plan.variants[0] == first.plan.variants[0],
            "{name} compares with {}, and {} with {}: none of their rows can be shown side by side",
            report.plan.variants[0],
            names[0],
            first.plan.variants[0]
        );
    }
    let metrics = metrics(names, reports)?;
    Ok(Beside {
        reports,
        means: means_of_files(reports),
        between: between(names, reports),
        base: &first.plan.variants[0],
        files: names.iter().zip(reports).map(file).collect(),
        metrics: metrics.into_iter().map(|m| beside(m, reports)).collect(),
    })
}

/// Each metric of all files once, from the first file that has it.
fn metrics<'a>(names: &[String], reports: &'a [Report]) -> Result<Vec<&'a MetricReport>> {
    let mut found: Vec<(&str, &MetricReport)> = Vec::new();
    for (name, report) in names.iter().zip(reports) {
        for metric in &report.metrics {
            let known = found.iter().find(|(_, m)| m.metric == metric.metric);
            let Some((other, known)) = known else {
                found.push((name, metric));
                continue;
            };
            ensure!(
                metric.better == known.better,
                "of {} {} in {name}, and {} in {other}: they cannot be shown side by side",
                metric.metric,
                direction_text(metric.better),
                direction_text(known.better)
            );
        }
    }
    Ok(found.into_iter().map(|(_, metric)| metric).collect())
}

fn file<'a>((name, report): (&'a String, &'a Report)) -> FileBeside<'a> {
    FileBeside {
        file: name,
        command: &report.plan.command,
        seed: report.plan.seed,
        blocks: report.blocks,
        host: &report.plan.host,
        warnings: &report.warnings,
    }
}

/// The variants of all files, without the common first one.
fn beside<'a>(metric: &'a MetricReport, reports: &'a [Report]) -> MetricBeside<'a> {
    let mut names: Vec<&str> = Vec::new();
    for name in reports.iter().flat_map(|r| &r.plan.variants[1..]) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let variants = names.into_iter().map(|variant| VariantBeside {
        variant,
        judged: reports
            .iter()
            .map(|r| judged(r, &metric.metric, variant))
            .collect(),
    });
    MetricBeside {
        metric: &metric.metric,
        unit: metric.unit,
        better: metric.better,
        // A file may have the variant but not the metric.
        variants: variants
            .filter(|v| v.judged.iter().any(Option::is_some))
            .collect(),
    }
}

fn judged<'a>(report: &'a Report, metric: &str, variant: &str) -> Option<&'a Judged> {
    let metric = report.metrics.iter().find(|m| m.metric == metric)?;
    let variant = metric.variants.iter().find(|v| v.variant == variant)?;
    variant.judged.as_ref()
}

impl Beside<'_> {
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (file, report) in self.files.iter().zip(self.reports) {
            let (command, summary) = (command(report.plan), summary(report));
            let _ = writeln!(text, "{}: {command}; {summary}", file.file);
            let _ = writeln!(text, "  {}", taken(report.plan));
            for warning in file.warnings {
                let _ = writeln!(text, "  warning: {warning}");
            }
        }
        if self.files.len() > 1 {
            text += NOT_CORRECTED;
        }
        for metric in &self.metrics {
            let title = title(metric.metric, metric.unit, metric.better);
            let _ = write!(text, "\n{title}, of {}\n", self.base);
            for variant in &metric.variants {
                let _ = writeln!(text, "  {}", variant.variant);
                for (file, judged) in self.files.iter().zip(&variant.judged) {
                    let said = judged.map_or("-".to_string(), |judged| said(judged, metric.unit));
                    let _ = writeln!(text, "    {said:<64} {}", file.file);
                }
            }
        }
        text += &means_text(&self.means);
        text + &between::text(&self.between, &self.files, self.reports)
    }
}

fn said(judged: &Judged, unit: &str) -> String {
    let least = match least_effect(judged, unit) {
        none if none.is_empty() => none,
        least => format!("; least effect {least}"),
    };
    let verdict = verdict(judged, unit);
    let level = level(judged, judged.blocks);
    format!(
        "{:<25} at {level:<8} {verdict}{least}",
        effect(judged, unit)
    )
}
