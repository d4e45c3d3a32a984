// SPDX-License-Identifier: GPL-2.0-only
//! The plan of arms and rules: at the start, when the files are read again, and what `ctl` has
//! changed of it, for `ctl save`. And the power setting, which arms with the profile `auto` follow.

use super::{Control, State};
use crate::machine::Power;
use crate::policy::plan::Plan;
use crate::policy::rules::{Found, Whom};
use crate::util::refusal::refuse;
use crate::util::text::count;
use anyhow::{Context, Result};
use log::{info, warn};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Reads the plan again. Also returns the options that differ and that only a start takes over.
pub type Reader = dyn Fn() -> Result<(Plan, Vec<String>)> + Send + Sync;

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
}

impl Read {
    /// Asks the file system, so nothing may be locked.
    pub(super) fn of(plan: Plan, restart: Vec<String>) -> Result<Read> {
        let mut found = BTreeMap::new();
        for rule in &plan.rules {
            if let Whom::Cgroup(path) = &rule.whom {
                found.insert(path.clone(), Found::planned(path)?);
            }
        }
        Ok(Read {
            plan,
            found,
            restart,
        })
    }
}

impl Control {
    /// Begins with this plan. Fails if it is not possible.
    pub fn begin(&self, plan: Plan, origin: Origin) -> Result<()> {
        let read = Read::of(plan, Vec::new())?;
        let mut state = self.lock();
        state.origin = origin;
        state.take_over(&read)
    }

    /// Reads the plan again and takes it over, or changes nothing. Logs either.
    pub fn read_again(&self) {
        if let Err(e) = self.read_plan().and_then(|read| self.take_over(&read)) {
            warn!("the configuration was not read again, and nothing has changed: {e:#}");
        }
    }

    /// Reads files, so nothing may be locked.
    pub(super) fn read_plan(&self) -> Result<Read> {
        let origin = self.lock().origin.clone();
        let read = origin.read.ok_or_else(|| {
            refuse(
                libc::EOPNOTSUPP,
                "the scheduler was started without a configuration",
            )
        })?;
        let (plan, restart) = read()?;
        Read::of(plan, restart)
    }

    fn take_over(&self, read: &Read) -> Result<()> {
        let mut state = self.lock();
        state.read_again(read)?;
        state.bell.ring();
        state.flush()
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
                "arm {}: profile {}, preset {} ({}), because the machine {power} ({why})",
                arm.name,
                arm.settings.profile(),
                arm.settings.preset,
                arm.settings.features
            );
        }
        if let Err(e) = state.flush() {
            warn!("cannot follow the power setting yet, the next look tries again: {e:#}");
        }
    }
}

impl State {
    /// As `take_over`, and logs it.
    pub(super) fn read_again(&mut self, read: &Read) -> Result<()> {
        self.take_over(read)?;
        info!(
            "the configuration was read again: {} beside arm default, {}",
            count(self.plan.arms.len(), "arm"),
            count(self.plan.rules.len(), "rule")
        );
        if !read.restart.is_empty() {
            warn!(
                "these options of the configuration have changed and need a restart: {}",
                read.restart.join(", ")
            );
        }
        Ok(())
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
        let mut rules = self.rules.clone();
        let arms = read.plan.applied(&self.plan, &self.arms, &mut rules)?;
        let found = |whom: &Whom| match whom {
            Whom::Cgroup(path) => read.found.get(path).cloned().map(Some).context("looked up"),
            _ => Ok(None),
        };
        read.plan
            .apply_rules(&self.plan, &arms, &mut rules, &found)?;
        (self.arms, self.rules, self.plan) = (arms, rules, read.plan.clone());
        (self.arms_changed, self.rules_changed) = (true, true);
        Ok(())
    }

    /// What `ctl` has changed of the plan, and the file for it.
    pub(super) fn changes(&self) -> Result<Value> {
        let Some(file) = &self.origin.saved else {
            let text =
                "the scheduler reads no drop-ins: start it without --config, or give it a folder";
            return Err(refuse(libc::EOPNOTSUPP, text));
        };
        let changes = self.plan.changes(&self.arms, &self.rules);
        Ok(json!({"file": file, "changes": changes}))
    }
}
