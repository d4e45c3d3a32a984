// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost features`, `presets` and `profiles`: what there is to switch, from the tables.

use crate::policy::features::{self, Feature, Preset};
use crate::policy::profiles::{PROFILES, Profile};
use crate::util::text::paragraph;
use anyhow::Result;
use serde::Serialize;

const WIDTH: usize = 100;
const DOCS: &str = "docs/reference/features";

/// A feature, for JSON.
#[derive(Serialize)]
struct FeatureRow {
    name: &'static str,
    /// The feature without which this one does nothing; or empty.
    parent: &'static str,
    source: &'static str,
    help: &'static str,
    /// Counters that grow when it changes a decision.
    counters: Vec<&'static str>,
    /// Presets that have it.
    presets: Vec<&'static str>,
}

/// A preset, for JSON.
#[derive(Serialize)]
struct PresetRow {
    name: &'static str,
    help: &'static str,
    features: Vec<&'static str>,
}

/// A profile, for JSON.
#[derive(Serialize)]
struct ProfileRow {
    name: &'static str,
    help: &'static str,
    cost: &'static str,
    /// What `roost-sim` and `ab` compare.
    variant: &'static str,
}

impl FeatureRow {
    fn of(f: &'static Feature) -> FeatureRow {
        let has = features::PRESETS.iter().filter(|p| p.features.has(f.bit));
        FeatureRow {
            name: f.name,
            parent: f.parent,
            source: f.source,
            help: f.help,
            counters: f.counters.split_whitespace().collect(),
            presets: has.map(|p| p.name).collect(),
        }
    }

    fn is_default(&self) -> bool {
        self.presets.contains(&features::DEFAULT_PRESET)
    }

    fn row(&self) -> String {
        let of = match self.parent {
            "" => String::new(),
            parent => format!("with {parent}: "),
        };
        let on = if self.is_default() { "on" } else { "" };
        let what = format!("{of}{} ({})", self.help, self.source);
        paragraph(&format!("  {:<17} {on:<6} ", self.name), &what, WIDTH)
    }
}

impl PresetRow {
    fn of(p: &'static Preset) -> PresetRow {
        let has = features::FEATURES.iter().filter(|f| p.features.has(f.bit));
        PresetRow {
            name: p.name,
            help: p.help,
            features: has.map(|f| f.name).collect(),
        }
    }

    fn row(&self) -> String {
        let what = format!("{} [{}]", self.help, self.features.join(" "));
        paragraph(&format!("  {:<22} ", self.name), &what, WIDTH)
    }
}

impl ProfileRow {
    fn of(p: &'static Profile) -> ProfileRow {
        ProfileRow {
            name: p.name,
            help: p.help,
            cost: p.cost,
            variant: p.variant,
        }
    }

    fn row(&self) -> String {
        let what = format!("{}. Costs: {}. [{}]", self.help, self.cost, self.variant);
        paragraph(&format!("  {:<11} ", self.name), &what, WIDTH)
    }
}

/// All features, as text or JSON.
pub fn features(json: bool) -> Result<String> {
    let rows = features::FEATURES.iter().map(FeatureRow::of);
    match json {
        true => in_json(&rows.collect::<Vec<_>>()),
        false => Ok(format!(
            "Features. 'on': in the preset {}. {DOCS}/ has a page for each feature.\n\n{}",
            features::DEFAULT_PRESET,
            rows.map(|row| row.row()).collect::<String>()
        )),
    }
}

/// All presets, as text or JSON.
pub fn presets(json: bool) -> Result<String> {
    let rows: Vec<PresetRow> = features::PRESETS.iter().map(PresetRow::of).collect();
    listed(
        json,
        "Presets, with their features",
        "preset",
        &rows,
        PresetRow::row,
    )
}

/// All profiles, as text or JSON.
pub fn profiles(json: bool) -> Result<String> {
    let rows: Vec<ProfileRow> = PROFILES.iter().map(ProfileRow::of).collect();
    let what = "Profiles, with purpose, cost and variant";
    listed(json, what, "profile", &rows, ProfileRow::row)
}

/// `option`: what starts with one of the rows, and changes to it.
fn listed<Row: Serialize>(
    json: bool,
    what: &str,
    option: &str,
    rows: &[Row],
    text: fn(&Row) -> String,
) -> Result<String> {
    match json {
        true => in_json(&rows),
        false => Ok(format!(
            "{what}. scx_roost --{option} NAME starts with one,\n\
             scx_roost ctl set --{option} NAME changes to it.\n\n{}",
            rows.iter().map(text).collect::<String>()
        )),
    }
}

fn in_json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_listed() {
        let all = features(false).unwrap();
        for f in features::FEATURES {
            assert!(all.contains(&format!("\n  {:<17} ", f.name)), "{}", f.name);
        }
        let of_presets = presets(false).unwrap();
        for p in features::PRESETS {
            assert!(of_presets.contains(&format!("\n  {:<22} ", p.name)));
        }
        let of_profiles = profiles(false).unwrap();
        for p in PROFILES {
            assert!(of_profiles.contains(&format!("\n  {:<11} ", p.name)));
        }
        let widest = |text: &str| text.lines().map(|l| l.chars().count()).max();
        assert!(widest(&all) <= Some(WIDTH) && widest(&of_presets) <= Some(WIDTH));
        assert!(widest(&of_profiles) <= Some(WIDTH));
    }

    #[test]
    fn json_has_what_the_tables_have() {
        let all: serde_json::Value = serde_json::from_str(&features(true).unwrap()).unwrap();
        let rows = all.as_array().unwrap();
        assert_eq!(rows.len(), features::FEATURES.len());
        let claim = rows.iter().find(|row| row["name"] == "claim").unwrap();
        assert_eq!(claim["presets"], serde_json::json!(["roost", "patra"]));
        let all: serde_json::Value = serde_json::from_str(&presets(true).unwrap()).unwrap();
        assert_eq!(all.as_array().unwrap().len(), features::PRESETS.len());
        let all: serde_json::Value = serde_json::from_str(&profiles(true).unwrap()).unwrap();
        assert_eq!(all[0]["variant"], PROFILES[0].variant);
    }
}
