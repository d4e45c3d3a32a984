// SPDX-License-Identifier: GPL-2.0-only
//! A report for a terminal: a table for each metric, and at last the verdicts.

use super::{
    MetricReport, Report, command, cv_text, direction_text, median_text, named, number, summary,
    taken,
};
use crate::ab::stats::verdict::{Direction, Verdict};
use crate::util::escape;
use clap::builder::styling::{AnsiColor, Style};
use std::fmt::Write;

/// What a report shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// Colors, for a terminal that shows them.
    pub colors: bool,
    /// What else was measured, and counters.
    pub counters: bool,
}

pub fn text(report: &Report, shown: Shown) -> String {
    let mut text = format!(
        "{}\n{}\n{}\n",
        command(report.plan),
        summary(report),
        taken(report.plan)
    );
    for metric in &report.metrics {
        text += &table(metric);
        for outlier in metric.outliers() {
            let _ = writeln!(text, "  {outlier}");
        }
    }
    if shown.counters {
        text += &also(report);
    }
    text.push('\n');
    for warning in &report.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    let mut text = escape::text(&text).into_owned();
    for (verdict, line) in report.headlines() {
        let style = if shown.colors {
            style(verdict)
        } else {
            Style::new()
        };
        let _ = writeln!(text, "{style}{}{style:#}", escape::text(&line));
    }
    text
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Better => AnsiColor::Green.on_default().bold(),
        Verdict::Worse => AnsiColor::Red.on_default().bold(),
        Verdict::Equivalent => AnsiColor::Cyan.on_default(),
        Verdict::Inconclusive | Verdict::NotExercised => AnsiColor::Yellow.on_default(),
    }
}

/// Such as 'wall in s, lower is better'.
pub fn title(metric: &str, unit: &str, better: Direction) -> String {
    let unit = match unit {
        "" => String::new(),
        unit => format!(" in {unit}"),
    };
    format!("{metric}{unit}, {}", direction_text(better))
}

fn table(metric: &MetricReport) -> String {
    let names = metric.variants.iter().map(|v| v.variant.chars().count());
    let width = names.max().unwrap_or(0).max(7);
    let mut text = format!(
        "\n{}\n  {:width$} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
        title(&metric.metric, metric.unit, metric.better),
        "variant",
        "runs",
        "median",
        "mean",
        "CV",
        "least",
        "most"
    );
    for variant in &metric.variants {
        let (cv, runs) = (cv_text(variant.cv), variant.runs.len());
        let [median, mean, min, max] =
            [variant.median, variant.mean, variant.min, variant.max].map(number);
        let _ = writeln!(
            text,
            "  {:width$} {runs:>5} {median:>8} {mean:>8} {cv:>8} {min:>8} {max:>8}",
            variant.variant
        );
    }
    text
}

fn also(report: &Report) -> String {
    let mut text = String::new();
    for (title, rows) in report.besides() {
        let _ = write!(text, "\n{title}\n  {:20}", "");
        for variant in &report.plan.variants {
            let _ = write!(text, " {variant:>12}");
        }
        text.push('\n');
        for (name, values) in rows {
            let _ = write!(text, "  {:20}", named(name));
            for (value, variant) in values.iter().zip(&report.plan.variants) {
                let width = variant.chars().count().max(12);
                let shown = median_text(*value);
                let _ = write!(text, " {shown:>width$}");
            }
            text.push('\n');
        }
    }
    text
}
