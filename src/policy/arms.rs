// SPDX-License-Identifier: GPL-2.0-only
//! Arms: policies side by side, each with its own features and tunables. Tasks that are on no other
//! arm are on arm `default`. A change is applied whole or not at all.

use crate::bpf::intf::{MAX_ARMS, policy_image};
use crate::machine::Power;
use crate::model::FreqRule;
use crate::policy::change::Change;
use crate::policy::features::{self, bits};
use crate::policy::settings::Settings;
use crate::publish::image_of_rows;
use crate::util::names::instead;
use crate::util::refusal::refuse;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub const DEFAULT_ARM: &str = "default";
const SLOTS: usize = MAX_ARMS as usize;
/// Bytes of an arm's name, at most.
pub const NAME_MAX: usize = 15;

#[derive(Clone, Debug)]
pub struct Arm {
    pub name: String,
    pub settings: Settings,
    /// The settings that it was made with.
    origin: Settings,
}

impl Arm {
    fn new(name: &str, settings: Settings) -> Arm {
        let settings = of_arm(name, settings);
        Arm {
            name: name.to_string(),
            origin: settings.clone(),
            settings,
        }
    }

    /// As JSON, with the effective values on a machine of `nr_cpus` CPUs.
    pub fn describe(&self, machine_wide: bool, nr_cpus: u32) -> Value {
        let tunables: BTreeMap<&str, Value> = features::TUNABLES
            .iter()
            .filter(|t| machine_wide || !t.machine_wide)
            .map(|t| (t.name, t.shown(self.settings.value(t, nr_cpus))))
            .collect();
        json!({
            "name": self.name,
            "profile": self.settings.profile(),
            "preset": self.settings.preset,
            "variant": self.settings.variant(nr_cpus),
            "features": self.settings.features.to_string(),
            "tunables": tunables,
        })
    }
}

/// The settings as the arm of this name has them.
fn of_arm(name: &str, settings: Settings) -> Settings {
    match name {
        DEFAULT_ARM => settings,
        _ => settings.of_one_arm(),
    }
}

/// Fails if no arm may have this name.
pub fn check_name(name: &str) -> Result<()> {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(letters) {
        bail!("arm '{name}': a name has 1 to {NAME_MAX} of a-z, 0-9, - and _");
    }
    Ok(())
}

/// All arms by slot, which is their number in the BPF half.
#[derive(Clone, Debug)]
pub struct Arms {
    slots: [Option<Arm>; SLOTS],
}

impl Arms {
    pub fn new(everybody: Settings) -> Arms {
        let mut slots: [Option<Arm>; SLOTS] = Default::default();
        slots[0] = Some(Arm::new(DEFAULT_ARM, everybody));
        Arms { slots }
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &Arm)> {
        let used = |(i, slot)| Some((i, Option::as_ref(slot)?));
        self.slots.iter().enumerate().filter_map(used)
    }

    pub fn everybody(&self) -> &Arm {
        self.slots[0].as_ref().expect("arm default always exists")
    }

    pub fn slot(&self, name: &str) -> Result<usize> {
        let found = self.iter().find(|(_, arm)| arm.name == name);
        found.map(|(i, _)| i).ok_or_else(|| {
            let names: Vec<&str> = self.iter().map(|(_, arm)| arm.name.as_str()).collect();
            refuse(
                libc::ENOENT,
                format!("no arm '{name}': {}", instead(name, &names)),
            )
        })
    }

    pub fn get(&self, slot: usize) -> Option<&Arm> {
        self.slots.get(slot)?.as_ref()
    }

    fn settings(&mut self, name: &str) -> Result<&mut Arm> {
        let slot = self.slot(name)?;
        self.slots[slot].as_mut().context("a slot that is used")
    }

    pub fn change(&mut self, name: &str, change: &Change) -> Result<()> {
        let arm = self.settings(name)?;
        if name != DEFAULT_ARM
            && let Some(machine_wide) = change
                .set
                .keys()
                .find(|t| features::known_tunable(t).is_some_and(|t| t.machine_wide))
        {
            bail!(
                "{machine_wide} applies to the whole machine: set it on arm {DEFAULT_ARM}, not on '{name}'"
            );
        }
        arm.settings = arm.settings.changed(change)?;
        Ok(())
    }

    /// The settings that a new arm has, and returns to when it is reset.
    pub fn begin(&mut self, slot: usize, origin: Settings) {
        if let Some(arm) = &mut self.slots[slot] {
            *arm = Arm::new(&arm.name, origin);
        }
    }

    /// Tells all arms the power setting of the machine. True if one of them changes by it.
    pub fn follow(&mut self, power: Power) -> bool {
        let mut changed = false;
        for arm in self.slots.iter_mut().flatten() {
            let settings = arm.settings.under(power);
            changed |= settings.profile() != arm.settings.profile();
            (arm.origin, arm.settings) = (arm.origin.under(power), settings);
        }
        changed
    }

    /// Restores the settings that the arm was made with.
    pub fn reset(&mut self, name: &str) -> Result<()> {
        let arm = self.settings(name)?;
        arm.settings = arm.origin.clone();
        Ok(())
    }

    /// Adds an arm, with a preset, a profile, or the current settings of arm default. Returns its
    /// slot.
    pub fn add(
        &mut self,
        name: &str,
        preset: Option<&str>,
        profile: Option<&str>,
    ) -> Result<usize> {
        check_name(name)?;
        if self.slot(name).is_ok() {
            return Err(refuse(
                libc::EEXIST,
                format!("arm '{name}' exists already: give another name"),
            ));
        }
        let power = self.everybody().settings.power();
        let settings = match (preset, profile) {
            (Some(_), Some(_)) => bail!("arm '{name}': a preset and a profile: give one of them"),
            (Some(preset), None) => Settings::of_preset(preset)?.under(power),
            (None, Some(profile)) => Settings::of_profile(profile, power)?,
            (None, None) => self.everybody().settings.clone(),
        };
        let Some(slot) = self.slots.iter().position(Option::is_none) else {
            let text = format!("there are {SLOTS} arms, the most that are possible: delete one");
            return Err(refuse(libc::ENOSPC, text));
        };
        self.slots[slot] = Some(Arm::new(name, settings));
        Ok(slot)
    }

    pub fn delete(&mut self, name: &str) -> Result<usize> {
        if name == DEFAULT_ARM {
            bail!("arm {DEFAULT_ARM} is for all other tasks and cannot be deleted");
        }
        let slot = self.slot(name)?;
        self.slots[slot] = None;
        Ok(slot)
    }

    /// By slot; an unused slot has the rule of arm default.
    pub fn freq_rules(&self) -> [FreqRule; SLOTS] {
        let rule = |slot: &Option<Arm>| {
            slot.as_ref()
                .unwrap_or(self.everybody())
                .settings
                .freq_rule()
        };
        self.slots.each_ref().map(rule)
    }

    /// Some arm bounds its scans by idle periods.
    pub fn want_scans(&self) -> bool {
        let mut used = self.slots.iter().flatten();
        let both = bits::avg_idle.with(bits::avg_idle_scan);
        used.any(|arm| arm.settings.features.has(both))
    }

    /// `capacity` is that of each CPU by number. The image has no frequency thresholds.
    pub fn image(&self, nr_cpus: u32, capacity: &[u16]) -> policy_image {
        let row = |slot: &Option<Arm>| slot.as_ref().map(|arm| arm.settings.arm(nr_cpus));
        image_of_rows(&self.slots.each_ref().map(row), capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> Change {
        serde_json::from_str(text).unwrap()
    }

    fn arms() -> Arms {
        let mut arms = Arms::new(Settings::default());
        arms.add("x", Some("mainline"), None).unwrap();
        arms
    }

    #[test]
    fn an_arm_begins_with_a_profile() {
        let mut arms = arms();
        let slot = arms.add("game", None, Some("gaming")).unwrap();
        assert_eq!(arms.get(slot).unwrap().settings.profile(), "gaming");
        let both = arms.add("y", Some("roost"), Some("gaming"));
        assert!(both.unwrap_err().to_string().contains("give one of them"));
        let none = arms.add("y", None, Some("gamin")).unwrap_err().to_string();
        assert_eq!(none, "unknown profile 'gamin': did you mean 'gaming'?");
    }

    fn refusal(arms: &mut Arms, arm: &str, text: &str) -> String {
        let before = arms.image(8, &[]);
        let error = arms.change(arm, &change(text)).unwrap_err().to_string();
        assert_eq!(format!("{before:?}"), format!("{:?}", arms.image(8, &[])));
        error
    }

    #[test]
    fn a_change_is_made_on_its_arm_only() {
        let mut arms = arms();
        let asked = r#"{"preset":"roost","disable":["sync_local"],"set":{"slice-us":"900","min-slice-us":200}}"#;
        arms.change("x", &change(asked)).unwrap();
        let image = arms.image(64, &[]);
        let everybody = Settings::default().arm(64);
        assert_eq!(format!("{:?}", image.arm[0]), format!("{everybody:?}"));
        let task = image.arm[1].task;
        assert_eq!((task.slice_ns, task.min_slice_ns), (900_000, 200_000));
        assert_eq!(task.features & bits::sync_local.0, 0);
        assert_ne!(task.features & bits::wide_idle.0, 0);
    }

    #[test]
    fn an_invalid_change_is_refused_with_the_possible_values() {
        let mut arms = arms();
        for (text, expected) in [
            (
                r#"{"enable":["wide_idle","claims"]}"#,
                "unknown feature 'claims': did you mean 'claim'?",
            ),
            (
                r#"{"enable":["wide_idle"],"set":{"slice-us":5}}"#,
                "slice-us 5: 100 to 100000 us are possible",
            ),
            (
                r#"{"set":{"slice-us":"long"}}"#,
                "slice-us long: 100 to 100000 us are possible",
            ),
            (
                r#"{"set":{"slice-us":-1}}"#,
                "slice-us -1: 100 to 100000 us are possible",
            ),
            (
                r#"{"set":{"slices":1}}"#,
                "unknown tunable 'slices': did you mean 'slice-us'?",
            ),
            (
                r#"{"preset":"fast","enable":["wide_idle"]}"#,
                "unknown preset 'fast': expected one of roost, mainline",
            ),
            (
                r#"{"enable":["sis_util"],"disable":["sis_util"]}"#,
                "feature 'sis_util' is given to both --enable and --disable",
            ),
            (
                r#"{"set":{"rescue-us":2000}}"#,
                "rescue-us applies to the whole machine: set it on arm default, not on 'x'",
            ),
            (
                r#"{"set":{"slice-us":900,"min-slice-us":901}}"#,
                "slice-us 900 is below min-slice-us 901: give a longer slice or a smaller minimum",
            ),
            ("{}", "nothing to change"),
        ] {
            let error = refusal(&mut arms, "x", text);
            assert!(error.starts_with(expected), "{error}");
        }
        let error = refusal(&mut arms, "y", r#"{"enable":["wide_idle"]}"#);
        assert_eq!(error, "no arm 'y': expected one of default, x");
        let error = arms.slot("defualt").unwrap_err().to_string();
        assert_eq!(error, "no arm 'defualt': did you mean 'default'?");
    }

    #[test]
    fn reset_returns_to_the_origin() {
        let mut arms = arms();
        let before = arms.image(8, &[]);
        for arm in ["x", DEFAULT_ARM] {
            arms.change(
                arm,
                &change(r#"{"enable":["wide_idle"],"set":{"slice-us":4000}}"#),
            )
            .unwrap();
            arms.reset(arm).unwrap();
        }
        assert_eq!(format!("{before:?}"), format!("{:?}", arms.image(8, &[])));
    }

    #[test]
    fn arms_come_and_go_up_to_the_size_of_the_table() {
        let mut arms = arms();
        for i in 2..SLOTS {
            assert_eq!(arms.add(&format!("a{i}"), None, None).unwrap(), i);
        }
        let full = arms.add("more", None, None).unwrap_err().to_string();
        assert!(full.starts_with("there are 16 arms"), "{full}");
        assert_eq!(arms.delete("a7").unwrap(), 7);
        assert_eq!(arms.image(8, &[]).arm[7].task.arm, 0);
        assert_eq!(arms.image(8, &[]).nr_arms, 15);
        assert_eq!(arms.add("more", None, None).unwrap(), 7);
    }

    #[test]
    fn names_of_arms_are_plain_and_their_own() {
        let mut arms = arms();
        for bad in ["", "Big", "a b", "0123456789abcdef"] {
            let error = arms.add(bad, None, None).unwrap_err().to_string();
            assert!(error.contains("a name has 1 to 15 of a-z"), "{error}");
        }
        assert!(arms.add("x", None, None).is_err());
        assert!(arms.add(DEFAULT_ARM, None, None).is_err());
        assert!(arms.delete(DEFAULT_ARM).is_err() && arms.delete("y").is_err());
    }

    #[test]
    fn a_rule_about_frequencies_is_of_the_arms_that_delay() {
        let mut arms = arms();
        assert_eq!(arms.freq_rules(), [FreqRule::Off; SLOTS]);
        arms.change("x", &change(r#"{"set":{"freq-threshold":"+5%"}}"#))
            .unwrap();
        assert_eq!(arms.freq_rules()[1], FreqRule::Off);
        arms.change("x", &change(r#"{"enable":["delay_migration"]}"#))
            .unwrap();
        assert_eq!(
            arms.freq_rules()[..3],
            [FreqRule::Off, FreqRule::Above(5), FreqRule::Off]
        );
        let shown = arms.get(1).unwrap().describe(false, 8);
        assert_eq!(shown["tunables"]["freq-threshold"], "+5%");
        let smove = Settings::of_preset("smove").unwrap();
        assert_eq!(smove.freq_rule(), FreqRule::Auto);
        let error = refusal(&mut arms, "x", r#"{"set":{"freq-threshold":"fast"}}"#);
        assert!(
            error.starts_with("freq-threshold fast: off, auto, 1000 to"),
            "{error}"
        );
    }
}
