// SPDX-License-Identifier: GPL-2.0-only
//! The variants: scx_roost with some settings, the kernel's own scheduler, or another one.

use super::cpus::{Cpus, SUFFIX};
use crate::policy::change::Change;
use crate::policy::features::{self, FeatureSet, bits};
use crate::policy::profiles;
use crate::policy::settings::Settings;
use crate::policy::variant;
use crate::util::names::meant;
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Separates the name of a variant from the kernel that it needs.
pub const KERNEL_SUFFIX: &str = "@kernel=";

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// scx_roost. Switching between these needs no reload.
    Roost(Box<(Change, Settings)>),
    /// No sched_ext scheduler.
    Eevdf,
    /// Another scheduler: its command with arguments.
    Scx(Vec<String>),
    /// Options of scx_roost that decides in userspace.
    Rust(Vec<String>),
}

/// What a variant applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All tasks of the machine
    #[default]
    Machine,
    /// The command and what it starts, on an arm of its own; all other tasks stay on the first
    /// variant
    Workload,
}

/// Features that a CPU takes from arm default, whatever task runs on it.
const OF_DEFAULT_ARM: [FeatureSet; 2] = [bits::avg_idle, bits::avg_idle_every];

impl Scope {
    /// Fails if the variants differ in something that cannot be switched for some tasks only.
    pub fn check(self, variants: &[Variant]) -> Result<()> {
        if self == Scope::Machine {
            return Ok(());
        }
        let of_machine = |variant: &Variant| match &variant.kind {
            Kind::Roost(roost) => Ok(OF_DEFAULT_ARM.map(|bit| roost.1.features.has(bit))),
            _ => bail!(
                "{} schedules the whole machine: with --scope workload, variants must be arms of scx_roost",
                variant.name
            ),
        };
        let first = of_machine(&variants[0])?;
        for variant in variants {
            if let Some(tunable) = variant.machine_wide() {
                bail!(
                    "{} sets {tunable}, which applies to the whole machine: it cannot be compared with --scope workload",
                    variant.name
                );
            }
            ensure!(
                of_machine(variant)? == first,
                "{} and {} differ in avg_idle, which applies to the whole machine: they cannot be compared with --scope workload",
                variants[0].name,
                variant.name
            );
        }
        Ok(())
    }

    /// The scope in words.
    pub fn text(self) -> &'static str {
        match self {
            Scope::Machine => "the whole machine",
            Scope::Workload => "the command alone",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// As typed.
    pub name: String,
    pub kind: Kind,
    /// The CPUs that the command may use.
    pub cpus: Cpus,
    /// The release of the kernel that it needs. None: that which runs.
    pub kernel: Option<String>,
}

/// The kernel's own scheduler, with one thread of each core for the command. A column in Roy v7.
pub const PINNED: &str = "pinned";
const EEVDF: &str = "eevdf";
/// Before a preset: scx_roost that decides in userspace (`--backend rust`).
const RUST: &str = "rust:";

/// What to write instead of an unknown preset.
fn instead_of(preset: &str) -> String {
    let presets: Vec<&str> = features::PRESETS.iter().map(|p| p.name).collect();
    let profiles: Vec<&str> = profiles::PROFILES.iter().map(|p| p.name).collect();
    let all = [&[EEVDF, PINNED], &presets[..], &profiles].concat();
    meant(preset, &all).unwrap_or_else(|| {
        format!(
            "expected {EEVDF}, {PINNED}, scx:COMMAND (scx:/usr/bin/scx_lavd), a preset of scx_roost: {}, or a profile: {}",
            presets.join(", "),
            profiles.join(", ")
        )
    })
}

impl Variant {
    /// Reads `PRESET|PROFILE[+FEATURE=on|off][+TUNABLE=VALUE]...`, the same after `rust:`, `eevdf`
    /// or `scx:COMMAND`, optionally followed by `@cpus=LIST`, or `pinned`; all optionally followed
    /// by `@kernel=RELEASE`. Fails for anything else.
    pub fn parse(name: &str) -> Result<Variant> {
        let (rest, kernel) = match name.rsplit_once(KERNEL_SUFFIX) {
            None => (name, None),
            Some((rest, release)) => {
                ensure!(
                    !release.is_empty() && !release.contains(char::is_whitespace),
                    "variant {name}: {KERNEL_SUFFIX} needs a release after it, as 'uname -r' prints it"
                );
                (rest, Some(release.to_string()))
            }
        };
        let (scheduler, cpus) = match rest.rsplit_once(SUFFIX) {
            None if rest == PINNED => (EEVDF, Cpus::Cores),
            None => (rest, Cpus::All),
            Some((scheduler, list)) => {
                let cpus = Cpus::parse(list);
                (scheduler, cpus.with_context(|| format!("variant {name}"))?)
            }
        };
        let (command, settings) = (scheduler.strip_prefix("scx:"), scheduler.strip_prefix(RUST));
        let kind = match (command, settings) {
            (Some(command), _) => Kind::Scx(words(command)?),
            (_, Some(settings)) => {
                Kind::Rust(in_rust(settings).with_context(|| format!("variant {name}"))?)
            }
            _ if scheduler == EEVDF => Kind::Eevdf,
            _ => {
                let preset = scheduler.split('+').next().unwrap_or_default();
                ensure!(
                    features::preset(preset).is_some() || profiles::profile(preset).is_some(),
                    "variant {name}: unknown preset '{preset}': {}",
                    instead_of(preset)
                );
                let settings = Settings::of_variant(scheduler);
                let settings = settings.with_context(|| format!("variant {name}"))?;
                Kind::Roost(Box::new((variant::change(scheduler)?, settings)))
            }
        };
        Ok(Variant {
            name: name.to_string(),
            kind,
            cpus,
            kernel,
        })
    }
}

impl Variant {
    /// The first tunable it sets that cannot differ between arms.
    fn machine_wide(&self) -> Option<&str> {
        let Kind::Roost(roost) = &self.kind else {
            return None;
        };
        let wide = |name: &&String| features::known_tunable(name).is_some_and(|t| t.machine_wide);
        roost.0.set.keys().find(wide).map(String::as_str)
    }
}

/// At least two, all with different names, since reports identify them by name. For an A/A
/// comparison write the same variant in two ways.
pub fn parse_all(names: &[String]) -> Result<Vec<Variant>> {
    ensure!(
        names.len() >= 2,
        "give two or more variants, as in --variant mainline --variant roost"
    );
    let twice = names
        .iter()
        .enumerate()
        .find(|(i, n)| names[..*i].contains(n));
    if let Some((_, name)) = twice {
        bail!(
            "variant {name} is given twice: to compare it with itself, write it differently, as in {name}+prev_idle=on"
        );
    }
    names.iter().map(|name| Variant::parse(name)).collect()
}

/// Splits words as a shell does. Only quotes, backslashes and # are special.
fn words(text: &str) -> Result<Vec<String>> {
    let words = shlex::split(text).with_context(|| match text.ends_with('\\') {
        true => format!("variant scx:{text}: it ends within a quote, or with a backslash"),
        false => format!("variant scx:{text}: a quote is not closed"),
    })?;
    ensure!(
        !words.is_empty(),
        "variant scx: needs a command, as in scx:/usr/bin/scx_lavd"
    );
    Ok(words)
}

/// The options of scx_roost with these settings, in userspace.
fn in_rust(settings: &str) -> Result<Vec<String>> {
    ensure!(
        cfg!(feature = "rustland"),
        "this scx_roost cannot decide in userspace: build it with the cargo feature rustland"
    );
    Settings::of_variant(settings)?;
    let backend = ["--backend", "rust"].map(String::from);
    Ok([&backend[..], &options(&variant::change(settings)?)].concat())
}

/// The options of a start of scx_roost with these settings.
pub fn options(change: &Change) -> Vec<String> {
    let preset = change.preset.iter().map(|name| format!("--preset={name}"));
    let profile = change.profile.iter();
    let mut words: Vec<String> = preset
        .chain(profile.map(|name| format!("--profile={name}")))
        .collect();
    words.extend(change.enable.iter().map(|name| format!("--enable={name}")));
    words.extend(
        change
            .disable
            .iter()
            .map(|name| format!("--disable={name}")),
    );
    let set = change.set.iter();
    words.extend(
        set.map(|(name, value)| format!("--{name}={}", value.as_str().unwrap_or_default())),
    );
    words
}

/// True if something acted that differs between the two. `moved`: whether this counter grew in the
/// runs of that variant. A feature is looked up in the runs that have it, a tunable in all runs.
pub fn exercised(base: &Variant, other: &Variant, moved: impl Fn(&Variant, &str) -> bool) -> bool {
    let (Kind::Roost(a), Kind::Roost(b)) = (&base.kind, &other.kind) else {
        return true;
    };
    if base.cpus != other.cpus || base.kernel != other.kernel {
        return true;
    }
    let differ = FeatureSet(a.1.features.0 ^ b.1.features.0);
    let set: Vec<&str> = tunables_apart(&a.0, &b.0).collect();
    if differ == FeatureSet::default() && set.is_empty() {
        return true;
    }
    let acts = |tunable: &&str| {
        let parent = features::known_tunable(tunable).map_or("", |t| t.parent);
        let mut counters = counters_of(parent);
        parent.is_empty() || counters.any(|c| moved(base, c) || moved(other, c))
    };
    if set.iter().any(acts) {
        return true;
    }
    let mut rows = features::FEATURES.iter().filter(|row| differ.has(row.bit));
    rows.any(|row| {
        let with = if a.1.features.has(row.bit) {
            base
        } else {
            other
        };
        counters_of(row.name).any(|counter| moved(with, counter))
    })
}

/// Tunables that the two do not set to the same value.
fn tunables_apart<'a>(a: &'a Change, b: &'a Change) -> impl Iterator<Item = &'a str> {
    let apart = |name: &&String| a.set.get(*name) != b.set.get(*name);
    let names = a.set.keys().chain(b.set.keys());
    names.filter(apart).map(String::as_str)
}

fn counters_of(feature: &str) -> impl Iterator<Item = &'static str> {
    let row = features::feature(feature);
    row.map_or("", |f| f.counters).split_whitespace()
}
