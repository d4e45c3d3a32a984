// SPDX-License-Identifier: GPL-2.0-only
//! The tables of what can be switched and tuned: features (rows in src/bpf/features.tbl.h),
//! presets, tunables. The command line, its help and the statistics read these rows; a default is
//! written here and nowhere else.

use crate::bpf::intf;
use crate::model::FreqRule;
use crate::policy::fair;
use serde_json::Value;
use std::fmt;

/// A switch that changes what mainline decides.
#[derive(Debug, PartialEq, Eq)]
pub struct Feature {
    pub name: &'static str,
    /// For a sub-switch: the feature that it changes, without which it has no effect. Else empty.
    pub parent: &'static str,
    /// The author of the proposal.
    pub source: &'static str,
    /// Counters, separated by blanks. One of them grows when the feature changes a decision.
    pub counters: &'static str,
    pub help: &'static str,
    pub bit: FeatureSet,
}

/// A set of features. `Display` prints their names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeatureSet(
    /// Bits of enum roost_feature (src/bpf/intf.h).
    pub u32,
);

impl FeatureSet {
    /// The features of both sets.
    pub const fn with(self, other: FeatureSet) -> FeatureSet {
        FeatureSet(self.0 | other.0)
    }

    /// The features of this set that are not in the other one.
    pub const fn without(self, other: FeatureSet) -> FeatureSet {
        FeatureSet(self.0 & !other.0)
    }

    /// The features in both sets.
    pub const fn and(self, other: FeatureSet) -> FeatureSet {
        FeatureSet(self.0 & other.0)
    }

    /// Whether all features of the other set are in this one.
    pub fn has(self, other: FeatureSet) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Display for FeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let names: Vec<&str> = FEATURES
            .iter()
            .filter(|x| self.has(x.bit))
            .map(|x| x.name)
            .collect();
        f.write_str(&if names.is_empty() {
            "none".to_string()
        } else {
            names.join(" ")
        })
    }
}

macro_rules! feature_table {
    ($($name:ident, $bit:ident, $parent:literal, $source:literal, $counters:literal, $help:literal;)*) => {
        /// The features as constants.
        #[allow(non_upper_case_globals)]
        pub mod bits {
            use super::{FeatureSet, intf};
            $(#[doc = $help] pub const $name: FeatureSet = FeatureSet(intf::$bit);)*
        }

        pub const FEATURES: &[Feature] =
            &[$(Feature {
                name: stringify!($name), parent: $parent, source: $source, counters: $counters,
                help: $help, bit: bits::$name,
            }),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/features_tbl.rs"));

pub fn feature(name: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|f| f.name == name)
}

/// The sub-switches in a set that lacks their feature.
pub fn orphans(set: FeatureSet) -> impl Iterator<Item = &'static Feature> {
    FEATURES.iter().filter(move |f| {
        set.has(f.bit) && feature(f.parent).is_some_and(|parent| !set.has(parent.bit))
    })
}

/// A named set of features.
#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    pub help: &'static str,
    pub features: FeatureSet,
}

const MAINLINE: FeatureSet = bits::prev_idle.with(bits::sis_util).with(bits::avg_idle);

pub const DEFAULT_PRESET: &str = "roost";

pub const PRESETS: &[Preset] = &[
    Preset {
        name: "roost",
        help: "scx_roost's own choice (default)",
        features: MAINLINE
            .with(bits::wide_idle)
            .with(bits::burst_slice)
            .with(bits::prev_core)
            .with(bits::core_first)
            .with(bits::sync_local)
            .with(bits::claim)
            .with(bits::core_claim)
            .with(bits::smt_spread),
    },
    Preset {
        name: "mainline",
        help: "the placement of today's kernel",
        features: MAINLINE,
    },
    Preset {
        name: "mainline-no-prev-idle",
        help: "mainline without Lawall's patch of 5.10",
        features: MAINLINE.without(bits::prev_idle),
    },
    Preset {
        name: "lawall",
        help: "the same as mainline, which has Lawall's patch since 5.10",
        features: MAINLINE,
    },
    Preset {
        name: "smove",
        help: "mainline with Gouicem's delayed migration (\"Smove\")",
        features: MAINLINE.with(bits::delay_migration),
    },
    Preset {
        name: "patra",
        help: "mainline with Patra's claim of an idle CPU",
        features: MAINLINE.with(bits::claim).with(bits::claim_plain),
    },
    Preset {
        name: "roy-v7",
        help: "mainline with Roy's \"prefer the previous CPU\" v7 and Huang's idle periods",
        features: MAINLINE
            .with(bits::prev_core)
            .with(bits::recent_core)
            .with(bits::sync_core)
            .with(bits::avg_idle_every),
    },
    Preset {
        name: "desnoyers",
        help: "mainline with Desnoyers' UTIL_FITS_CAPACITY and SELECT_BIAS_PREV, which keep tasks where they were",
        features: MAINLINE.with(bits::util_fits).with(bits::bias_prev),
    },
];

pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name)
}

/// A number that can be set at start and, with `ctl set`, while the scheduler runs.
#[derive(Debug)]
pub struct Tunable {
    pub name: &'static str,
    /// The feature without which it has no effect. Else empty.
    pub parent: &'static str,
    pub unit: &'static str,
    pub default: Default,
    pub min: u32,
    pub max: u32,
    /// One value for the whole machine, not for each arm.
    pub machine_wide: bool,
    pub help: &'static str,
}

impl Tunable {
    /// Parses a value from the command line. An error states the possible values.
    pub fn parse(&self, text: &str) -> Result<u32, String> {
        if let Default::Rule(_) = self.default {
            let rule = FreqRule::parse(text).map(FreqRule::code);
            return rule.ok_or_else(|| format!("{} are possible", self.possible()));
        }
        if let Default::Rules = self.default {
            return fair::code(text).ok_or_else(|| format!("{} are possible", self.possible()));
        }
        let in_range = |n: &u32| (self.min..=self.max).contains(n);
        text.parse().ok().filter(in_range).ok_or_else(|| {
            let unit = self.unit_after(" ");
            let plain = match text.trim_end_matches(char::is_alphabetic).parse::<f64>() {
                Ok(_) if text.ends_with(char::is_alphabetic) => ": give a number without a unit",
                _ => "",
            };
            format!("{}{unit} are possible{plain}", self.possible())
        })
    }

    /// What the help calls a value.
    pub fn value_name(&self) -> &'static str {
        match (&self.default, self.unit, self.max) {
            (Default::Rule(_), ..) => "RULE",
            (Default::Rules, ..) => "KERNEL",
            (_, "us", _) => "US",
            (_, "percent", _) => "PERCENT",
            (_, _, 1) => "0|1",
            _ => "N",
        }
    }

    /// The values, without their unit.
    pub fn possible(&self) -> String {
        match self.default {
            Default::Rule(_) => FreqRule::POSSIBLE.to_string(),
            Default::Rules => fair::possible(),
            _ => format!("{} to {}", self.min, self.max),
        }
    }

    /// A value in the form of the command line.
    pub fn shown(&self, value: u32) -> Value {
        match self.default {
            Default::Rule(_) => FreqRule::of_code(value).to_string().into(),
            Default::Rules => fair::set(value).name.into(),
            _ => value.into(),
        }
    }

    /// The help, with the feature that the tunable belongs to.
    pub fn helped(&self) -> String {
        match self.parent {
            "" => self.help.to_string(),
            parent => format!("With {parent}: {}", self.help),
        }
    }

    /// Empty if there is no unit.
    pub fn unit_after(&self, word: &str) -> String {
        if self.unit.is_empty() {
            String::new()
        } else {
            format!("{word}{}", self.unit)
        }
    }
}

#[derive(Debug)]
pub enum Default {
    Fixed(u32),
    /// The kernel's base slice: 700 us x (1 + log2 of the CPUs, 8 at most).
    BaseSlice,
    /// The tunable is a rule about frequencies; this is the rule's code.
    Rule(u32),
    /// The tunable names the kernel's rules; the default is the preset's.
    Rules,
}

impl Default {
    pub fn value(&self, nr_cpus: u32) -> u32 {
        match self {
            Default::Fixed(value) | Default::Rule(value) => *value,
            Default::Rules => fair::AUTO,
            Default::BaseSlice => 700 * (1 + nr_cpus.clamp(1, 8).ilog2()),
        }
    }
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Default::Fixed(value) => write!(f, "{value}"),
            Default::Rule(code) => write!(f, "{}", FreqRule::of_code(*code)),
            Default::Rules => f.write_str(fair::set(fair::ROOST).name),
            Default::BaseSlice => f.write_str("the kernel's base slice, 2800 from 8 CPUs on"),
        }
    }
}

pub const SLICE: Tunable = Tunable {
    name: "slice-us",
    parent: "",
    unit: "us",
    default: Default::BaseSlice,
    min: 100,
    max: 100_000,
    machine_wide: false,
    help: "Slice that a task requests (by default at least --min-slice-us): a shorter one lets waiters run sooner, a longer one causes fewer switches",
};

pub const MIN_SLICE: Tunable = Tunable {
    name: "min-slice-us",
    parent: "",
    unit: "us",
    default: Default::Fixed(700),
    min: 0,
    max: 100_000,
    machine_wide: false,
    help: "Least slice of a task while others wait, and time for which it runs before a wakeup may preempt it (with burst_slice an eighth of it against a light task; none for one that is ahead of its due, or SCHED_IDLE); by default at most --slice-us",
};

pub const FAIR_RULES: Tunable = Tunable {
    name: "fair-rules",
    parent: "",
    unit: "",
    default: Default::Rules,
    min: 0,
    max: fair::LAST,
    machine_wide: false,
    help: "Whose rules decide which task runs, and which may interrupt which: those of a kernel version, of the running kernel (auto, the default of all presets but roost), or scx_roost's own",
};

pub const RESCUE: Tunable = Tunable {
    name: "rescue-us",
    parent: "",
    unit: "us",
    default: Default::Fixed(20_000),
    min: 1_000,
    max: 1_000_000,
    machine_wide: true,
    help: "Time after which tasks may be fetched from a CPU that does not dispatch",
};

pub const MIGRATION_COST: Tunable = Tunable {
    name: "migration-cost-us",
    parent: "",
    unit: "us",
    default: Default::Fixed(500),
    min: 0,
    max: 100_000,
    machine_wide: true,
    help: "A task that ran this recently is not stolen by an idle CPU (kernel: sysctl_sched_migration_cost). smt_spread moves a task only after it has run, or its CPU has been busy, for this time. An idle core becomes vacant after this time to ten times it (core_first, smt_spread). It also bounds idle periods and the cost of a search",
};

pub const CLAIM_TTL: Tunable = Tunable {
    name: "claim-ttl-us",
    parent: "claim",
    unit: "us",
    default: Default::Fixed(1_000),
    min: 50,
    max: 1_000_000,
    machine_wide: false,
    help: "an older claim of an idle CPU is ignored",
};

pub const FITS_MARGIN: Tunable = Tunable {
    name: "fits-margin",
    parent: "util_fits",
    unit: "percent",
    default: Default::Fixed(0),
    min: 0,
    max: 50,
    machine_wide: false,
    help: "part of a CPU's capacity that must stay free for a task to be placed there; the patch's second version has 20",
};

pub const FITS_RT: Tunable = Tunable {
    name: "fits-rt",
    parent: "util_fits",
    unit: "",
    default: Default::Fixed(0),
    min: 0,
    max: 1,
    machine_wide: false,
    help: "whether real-time, deadline and interrupt time is subtracted from the capacity, as in the patch's second version",
};

pub const DELAY: Tunable = Tunable {
    name: "delay-us",
    parent: "delay_migration",
    unit: "us",
    default: Default::Fixed(50),
    min: 1,
    max: 10_000,
    machine_wide: false,
    help: "how long a task waits beside its waker before it moves",
};

pub const FREQ_THRESHOLD: Tunable = Tunable {
    name: "freq-threshold",
    parent: "delay_migration",
    unit: "",
    default: Default::Rule(FreqRule::DEFAULT),
    min: 0,
    max: u32::MAX,
    machine_wide: false,
    help: "a CPU's frequency is low at this value or below; auto learns a value for each CPU",
};

pub const TUNABLES: &[&Tunable] = &[
    &SLICE,
    &MIN_SLICE,
    &FAIR_RULES,
    &CLAIM_TTL,
    &RESCUE,
    &MIGRATION_COST,
    &FITS_MARGIN,
    &FITS_RT,
    &DELAY,
    &FREQ_THRESHOLD,
];

pub fn known_tunable(name: &str) -> Option<&'static Tunable> {
    TUNABLES.iter().copied().find(|t| t.name == name)
}

/// The feature that a sub-switch or a tunable belongs to. None: it stands alone.
#[cfg(feature = "ab")]
pub fn parent_of(name: &str) -> Option<&'static str> {
    let tunable = known_tunable(name).map(|t| t.parent);
    let parent = tunable.or(feature(name).map(|f| f.parent));
    parent.filter(|parent| !parent.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits in which two presets differ.
    fn diff(a: &str, b: &str) -> FeatureSet {
        FeatureSet(preset(a).unwrap().features.0 ^ preset(b).unwrap().features.0)
    }

    #[test]
    fn a_preset_differs_from_its_base_in_its_own_bits_only() {
        assert_eq!(diff("mainline-no-prev-idle", "mainline"), bits::prev_idle);
        assert_eq!(diff("lawall", "mainline"), FeatureSet::default());
        assert_eq!(diff("smove", "mainline"), bits::delay_migration);
        let patra = bits::claim.with(bits::claim_plain);
        assert_eq!(diff("patra", "mainline"), patra);
        let roy = bits::prev_core
            .with(bits::recent_core)
            .with(bits::sync_core)
            .with(bits::avg_idle_every);
        assert_eq!(diff("roy-v7", "mainline"), roy);
        assert_eq!(
            diff("desnoyers", "mainline"),
            bits::util_fits.with(bits::bias_prev)
        );
        let own = bits::wide_idle
            .with(bits::burst_slice)
            .with(bits::prev_core)
            .with(bits::core_first)
            .with(bits::sync_local)
            .with(bits::claim)
            .with(bits::core_claim)
            .with(bits::smt_spread);
        assert_eq!(diff("roost", "mainline"), own);
    }

    #[test]
    fn nothing_of_ours_is_on_under_the_name_of_a_source() {
        let ours = FEATURES
            .iter()
            .filter(|f| f.source == "scx_roost")
            .fold(FeatureSet::default(), |s, f| s.with(f.bit));
        for preset in PRESETS.iter().filter(|p| p.name != DEFAULT_PRESET) {
            assert_eq!(preset.features.0 & ours.0, 0, "{}", preset.name);
        }
    }

    #[test]
    fn each_feature_is_one_bit_at_its_row() {
        for (row, feature) in FEATURES.iter().enumerate() {
            assert_eq!(feature.bit.0, 1 << row, "{}", feature.name);
        }
    }

    #[test]
    fn a_sub_switch_changes_a_feature_that_is_none_itself() {
        for sub in FEATURES.iter().filter(|f| !f.parent.is_empty()) {
            let parent = feature(sub.parent).expect(sub.name);
            assert_eq!(parent.parent, "", "{}", sub.name);
            assert!(orphans(sub.bit).eq([sub]), "{}", sub.name);
            assert_eq!(orphans(sub.bit.with(parent.bit)).count(), 0, "{}", sub.name);
        }
        for preset in PRESETS {
            assert_eq!(orphans(preset.features).count(), 0, "{}", preset.name);
        }
    }

    #[test]
    fn a_tunable_is_of_a_feature_that_there_is() {
        for tunable in TUNABLES.iter().filter(|t| !t.parent.is_empty()) {
            assert!(feature(tunable.parent).is_some(), "{}", tunable.name);
        }
        assert_eq!(
            CLAIM_TTL.helped(),
            "With claim: an older claim of an idle CPU is ignored"
        );
    }

    #[test]
    fn names_are_unique_and_need_no_comma() {
        let mut names: Vec<&str> = FEATURES.iter().map(|f| f.name).collect();
        names.extend(PRESETS.iter().map(|p| p.name));
        names.extend(crate::policy::profiles::PROFILES.iter().map(|p| p.name));
        names.extend(TUNABLES.iter().map(|t| t.name));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|n| !n.contains([',', ' '])));
    }

    #[test]
    fn base_slice_is_the_kernels() {
        let slice = |cpus| SLICE.default.value(cpus);
        assert_eq!(
            [slice(1), slice(2), slice(4), slice(7)],
            [700, 1400, 2100, 2100]
        );
        assert_eq!([slice(8), slice(64), slice(1024)], [2800, 2800, 2800]);
    }

    #[test]
    fn defaults_are_in_range() {
        for tunable in TUNABLES {
            for cpus in [1, 8, 1024] {
                let value = tunable.default.value(cpus);
                assert!(
                    (tunable.min..=tunable.max).contains(&value),
                    "{} {value}",
                    tunable.name
                );
            }
        }
    }

    #[test]
    fn a_set_prints_its_names() {
        assert_eq!(
            preset("mainline").unwrap().features.to_string(),
            "prev_idle sis_util avg_idle"
        );
        assert_eq!(FeatureSet::default().to_string(), "none");
    }
}
