// SPDX-License-Identifier: GPL-2.0-only
//! From options to the comparison that they ask for.

use super::args::{AbArgs, TuneArgs};
use super::boots;
use super::design::Settle;
use super::result::Header;
use super::stats::plan::{MAX_BLOCKS, Plan};
use super::stats::verdict::EQUIVALENT_MIN;
use super::tune::PASS;
use super::variant::{Variant, parse_all};
use crate::util::refusal::BadUsage;
use crate::util::text::count;
use crate::util::user::User;
use anyhow::{Result, anyhow, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
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

/// The least number of blocks with which one of `comparisons` comparisons can show a difference.
fn least_blocks(comparisons: usize, alpha: f64) -> Option<usize> {
    (1..=MAX_BLOCKS).find(|n| Plan::Fixed(*n).can_tell(comparisons, alpha))
}

impl Task {
    /// A warning if no comparison can show a difference, whatever the runs are.
    pub fn too_few(&self) -> Option<String> {
        let (header, rule) = (&self.header, self.header.rule);
        // Each other variant with the first, by metric.
        let all = (header.variants.len() - 1) * header.metrics.len();
        let enough = least_blocks(all, rule.alpha)?;
        (!rule.plan.can_tell(all, rule.alpha)).then(|| {
            format!(
                "{} blocks are too few to find a difference in {}, whatever is measured: give -n {} or more",
                rule.plan.max(),
                count(all, "comparison"),
                enough
            )
        })
    }

    /// A note if no comparison can end as `equivalent`, whatever the runs are.
    pub fn no_equivalence(&self) -> Option<String> {
        let blocks = self.header.rule.plan.max();
        (blocks < EQUIVALENT_MIN).then(|| {
            format!(
                "{blocks} blocks can show a difference, but not that there is none: 'equivalent' needs {EQUIVALENT_MIN} (-n {EQUIVALENT_MIN} or -n auto)"
            )
        })
    }
}

impl AbArgs {
    /// `facts` about the machine go into the result.
    pub fn task(mut self, facts: BTreeMap<String, String>) -> Result<Task> {
        if self.resume {
            self.runs.goes_on_with(&self.result)?;
        }
        self.checked_task(facts).map_err(|e| BadUsage(e).into())
    }

    fn checked_task(self, facts: BTreeMap<String, String>) -> Result<Task> {
        let variants = parse_all(&self.variant)?;
        let mut header = self
            .runs
            .header(self.variant, &variants, self.plan, facts)?;
        header.boots = self.across_boots;
        if self.across_boots.is_some() {
            header.settle = Settle::Nowhere;
        }
        header.scope.check(&variants)?;
        boots::check(&header, &variants)?;
        Ok(Task {
            header,
            user: self.runs.whose()?,
            command: self.runs.command,
            timeout: self.runs.timeout,
            result: self.result,
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
        let alpha = header.rule.alpha;
        // The last comparison compares one variant with the base.
        if let Some(least) = least_blocks(1, alpha).filter(|_| !self.plan.can_tell(1, alpha)) {
            bail!(
                "-n {}: too few blocks to find anything, whatever is measured: give -n {least} or more",
                self.plan.max()
            );
        }
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
