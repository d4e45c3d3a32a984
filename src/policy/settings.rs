// SPDX-License-Identifier: GPL-2.0-only
//! Features and tunables of an arm: a preset or a profile, and what was changed since.

use crate::bpf::intf::{CAPACITY_SCALE, arm, task_policy};
use crate::machine::Power;
use crate::model::FreqRule;
use crate::policy::change::{
    Change, NO_CHANGE, known_feature, unknown_preset, unknown_profile, unknown_tunable,
};
use crate::policy::fair;
use crate::policy::features::{
    self, CLAIM_TTL, DEFAULT_PRESET, DELAY, FAIR_RULES, FITS_MARGIN, FITS_RT, FREQ_THRESHOLD,
    FeatureSet, MIGRATION_COST, MIN_SLICE, RESCUE, SLICE, Tunable, bits,
};
use crate::policy::profiles::{self, Profile};
use crate::policy::variant;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;

/// Features and tunables, as requested. The default is the default preset without a change.
///
/// [`of_preset`](Settings::of_preset) and [`changed`](Settings::changed) make others.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The preset that the features started from.
    pub preset: String,
    /// The features that are on.
    pub features: FeatureSet,
    /// The profile that gave the preset, if one did.
    profile: Option<&'static Profile>,
    /// The machine's power setting, which the profile `auto` follows.
    power: Power,
    /// Features that were switched since the preset or the profile was chosen.
    switched: FeatureSet,
    /// Values of the profile.
    profile_tunables: Tunables,
    /// Values that were set, by name.
    tunables: Tunables,
}

type Tunables = BTreeMap<&'static str, u32>;

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            preset: DEFAULT_PRESET.to_string(),
            features: features::preset(DEFAULT_PRESET)
                .map_or_else(FeatureSet::default, |p| p.features),
            profile: None,
            power: Power::default(),
            switched: FeatureSet::default(),
            profile_tunables: Tunables::new(),
            tunables: Tunables::new(),
        }
    }
}

impl Settings {
    /// A preset without a change. Fails if no preset has this name.
    pub fn of_preset(name: &str) -> Result<Settings> {
        let preset = features::preset(name).with_context(|| unknown_preset(name))?;
        Ok(Settings {
            preset: name.to_string(),
            features: preset.features,
            ..Settings::default()
        })
    }

    /// Of a variant's word ([`variant::change`]).
    pub fn of_variant(word: &str) -> Result<Settings> {
        Settings::default().changed(&variant::change(word)?)
    }

    /// A profile without a change, on a machine with this power setting. Fails if no profile has
    /// this name.
    pub(super) fn of_profile(name: &str, power: Power) -> Result<Settings> {
        let profile = profiles::profile(name).with_context(|| unknown_profile(name))?;
        let based = Settings::of_variant(profile.on(power).variant)?;
        Ok(Settings {
            profile: Some(profile),
            power,
            switched: FeatureSet::default(),
            profile_tunables: based.tunables,
            tunables: Tunables::new(),
            ..based
        })
    }

    /// The profile: 'gaming', or what `auto` stands for now: 'auto: powersave'. Empty: none.
    pub fn profile(&self) -> String {
        match self.profile {
            None => String::new(),
            Some(own) => match own.on(self.power) {
                followed if followed == own => own.name.to_string(),
                followed => format!("{}: {}", own.name, followed.name),
            },
        }
    }

    /// As the word of a variant: the preset, and what differs from it on a machine of `nr_cpus`
    /// CPUs, whether it was set or is of a profile.
    pub fn variant(&self, nr_cpus: u32) -> String {
        let base = Settings::of_preset(&self.preset).unwrap_or_default();
        let features = Settings {
            features: self.features,
            ..base.clone()
        };
        let apart = |row: &&&Tunable| self.value(row, nr_cpus) != base.value(row, nr_cpus);
        let shown = |row: &&Tunable| row.shown(self.value(row, nr_cpus));
        let apart = features::TUNABLES.iter().filter(apart);
        variant::word(&Change {
            preset: Some(self.preset.clone()),
            set: apart
                .map(|row| (row.name.to_string(), shown(row)))
                .collect(),
            ..features.since(&base, nr_cpus)
        })
    }

    /// The profile, if there is one, and the variant, in words.
    pub fn shown_as(&self, nr_cpus: u32) -> String {
        shown_as(&self.profile(), &self.variant(nr_cpus))
    }

    pub(crate) fn power(&self) -> Power {
        self.power
    }

    /// Whether these follow the machine's power setting.
    pub(crate) fn follows(&self) -> bool {
        self.profile.is_some_and(|own| own.name == profiles::AUTO)
    }

    /// These settings under another power setting of the machine. What was changed since the
    /// profile was chosen stays.
    pub fn under(&self, power: Power) -> Settings {
        let followed = self
            .profile
            .map(|own| Settings::of_profile(own.name, power));
        match followed {
            Some(Ok(based)) => Settings {
                features: based
                    .features
                    .without(self.switched)
                    .with(self.features.and(self.switched)),
                switched: self.switched,
                tunables: self.tunables.clone(),
                ..based
            },
            _ => Settings {
                power,
                ..self.clone()
            },
        }
    }

    /// The change that makes `base` equal to these settings. A sub-switch without its feature is
    /// left out: it has no effect, and a change with it would be refused. Only a profile takes back
    /// a value of `base`; without one, the change has the effective value on a machine of `nr_cpus`
    /// CPUs.
    pub fn since(&self, base: &Settings, nr_cpus: u32) -> Change {
        let unset =
            |name: &str| base.tunables.contains_key(name) && !self.tunables.contains_key(name);
        let anew = match self.profile {
            None => (None, &self.preset) != (base.profile, &base.preset),
            own => own != base.profile || base.tunables.keys().any(|name| unset(name)),
        };
        let chosen = |name: &str| (anew && !name.is_empty()).then(|| name.to_string());
        let profile = self.profile.and_then(|own| chosen(own.name));
        let preset = if profile.is_none() {
            chosen(&self.preset)
        } else {
            None
        };
        let before = match (&profile, &preset) {
            (Some(name), _) => Settings::of_profile(name, self.power).unwrap_or_default(),
            (_, Some(name)) => Settings::of_preset(name).unwrap_or_default(),
            _ => base.under(self.power),
        };
        let dead: Vec<&str> = features::orphans(self.features).map(|f| f.name).collect();
        let names = |set: FeatureSet, other: FeatureSet| {
            let rows = features::FEATURES.iter();
            let rows = rows.filter(move |f| set.has(f.bit) && !other.has(f.bit));
            rows.map(|f| f.name.to_string()).collect::<Vec<_>>()
        };
        let mut enable = names(self.features, before.features);
        enable.retain(|name| !dead.contains(&name.as_str()));
        let rows = features::TUNABLES.iter();
        let by_profile = profile.is_some();
        let set = rows.filter_map(|row| {
            let value = match self.tunables.get(row.name) {
                Some(value) => *value,
                None if !by_profile && unset(row.name) => self.value(row, nr_cpus),
                None => return None,
            };
            let old = base.tunables.get(row.name);
            let same = !by_profile && old == Some(&value);
            (!same).then(|| (row.name.to_string(), row.shown(value)))
        });
        Change {
            profile,
            preset,
            enable,
            disable: names(before.features, self.features),
            set: set.collect(),
        }
    }

    /// These settings with the change applied. A preset replaces the features and keeps the
    /// tunables that were set; a profile replaces both.
    ///
    /// Fails if the change is empty, if it has an unknown name or a value out of range, and if the
    /// slice would be shorter than the least slice.
    pub fn changed(&self, change: &Change) -> Result<Settings> {
        if *change == Change::default() {
            bail!(NO_CHANGE);
        }
        let mut new = match (&change.profile, &change.preset) {
            (Some(profile), Some(preset)) => bail!(
                "profile '{profile}' and preset '{preset}': a profile has a preset, so give one of them"
            ),
            (Some(profile), None) => Settings::of_profile(profile, self.power)?,
            (None, Some(preset)) => Settings {
                tunables: self.tunables.clone(),
                power: self.power,
                ..Settings::of_preset(preset)?
            },
            (None, None) => self.clone(),
        };
        new.features = switched(new.features, &change.enable, &change.disable)?;
        for name in change.enable.iter().chain(&change.disable) {
            new.switched = new.switched.with(known_feature(name)?);
        }
        for (name, value) in &change.set {
            let row = features::known_tunable(name).with_context(|| unknown_tunable(name))?;
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match row.parse(&text) {
                Ok(value) => new.set(row, value),
                Err(possible) => bail!("{name} {text}: {possible}"),
            }
        }
        new.check()?;
        Ok(new)
    }

    /// Whether the profile has a value for this tunable.
    pub(crate) fn has_of_profile(&self, name: &str) -> bool {
        self.profile_tunables.contains_key(name)
    }

    /// A tunable's value as text; without one, its default.
    pub(crate) fn shown(&self, row: &Tunable) -> String {
        match self.asked(row).map(|value| row.shown(value)) {
            Some(Value::String(text)) => text,
            Some(number) => number.to_string(),
            None if row.name == FAIR_RULES.name => {
                fair::set(self.default_of(row, 1)).name.to_string()
            }
            None => row.default.to_string(),
        }
    }

    /// A value that was set or that the profile has.
    fn asked(&self, row: &Tunable) -> Option<u32> {
        let set = self.tunables.get(row.name);
        set.or(self.profile_tunables.get(row.name)).copied()
    }

    /// Without what applies to the whole machine: as an arm beside arm default has them.
    pub(crate) fn of_one_arm(mut self) -> Settings {
        let wide = |name: &str| features::known_tunable(name).is_some_and(|t| t.machine_wide);
        self.tunables.retain(|name, _| !wide(name));
        self
    }

    /// Sets a tunable, in its own unit.
    pub(crate) fn set(&mut self, row: &'static Tunable, value: u32) {
        self.tunables.insert(row.name, value);
    }

    /// `set` and `check`, for random settings of crates/sim.
    #[cfg(feature = "internals")]
    pub fn put(&mut self, row: &'static Tunable, value: u32) -> Result<()> {
        self.set(row, value);
        self.check()
    }

    /// The effective value on a machine of `nr_cpus` CPUs. If slice-us or min-slice-us alone was
    /// set, the other one, by default or of the profile, adapts to it.
    #[doc(hidden)]
    pub fn value(&self, row: &Tunable, nr_cpus: u32) -> u32 {
        let set = |row: &Tunable| self.tunables.get(row.name).copied();
        let value = |row: &Tunable| {
            self.asked(row)
                .unwrap_or_else(|| self.default_of(row, nr_cpus))
        };
        if row.name == SLICE.name && set(row).is_none() {
            value(row).max(value(&MIN_SLICE))
        } else if row.name == MIN_SLICE.name && set(&SLICE).is_some() && set(row).is_none() {
            value(row).min(value(&SLICE))
        } else {
            value(row)
        }
    }

    fn default_of(&self, row: &Tunable, nr_cpus: u32) -> u32 {
        if row.name == FAIR_RULES.name && self.preset == DEFAULT_PRESET {
            return fair::ROOST;
        }
        row.default.value(nr_cpus)
    }

    /// The features that were switched since the preset or the profile was chosen.
    #[cfg(any(feature = "internals", feature = "rustland"))]
    pub(crate) fn switched(&self) -> FeatureSet {
        self.switched
    }

    /// The tunables that were set.
    #[cfg(any(feature = "internals", feature = "rustland"))]
    pub(crate) fn tuned(&self) -> impl Iterator<Item = &'static str> {
        self.tunables.keys().copied()
    }

    /// The slice must not be shorter than the least slice.
    pub(crate) fn check(&self) -> Result<()> {
        let set = |row: &Tunable| self.tunables.get(row.name);
        match (set(&SLICE), set(&MIN_SLICE)) {
            (Some(slice), Some(min)) if slice < min => bail!(
                "slice-us {slice} is below min-slice-us {min}: give a longer slice or a smaller minimum"
            ),
            _ => Ok(()),
        }
    }

    /// The arm in the form that the BPF half reads, on a machine of `nr_cpus` CPUs.
    #[doc(hidden)]
    pub fn arm(&self, nr_cpus: u32) -> arm {
        let ns = |row: &Tunable| u64::from(self.value(row, nr_cpus)) * 1000;
        let margin = self.value(&FITS_MARGIN, nr_cpus);
        arm {
            task: task_policy {
                features: self.features.0,
                arm: 0,
                slice_ns: ns(&SLICE),
                min_slice_ns: ns(&MIN_SLICE),
                claim_ttl_ns: ns(&CLAIM_TTL),
                fits_scale: CAPACITY_SCALE * 100 / (100 - margin),
                fits_rt: self.value(&FITS_RT, nr_cpus),
                delay_ns: self.value(&DELAY, nr_cpus) * 1000,
                rules: fair::set(self.value(&FAIR_RULES, nr_cpus)).bits,
            },
            rescue_ns: ns(&RESCUE),
            migration_cost_ns: ns(&MIGRATION_COST),
        }
    }

    /// When a CPU's frequency counts as low. An arm without delay_migration has no rule.
    pub fn freq_rule(&self) -> FreqRule {
        if self.features.has(bits::delay_migration) {
            FreqRule::of_code(self.value(&FREQ_THRESHOLD, 1))
        } else {
            FreqRule::Off
        }
    }
}

/// A profile, empty for none, and a variant, in words.
pub fn shown_as(profile: &str, variant: &str) -> String {
    match profile {
        "" => format!("preset {variant}"),
        some => format!("profile {some}, preset {variant}"),
    }
}

/// A feature must not be in both lists.
fn switched(base: FeatureSet, enable: &[String], disable: &[String]) -> Result<FeatureSet> {
    if let Some(name) = enable.iter().find(|n| disable.contains(n)) {
        bail!("feature '{name}' is given to both --enable and --disable: give it to one");
    }
    let mut set = base;
    for name in enable {
        set = set.with(known_feature(name)?);
    }
    for name in disable {
        set = set.without(known_feature(name)?);
    }
    // A sub-switch that was on before its feature was disabled stays, without effect or error.
    match features::orphans(set).find(|f| enable.iter().any(|e| e == f.name)) {
        Some(f) => bail!(
            "feature '{}' needs '{}': enable that too, or leave this out",
            f.name,
            f.parent
        ),
        None => Ok(set),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> Change {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn switches_go_on_top_of_the_preset() {
        let mainline = Settings::of_preset("mainline").unwrap();
        let asked = change(r#"{"enable":["wide_idle"],"disable":["sis_util"]}"#);
        let set = mainline.changed(&asked).unwrap().features;
        assert_eq!(
            set,
            mainline
                .features
                .without(bits::sis_util)
                .with(bits::wide_idle)
        );
    }

    #[test]
    fn a_slice_is_never_below_the_least_one() {
        let arm = |slice: Option<u32>, min: Option<u32>| {
            let mut settings = Settings::default();
            let rows = [(slice, &SLICE), (min, &MIN_SLICE)];
            for (value, row) in rows {
                if let Some(value) = value {
                    settings.set(row, value);
                }
            }
            let task = settings.arm(64).task;
            (task.slice_ns / 1000, task.min_slice_ns / 1000)
        };
        assert_eq!(arm(Some(500), None), (500, 500));
        assert_eq!(arm(None, Some(5000)), (5000, 5000));
        assert_eq!(arm(Some(900), Some(900)), (900, 900));
        let task = Settings::default().arm(64).task;
        assert_eq!((task.fits_scale, task.fits_rt), (1024, 0));
        // fits_capacity() of the kernel
        let mut settings = Settings::default();
        settings.set(&FITS_MARGIN, 20);
        settings.set(&FITS_RT, 1);
        let task = settings.arm(64).task;
        assert_eq!((task.fits_scale, task.fits_rt), (1280, 1));
        assert_eq!(task.delay_ns, 50_000);
        let min = u64::from(MIN_SLICE.default.value(64));
        assert_eq!(arm(None, None), (2800, min));
        assert_eq!(arm(Some(1500), None), (1500, min));
    }

    #[test]
    fn settings_are_a_word_that_makes_them_again() {
        for (given, shown) in [
            ("roost", "roost"),
            ("roost+smt_spread=off", "roost+smt_spread=off"),
            ("roost+claim=on", "roost"),
            ("gaming+claim=off", "roost+claim=off+slice-us=5000"),
            (
                "mainline+pack+freq-threshold=+5%",
                "mainline+pack+freq-threshold=+5%",
            ),
            (
                "lowlatency+slice-us=900",
                "roost+min-slice-us=100+slice-us=900",
            ),
        ] {
            let made = Settings::of_variant(given).unwrap();
            assert_eq!(made.variant(8), shown);
            let again = Settings::of_variant(shown).unwrap();
            assert_eq!(made.features, again.features, "{given}");
            let values = |s: &Settings| features::TUNABLES.iter().map(|t| s.value(t, 8)).collect();
            let (a, b): (Vec<u32>, Vec<u32>) = (values(&made), values(&again));
            assert_eq!(a, b, "{given}");
        }
    }

    #[test]
    fn a_profile_replaces_features_and_tunables() {
        let set = change(r#"{"disable":["claim"],"set":{"slice-us":4000,"rescue-us":9000}}"#);
        let gaming = Settings::default().changed(&set).unwrap();
        let gaming = gaming.changed(&change(r#"{"profile":"gaming"}"#)).unwrap();
        let plain = Settings::of_variant(profiles::profile("gaming").unwrap().variant).unwrap();
        assert_eq!(gaming.features, plain.features);
        let values = |s: &Settings| features::TUNABLES.iter().map(|t| s.value(t, 8)).collect();
        let (a, b): (Vec<u32>, Vec<u32>) = (values(&gaming), values(&plain));
        assert_eq!(a, b);
        // A preset ends it, with its tunables; those that were set stay.
        let own = gaming
            .changed(&change(r#"{"set":{"rescue-us":9000}}"#))
            .unwrap();
        let preset = own.changed(&change(r#"{"preset":"mainline"}"#)).unwrap();
        assert_eq!(preset.profile(), "");
        assert_eq!(preset.value(&SLICE, 8), 2800);
        assert_eq!(preset.value(&RESCUE, 8), 9000);
        let both = own.changed(&change(r#"{"profile":"auto","preset":"roost"}"#));
        assert!(both.unwrap_err().to_string().contains("give one of them"));
        let none = own.changed(&change(r#"{"profile":"server2"}"#));
        let none = none.unwrap_err().to_string();
        assert_eq!(none, "unknown profile 'server2': did you mean 'server'?");
    }

    #[test]
    fn auto_follows_and_keeps_what_was_changed() {
        let own = change(r#"{"profile":"auto","disable":["claim"],"set":{"slice-us":4000}}"#);
        let auto = Settings::default().changed(&own).unwrap();
        let save = auto.under(Power::Save);
        assert_eq!(
            (auto.profile(), save.profile()),
            ("auto".into(), "auto: powersave".into())
        );
        assert!(save.features.has(bits::pack) && !save.features.has(bits::claim));
        assert_eq!(save.value(&SLICE, 8), 4000);
        assert_eq!(save.value(&MIN_SLICE, 8), 3000);
        let short = save
            .changed(&change(r#"{"set":{"slice-us":900}}"#))
            .unwrap();
        assert_eq!(
            (short.value(&SLICE, 8), short.value(&MIN_SLICE, 8)),
            (900, 900)
        );
        assert_eq!(save.under(Power::Balanced), auto);
        let mainline = Settings::of_preset("mainline").unwrap();
        assert_eq!(mainline.under(Power::Save).features, mainline.features);
    }

    /// Whatever was changed, the difference makes one of the other.
    #[test]
    fn a_difference_is_a_change() {
        let bases = [
            "{}",
            r#"{"profile":"auto"}"#,
            r#"{"preset":"patra","set":{"slice-us":900}}"#,
        ];
        let later = [
            r#"{"enable":["util_fits"],"disable":["avg_idle"]}"#,
            r#"{"set":{"slice-us":5000,"freq-threshold":"+5%"}}"#,
            r#"{"preset":"mainline"}"#,
            r#"{"profile":"auto","set":{"slice-us":900}}"#,
            r#"{"preset":"roost","disable":["claim"]}"#,
        ];
        let made = |from: &Settings, text: &str| match change(text) {
            none if none == Change::default() => from.clone(),
            some => from.changed(&some).unwrap(),
        };
        for base in bases.map(|text| made(&Settings::default(), text)) {
            assert_eq!(base.since(&base, 8), Change::default());
            for text in later {
                let now = made(&base, text).under(Power::Save);
                let difference = now.since(&base, 8);
                let again = base.under(Power::Save).changed(&difference).unwrap();
                let shown = |s: &Settings| {
                    let values = features::TUNABLES.iter().map(|t| s.value(t, 8));
                    (
                        s.profile(),
                        s.preset.clone(),
                        s.features.0,
                        values.collect::<Vec<_>>(),
                    )
                };
                // core_claim without claim does nothing.
                let mut now = now;
                for dead in features::orphans(now.features) {
                    now.features = now.features.without(dead.bit);
                }
                let mut again = again;
                for dead in features::orphans(again.features) {
                    again.features = again.features.without(dead.bit);
                }
                assert_eq!(shown(&again), shown(&now), "{text}: {difference:?}");
            }
        }
    }
}
