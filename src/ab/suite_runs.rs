// SPDX-License-Identifier: GPL-2.0-only
//! Runs the workloads of a suite one by one. If one fails, it is named and the others still run.

use super::pages::Pages;
use super::report::Report;
use super::report::closing::{Closing, Failed, Part};
use super::result::Recorded;
use super::run::{CommandFailed, End};
use super::suite::Item;
use super::tasks::Task;
use anyhow::{Result, bail};
use serde::Serialize;

/// Makes or resumes the runs of the task at this index.
pub type Compare<'a> = &'a mut dyn FnMut(usize, &Task) -> Result<(Recorded, End)>;

pub struct Outcome {
    ran: Vec<(Item, Recorded)>,
    pub failed: Vec<Failed>,
    /// Number of tasks.
    tasks: usize,
    pub stopped: bool,
}

/// The whole outcome, for JSON.
#[derive(Serialize)]
pub struct Whole<'a> {
    workloads: Vec<Named<'a>>,
    /// None: it was stopped.
    suite: &'a Option<Closing>,
}

#[derive(Serialize)]
struct Named<'a> {
    workload: &'a str,
    #[serde(flatten)]
    report: Report<'a>,
}

/// Continues after a command that failed, but after no other error. Fails if the machine cannot be
/// switched or restored.
pub fn run_all(tasks: &[Task], compare: Compare, tell: &dyn Fn(&str)) -> Result<Outcome> {
    let mut outcome = Outcome {
        ran: Vec::new(),
        failed: Vec::new(),
        tasks: tasks.len(),
        stopped: false,
    };
    for (at, task) in tasks.iter().enumerate() {
        let Some(item) = task.item.clone() else {
            continue;
        };
        match compare(at, task) {
            Ok((recorded, end)) => {
                outcome.ran.push((item, recorded));
                outcome.stopped = end == End::Stopped;
            }
            Err(e) if e.downcast_ref::<CommandFailed>().is_some() => {
                let (workload, error) = (item.name, format!("{e:#}"));
                tell(&format!(
                    "{workload} failed, going on with the others: {error}"
                ));
                outcome.failed.push(Failed { workload, error });
            }
            Err(e) => return Err(e),
        }
        if outcome.stopped {
            break;
        }
    }
    Ok(outcome)
}

impl Outcome {
    /// The table of the suite. None: it was stopped.
    pub fn closing(&self) -> Result<Option<Closing>> {
        if self.stopped {
            return Ok(None);
        }
        let part = |(item, recorded): &'_ (Item, Recorded)| {
            (item.name.clone(), item.five, recorded.clone())
        };
        let all: Vec<_> = self.ran.iter().map(part).collect();
        let parts: Vec<Part> = all
            .iter()
            .map(|(name, five, recorded)| Part {
                name,
                five: *five,
                recorded,
            })
            .collect();
        let mut closing = Closing::new(&parts)?;
        closing.failed = self.failed.clone();
        Ok(Some(closing))
    }

    pub fn whole<'a>(&'a self, suite: &'a Option<Closing>) -> Result<Whole<'a>> {
        let named = |(item, recorded): &'a (Item, Recorded)| {
            Ok(Named {
                workload: &item.name,
                report: Report::new(recorded)?,
            })
        };
        let workloads = self.ran.iter().map(named).collect::<Result<_>>()?;
        Ok(Whole { workloads, suite })
    }

    /// Fails if a page cannot be written.
    pub fn write(&self, pages: &Pages, closing: &Option<Closing>) -> Result<()> {
        let reports = self.ran.iter().map(|(_, recorded)| Report::new(recorded));
        pages.write_suite(&reports.collect::<Result<Vec<_>>>()?, closing.as_ref())
    }

    /// Fails if not all workloads ran to their end.
    pub fn end(&self, stopped: &str) -> Result<()> {
        if self.stopped {
            bail!("{stopped}");
        }
        let names: Vec<&str> = self.failed.iter().map(|f| f.workload.as_str()).collect();
        match names.len() {
            0 => Ok(()),
            n => bail!(
                "{n} of {} workloads failed: {}; --resume runs them again",
                self.tasks,
                names.join(", ")
            ),
        }
    }
}
