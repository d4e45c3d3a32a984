// SPDX-License-Identifier: GPL-2.0-only
//! For a page or a mail.

use super::text::title;
use super::{Report, command, effect, level, number, remark, shift, summary, verdict_name};
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
            "\n**{}**\n\n| variant | median | of the first | shift | at | p | verdict |\n|---|---:|---|---|---|---:|---|\n",
            cell(&title(metric))
        );
        for variant in &metric.variants {
            let (effect, shift, level, p, verdict) = match &variant.judged {
                None => Default::default(),
                Some(judged) => (
                    effect(judged),
                    shift(judged),
                    level(judged, report.blocks),
                    format!("{:.4}", judged.p_adjusted),
                    format!("{} {}", verdict_name(judged.verdict), remark(judged)),
                ),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {effect} | {shift} | {level} | {p} | {} |",
                cell(&variant.variant),
                number(variant.median),
                verdict.trim_end()
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
