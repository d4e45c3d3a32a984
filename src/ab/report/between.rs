// SPDX-License-Identifier: GPL-2.0-only
//! The same variant in two files: a saved result against a later one. Their runs are not paired, so
//! all that changed between the two times is in the difference, and there is no verdict.

use super::compare::FileBeside;
use super::{MetricReport, Report, percent};
use crate::ab::result::Header;
use crate::ab::stats::Interval;
use crate::ab::stats::unpaired::Unpaired;
use serde::Serialize;
use std::fmt::Write;

/// Each by itself, without a correction.
const LEVEL: f64 = 0.95;

/// A variant of the first file in another one.
#[derive(Debug, Serialize)]
pub struct Between<'a> {
    pub file: &'a str,
    pub metric: &'a str,
    pub variant: &'a str,
    /// How many times as large it is in the other file: the shift of Hodges and Lehmann.
    pub ratio: f64,
    /// At 95 %. None: too few runs.
    pub interval: Option<Interval>,
}

/// What the first file and another one of the same command both have, with values above 0.
pub fn between<'a>(names: &'a [String], reports: &'a [Report]) -> Vec<Between<'a>> {
    let first = &reports[0];
    let mut all = Vec::new();
    let same = |report: &&Report| report.plan.command == first.plan.command;
    let others = names.iter().zip(reports).skip(1);
    for (file, report) in others.filter(|(_, report)| same(report)) {
        for metric in &first.metrics {
            let other = report.metrics.iter().find(|m| m.metric == metric.metric);
            let found = other.map(|other| of_metric(file, metric, other));
            all.extend(found.into_iter().flatten());
        }
    }
    all
}

fn of_metric<'a>(
    file: &'a str,
    metric: &'a MetricReport,
    other: &'a MetricReport,
) -> Vec<Between<'a>> {
    let values = |metric: &MetricReport, variant: &str| -> Option<Vec<f64>> {
        let found = metric.variants.iter().find(|v| v.variant == variant)?;
        let logarithms = found.blocks.iter().map(|v| (*v > 0.0).then(|| v.ln()));
        let logarithms: Option<Vec<f64>> = logarithms.collect();
        logarithms.filter(|values| !values.is_empty())
    };
    let both = |variant: &'a str| {
        let shift = Unpaired::new(&values(metric, variant)?, &values(other, variant)?);
        Some(Between {
            file,
            metric: &metric.metric,
            variant,
            ratio: shift.estimate().exp(),
            interval: shift.interval(LEVEL).map(|i| i.map(f64::exp)),
        })
    };
    let variants = metric.variants.iter().map(|v| v.variant.as_str());
    variants.filter_map(both).collect()
}

/// A table, with what else differs between the files. Empty if they have nothing in common.
pub fn text(all: &[Between], files: &[FileBeside], reports: &[Report]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\nSince {}, {} intervals. Runs are not paired: all that changed meanwhile is in it\n",
        files[0].file,
        percent(LEVEL)
    );
    for row in all {
        let change = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
        let interval = row.interval.map_or(String::new(), |i| {
            format!(" ({} to {})", change(i.low), change(i.high))
        });
        let value = format!("{} %{interval}", change(row.ratio));
        let _ = writeln!(
            text,
            "  {}  {}, {value}  {}",
            row.variant, row.metric, row.file
        );
    }
    for (file, report) in files.iter().zip(reports).skip(1) {
        for what in unlike(reports[0].plan, report.plan) {
            let _ = writeln!(text, "  {}: {what}", file.file);
        }
    }
    text
}

/// Sentences about what else may be the cause.
fn unlike(one: &Header, other: &Header) -> Vec<String> {
    let fact = |plan: &Header, name: &str| plan.host.get(name).cloned().unwrap_or_default();
    let facts = ["kernel", "cpu", "cpus", "mitigations"].map(|name| {
        let (then, now) = (fact(one, name), fact(other, name));
        (name, then, now)
    });
    let version = ("scx_roost", one.version.clone(), other.version.clone());
    let all = facts.into_iter().chain([version]);
    all.filter(|(_, then, now)| then != now)
        .map(|(name, then, now)| format!("{name} differs: '{then}' and '{now}'"))
        .collect()
}
