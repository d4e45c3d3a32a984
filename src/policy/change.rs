// SPDX-License-Identifier: GPL-2.0-only
//! A change of settings: what a file, a command line or a client says.

use crate::policy::features::{self, FeatureSet};
use crate::policy::profiles;
use crate::util::names::instead;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Why an empty change is refused.
pub(crate) const NO_CHANGE: &str = "nothing to change: give a profile, a preset, features to \
     enable or disable, or tunables to set";

/// The settings to change, by name. It is applied whole or not at all. `scx_roost profiles`,
/// `presets` and `features` list the names of each, `scx_roost ctl set --help` those of tunables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The profile that replaces all features and tunables.
    pub profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    /// The preset that replaces all features, and the profile.
    pub preset: Option<String>,
    /// Features to switch on.
    pub enable: Vec<String>,
    /// Features to switch off.
    pub disable: Vec<String>,
    /// Values as text or as numbers, by the names of the tunables. Most are in us; the help has the
    /// unit and the range of each.
    pub set: BTreeMap<String, Value>,
}

impl Change {
    /// Adds what a key of a file or an option of a command line says, with checks of names and
    /// values. False: the key is no setting.
    pub(crate) fn put(&mut self, key: &str, words: &[String]) -> Result<bool> {
        let one = || match words {
            [one] => Ok(one.clone()),
            _ => bail!("{key}: expected one value"),
        };
        match key {
            "profile" => {
                let name = one()?;
                profiles::profile(&name).with_context(|| unknown_profile(&name))?;
                self.profile = Some(name);
            }
            "preset" => {
                let name = one()?;
                features::preset(&name).with_context(|| unknown_preset(&name))?;
                self.preset = Some(name);
            }
            "enable" | "disable" => {
                for name in words {
                    known_feature(name)?;
                }
                let list = if key == "enable" {
                    &mut self.enable
                } else {
                    &mut self.disable
                };
                list.extend_from_slice(words);
            }
            _ => {
                let Some(row) = features::known_tunable(key) else {
                    return Ok(false);
                };
                let text = one()?;
                if let Err(possible) = row.parse(&text) {
                    bail!("{key} {text}: {possible}");
                }
                self.set.insert(key.to_string(), text.into());
            }
        }
        Ok(true)
    }

    /// The keys of a file that say the same.
    pub(crate) fn keys(&self) -> Vec<String> {
        let said = [
            ("profile", self.profile.is_some()),
            ("preset", self.preset.is_some()),
            ("enable", !self.enable.is_empty()),
            ("disable", !self.disable.is_empty()),
        ];
        let said = said.into_iter().filter(|(_, said)| *said);
        let choices = said.map(|(key, _)| key.to_string());
        choices.chain(self.set.keys().cloned()).collect()
    }

    /// What these keys say of it.
    pub(crate) fn only(&self, keys: &[&str]) -> Change {
        let has = |key: &str| keys.contains(&key);
        let list = |key: &str, names: &Vec<String>| match has(key) {
            true => names.clone(),
            false => Vec::new(),
        };
        let mut set = self.set.clone();
        set.retain(|key, _| has(key));
        Change {
            profile: self.profile.clone().filter(|_| has("profile")),
            preset: self.preset.clone().filter(|_| has("preset")),
            enable: list("enable", &self.enable),
            disable: list("disable", &self.disable),
            set,
        }
    }
}

pub(super) fn known_feature(name: &str) -> Result<FeatureSet> {
    let feature = features::feature(name).with_context(|| {
        let names: Vec<&str> = features::FEATURES.iter().map(|f| f.name).collect();
        format!("unknown feature '{name}': {}", instead(name, &names))
    })?;
    Ok(feature.bit)
}

pub(super) fn unknown_profile(name: &str) -> String {
    let names: Vec<&str> = profiles::PROFILES.iter().map(|p| p.name).collect();
    format!("unknown profile '{name}': {}", instead(name, &names))
}

pub(super) fn unknown_preset(name: &str) -> String {
    let names: Vec<&str> = features::PRESETS.iter().map(|p| p.name).collect();
    format!("unknown preset '{name}': {}", instead(name, &names))
}

pub(super) fn unknown_tunable(name: &str) -> String {
    let names: Vec<&str> = features::TUNABLES.iter().map(|t| t.name).collect();
    format!("unknown tunable '{name}': {}", instead(name, &names))
}
