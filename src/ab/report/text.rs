// SPDX-License-Identifier: GPL-2.0-only
//! A report for a terminal: for each metric a table and a strip of its runs.

use super::{
    MetricReport, Report, VariantReport, command, cv_text, direction_text, effect, least_effect,
    level, median_text, number, printable, summary, taken,
};
use crate::ab::stats::verdict::{Direction, Verdict};
use clap::builder::styling::{AnsiColor, Style};
use std::fmt::Write;

/// Columns of a strip.
const STRIP: usize = 60;

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
    text = printable(&text);
    for (verdict, line) in report.headlines() {
        let (style, line) = (style(verdict), printable(&line));
        let _ = writeln!(text, "{style}{line}{style:#}");
    }
    text + &printable(&rest(report))
}

fn rest(report: &Report) -> String {
    let mut text = String::new();
    for metric in &report.metrics {
        text += &table(metric, report.blocks);
        text += &strips(metric);
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

fn strips(metric: &MetricReport) -> String {
    let all = metric
        .variants
        .iter()
        .flat_map(|v| v.runs.iter().map(|(_, value)| *value));
    let (least, most) = all.fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(v), m.max(v)));
    if least > most {
        return String::new();
    }
    let width = width(metric);
    let mut text = format!(
        "  {:width$} {:<30}{:>30}\n",
        "",
        number(least),
        number(most)
    );
    for variant in &metric.variants {
        let strip = strip(variant, least, most);
        let _ = writeln!(text, "  {:width$} {}", variant.variant, strip.trim_end());
    }
    for outlier in metric.outliers() {
        let _ = writeln!(text, "  {outlier}");
    }
    text
}

/// '.' for one run, ':' for two, '#' for more, '|' for the median.
fn strip(variant: &VariantReport, least: f64, most: f64) -> String {
    let column = |value: f64| match most > least {
        true => ((value - least) / (most - least) * (STRIP - 1) as f64).round() as usize,
        false => 0,
    };
    let mut counts = [0; STRIP];
    for (_, value) in &variant.runs {
        counts[column(*value)] += 1;
    }
    let sign = |(at, count): (usize, &usize)| match count {
        _ if at == column(variant.median) => '|',
        0 => ' ',
        1 => '.',
        2 => ':',
        _ => '#',
    };
    counts.iter().enumerate().map(sign).collect()
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
            let _ = write!(text, "  {name:20}");
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
