// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost features`, `presets` and `profiles`: what there is to switch, from the tables.

use crate::policy::features::{self, Feature, Preset};
use crate::policy::profiles::{PROFILES, Profile};
use crate::util::names::instead;
use crate::util::text::{paragraph, wrap};
use anyhow::{Result, anyhow};
use serde::Serialize;
use std::fmt::Write;

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

    fn page(&self) -> String {
        let listed = |names: &[&str]| match names {
            [] => "none".to_string(),
            names => names.join(" "),
        };
        let mut text = format!("{} ({})\n", self.name, self.source);
        for line in wrap(self.help, WIDTH - 2) {
            let _ = writeln!(text, "  {line}");
        }
        if !self.parent.is_empty() {
            let _ = writeln!(text, "needs      {}", self.parent);
        }
        let page = match self.parent {
            "" => self.name,
            parent => parent,
        };
        let _ = write!(
            text,
            "presets    {}\ncounters   {}\npage       {DOCS}/{page}.md\n\n\
             at start   scx_roost --enable {name}\n\
             while on   scx_roost ctl set --enable {name}\n\
             compare    scx_roost ab --variant roost --variant roost+{name}{other} -- COMMAND\n",
            listed(&self.presets),
            listed(&self.counters),
            name = self.name,
            other = if self.is_default() { "=off" } else { "" },
        );
        text
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

/// All features, or the named one, as text or JSON. Error: there is none of that name.
pub fn features(name: Option<&str>, json: bool) -> Result<String> {
    let rows = features::FEATURES.iter().map(FeatureRow::of);
    match name {
        None if json => in_json(&rows.collect::<Vec<_>>()),
        None => Ok(format!(
            "Features. 'on': in the preset {}. scx_roost features NAME shows one.\n\n{}",
            features::DEFAULT_PRESET,
            rows.map(|row| row.row()).collect::<String>()
        )),
        Some(name) => {
            let names: Vec<&str> = features::FEATURES.iter().map(|f| f.name).collect();
            let row = features::feature(name).map(FeatureRow::of);
            let row =
                row.ok_or_else(|| anyhow!("unknown feature '{name}': {}", instead(name, &names)))?;
            match json {
                true => in_json(&row),
                false => Ok(row.page()),
            }
        }
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
    fn every_row_is_listed_and_has_a_page_that_exists() {
        let all = features(None, false).unwrap();
        for f in features::FEATURES {
            assert!(all.contains(&format!("\n  {:<17} ", f.name)), "{}", f.name);
            let page = features(Some(f.name), false).unwrap();
            let path = page.lines().find_map(|l| l.strip_prefix("page       "));
            assert!(std::path::Path::new(path.unwrap()).is_file(), "{page}");
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
        let all: serde_json::Value = serde_json::from_str(&features(None, true).unwrap()).unwrap();
        assert_eq!(all.as_array().unwrap().len(), features::FEATURES.len());
        let claim: serde_json::Value =
            serde_json::from_str(&features(Some("claim"), true).unwrap()).unwrap();
        assert_eq!(claim["presets"], serde_json::json!(["roost", "patra"]));
        let all: serde_json::Value = serde_json::from_str(&presets(true).unwrap()).unwrap();
        assert_eq!(all.as_array().unwrap().len(), features::PRESETS.len());
        let all: serde_json::Value = serde_json::from_str(&profiles(true).unwrap()).unwrap();
        assert_eq!(all[0]["variant"], PROFILES[0].variant);
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = features(Some("claims"), false).unwrap_err().to_string();
        assert_eq!(error, "unknown feature 'claims': did you mean 'claim'?");
    }
}
