// SPDX-License-Identifier: GPL-2.0-only
//! Result files side by side. Runs of two files are not paired, so that nothing is tested between them: what each says stands beside the other.

use super::text::title;
use super::{Report, effect, summary, verdict_name};
use crate::ab::stats::verdict::{Direction, Judged};
use anyhow::{Result, ensure};
use serde::Serialize;
use std::fmt::Write;

/// As data, which is also its JSON.
#[derive(Debug, Serialize)]
pub struct Beside<'a> {
    /// What all others are compared with, in each file.
    pub base: &'a str,
    pub files: Vec<FileBeside<'a>>,
    /// Of the first file.
    pub metrics: Vec<MetricBeside<'a>>,
}

#[derive(Debug, Serialize)]
pub struct FileBeside<'a> {
    pub file: &'a str,
    pub command: &'a [String],
    pub seed: u64,
    pub blocks: usize,
    #[serde(skip)]
    summary: String,
}

#[derive(Debug, Serialize)]
pub struct MetricBeside<'a> {
    pub metric: &'a str,
    pub unit: &'static str,
    pub better: Direction,
    pub variants: Vec<VariantBeside<'a>>,
    #[serde(skip)]
    title: String,
}

#[derive(Debug, Serialize)]
pub struct VariantBeside<'a> {
    pub variant: &'a str,
    /// In the order of the files; None: that file has no such metric or variant.
    pub judged: Vec<Option<&'a Judged>>,
}

/// Errors: they are compared with different things.
pub fn compare<'a>(names: &'a [String], reports: &'a [Report]) -> Result<Beside<'a>> {
    let first = &reports[0];
    for (name, report) in names.iter().zip(reports) {
        ensure!(
            report.plan.variants[0] == first.plan.variants[0],
            "{name} compares with {}, and {} with {}: nothing of them stands side by side",
            report.plan.variants[0],
            names[0],
            first.plan.variants[0]
        );
    }
    let file = |(name, report): (&'a String, &'a Report)| FileBeside {
        file: name,
        command: &report.plan.command,
        seed: report.plan.seed,
        blocks: report.blocks,
        summary: format!("{}; {}", super::command(report.plan), summary(report)),
    };
    let metrics = first.metrics.iter().map(|metric| MetricBeside {
        metric: &metric.metric,
        unit: metric.unit,
        better: metric.better,
        variants: metric.variants[1..]
            .iter()
            .map(|variant| VariantBeside {
                variant: &variant.variant,
                judged: reports
                    .iter()
                    .map(|r| judged(r, &metric.metric, &variant.variant))
                    .collect(),
            })
            .collect(),
        title: title(metric),
    });
    Ok(Beside {
        base: &first.plan.variants[0],
        files: names.iter().zip(reports).map(file).collect(),
        metrics: metrics.collect(),
    })
}

fn judged<'a>(report: &'a Report, metric: &str, variant: &str) -> Option<&'a Judged> {
    let metric = report.metrics.iter().find(|m| m.metric == metric)?;
    let variant = metric.variants.iter().find(|v| v.variant == variant)?;
    variant.judged.as_ref()
}

impl Beside<'_> {
    pub fn text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            let _ = writeln!(text, "{}: {}", file.file, file.summary);
        }
        for metric in &self.metrics {
            let _ = write!(text, "\n{}, of {}\n", metric.title, self.base);
            for variant in &metric.variants {
                let _ = writeln!(text, "  {}", variant.variant);
                for (file, judged) in self.files.iter().zip(&variant.judged) {
                    let said = judged.map_or("-".to_string(), |judged| {
                        format!("{:<25} {}", effect(judged), verdict_name(judged.verdict))
                    });
                    let _ = writeln!(text, "    {said:<40} {}", file.file);
                }
            }
        }
        text
    }
}
