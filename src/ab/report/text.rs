// SPDX-License-Identifier: GPL-2.0-only
//! A report for a terminal: for each metric a table and a strip of its runs.

use super::{
    MetricReport, Report, VariantReport, command, direction_text, effect, least_effect, level,
    median_text, number, shift, summary, taken,
};
use std::fmt::Write;

/// Columns of a strip.
const STRIP: usize = 60;

pub fn text(report: &Report) -> String {
    let mut text = format!(
        "{}\n{}\n{}\n",
        command(report.plan),
        summary(report),
        taken(report.plan)
    );
    for metric in &report.metrics {
        text += &table(metric, report.blocks);
        text += &strips(metric);
    }
    text += &also(report);
    if let Some(note) = report.note() {
        let _ = writeln!(text, "note: {note}");
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text
}

/// Such as 'wall in s, lower is better'.
pub fn title(metric: &MetricReport) -> String {
    let unit = match metric.unit {
        "" => String::new(),
        unit => format!(" in {unit}"),
    };
    format!("{}{unit}, {}", metric.metric, direction_text(metric.better))
}

fn width(metric: &MetricReport) -> usize {
    let names = metric.variants.iter().map(|v| v.variant.chars().count());
    names.max().unwrap_or(0).max(7)
}

fn table(metric: &MetricReport, blocks: usize) -> String {
    let width = width(metric);
    let mut text = format!(
        "\n{}\n  {:width$} {:>10}  {:<25} {:>8}  verdict\n",
        title(metric),
        "variant",
        "median",
        "of the first",
        "p"
    );
    for variant in &metric.variants {
        let (effect, p, verdict) = match &variant.judged {
            None => Default::default(),
            Some(judged) => (
                effect(judged),
                format!("{:.4}", judged.p_adjusted),
                super::verdict(judged),
            ),
        };
        let line = format!(
            "  {:width$} {:>10}  {effect:<25} {p:>8}  {verdict}",
            variant.variant,
            number(variant.median)
        );
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(judged) = variant.judged.as_ref().filter(|j| j.level.is_some()) {
            let (shift, level) = (shift(judged), level(judged, blocks));
            let least = match least_effect(judged, metric.unit) {
                none if none.is_empty() => none,
                least => format!("; least effect {least}"),
            };
            let _ = writeln!(
                text,
                "  {:width$} {:>10}  {shift}, both at {level}{least}",
                "", "shift"
            );
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
