// SPDX-License-Identifier: GPL-2.0-only
//! Which features act in this backend: what a feature asks must be known here.

use crate::policy::config::Config;
use crate::policy::features::{FEATURES, FeatureSet, SLICE, bits};
use crate::policy::plan::Plan;
use anyhow::{Result, bail, ensure};

/// The features that do not act, and why.
const UNKNOWN: [(&str, FeatureSet); 5] = [
    (
        "scx_rustland_core does not say which task woke another, or where",
        bits::prev_idle
            .with(bits::sync_local)
            .with(bits::sync_core)
            .with(bits::delay_migration),
    ),
    (
        "utilisation is not known in userspace",
        bits::sis_util.with(bits::util_fits),
    ),
    (
        "how long CPUs are idle between tasks is not measured in userspace",
        bits::avg_idle
            .with(bits::avg_idle_every)
            .with(bits::avg_idle_scan),
    ),
    (
        "one thread makes all decisions, so no two wakeups compete for a CPU",
        bits::claim.with(bits::claim_plain).with(bits::core_claim),
    ),
    (
        "tasks that wait are in one queue by virtual time, without requests",
        bits::burst_slice,
    ),
];

/// The features of this set that act here.
fn known(set: FeatureSet) -> FeatureSet {
    UNKNOWN
        .iter()
        .fold(set, |set, (_, unknown)| set.without(*unknown))
}

/// Fails for options of a run that have no effect here.
pub fn refuse_ignored(config: &Config) -> Result<()> {
    let usual = Config::default();
    let named = [
        ("cpuperf", config.cpuperf != usual.cpuperf),
        ("freq-source", config.freq_source != usual.freq_source),
        ("freq-period-ms", config.freq_period != usual.freq_period),
    ];
    match named.iter().find(|(_, named)| *named) {
        Some((name, _)) => refused(name),
        None => Ok(()),
    }
}

fn refused(option: &str) -> Result<()> {
    bail!("--backend rust has no --{option}: leave it out, or use --backend bpf")
}

/// The plan of a run: without the features of its preset or profile that do not act here. Fails if
/// such a feature was asked for by name, or a tunable other than the slice, and for arms and rules.
pub fn refuse_unknown(mut plan: Plan) -> Result<Plan> {
    let settings = &mut plan.everybody;
    let named = settings.features.and(settings.switched());
    for (why, unknown) in UNKNOWN {
        let mut rows = FEATURES.iter().filter(|row| unknown.has(row.bit));
        if let Some(row) = rows.find(|row| named.has(row.bit)) {
            bail!(
                "--backend rust has no {}: {why}; leave it out, or use --backend bpf",
                row.name
            );
        }
    }
    if let Some(name) = settings.tuned().find(|name| *name != SLICE.name) {
        refused(name)?;
    }
    ensure!(
        plan.arms.is_empty() && plan.rules.is_empty(),
        "--backend rust has no arms and no rules, and the configuration has some: leave them out, or \
         use --backend bpf"
    );
    settings.features = known(settings.features);
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::FreqSource;
    use crate::machine::cpufreq::CpuPerf;
    use crate::policy::change::Change;
    use crate::policy::settings::Settings;
    use std::time::Duration;

    fn taken(everybody: Settings) -> Result<Settings> {
        let plan = Plan {
            everybody,
            ..Plan::default()
        };
        refuse_unknown(plan).map(|plan| plan.everybody)
    }

    fn changed(preset: &str, enable: &str) -> Settings {
        let settings = Settings::of_preset(preset).unwrap();
        let change = Change {
            enable: vec![enable.to_string()],
            ..Change::default()
        };
        settings.changed(&change).unwrap()
    }

    #[test]
    fn a_preset_is_taken_with_the_features_that_act() {
        let of_preset = |preset| taken(Settings::of_preset(preset).unwrap()).unwrap();
        let text = of_preset("roost").features.to_string();
        assert_eq!(text, "wide_idle prev_core core_first smt_spread");
        assert_eq!(of_preset("mainline").features.to_string(), "none");
        let text = of_preset("desnoyers").features.to_string();
        assert_eq!(text, "bias_prev");
    }

    #[test]
    fn a_feature_that_cannot_act_is_refused_by_name() {
        let said_no = taken(changed("mainline", "util_fits")).unwrap_err();
        let said = "--backend rust has no util_fits: utilisation is not known in userspace; leave \
                    it out, or use --backend bpf";
        assert_eq!(said_no.to_string(), said);
        assert!(taken(changed("mainline", "wide_idle")).is_ok());
        assert!(taken(changed("roost", "sync_local")).is_err());
    }

    #[test]
    fn of_tunables_only_the_slice_acts() {
        let set = |name: &str| {
            let mut change = Change::default();
            change.set.insert(name.to_string(), 1000.into());
            taken(Settings::default().changed(&change).unwrap())
        };
        assert!(set("slice-us").is_ok());
        let said = set("rescue-us").unwrap_err().to_string();
        assert!(
            said.starts_with("--backend rust has no --rescue-us"),
            "{said}"
        );
    }

    #[test]
    fn options_of_frequencies_are_refused() {
        let usual = Config::default();
        assert!(refuse_ignored(&usual).is_ok());
        let said = |config| refuse_ignored(&config).unwrap_err().to_string();
        let cpuperf = said(Config {
            cpuperf: CpuPerf::Off,
            ..usual.clone()
        });
        let expected = "--backend rust has no --cpuperf: leave it out, or use --backend bpf";
        assert_eq!(cpuperf, expected);
        let source = said(Config {
            freq_source: FreqSource::Off,
            ..usual.clone()
        });
        assert!(source.contains("--freq-source"), "{source}");
        let period = said(Config {
            freq_period: Duration::from_millis(5),
            ..usual
        });
        assert!(period.contains("--freq-period-ms"), "{period}");
    }

    #[test]
    fn a_profile_is_taken_with_its_slice_alone() {
        let change = Change {
            profile: Some("lowlatency".to_string()),
            ..Change::default()
        };
        let taken = taken(Settings::default().changed(&change).unwrap()).unwrap();
        assert_eq!(taken.value(&SLICE, 8), 700);
    }

    #[test]
    fn arms_are_refused() {
        let mut plan = Plan::default();
        plan.arms.insert("a".to_string(), Settings::default());
        assert!(refuse_unknown(plan).is_err());
    }
}
