// SPDX-License-Identifier: GPL-2.0-only
//! The same variant in two files: a saved result against a later one. Their runs are not paired, so
//! all that changed between the two times is in the difference, and there is no verdict.

use super::compare::FileBeside;
use super::{MetricReport, Report, percent};
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

/// A table, with what else differs between the files and which were left out. Empty if there is
/// only one file.
pub fn text(all: &[Between], files: &[FileBeside], reports: &[Report]) -> String {
    let mut text = String::new();
    if !all.is_empty() {
        let _ = writeln!(
            text,
            "\nSince {}, {} intervals. Runs are not paired: all that changed meanwhile is in it",
            files[0].file,
            percent(LEVEL)
        );
    }
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
    let mut left_out = Vec::new();
    for (file, report) in files.iter().zip(reports).skip(1) {
        if all.iter().all(|row| row.file != file.file) {
            left_out.push(file.file);
            continue;
        }
        for what in unlike(&reports[0], report) {
            let _ = writeln!(text, "  {}: {what}", file.file);
        }
    }
    if !left_out.is_empty() {
        let _ = writeln!(
            text,
            "\nnot compared with {}, because the command is another one or no metric above 0 is common: {}",
            files[0].file,
            left_out.join(", ")
        );
    }
    text
}

/// A fact that a file does not have: older versions knew fewer.
const UNKNOWN: &str = "unknown";

/// Sentences about what else may be the cause.
fn unlike(one: &Report, other: &Report) -> Vec<String> {
    let both = conditions(one).into_iter().zip(conditions(other));
    both.filter(|((_, then), (_, now))| then != now && then != UNKNOWN && now != UNKNOWN)
        .map(|((name, then), (_, now))| format!("{name} differs: '{then}' and '{now}'"))
        .collect()
}

/// What runs depend on besides their variants.
fn conditions(report: &Report) -> Vec<(&'static str, String)> {
    let plan = report.plan;
    let facts = ["kernel", "cmdline", "hz", "cpu", "cpus", "mitigations"];
    let unknown = || UNKNOWN.to_string();
    let fact = |name| (name, plan.host.get(name).cloned().unwrap_or_else(unknown));
    let modes: Vec<&str> = report.modes.iter().copied().collect();
    let other = [
        ("frequencies", modes.join("; ")),
        ("scope", plan.scope.text().to_string()),
        ("user", plan.user.clone().unwrap_or_default()),
        ("what is around the runs", plan.hooks.text()),
        ("scx_roost", plan.version.clone()),
    ];
    facts.map(fact).into_iter().chain(other).collect()
}
