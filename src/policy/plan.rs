// SPDX-License-Identifier: GPL-2.0-only
//! What a run is to begin with: the settings of arm default, other arms, and rules. Files and the
//! command line say it. When the files are read again, the run returns to it. A merge of old files,
//! new files and changes by `ctl` would need a rule for each conflict, which no user could foresee.

use crate::policy::arms::{Arms, DEFAULT_ARM};
use crate::policy::change::Change;
use crate::policy::rules::{Found, Rules, Subject};
use crate::policy::settings::Settings;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A rule: which tasks it puts on which arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleOf {
    pub subject: Subject,
    pub arm: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub everybody: Settings,
    /// Arms beside arm default, by name.
    pub arms: BTreeMap<String, Settings>,
    pub rules: Vec<RuleOf>,
}

/// What `ctl` has changed of a plan, for a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Of arm default.
    pub everybody: Change,
    pub arms: BTreeMap<String, Change>,
    pub rules: Vec<RuleOf>,
    /// Arms and rules of the plan that exist no longer.
    pub deleted_arms: Vec<String>,
    pub deleted_rules: Vec<Subject>,
}

impl Changes {
    /// Names of all changes, as a file has them, and of the arms and rules that are gone.
    pub fn names(&self) -> Vec<String> {
        let of_arm = |(arm, change): (&String, &Change)| {
            let key = |key: String| format!("arms.{arm}.{key}");
            match change.keys() {
                none if none.is_empty() => vec![format!("arms.{arm}")],
                keys => keys.into_iter().map(key).collect(),
            }
        };
        let rules = self
            .rules
            .iter()
            .map(|rule| format!("rules: {}", rule.subject));
        let arms = self.arms.iter().flat_map(of_arm);
        let gone_arms = self.deleted_arms.iter();
        let gone_arms = gone_arms.map(|name| format!("arms.{name} (deleted)"));
        let gone_rules = self.deleted_rules.iter();
        let gone_rules = gone_rules.map(|subject| format!("rules: {subject} (deleted)"));
        let everybody = self.everybody.keys().into_iter();
        let there = everybody.chain(arms).chain(rules);
        there.chain(gone_arms).chain(gone_rules).collect()
    }
}

impl Plan {
    /// Adds a rule. It takes the place of one about the same subject.
    pub fn put_rule(&mut self, rule: &RuleOf) {
        match self
            .rules
            .iter_mut()
            .find(|old| old.subject == rule.subject)
        {
            Some(old) => old.clone_from(rule),
            None => self.rules.push(rule.clone()),
        }
    }

    /// Fails if it could not be carried out: a name of an arm, a pattern of a name, a rule for an
    /// arm that does not exist, a full table.
    pub fn check(&self) -> Result<()> {
        let mut arms = Arms::new(self.everybody.clone());
        self.take_over(&mut arms, &mut Rules::default(), &|subject| match subject {
            Subject::Cgroup(path) => Ok(Some(Found::absent(path))),
            _ => Ok(None),
        })
    }

    /// Makes `arms` and `rules` those of this plan. An arm that stays keeps its slot, and with it
    /// the tasks of `exec` and the rules about processes, which no plan can have. `find` looks up
    /// the cgroup of a rule. After an error both may have a part of the plan.
    pub fn take_over(
        &self,
        arms: &mut Arms,
        rules: &mut Rules,
        find: &dyn Fn(&Subject) -> Result<Option<Found>>,
    ) -> Result<()> {
        self.take_over_arms(arms, rules)?;
        for rule in &self.rules {
            let slot = arms
                .slot(&rule.arm)
                .with_context(|| format!("the rule {}", rule.subject))?;
            match (&rule.subject, find(&rule.subject)?) {
                (Subject::Cgroup(path), Some(found)) => rules.add_cgroup(path, found, slot)?,
                (Subject::Comm(glob), _) => rules.add_comm(glob, slot)?,
                (subject, _) => anyhow::bail!("the rule {subject} is only for a running scheduler"),
            }
        }
        Ok(())
    }

    /// Of the rules only those about processes stay, if their arm does.
    fn take_over_arms(&self, arms: &mut Arms, rules: &mut Rules) -> Result<()> {
        let stays = |name: &str| name == DEFAULT_ARM || self.arms.contains_key(name);
        let gone = arms.iter().filter(|(_, arm)| !stays(&arm.name));
        let gone: Vec<(usize, String)> = gone.map(|(slot, arm)| (slot, arm.name.clone())).collect();
        rules.keep_processes(|slot| gone.iter().all(|(of_arm, _)| *of_arm != slot));
        for (slot, name) in gone {
            arms.delete(&name)?;
            rules.arm_deleted(slot);
        }
        let power = arms.everybody().settings.power();
        arms.begin(0, self.everybody.under(power));
        for (name, settings) in &self.arms {
            let there = arms.slot(name);
            let slot = there.or_else(|_| {
                let slot = arms.add(name, None, None)?;
                rules.arm_added(slot);
                anyhow::Ok(slot)
            })?;
            arms.begin(slot, settings.under(power));
        }
        Ok(())
    }

    /// How arms and rules differ from this plan, on a machine of `nr_cpus` CPUs.
    pub fn changes(&self, arms: &Arms, rules: &Rules, nr_cpus: u32) -> Changes {
        let mut changes = Changes::default();
        for (_, arm) in arms.iter() {
            let planned = match arm.name.as_str() {
                DEFAULT_ARM => Some(&self.everybody),
                name => self.arms.get(name),
            };
            let base = planned.unwrap_or(&arms.everybody().settings).clone();
            let base = match arm.name.as_str() {
                DEFAULT_ARM => base,
                _ => base.of_one_arm(),
            };
            let change = arm.settings.since(&base, nr_cpus);
            if arm.name == DEFAULT_ARM {
                changes.everybody = change;
            } else if planned.is_none() || change != Change::default() {
                changes.arms.insert(arm.name.clone(), change);
            }
        }
        let name = |slot| arms.get(slot).map(|arm| arm.name.clone());
        let lasting = rules
            .iter()
            .filter(|r| !matches!(r.subject, Subject::Pid(_)));
        let now: Vec<RuleOf> = lasting
            .filter_map(|r| {
                let (subject, arm) = (r.subject.clone(), name(r.slot)?);
                Some(RuleOf { subject, arm })
            })
            .collect();
        let gone = self.arms.keys().filter(|name| arms.slot(name).is_err());
        changes.deleted_arms = gone.cloned().collect();
        let kept = |rule: &&RuleOf| now.iter().any(|r| r.subject == rule.subject);
        let gone = self.rules.iter().filter(|rule| !kept(rule));
        changes.deleted_rules = gone.map(|rule| rule.subject.clone()).collect();
        changes.rules = now
            .into_iter()
            .filter(|r| !self.rules.contains(r))
            .collect();
        changes
    }
}
