// SPDX-License-Identifier: GPL-2.0-only
//! Runs the workloads of a suite one by one. If one fails, it is named and the others still run.

use super::report::Report;
use super::report::closing::{Closing, Failed};
use super::result::Recorded;
use super::run::{CommandFailed, End, lacks};
use super::tasks::Task;
use anyhow::{Result, bail};
use serde::Serialize;

/// Makes or resumes the runs of the task at this index.
pub type Compare<'a> = &'a mut dyn FnMut(usize, &Task) -> Result<(Recorded, End)>;

pub struct Outcome {
    ran: Vec<Recorded>,
    pub failed: Vec<Failed>,
    /// Number of tasks.
    tasks: usize,
    pub stopped: bool,
    /// The machine could not be switched or restored, so the tasks after that were not run.
    broken: Option<anyhow::Error>,
}

/// The whole outcome, for JSON.
#[derive(Serialize)]
pub struct Whole<'a> {
    pub workloads: &'a [Report<'a>],
    /// None: it was stopped, or ended by an error.
    pub suite: &'a Option<Closing>,
}

/// Most runs that a task still lacks.
pub fn left(task: &Task) -> Result<usize> {
    let begun = match task.resume {
        true => Recorded::begun(&task.result)?,
        false => None,
    };
    let most = task.header.order().len();
    Ok(match begun {
        None => most,
        Some(recorded) if lacks(&recorded)? => most.saturating_sub(recorded.runs.len()),
        Some(_) => 0,
    })
}

/// Continues after a command that failed, but after no other error.
pub fn run_all(tasks: &[Task], compare: Compare, tell: &dyn Fn(&str)) -> Outcome {
    let mut outcome = Outcome {
        ran: Vec::new(),
        failed: Vec::new(),
        tasks: tasks.len(),
        stopped: false,
        broken: None,
    };
    for (at, task) in tasks.iter().enumerate() {
        let Some(item) = task.item.clone() else {
            continue;
        };
        match compare(at, task) {
            Ok((recorded, end)) => {
                outcome.ran.push(recorded);
                outcome.stopped = end == End::Stopped;
            }
            Err(e) if e.downcast_ref::<CommandFailed>().is_some() => {
                let (workload, error) = (item.name, format!("{e:#}"));
                tell(&format!(
                    "{workload} failed, going on with the others: {error}"
                ));
                outcome.failed.push(Failed { workload, error });
            }
            Err(e) => outcome.broken = Some(e.context(item.name)),
        }
        if outcome.stopped || outcome.broken.is_some() {
            break;
        }
    }
    outcome
}

impl Outcome {
    pub fn reports(&self) -> Result<Vec<Report<'_>>> {
        self.ran.iter().map(Report::new).collect()
    }

    /// The table of the suite. None: it was stopped, or ended by an error.
    pub fn closing(&self, reports: &[Report]) -> Option<Closing> {
        let ended = !self.stopped && self.broken.is_none();
        ended.then(|| Closing::new(reports, self.failed.clone()))
    }

    /// Fails if not all workloads ran to their end.
    pub fn end(self, stopped: &str) -> Result<()> {
        if let Some(error) = self.broken {
            return Err(error);
        }
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
