// SPDX-License-Identifier: GPL-2.0-only
//! Which features act in this backend: what a feature asks must be known here.

use crate::policy::features::{FEATURES, FeatureSet, SLICE, bits};
use crate::policy::plan::Plan;
use anyhow::{Result, bail, ensure};

/// The features that act, and why the others do not.
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
        bail!("--backend rust has no --{name}: leave it out, or use --backend bpf");
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
    use crate::policy::change::Change;
    use crate::policy::settings::Settings;

    fn refused(everybody: Settings) -> Result<Settings> {
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
        let taken = |preset| refused(Settings::of_preset(preset).unwrap()).unwrap();
        let text = taken("roost").features.to_string();
        assert_eq!(text, "wide_idle prev_core core_first smt_spread");
        assert_eq!(taken("mainline").features.to_string(), "none");
        let text = taken("desnoyers").features.to_string();
        assert_eq!(text, "bias_prev");
    }

    #[test]
    fn a_feature_that_cannot_act_is_refused_by_name() {
        let said_no = refused(changed("mainline", "util_fits")).unwrap_err();
        let said = "--backend rust has no util_fits: utilisation is not known in userspace; leave \
                    it out, or use --backend bpf";
        assert_eq!(said_no.to_string(), said);
        assert!(refused(changed("mainline", "wide_idle")).is_ok());
        assert!(refused(changed("roost", "sync_local")).is_err());
    }

    #[test]
    fn of_tunables_only_the_slice_acts() {
        let set = |name: &str| {
            let mut change = Change::default();
            change.set.insert(name.to_string(), 1000.into());
            refused(Settings::default().changed(&change).unwrap())
        };
        assert!(set("slice-us").is_ok());
        let said = set("rescue-us").unwrap_err().to_string();
        assert!(
            said.starts_with("--backend rust has no --rescue-us"),
            "{said}"
        );
    }

    #[test]
    fn a_profile_is_taken_with_its_slice_alone() {
        let change = Change {
            profile: Some("lowlatency".to_string()),
            ..Change::default()
        };
        let taken = refused(Settings::default().changed(&change).unwrap()).unwrap();
        assert_eq!(taken.value(&SLICE, 8), 700);
    }

    #[test]
    fn arms_are_refused() {
        let mut plan = Plan::default();
        plan.arms.insert("a".to_string(), Settings::default());
        assert!(refuse_unknown(plan).is_err());
    }
}
