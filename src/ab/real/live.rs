// SPDX-License-Identifier: GPL-2.0-only
//! What `ctl` had set in a scx_roost that was attached at the start. It is lost with the process,
//! and is set again in the next one.

use super::service::Running;
use crate::cli::{self, Command};
use crate::policy::arms::DEFAULT_ARM;
use crate::policy::change::Change;
use crate::policy::features::{self, FeatureSet};
use crate::policy::rules::Whom;
use crate::policy::settings::Settings;
use crate::wire::client::ask;
use crate::wire::protocol::Op;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time from attaching to answering.
const ANSWER_TIME: Duration = Duration::from_secs(10);
const NAP: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    arms: Vec<Arm>,
    rules: Vec<Rule>,
}

/// As `ctl show` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Arm {
    name: String,
    /// 'auto: powersave' if it follows the machine's power setting; empty: none.
    #[serde(default)]
    profile: String,
    preset: String,
    features: String,
    tunables: Tunables,
}

/// As `ctl rules` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Rule {
    whom: Whom,
    arm: String,
}

/// The control socket of a scx_roost among these processes, from its command line and its
/// configuration files. Fails if a start with them would fail now.
pub fn ctl_path(running: &[Running]) -> Result<Option<PathBuf>> {
    let path = |one: &Running| match cli::parse(one.words.iter()) {
        Ok(Command::Run { config, .. }) => Some(Ok(config.ctl_path)),
        Ok(_) => None,
        Err(e) => Some(Err(e)),
    };
    let ours = running.iter().filter(|one| one.program() == "scx_roost");
    let mut errors = Vec::new();
    for found in ours.filter_map(path) {
        match found {
            Ok(ctl) => return Ok(Some(ctl)),
            Err(e) => errors.push(e),
        }
    }
    errors.into_iter().next().map_or(Ok(None), Err)
}

impl Live {
    /// Parses the answers to `ctl show` and `ctl rules`.
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

    /// A warning if something will be lost. Processes may have chosen an arm (`exec`); that is not
    /// visible here and ends with the scheduler.
    pub fn loses(&self) -> Option<&'static str> {
        let others = self.arms.iter().any(|arm| arm.name != DEFAULT_ARM);
        others.then_some(
            "the attached scheduler has arms: processes put there by `exec` and by rules about processes are not put back when it is started again; everything else that ctl has set is restored",
        )
    }

    /// Sets everything again in a scheduler that was just attached. `nr_cpus`: how many are online.
    /// Fails if a request was refused.
    pub fn give_back(&self, ctl: &Path, nr_cpus: u32) -> Result<()> {
        let end = Instant::now() + ANSWER_TIME;
        let mut now = Live::ask(ctl);
        while now.is_err() && Instant::now() < end {
            sleep(NAP);
            now = Live::ask(ctl);
        }
        let now = now?;
        let mut wrong = send(ctl, self.surplus(&now));
        wrong.extend(send(ctl, self.arms_to_add(&now)));
        // The new arms are compared with the settings they got when they were added.
        wrong.extend(send(ctl, self.changes(&Live::ask(ctl)?, nr_cpus)));
        ensure!(wrong.is_empty(), "{}", wrong.join("; "));
        Ok(())
    }

    /// Removes what was not there before: rules first, and rules that now name another arm. Rules
    /// for single processes stay.
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
            profile: None,
        };
        new.map(add).collect()
    }

    /// Requests to run once all arms exist.
    pub fn changes(&self, now: &Live, nr_cpus: u32) -> Vec<Op> {
        let differ = |arm: &&Arm| now.arm(&arm.name) != Some(*arm);
        let set = self.arms.iter().filter(differ).flat_map(|arm| {
            let changes = [
                Some(arm.change(now.arm(&arm.name), nr_cpus)),
                arm.disable_parents(),
            ];
            changes.into_iter().flatten().map(|change| Op::Set {
                arm: arm.name.clone(),
                change,
            })
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

/// The errors.
fn send(ctl: &Path, ops: Vec<Op>) -> Vec<String> {
    let wrong = |op: &Op| Some(format!("{:#}", ask(ctl, op).err()?));
    ops.iter().filter_map(wrong).collect()
}

impl Arm {
    fn has(&self, name: &str) -> bool {
        self.features.split(' ').any(|feature| feature == name)
    }

    /// Features that are off, though a sub-switch of theirs is on. To switch that on, they must be
    /// on for a moment.
    fn missing_parents(&self) -> Vec<String> {
        let subswitches = features::FEATURES.iter().filter(|f| !f.parent.is_empty());
        let orphans = subswitches.filter(|f| self.has(f.name) && !self.has(f.parent));
        let mut parents: Vec<String> = orphans.map(|f| f.parent.to_string()).collect();
        parents.sort_unstable();
        parents.dedup();
        parents
    }

    /// The second change, if `change` enabled features that this arm does not have.
    fn disable_parents(&self) -> Option<Change> {
        let disable = self.missing_parents();
        (!disable.is_empty()).then(|| Change {
            disable,
            ..Change::default()
        })
    }

    /// The change that makes `now` equal to this arm, but for missing parents, which it enables.
    fn change(&self, now: Option<&Arm>, nr_cpus: u32) -> Change {
        let missing = self.missing_parents();
        let is = |name: &str| self.has(name) || missing.iter().any(|parent| parent == name);
        let followed = self.followed();
        let base = match &followed {
            Some(settings) => settings.features,
            None => features::preset(&self.preset).map_or_else(FeatureSet::default, |p| p.features),
        };
        let other = features::FEATURES
            .iter()
            .filter(|f| is(f.name) != base.has(f.bit));
        let (on, off): (Vec<_>, Vec<_>) = other.partition(|f| is(f.name));
        let names = |all: Vec<&features::Feature>| all.iter().map(|f| f.name.to_string()).collect();
        let set = self.to_set(followed.as_ref(), now, nr_cpus);
        let profile = followed.and(self.profile.split(": ").next());
        Change {
            profile: profile.map(str::to_string),
            preset: profile.is_none().then(|| self.preset.clone()),
            enable: names(on),
            disable: names(off),
            set,
        }
    }

    /// The settings of its profile, under the power setting that the machine had then.
    fn followed(&self) -> Option<Settings> {
        let profile = self.profile.rsplit(": ").next().map(str::to_string);
        let change = Change {
            profile: profile.filter(|name| !name.is_empty()),
            ..Change::default()
        };
        Settings::default().changed(&change).ok()
    }

    /// The tunables to set after the profile or the preset. A profile replaces all; a preset keeps
    /// those that were set, and drops those of a profile.
    fn to_set(&self, followed: Option<&Settings>, now: Option<&Arm>, nr_cpus: u32) -> Tunables {
        let usual = Settings::default();
        let Some(now) = now.filter(|_| followed.is_none()) else {
            return fewest(&self.tunables, followed.unwrap_or(&usual), nr_cpus);
        };
        let here = fewest(&now.tunables, &usual, nr_cpus);
        if now.profile.is_empty() {
            let kept = with(&usual, &here).unwrap_or(usual);
            return fewest(&self.tunables, &kept, nr_cpus);
        }
        // Set, or of the profile: that is not visible.
        let mut all = fewest(&self.tunables, &usual, nr_cpus);
        let either = self.tunables.iter().filter(|(n, _)| here.contains_key(*n));
        all.extend(either.map(|(n, v)| (n.clone(), v.clone())));
        all
    }
}

type Tunables = BTreeMap<String, Value>;

fn with(base: &Settings, set: &Tunables) -> Result<Settings> {
    if set.is_empty() {
        return Ok(base.clone());
    }
    base.changed(&Change {
        set: set.clone(),
        ..Change::default()
    })
}

/// What must be set on `base` for these effective values. A value that has adapted to another one
/// is not set.
fn fewest(values: &Tunables, base: &Settings, nr_cpus: u32) -> Tunables {
    let has = |settings: &Settings, (name, value): (&String, &Value)| {
        let row = features::known_tunable(name);
        row.is_none_or(|row| row.shown(settings.value(row, nr_cpus)) == *value)
    };
    let mut set = values.clone();
    for name in values.keys() {
        let mut fewer = set.clone();
        fewer.remove(name);
        let enough = |settings: Settings| values.iter().all(|one| has(&settings, one));
        if features::known_tunable(name).is_some() && with(base, &fewer).is_ok_and(enough) {
            set = fewer;
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::features::bits;

    fn live(features: &str) -> Live {
        let arm = Arm {
            name: "default".into(),
            profile: String::new(),
            preset: "mainline".into(),
            features: features.into(),
            tunables: BTreeMap::new(),
        };
        Live {
            arms: vec![arm],
            rules: Vec::new(),
        }
    }

    /// claim was switched off, and core_claim stays on without effect. That alone is refused.
    #[test]
    fn a_sub_switch_without_its_feature_is_given_back() {
        let then = live("prev_idle core_claim");
        let mut settings = Settings::default();
        for op in then.changes(&live("prev_idle"), 8) {
            let Op::Set { change, .. } = op else {
                panic!("{op:?}")
            };
            settings = settings.changed(&change).unwrap();
        }
        let features = settings.features;
        assert!(features.has(bits::core_claim), "{features}");
        assert!(!features.has(bits::claim), "{features}");
    }
}
