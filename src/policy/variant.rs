// SPDX-License-Identifier: GPL-2.0-only
//! A variant as one word, for comparisons: a preset or a profile, and after it the settings that
//! differ.

use crate::policy::change::Change;
use crate::policy::features;
use crate::policy::profiles;
use crate::util::names::instead;
use anyhow::{Result, bail, ensure};
use serde_json::Value;

/// The parts between the signs `+`. One after `=` belongs to a value: `freq-threshold=+5%`.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for part in name.split('+') {
        match parts.last_mut() {
            Some(last) if last.ends_with('=') => {
                last.push('+');
                last.push_str(part);
            }
            _ => parts.push(part.to_string()),
        }
    }
    parts
}

/// Reads `PRESET|PROFILE[+FEATURE=on|off][+TUNABLE=VALUE]...`; a feature without a value is on.
/// Errors: an unknown name, an invalid value.
pub fn change(name: &str) -> Result<Change> {
    let mut parts = parts(name).into_iter();
    let first = parts.next();
    let is_profile = |name: &String| profiles::profile(name).is_some();
    let (profile, preset) = match first.as_ref().is_some_and(is_profile) {
        true => (first, None),
        false => (None, first),
    };
    let mut change = Change {
        profile,
        preset,
        ..Change::default()
    };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((&part, "on"));
        if features::known_tunable(name).is_some() {
            change.set.insert(name.to_string(), value.into());
            continue;
        }
        ensure!(
            features::feature(name).is_some(),
            "there is no feature or tunable {name}: {}",
            instead(name, &settings_names())
        );
        match value {
            "on" => change.enable.push(name.to_string()),
            "off" => change.disable.push(name.to_string()),
            _ => bail!("{name} must be on or off, not {value}"),
        }
    }
    Ok(change)
}

/// The word of a change that begins with a preset or a profile: what `change` reads.
pub fn word(change: &Change) -> String {
    let base = change.profile.iter().chain(&change.preset).cloned();
    let on = change.enable.iter().cloned();
    let off = change.disable.iter().map(|name| format!("{name}=off"));
    let value = |value: &Value| value.as_str().map_or(value.to_string(), String::from);
    let set = change.set.iter();
    let set = set.map(|(name, to)| format!("{name}={}", value(to)));
    base.chain(on)
        .chain(off)
        .chain(set)
        .collect::<Vec<_>>()
        .join("+")
}

fn settings_names() -> Vec<&'static str> {
    let tunables = features::TUNABLES.iter().map(|t| t.name);
    features::FEATURES
        .iter()
        .map(|f| f.name)
        .chain(tunables)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_begin_with_plus() {
        let change = change("roost+freq-threshold=+5%+claim=off").unwrap();
        assert_eq!(change.preset.as_deref(), Some("roost"));
        assert_eq!(change.set["freq-threshold"], "+5%");
        assert_eq!(change.disable, ["claim"]);
    }
}
