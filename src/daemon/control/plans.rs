// SPDX-License-Identifier: GPL-2.0-only
//! The plan of arms and rules: at the start, when the run returns to the files, and what `ctl` has
//! changed of it, for `ctl save`. And the power setting, which arms with the profile `auto` follow.

use super::{Control, ControlState, Pending};
use crate::machine::Power;
use crate::policy::file::Said;
use crate::policy::plan::{Changes, Plan};
use crate::policy::rules::{Found, Subject};
use crate::util::refusal::refuse;
use crate::util::text::count;
use anyhow::{Context, Result, anyhow, ensure};
use log::{info, warn};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What the files and the command line say now.
pub struct Reading {
    pub plan: Plan,
    /// The options that differ and that only a start takes over.
    pub restart: Vec<String>,
    /// What the file of `ctl save` says.
    pub saved: Said,
}

/// Reads the files again. With a text: as if the file of `ctl save` had it.
pub type Reader = dyn Fn(Option<&str>) -> Result<Reading> + Send + Sync;

const SAVED_HEAD: &str =
    "# Written by scx_roost ctl save. Remove this file to return to the others.\n";

/// Attempts to find a file with which the next start has all that is in force.
const SAVES_MAX: usize = 4;

/// Where the plan comes from.
#[derive(Clone, Default)]
pub struct Origin {
    /// None: nothing can be read again.
    pub read: Option<Arc<Reader>>,
    /// The file that `ctl save` writes.
    pub saved: Option<PathBuf>,
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Origin({:?})", self.saved)
    }
}

/// A plan that was read, with its cgroups looked up.
pub(super) struct Read {
    plan: Plan,
    found: BTreeMap<PathBuf, Found>,
    restart: Vec<String>,
    /// A later reading has seen what this one has seen.
    number: u64,
}

impl Read {
    /// Asks the file system, so nothing may be locked.
    fn of(plan: Plan, restart: Vec<String>, number: u64) -> Result<Read> {
        let mut found = BTreeMap::new();
        for rule in &plan.rules {
            if let Subject::Cgroup(path) = &rule.subject {
                found.insert(path.clone(), Found::planned(path)?);
            }
        }
        Ok(Read {
            plan,
            found,
            restart,
            number,
        })
    }
}

impl Control {
    /// Begins with this plan. Fails if it is not possible.
    pub fn begin(&self, plan: Plan, origin: Origin) -> Result<()> {
        let read = Read::of(plan, Vec::new(), 0)?;
        let mut state = self.lock();
        state.origin = origin;
        state.take_over(&read)
    }

    /// Reads the plan again and takes it over, or changes nothing. Logs either.
    pub fn read_again(&self) {
        match self.read_plan().and_then(|read| self.take_over(&read)) {
            Ok(()) => (),
            Err(e) if e.is::<Pending>() => warn!("the configuration was read again: {e:#}"),
            Err(e) => {
                warn!("the configuration was not read again, and nothing has changed: {e:#}");
            }
        }
    }

    /// Reads files, so nothing may be locked.
    pub(super) fn read_plan(&self) -> Result<Read> {
        let mut state = self.lock();
        state.readings += 1;
        let number = state.readings;
        let read = state.reader()?;
        drop(state);
        let reading = read(None)?;
        Read::of(reading.plan, reading.restart, number)
    }

    /// The file of `ctl save` and its text. With it the next start has all that is in force; if
    /// that is not possible, nothing is saved. Reads files, so nothing may be locked.
    pub(super) fn saved(&self) -> Result<Value> {
        let state = self.lock();
        let Some(file) = state.origin.saved.clone() else {
            let text =
                "the scheduler reads no drop-ins: start it without --config, or give it a folder";
            return Err(refuse(libc::EOPNOTSUPP, text));
        };
        let read = state.reader()?;
        drop(state);
        let now = read(None)?;
        let mut left = self.changes(&now.plan);
        if left == Changes::default() {
            let text = "nothing to save: the files have all that is in force";
            return Err(refuse(libc::ENODATA, text));
        }
        let (mut said, mut text) = (now.saved, None);
        // The first attempt has what has changed, those afterwards what it has changed by the way,
        // as an arm that begins as arm default.
        for _ in 0..SAVES_MAX {
            said = said.then(&left);
            let next = Some(SAVED_HEAD.to_string() + &said.text()?);
            if left == Changes::default() || next == text {
                break;
            }
            let then = read(next.as_deref());
            let then = then.context("not saved, because the next start would fail")?;
            left = self.changes(&then.plan);
            text = next;
        }
        ensure!(
            left == Changes::default(),
            "not saved, because another file or the command line decides these: {}; change it \
             there, or here so that both agree",
            left.names().join(", ")
        );
        Ok(json!({"file": file, "text": text}))
    }

    fn changes(&self, plan: &Plan) -> Changes {
        self.lock().changes(plan)
    }

    fn take_over(&self, read: &Read) -> Result<()> {
        let mut state = self.lock();
        state.read_again(read)?;
        state.bell.ring();
        state
            .flush()
            .map_err(|e| anyhow!(Pending(format!("{e:#}"))))
    }

    /// Whether an arm follows the power setting. With --freeze it stays as without one.
    pub fn follows_power(&self) -> bool {
        self.lock()
            .arms
            .iter()
            .any(|(_, arm)| arm.settings.follows())
    }

    /// Tells arms with the profile `auto` the power setting. `why`: what says it.
    pub fn follow_power(&self, power: Power, why: &str) {
        let mut state = self.lock();
        if state.frozen || !state.arms.follow(power) {
            return;
        }
        state.arms_changed = true;
        for (_, arm) in state.arms.iter().filter(|(_, arm)| arm.settings.follows()) {
            info!(
                "arm {}: {} ({}), because the machine {power} ({why})",
                arm.name,
                arm.settings.shown_as(state.nr_cpus),
                arm.settings.features
            );
        }
        if let Err(e) = state.flush() {
            warn!("cannot follow the power setting yet, the next look tries again: {e:#}");
        }
    }
}

impl ControlState {
    fn reader(&self) -> Result<Arc<Reader>> {
        let without = "the scheduler was started without a configuration";
        let read = self.origin.read.clone();
        read.ok_or_else(|| refuse(libc::EOPNOTSUPP, without))
    }

    /// As `take_over`, and logs it.
    pub(super) fn read_again(&mut self, read: &Read) -> Result<()> {
        if read.number < self.taken {
            return Ok(());
        }
        // After `ctl save` the files have what it has changed.
        let dropped = match self.changes(&read.plan) {
            none if none == Changes::default() => none,
            _ => self.changes(&self.plan),
        };
        self.take_over(read)?;
        self.taken = read.number;
        info!(
            "the configuration was read again: {} beside arm default, {}",
            count(self.plan.arms.len(), "arm"),
            count(self.plan.rules.len(), "rule")
        );
        if dropped != Changes::default() {
            warn!(
                "what ctl had changed was dropped: {}",
                dropped.names().join(", ")
            );
        }
        if !read.restart.is_empty() {
            warn!(
                "these options of the configuration have changed and need a restart: {}",
                read.restart.join(", ")
            );
        }
        Ok(())
    }

    fn changes(&self, plan: &Plan) -> Changes {
        plan.changes(&self.arms, &self.rules, self.nr_cpus)
    }

    /// All of the plan, or none.
    fn take_over(&mut self, read: &Read) -> Result<()> {
        if self.frozen {
            let whole = read.plan.everybody == self.plan.everybody;
            let empty = read.plan.arms.is_empty() && read.plan.rules.is_empty();
            return match whole && empty {
                true => Ok(()),
                false => Err(super::frozen()),
            };
        }
        let (mut arms, mut rules) = (self.arms.clone(), self.rules.clone());
        let found = |subject: &Subject| match subject {
            Subject::Cgroup(path) => read.found.get(path).cloned().map(Some).context("looked up"),
            _ => Ok(None),
        };
        read.plan.take_over(&mut arms, &mut rules, &found)?;
        (self.arms, self.rules, self.plan) = (arms, rules, read.plan.clone());
        (self.arms_changed, self.rules_changed) = (true, true);
        Ok(())
    }
}
