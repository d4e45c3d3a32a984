// SPDX-License-Identifier: GPL-2.0-only
//! A report in Markdown.

use super::closing::Closing;
use super::text::title;
use super::{
    COLUMNS, MARK, Medians, Report, cells, command, cv_text, median_text, number, printable,
    summary, taken,
};
use std::fmt::Write;

pub fn markdown(report: &Report) -> String {
    format!("{MARK}\n{}", section(report))
}

fn section(report: &Report) -> String {
    let mut text = format!(
        "`{}`\n\n{}\n\n{}\n",
        command(report.plan).replace('`', "'"),
        summary(report),
        taken(report.plan)
    );
    for (_, line) in report.headlines() {
        let _ = write!(text, "\n- {line}");
    }
    text += "\n";
    for metric in &report.metrics {
        let _ = write!(
            text,
            "\n**{}**\n\n| variant | median | mean | CV | least | most | {} |\n|---|---:|---:|---:|---:|---:|---|---|---:|---:|---|\n",
            cell(&title(metric)),
            COLUMNS.join(" | ")
        );
        for variant in &metric.variants {
            let cells = cells(variant.judged.as_ref(), metric.unit, report.blocks);
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {} | {} |",
                cell(&variant.variant),
                number(variant.median),
                number(variant.mean),
                cv_text(variant.cv),
                number(variant.min),
                number(variant.max),
                cells.join(" | ")
            );
        }
        for outlier in metric.outliers() {
            let _ = write!(text, "\n{outlier}\n");
        }
    }
    for (title, rows) in report.besides() {
        text += &medians(title, report, rows);
    }
    for warning in &report.warnings {
        let _ = write!(text, "\nWarning: {warning}\n");
    }
    printable(&text)
}

/// All workloads of a suite, and its table. None: the suite was stopped.
pub fn markdown_of_suite(reports: &[Report], closing: Option<&Closing>) -> String {
    let mut text: Vec<String> = reports.iter().map(section).collect();
    let table = closing.map(|closing| closing.text().replace("```", "'''"));
    text.extend(table.map(|table| format!("```\n{}\n```\n", table.trim())));
    format!("{MARK}\n{}", text.join("\n---\n\n"))
}

fn medians(title: &str, report: &Report, rows: &Medians) -> String {
    let names: Vec<String> = report.plan.variants.iter().map(|v| cell(v)).collect();
    let mut text = format!(
        "\n**{title}**\n\n| | {} |\n|---|{}\n",
        names.join(" | "),
        "---:|".repeat(names.len())
    );
    for (name, values) in rows {
        let shown: Vec<String> = values.iter().map(|v| median_text(*v)).collect();
        let _ = writeln!(text, "| {name} | {} |", shown.join(" | "));
    }
    text
}

/// A `|` would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
