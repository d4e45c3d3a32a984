// SPDX-License-Identifier: GPL-2.0-only
//! A self-contained HTML page.

use super::closing::Closing;
use super::text::title;
use super::{
    COLUMNS, Medians, MetricReport, Report, cells, command, median_text, number, plots, summary,
    svg, taken, verdict_name,
};
use crate::ab::stats::pairs::Scale;
use std::fmt::Write;

const STYLE: &str = "body{font:14px sans-serif;max-width:80em;margin:2em auto;padding:0 1em}table{border-collapse:collapse;margin:1em 0}\
td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ccc}td.verdict{min-width:12em}td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
svg{display:block;max-width:100%;height:auto}svg text{font:12px sans-serif}.better{color:#006d4f}.worse{color:#a03c00}.legend span{display:inline-block;margin-right:1em}";

pub fn html(report: &Report) -> String {
    page(&command(report.plan), &section(report))
}

/// All workloads of a suite, and its table. None: the suite was stopped.
pub fn html_of_suite(reports: &[Report], closing: Option<&Closing>) -> String {
    let title = format!("A suite of {} workloads", reports.len());
    let sections: String = reports.iter().map(section).collect();
    let table = closing.map_or(String::new(), |closing| {
        format!("<pre>{}</pre>\n", escape(&closing.text()))
    });
    page(&title, &(sections + &table))
}

fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
         {body}</body></html>\n"
    )
}

fn section(report: &Report) -> String {
    let mut page = format!(
        "<h1><code>{}</code></h1>\n<p>{}<br>{}</p>\n",
        escape(&command(report.plan)),
        escape(&summary(report)),
        escape(&taken(report.plan))
    );
    for (verdict, line) in report.headlines() {
        let class = verdict_name(verdict);
        let _ = writeln!(page, "<p class=\"{class}\"><b>{}</b></p>", escape(&line));
    }
    for warning in &report.warnings {
        let _ = writeln!(page, "<p><b>Warning:</b> {}</p>", escape(warning));
    }
    for metric in &report.metrics {
        page += &table(metric, report.blocks);
        page += &pictures(report, metric);
    }
    for (title, rows) in report.besides() {
        page += &medians(title, report, rows);
    }
    if !report.counters.is_empty() {
        page += &legend(&report.plan.variants);
        page += &plots::counters(report);
    }
    page
}

const EFFECT: &str = "<p>A dot is the shift, the line the interval that tells the verdict. The dashed line is where nothing changes, and the margin is grey.</p>\n";
const DISTRIBUTION: &str = "<p>A dot is a run, the black line the median. A hollow dot is far from the rest; it is included.</p>\n";

fn pictures(report: &Report, metric: &MetricReport) -> String {
    let base = &metric.variants[0].variant;
    let mut all = String::new();
    for (scale, how) in [
        (Scale::Ratio, "ratio to"),
        (Scale::Difference, "difference from"),
    ] {
        let heading = format!("Effect as a {how} {base}, with its interval");
        all += &figure(&heading, EFFECT, &plots::effects(metric, scale));
    }
    let (order, legend) = (plots::in_order(metric), legend(&report.plan.variants));
    all += &figure("Distribution", DISTRIBUTION, &plots::distribution(metric));
    all += &figure("Runs in order", &legend, &order);
    for outlier in metric.outliers() {
        let _ = writeln!(all, "<p>{}</p>", escape(&outlier));
    }
    all
}

/// Empty if there is no picture. `what` is HTML already.
fn figure(heading: &str, what: &str, picture: &str) -> String {
    match picture {
        "" => String::new(),
        _ => format!("<h3>{}</h3>\n{what}{picture}", escape(heading)),
    }
}

fn table(metric: &MetricReport, blocks: usize) -> String {
    let mut table = format!(
        "<h2>{}</h2>\n<table><tr><th>variant<th>median<th>{}</tr>\n",
        escape(&title(metric)),
        COLUMNS.join("<th>")
    );
    for variant in &metric.variants {
        let judged = variant.judged.as_ref();
        let _ = write!(
            table,
            "<tr><td>{}<td class=\"n\">{}",
            escape(&variant.variant),
            number(variant.median)
        );
        for (column, text) in COLUMNS.iter().zip(cells(judged, metric.unit, blocks)) {
            let class = match *column {
                "verdict" => judged.map_or("", |j| verdict_name(j.verdict)),
                "p" | "least effect" => "n",
                _ => "",
            };
            let text = unbroken(&escape(&text));
            let _ = write!(table, "<td class=\"{column} {class}\">{text}");
        }
        table += "</tr>\n";
    }
    table + "</table>\n"
}

/// A line may break between a value and its interval, but not within the interval.
fn unbroken(text: &str) -> String {
    text.replace(" to ", "&nbsp;to&nbsp;")
        .replace(" %", "&nbsp;%")
}

fn medians(title: &str, report: &Report, rows: &Medians) -> String {
    let mut table = format!("<h2>{title}</h2>\n<table><tr><th>");
    for variant in &report.plan.variants {
        let _ = write!(table, "<th>{}", escape(variant));
    }
    table += "</tr>\n";
    for (name, values) in rows {
        let _ = write!(table, "<tr><td>{}", escape(name));
        for value in values {
            let _ = write!(table, "<td class=\"n\">{}", median_text(*value));
        }
        table += "</tr>\n";
    }
    table + "</table>\n"
}

/// The color of each variant.
fn legend(variants: &[String]) -> String {
    let mut legend = "<p class=\"legend\">".to_string();
    for (at, variant) in variants.iter().enumerate() {
        let (color, name) = (svg::color(at), escape(variant));
        let _ = write!(
            legend,
            "<span><b style=\"color:{color}\">\u{25cf}</b> {name}</span> "
        );
    }
    legend + "</p>\n"
}

pub fn escape(text: &str) -> String {
    let sign = |c: char| match c {
        '&' => "&amp;".to_string(),
        '<' => "&lt;".to_string(),
        '>' => "&gt;".to_string(),
        '"' => "&quot;".to_string(),
        c => c.to_string(),
    };
    text.chars().map(sign).collect()
}
