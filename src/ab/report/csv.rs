// SPDX-License-Identifier: GPL-2.0-only
//! All counted runs as comma-separated values (RFC 4180), one line for each metric of each run, as
//! programs for statistics read them best.

use crate::ab::metric::unit_of;
use crate::ab::result::Recorded;
use anyhow::{Context, Result};
use csv::WriterBuilder;

const COLUMNS: [&str; 9] = [
    "file", "began", "workload", "variant", "block", "run", "metric", "unit", "value",
];

/// Blocks and runs are numbered from 1, as in reports; `began` is in seconds since 1970.
pub fn as_csv(names: &[String], files: &[Recorded]) -> Result<String> {
    let mut lines = WriterBuilder::new().from_writer(Vec::new());
    lines.write_record(COLUMNS)?;
    for (name, file) in names.iter().zip(files) {
        let plan = &file.header;
        let command = || plan.command.first().cloned().unwrap_or_default();
        let workload = plan.workload.clone().unwrap_or_else(command);
        for run in &file.runs {
            let Some(block) = run.block else { continue };
            for (metric, value) in &run.values {
                lines.write_record([
                    name,
                    &plan.began.to_string(),
                    &workload,
                    &run.variant,
                    &(block + 1).to_string(),
                    &(run.number + 1).to_string(),
                    metric,
                    unit_of(metric),
                    &value.to_string(),
                ])?;
            }
        }
    }
    let bytes = lines.into_inner().context("memory is enough")?;
    Ok(String::from_utf8(bytes)?)
}
