// SPDX-License-Identifier: GPL-2.0-only
//! Result files side by side. Runs of two files are not paired, so that nothing is tested between them: what each says stands beside the other.

use super::text::title;
use super::{Report, effect, summary, verdict_name};
use anyhow::{Result, ensure};
use std::fmt::Write;

pub fn compare(names: &[String], reports: &[Report]) -> Result<String> {
    let first = &reports[0];
    let mut text = String::new();
    for (name, report) in names.iter().zip(reports) {
        let _ = writeln!(
            text,
            "{name}: {}; {}",
            super::command(report.plan),
            summary(report)
        );
        ensure!(
            report.plan.variants[0] == first.plan.variants[0],
            "{name} compares with {}, and {} with {}: nothing of them stands side by side",
            report.plan.variants[0],
            names[0],
            first.plan.variants[0]
        );
    }
    for metric in &first.metrics {
        let _ = write!(text, "\n{}, of {}\n", title(metric), first.plan.variants[0]);
        for variant in metric.variants.iter().skip(1) {
            let _ = writeln!(text, "  {}", variant.variant);
            for (name, report) in names.iter().zip(reports) {
                let own = report.metrics.iter().find(|m| m.metric == metric.metric);
                let own =
                    own.and_then(|m| m.variants.iter().find(|v| v.variant == variant.variant));
                let said = match own.and_then(|v| v.judged.as_ref()) {
                    Some(judged) => {
                        format!("{:<25} {}", effect(judged), verdict_name(judged.verdict))
                    }
                    None => "-".to_string(),
                };
                let _ = writeln!(text, "    {said:<40} {name}");
            }
        }
    }
    Ok(text)
}
