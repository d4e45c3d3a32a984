// SPDX-License-Identifier: GPL-2.0-only
//! A report for a terminal: a table for each metric.

use super::{
    MetricReport, Report, command, cv_text, direction_text, effect, least_effect, level,
    median_text, named, number, summary, taken,
};
use crate::ab::stats::verdict::{Direction, Verdict};
use crate::util::escape;
use clap::builder::styling::{AnsiColor, Style};
use std::fmt::Write;

pub fn text(report: &Report) -> String {
    written(report, |_| Style::new())
}

/// For a terminal that shows colors.
pub fn colored(report: &Report) -> String {
    written(report, style)
}

fn written(report: &Report, style: fn(Verdict) -> Style) -> String {
    let mut text = format!(
        "{}\n{}\n{}\n\n",
        command(report.plan),
        summary(report),
        taken(report.plan)
    );
    text = escape::text(&text).into_owned();
    for (verdict, line) in report.headlines() {
        let (style, line) = (style(verdict), escape::text(&line));
        let _ = writeln!(text, "{style}{line}{style:#}");
    }
    text + &escape::text(&rest(report))
}

fn rest(report: &Report) -> String {
    let mut text = String::new();
    for metric in &report.metrics {
        text += &table(metric, report.blocks);
        for outlier in metric.outliers() {
            let _ = writeln!(text, "  {outlier}");
        }
    }
    text += &also(report);
    for warning in &report.warnings {
        let _ = writeln!(text, "warning: {warning}");
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

fn width(metric: &MetricReport) -> usize {
    let names = metric.variants.iter().map(|v| v.variant.chars().count());
    names.max().unwrap_or(0).max(7)
}

fn table(metric: &MetricReport, blocks: usize) -> String {
    let width = width(metric);
    let mut text = format!(
        "\n{}\n  {:width$} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
        title(&metric.metric, metric.unit, metric.better),
        "variant",
        "median",
        "mean",
        "CV",
        "least",
        "most"
    );
    for variant in &metric.variants {
        let cv = cv_text(variant.cv);
        let [median, mean, min, max] =
            [variant.median, variant.mean, variant.min, variant.max].map(number);
        let _ = writeln!(
            text,
            "  {:width$} {median:>8} {mean:>8} {cv:>8} {min:>8} {max:>8}",
            variant.variant
        );
    }
    text += &verdicts(metric, blocks);
    text
}

/// The comparisons with the first variant.
fn verdicts(metric: &MetricReport, blocks: usize) -> String {
    let width = width(metric);
    let mut text = format!("  {:width$} {:<24} {:>7}  verdict\n", "", "change", "p");
    for variant in &metric.variants {
        let Some(judged) = &variant.judged else {
            continue;
        };
        let change = effect(judged, metric.unit);
        let (p, told) = (judged.p_adjusted, super::verdict(judged, metric.unit));
        let _ = writeln!(
            text,
            "  {:width$} {change:<24} {p:>7.4}  {told}",
            variant.variant
        );
        let least = least_effect(judged, metric.unit);
        if judged.level.is_some() && !least.is_empty() {
            let level = level(judged, blocks);
            let _ = writeln!(text, "  {:width$} at {level}; least effect {least}", "");
        }
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
    text + "\n"
}
