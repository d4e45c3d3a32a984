// SPDX-License-Identifier: GPL-2.0-only
//! Checks that need the whole workload.

use super::{Load, Measure, Step};
use anyhow::{Result, bail, ensure};

/// The most tasks, and the most objects of a kind.
pub const MOST: u64 = 1_000_000;

impl Load {
    /// Errors: too many tasks.
    pub(super) fn bounded(self) -> Result<Load> {
        let most = self.groups.iter().max_by_key(|g| g.count);
        let tasks = self.groups.iter().map(|g| g.count);
        let tasks = tasks.fold(0, u64::saturating_add);
        ensure!(
            tasks <= MOST,
            "{tasks} tasks, most of them {}: expected at most {MOST}",
            most.map_or("", |g| &g.name)
        );
        Ok(self)
    }

    /// Errors: no task counts or times what is measured.
    pub(super) fn check_measure(&self) -> Result<()> {
        let counted = self.marks_of(|step| match step {
            Step::Count(mark, _) => Some(*mark),
            _ => None,
        });
        let timed = self.marks_of(|step| match step {
            Step::Latency(mark) => Some(*mark),
            _ => None,
        });
        let (mark, step, known) = match self.measure {
            Measure::Time => return Ok(()),
            Measure::Rate(mark) => (mark, "count", counted),
            Measure::Latency(mark) => (mark, "latency", timed),
        };
        let name = &self.marks[mark];
        if !known.contains(&name.as_str()) {
            let others = match known.is_empty() {
                true => String::new(),
                false => format!("; there is '{step}' of: {}", known.join(" ")),
            };
            bail!("no task has '{step} {name}'{others}");
        }
        let mut steps = self.groups.iter().flat_map(|g| g.program.iter());
        ensure!(
            step == "count" || steps.any(|s| matches!(s, Step::Stamp)),
            "no task has a 'stamp', where 'latency {name}' starts"
        );
        Ok(())
    }

    /// Names of the marks that steps use.
    fn marks_of(&self, of: impl Fn(&Step) -> Option<usize>) -> Vec<&str> {
        let steps = self.groups.iter().flat_map(|g| g.program.iter());
        let mut marks: Vec<usize> = steps.filter_map(of).collect();
        marks.sort_unstable();
        marks.dedup();
        marks.iter().map(|&m| self.marks[m].as_str()).collect()
    }
}
