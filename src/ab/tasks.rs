// SPDX-License-Identifier: GPL-2.0-only
//! From options to the comparison that they ask for.

use super::args::{AbArgs, TuneArgs};
use super::result::Header;
use super::stats::plan::{MAX_ROUNDS, can_tell};
use super::tune::PASS;
use super::variant::{Variant, parse_all};
use crate::util::refusal::BadUsage;
use crate::util::user::User;
use anyhow::{Result, anyhow, ensure};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// A comparison to run.
#[derive(Clone, Debug)]
pub struct Task {
    pub header: Header,
    pub command: Vec<OsString>,
    pub timeout: Duration,
    /// The user that the command runs as. None: ours.
    pub user: Option<User>,
    pub result: PathBuf,
    pub resume: bool,
    /// Boots the kernel that is due.
    pub next_boot: Option<String>,
}

/// Fails if no comparison can show a difference, whatever the runs are.
fn check_plan(header: &Header) -> Result<()> {
    let comparisons = (header.variants.len() - 1) * header.metrics.len();
    let alpha = header.rule.alpha / comparisons as f64;
    // Two variants have twice the runs of one, on average.
    let can = |rounds: &usize| can_tell(2 * rounds, alpha);
    let n = header.rule.plan.max();
    let enough = (1..=MAX_ROUNDS).find(can).unwrap_or(MAX_ROUNDS);
    ensure!(
        n >= enough,
        "-n {n}: so few runs find nothing, whatever is measured: give -n {enough} or more"
    );
    Ok(())
}

/// The result file where none was named: the last one of this folder to continue it, or the next.
fn numbered(resume: bool) -> PathBuf {
    let number = |name: &str| match name.strip_prefix("ab")?.strip_suffix(".jsonl")? {
        "" => Some(1),
        number => number.strip_prefix('-')?.parse::<u32>().ok(),
    };
    let entries = fs::read_dir(".").into_iter().flatten().flatten();
    let last = entries
        .filter_map(|entry| number(entry.file_name().to_str()?))
        .max();
    match last.unwrap_or(0).saturating_add(u32::from(!resume)) {
        0 | 1 => PathBuf::from("ab.jsonl"),
        n => PathBuf::from(format!("ab-{n}.jsonl")),
    }
}

impl AbArgs {
    /// `facts` about the machine go into the result.
    pub fn task(mut self, facts: BTreeMap<String, String>) -> Result<Task> {
        if self.result.is_none() {
            self.result = Some(numbered(self.resume));
        }
        if let Some(result) = self.result.as_ref().filter(|_| self.resume) {
            self.runs.goes_on_with(result)?;
        }
        self.checked_task(facts).map_err(|e| BadUsage(e).into())
    }

    fn checked_task(self, facts: BTreeMap<String, String>) -> Result<Task> {
        let variants = parse_all(&self.variant)?;
        let mut header = self
            .runs
            .header(self.variant, &variants, self.plan, facts)?;
        header.boots = self.across_boots;
        header.scope.check(&variants)?;
        header.check_kernels(&variants)?;
        check_plan(&header)?;
        Ok(Task {
            header,
            user: self.runs.whose()?,
            command: self.runs.command,
            timeout: self.runs.timeout,
            result: self.result.unwrap_or_default(),
            resume: self.resume,
            next_boot: self.next_boot,
        })
    }
}

impl TuneArgs {
    /// The task of the last comparison. Its only variant yet is the base, and its result is the
    /// folder.
    pub fn task(mut self, facts: BTreeMap<String, String>) -> Result<Task> {
        let first = self.result.join(PASS).with_extension("jsonl");
        if self.resume && first.exists() {
            self.runs.goes_on_with(&first)?;
        }
        if self.runs.metric.len() > 1 {
            let error = anyhow!("tune ranks by a single metric: give --metric once");
            return Err(BadUsage(error).into());
        }
        let base = [Variant::parse(&self.base).map_err(BadUsage)?];
        let header = self.runs.header(vec![self.base], &base, self.plan, facts);
        let header = header.map_err(BadUsage)?;
        // The last comparison compares one variant with the base.
        let mut last = header.clone();
        last.variants.push(last.variants[0].clone());
        check_plan(&last).map_err(BadUsage)?;
        Ok(Task {
            header,
            user: self.runs.whose()?,
            command: self.runs.command,
            timeout: self.runs.timeout,
            result: self.result,
            resume: self.resume,
            next_boot: None,
        })
    }
}
