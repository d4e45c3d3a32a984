// SPDX-License-Identifier: GPL-2.0-only
//! From options to the comparisons that they ask for: one for a command, one for each workload of a
//! suite, or one for each value of a parameter.

use super::args::{AbArgs, TuneArgs};
use super::boots;
use super::design::Settle;
use super::page::Page;
use super::parameter::{self, filled};
use super::result::{Header, exists};
use super::run::words;
use super::stats::plan::{MAX_BLOCKS, Plan};
use super::stats::verdict::EQUIVALENT_MIN;
use super::suite::{self, Item, Suite};
use super::threadripper::{self, Place};
use super::tune;
use super::variant::{Variant, parse_all};
use crate::util::refusal::BadUsage;
use crate::util::text::count;
use crate::util::user::User;
use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// One comparison to run.
#[derive(Clone, Debug)]
pub struct Task {
    pub header: Header,
    pub command: Vec<OsString>,
    pub timeout: Duration,
    /// The user that the command runs as. None: ours.
    pub user: Option<User>,
    pub result: PathBuf,
    pub resume: bool,
    pub page: Page,
    /// Boots the kernel that is due.
    pub next_boot: Option<String>,
    /// The workload of a suite that it runs; None: the command that was typed.
    pub item: Option<Item>,
}

/// Number of comparisons of all tasks: each other variant with the first, by metric.
fn comparisons(tasks: &[Task]) -> usize {
    let of = |h: &Header| (h.variants.len() - 1) * h.metrics.len();
    tasks.iter().map(|task| of(&task.header)).sum()
}

/// The least number of blocks with which one of `comparisons` comparisons can show a difference.
fn least_blocks(comparisons: usize, alpha: f64) -> Option<usize> {
    (1..=MAX_BLOCKS).find(|n| Plan::Fixed(*n).can_tell(comparisons, alpha))
}

/// A warning if no comparison can show a difference, whatever the runs are.
pub fn too_few(tasks: &[Task]) -> Option<String> {
    let (rule, all) = (tasks.first()?.header.rule, comparisons(tasks));
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
pub fn no_equivalence(tasks: &[Task]) -> Option<String> {
    let blocks = tasks.first()?.header.rule.plan.max();
    (blocks < EQUIVALENT_MIN).then(|| {
        format!(
            "{blocks} blocks can show a difference, but not that there is none: 'equivalent' needs {EQUIVALENT_MIN} (-n {EQUIVALENT_MIN} or -n auto)"
        )
    })
}

impl AbArgs {
    /// `facts` about the machine go into the result.
    fn task(&self, facts: BTreeMap<String, String>) -> Result<Task> {
        let variants = parse_all(&self.variant)?;
        let names = self.variant.clone();
        let mut header = self.runs.header(names, &variants, self.plan, facts)?;
        header.boots = self.across_boots;
        ensure!(
            !self.unsettled || variants.len() > 2,
            "--unsettled does nothing with two variants, whose runs do not settle: leave it out"
        );
        if self.across_boots.is_some() || self.unsettled {
            header.settle = Settle::Nowhere;
        }
        header.scope.check(&variants)?;
        boots::check(&header, &variants)?;
        Ok(Task {
            header,
            user: self.runs.whose()?,
            command: self.runs.command.clone(),
            timeout: self.runs.timeout,
            result: self.result.clone(),
            resume: self.resume,
            page: Page(self.html.clone()),
            next_boot: self.next_boot.clone(),
            item: None,
        })
    }

    /// Where a suite is run, with what it can use there. None: no suite was asked for.
    pub fn place(&self) -> Result<Option<Place>> {
        Ok(match self.suite {
            None => None,
            Some(Suite::Placement) => Some(Place::here()?),
            Some(Suite::Threadripper) => {
                let user = self.runs.whose()?;
                Some(Place::here()?.with_modules(user.as_ref()))
            }
        })
    }

    /// One task per workload of the suite, or one for the typed command. `program`: path of
    /// scx_roost.
    #[cfg(feature = "internals")]
    pub fn tasks(self, program: PathBuf, facts: BTreeMap<String, String>) -> Result<Vec<Task>> {
        let place = self.place()?;
        self.tasks_at(program, facts, place.as_ref())
    }

    /// As `tasks`, for a given place.
    pub fn tasks_at(
        mut self,
        program: PathBuf,
        facts: BTreeMap<String, String>,
        place: Option<&Place>,
    ) -> Result<Vec<Task>> {
        match (self.suite, place) {
            (Some(suite), Some(place)) => self.tasks_of(suite, program, facts, place),
            _ if !self.parameter.is_empty() => self.tasks_of_parameters(facts),
            _ => {
                if self.resume {
                    self.runs.goes_on_with(&self.result)?;
                }
                Ok(vec![self.task(facts).map_err(BadUsage)?])
            }
        }
    }

    /// Tasks of a suite that is run at `place`.
    fn tasks_of(
        mut self,
        suite: Suite,
        program: PathBuf,
        facts: BTreeMap<String, String>,
        place: &Place,
    ) -> Result<Vec<Task>> {
        let mut items = suite.items(&program, place)?;
        let begun = self.begun(&items)?;
        let recorded = self.goes_on_with_all(&begun)?;
        // The last word of a command: the steps that it was recorded with.
        let recorded = recorded.and_then(|mut header| header.command.pop());
        if suite == Suite::Threadripper && self.variant.is_empty() {
            self.variant = threadripper::variants(place);
        }
        // Counted once, so that it is the same in all runs of all workloads.
        let steps = recorded.unwrap_or_else(|| suite::steps_of_ms().to_string());
        for item in &mut items {
            suite.set_steps(item, &steps);
        }
        self.tasks_of_items(items, &begun, facts)
    }

    /// One task for each combination of values.
    fn tasks_of_parameters(mut self, facts: BTreeMap<String, String>) -> Result<Vec<Task>> {
        ensure!(
            !self.runs.command.is_empty(),
            "--parameter needs a command after --, as in: --parameter jobs=4,8 -- make -j{{jobs}}"
        );
        let items = parameter::items(&self.parameter, &self.runs.command, &self.runs.hooks)?;
        let begun = self.begun(&items)?;
        self.goes_on_with_all(&begun)?;
        self.tasks_of_items(items, &begun, facts)
    }

    /// The result files of a suite that exist. Without --resume that is an error now, and not after
    /// the other workloads have run.
    fn begun(&self, items: &[Item]) -> Result<Vec<PathBuf>> {
        let files = items.iter().map(|item| item.result(&self.result));
        let begun: Vec<PathBuf> = files.filter(|file| file.exists()).collect();
        match begun.first() {
            Some(file) if !self.resume => Err(exists(file)),
            _ => Ok(begun),
        }
    }

    /// Returns the header of the first file that has one.
    fn goes_on_with_all(&mut self, begun: &[PathBuf]) -> Result<Option<Header>> {
        let mut first = None;
        for file in begun {
            first = first.or(self.runs.goes_on_with(file)?);
        }
        Ok(first)
    }

    /// One task per workload. They differ in what is run, measured and written.
    fn tasks_of_items(
        &mut self,
        items: Vec<Item>,
        begun: &[PathBuf],
        facts: BTreeMap<String, String>,
    ) -> Result<Vec<Task>> {
        let typed = std::mem::take(&mut self.runs.metric);
        // A placeholder, so that `task` checks the other options.
        self.runs.command = items
            .first()
            .map_or(Vec::new(), |item| item.command.clone());
        let whole = self.task(facts).map_err(BadUsage)?;
        let variants = parse_all(&self.variant)?;
        let task = |item: Item| {
            let mut header = whole.header.clone();
            let metrics = item.metric.iter().chain(&typed);
            header.metrics = self.runs.metrics(metrics, &variants)?;
            header.workload = Some(item.name.clone());
            header.command = words(&item.command)?;
            header.hooks = header.hooks.map(|text| filled(text, &item.set));
            let result = item.result(&self.result);
            Ok(Task {
                header,
                command: item.command.clone(),
                resume: begun.contains(&result),
                result,
                item: Some(item),
                ..whole.clone()
            })
        };
        let mut tasks = items.into_iter().map(task).collect::<Result<Vec<Task>>>()?;
        let all = comparisons(&tasks);
        for task in &mut tasks {
            task.header.rule.suite = all;
        }
        Ok(tasks)
    }

    /// Sentences about what of the suite cannot be run at `place`.
    pub fn left_out(&self, place: Option<&Place>) -> Vec<String> {
        match (self.suite, place) {
            (Some(Suite::Threadripper), Some(place)) => {
                let mut missing = threadripper::missing(place);
                if self.variant.is_empty() {
                    missing.extend(threadripper::variants_left_out(place));
                }
                missing
            }
            _ => Vec::new(),
        }
    }
}

impl TuneArgs {
    /// The task of the last comparison. Its only variant yet is the base, and its result is the
    /// folder.
    pub fn task(mut self, facts: BTreeMap<String, String>) -> Result<Task> {
        let first = tune::file(&self.result, &tune::round(1));
        if self.resume && first.exists() {
            self.runs.goes_on_with(&first)?;
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
            page: Page::default(),
            next_boot: None,
            item: None,
        })
    }
}
