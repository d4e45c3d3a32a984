// SPDX-License-Identifier: GPL-2.0-only
//! What a run is to begin with: the settings of arm default, other arms, and rules. Files and the
//! command line say it. What `ctl` has changed since stays on top of it when the files are read
//! again.

use crate::policy::arms::{Arms, DEFAULT_ARM};
use crate::policy::change::Change;
use crate::policy::rules::{Found, Rules, Whom};
use crate::policy::settings::Settings;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A rule: which tasks it puts on which arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleOf {
    pub whom: Whom,
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
    pub deleted_rules: Vec<Whom>,
}

impl Changes {
    /// The keys of all changes, as a file has them. Arms and rules that are gone are none.
    pub fn keys(&self) -> Vec<String> {
        let of_arm = |(arm, change): (&String, &Change)| {
            let key = |key: String| format!("arms.{arm}.{key}");
            change.keys().into_iter().map(key).collect::<Vec<_>>()
        };
        let rules = self
            .rules
            .iter()
            .map(|rule| format!("rules: {}", rule.whom));
        let arms = self.arms.iter().flat_map(of_arm);
        let everybody = self.everybody.keys().into_iter();
        everybody.chain(arms).chain(rules).collect()
    }

    /// The arms and rules that are gone.
    pub fn deleted(&self) -> Vec<String> {
        let arms = self.deleted_arms.iter().map(|name| format!("arm {name}"));
        let rules = self.deleted_rules.iter().map(|whom| format!("rule {whom}"));
        arms.chain(rules).collect()
    }
}

impl Plan {
    /// Adds a rule. It takes the place of one about the same subject.
    pub fn put_rule(&mut self, rule: &RuleOf) {
        match self.rules.iter_mut().find(|old| old.whom == rule.whom) {
            Some(old) => old.clone_from(rule),
            None => self.rules.push(rule.clone()),
        }
    }

    /// Fails if it could not be carried out: a name of an arm, a pattern of a name, a rule for an
    /// arm that does not exist, a full table.
    pub fn check(&self) -> Result<()> {
        let mut rules = Rules::default();
        let arms = self.applied(
            &Plan::default(),
            &Arms::new(self.everybody.clone()),
            &mut rules,
            1,
        )?;
        self.apply_rules(&Plan::default(), &arms, &mut rules, &|whom| match whom {
            Whom::Cgroup(path) => Ok(Some(Found::absent(path))),
            _ => Ok(None),
        })
    }

    /// The arms when this plan replaces the plan `old`. What differed from `old` stays different.
    /// Arms that only `old` has are deleted, unless rules of `ctl` name them. Those that `ctl` has
    /// deleted stay so, unless a rule names them. `rules` gets the tickets of new arms.
    pub fn applied(&self, old: &Plan, now: &Arms, rules: &mut Rules, nr_cpus: u32) -> Result<Arms> {
        let mut arms = now.clone();
        let deleted = old.deleted(rules);
        let needed = |arm: &str| {
            let mut live = self.rules.iter().filter(|r| !deleted.contains(&r.whom));
            live.any(|rule| rule.arm == arm)
        };
        arms.rebase(DEFAULT_ARM, &self.everybody, nr_cpus)?;
        for (name, settings) in &self.arms {
            match arms.slot(name) {
                Ok(_) => arms.rebase(name, settings, nr_cpus)?,
                Err(_) if old.arms.contains_key(name) && !needed(name) => (),
                Err(_) => {
                    let slot = arms.add(name, None, None)?;
                    arms.begin(slot, settings.clone());
                    rules.arm_added(slot);
                }
            }
        }
        let gone = old
            .arms
            .keys()
            .filter(|name| !self.arms.contains_key(*name));
        for name in gone {
            let planned = |rule: &RuleOf| old.rules.contains(rule);
            if let Ok(slot) = arms.slot(name)
                && !rules.iter().any(|r| {
                    let whom = r.whom.clone();
                    r.slot == slot
                        && !planned(&RuleOf {
                            whom,
                            arm: name.clone(),
                        })
                })
            {
                arms.delete(name)?;
                rules.arm_deleted(slot);
            }
        }
        Ok(arms)
    }

    /// The subjects of this plan's rules that `ctl` has deleted.
    fn deleted(&self, rules: &Rules) -> Vec<Whom> {
        let gone = |whom: &Whom| !rules.iter().any(|r| r.whom == *whom);
        let whoms = self.rules.iter().map(|rule| rule.whom.clone());
        whoms.filter(gone).collect()
    }

    /// Replaces the rules of the plan `old` by this plan's, which come first. A rule of `ctl` about
    /// the same subject stays, and one that it has deleted stays deleted. `find` looks up the
    /// cgroup of a rule.
    pub fn apply_rules(
        &self,
        old: &Plan,
        arms: &Arms,
        rules: &mut Rules,
        find: &dyn Fn(&Whom) -> Result<Option<Found>>,
    ) -> Result<()> {
        let has = |rules: &Rules, whom: &Whom| rules.iter().any(|r| r.whom == *whom);
        let deleted = old.deleted(rules);
        for rule in &old.rules {
            let planned = rules.iter().any(|r| {
                r.whom == rule.whom && arms.get(r.slot).is_none_or(|arm| arm.name == rule.arm)
            });
            if planned {
                rules.delete(&rule.whom)?;
            }
        }
        let mut added = 0;
        for rule in &self.rules {
            if has(rules, &rule.whom) || deleted.contains(&rule.whom) {
                continue;
            }
            let slot = arms
                .slot(&rule.arm)
                .with_context(|| format!("the rule {}", rule.whom))?;
            match (&rule.whom, find(&rule.whom)?) {
                (Whom::Cgroup(path), Some(found)) => rules.add_cgroup(path, found, slot)?,
                (Whom::Comm(glob), _) => rules.add_comm(glob, slot)?,
                (whom, _) => anyhow::bail!("the rule {whom} is only for a running scheduler"),
            }
            added += 1;
        }
        rules.last_first(added);
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
        let lasting = rules.iter().filter(|r| !matches!(r.whom, Whom::Pid(_)));
        let now: Vec<RuleOf> = lasting
            .filter_map(|r| {
                let (whom, arm) = (r.whom.clone(), name(r.slot)?);
                Some(RuleOf { whom, arm })
            })
            .collect();
        let gone = self.arms.keys().filter(|name| arms.slot(name).is_err());
        changes.deleted_arms = gone.cloned().collect();
        let kept = |rule: &&RuleOf| now.iter().any(|r| r.whom == rule.whom);
        let gone = self.rules.iter().filter(|rule| !kept(rule));
        changes.deleted_rules = gone.map(|rule| rule.whom.clone()).collect();
        changes.rules = now
            .into_iter()
            .filter(|r| !self.rules.contains(r))
            .collect();
        changes
    }
}
