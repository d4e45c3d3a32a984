// SPDX-License-Identifier: GPL-2.0-only
//! What `ctl` has set of a scheduler of ours that was attached at the start. It goes with its process, and is given back to the next one.

use super::service::Running;
use crate::arms::{Change, DEFAULT_ARM};
use crate::cli::{self, Command};
use crate::control::Op;
use crate::ctl::ask;
use crate::features::{self, FeatureSet};
use crate::rules::Whom;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// From being attached to answering.
const ANSWER_TIME: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    arms: Vec<Arm>,
    rules: Vec<Rule>,
}

/// As `ctl show` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Arm {
    name: String,
    preset: String,
    features: String,
    tunables: BTreeMap<String, Value>,
}

/// As `ctl rules` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Rule {
    whom: Whom,
    arm: String,
}

/// The control socket of a scheduler of ours among these, by how it was started.
pub fn ctl_path(running: &[Running]) -> Option<PathBuf> {
    let path = |one: &Running| match cli::parse(one.words.iter()) {
        Ok(Command::Run { config, .. }) if one.program() == "scx_roost" => Some(config.ctl_path),
        _ => None,
    };
    running.iter().find_map(path)
}

impl Live {
    /// Of `ctl show` and `ctl rules`.
    pub fn of(shown: &Value, rules: &Value) -> Result<Live> {
        Ok(Live {
            arms: Vec::deserialize(&shown["arms"]).context("an answer of the scheduler")?,
            rules: Vec::deserialize(rules).context("an answer of the scheduler")?,
        })
    }

    pub fn ask(ctl: &Path) -> Result<Live> {
        Live::of(
            &ask(ctl, &Op::Show { arm: None })?,
            &ask(ctl, &Op::Rules {})?,
        )
    }

    /// Processes may be on an arm by what they were told, which is not known and ends with the scheduler.
    pub fn loses(&self) -> Option<&'static str> {
        let others = self.arms.iter().any(|arm| arm.name != DEFAULT_ARM);
        others.then_some(
            "the attached scheduler has arms: what `exec` and rules about processes put there does not go back when it is started again, \
             all else that ctl has set does",
        )
    }

    /// To a scheduler that has just been attached. Errors: not all could be given.
    pub fn give_back(&self, ctl: &Path) -> Result<()> {
        let end = Instant::now() + ANSWER_TIME;
        let mut now = Live::ask(ctl);
        while now.is_err() && Instant::now() < end {
            sleep(NAP);
            now = Live::ask(ctl);
        }
        let now = now?;
        let mut wrong = told(ctl, self.surplus(&now));
        wrong.extend(told(ctl, self.arms_to_add(&now)));
        // With what is theirs from their start.
        wrong.extend(told(ctl, self.changes(&Live::ask(ctl)?)));
        ensure!(wrong.is_empty(), "{}", wrong.join("; "));
        Ok(())
    }

    /// What was not there goes, rules first; so do rules that name another arm now. What processes were told is theirs.
    pub fn surplus(&self, now: &Live) -> Vec<Op> {
        let new = |rule: &&Rule| !matches!(rule.whom, Whom::Pid(_)) && !self.rules.contains(rule);
        let rules = now.rules.iter().filter(new).map(|rule| Op::RuleDel {
            whom: rule.whom.clone(),
        });
        let new = now.arms.iter().filter(|arm| self.arm(&arm.name).is_none());
        let arms = new.map(|arm| Op::ArmDel {
            arm: arm.name.clone(),
        });
        rules.chain(arms).collect()
    }

    pub fn arms_to_add(&self, now: &Live) -> Vec<Op> {
        let new = self.arms.iter().filter(|arm| now.arm(&arm.name).is_none());
        let add = |arm: &Arm| Op::ArmAdd {
            arm: arm.name.clone(),
            preset: Some(arm.preset.clone()),
        };
        new.map(add).collect()
    }

    /// What it takes when all arms are there.
    pub fn changes(&self, now: &Live) -> Vec<Op> {
        let differ = |arm: &&Arm| now.arm(&arm.name) != Some(*arm);
        let set = self.arms.iter().filter(differ).map(|arm| Op::Set {
            arm: arm.name.clone(),
            change: arm.change(now.arm(&arm.name)),
        });
        let lost = |rule: &&Rule| !matches!(rule.whom, Whom::Pid(_)) && !now.rules.contains(rule);
        let add = self.rules.iter().filter(lost).map(|rule| Op::RuleAdd {
            whom: rule.whom.clone(),
            arm: rule.arm.clone(),
        });
        set.chain(add).collect()
    }

    fn arm(&self, name: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.name == name)
    }
}

/// What went wrong.
fn told(ctl: &Path, ops: Vec<Op>) -> Vec<String> {
    let wrong = |op: &Op| Some(format!("{:#}", ask(ctl, op).err()?));
    ops.iter().filter_map(wrong).collect()
}

impl Arm {
    /// From what it is now.
    fn change(&self, now: Option<&Arm>) -> Change {
        let is = |name: &str| self.features.split(' ').any(|f| f == name);
        let preset = features::preset(&self.preset);
        let preset = preset.map_or_else(FeatureSet::default, |p| p.features);
        let other = features::FEATURES
            .iter()
            .filter(|f| is(f.name) != preset.has(f.bit));
        let (on, off): (Vec<_>, Vec<_>) = other.partition(|f| is(f.name));
        let names = |all: Vec<&features::Feature>| all.iter().map(|f| f.name.to_string()).collect();
        let has = |name: &String| now.and_then(|now| now.tunables.get(name));
        let tunables = self.tunables.iter();
        let tunables = tunables.filter(|(name, value)| has(name) != Some(*value));
        Change {
            preset: Some(self.preset.clone()),
            enable: names(on),
            disable: names(off),
            set: tunables.map(|(n, v)| (n.clone(), v.clone())).collect(),
        }
    }
}
