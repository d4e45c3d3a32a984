// SPDX-License-Identifier: GPL-2.0-only
//! For a page or a mail.

use super::text::title;
use super::{COLUMNS, Report, cells, command, number, summary};
use std::fmt::Write;

pub fn markdown(report: &Report) -> String {
    let mut text = format!(
        "`{}`\n\n{}\n",
        command(report.plan).replace('`', "'"),
        summary(report)
    );
    for metric in &report.metrics {
        let _ = write!(
            text,
            "\n**{}**\n\n| variant | median | {} |\n|---|---:|---|---|---|---:|---:|---|\n",
            cell(&title(metric)),
            COLUMNS.join(" | ")
        );
        for variant in &metric.variants {
            let cells = cells(variant.judged.as_ref(), metric.unit, report.blocks);
            let _ = writeln!(
                text,
                "| {} | {} | {} |",
                cell(&variant.variant),
                number(variant.median),
                cells.join(" | ")
            );
        }
    }
    if let Some(note) = report.note() {
        let _ = write!(text, "\nNote: {note}\n");
    }
    for warning in &report.warnings {
        let _ = write!(text, "\nWarning: {warning}\n");
    }
    text
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
