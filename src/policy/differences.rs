// SPDX-License-Identifier: GPL-2.0-only
//! What a request has changed of arms and rules, and for subject: a line each.

use crate::policy::arms::{Arm, Arms};
use crate::policy::features::{FEATURES, FeatureSet, TUNABLES, Tunable};
use crate::policy::rules::{Rules, Subject};
use crate::policy::settings::Settings;
use serde_json::Value;

/// From `old` to `new`, on a machine of `nr_cpus` CPUs. What has no effect is no change.
pub fn differences(old: (&Arms, &Rules), new: (&Arms, &Rules), nr_cpus: u32) -> Vec<String> {
    let mut lines = of_arms(old.0, new.0, nr_cpus);
    lines.extend(of_rules(&named(old), &named(new)));
    lines
}

fn of_arms(old: &Arms, new: &Arms, nr_cpus: u32) -> Vec<String> {
    let with_name = |arms: &Arms, name: &str| arms.slot(name).ok();
    let mut lines = Vec::new();
    for (_, arm) in new.iter() {
        match with_name(old, &arm.name).and_then(|slot| old.get(slot)) {
            Some(before) => lines.extend(of_arm(before, arm, nr_cpus)),
            None => lines.push(format!(
                "arm {}: new, {}",
                arm.name,
                arm.settings.shown_as(nr_cpus)
            )),
        }
    }
    let gone = old
        .iter()
        .filter(|(_, arm)| with_name(new, &arm.name).is_none());
    lines.extend(gone.map(|(_, arm)| format!("arm {}: deleted", arm.name)));
    lines
}

fn of_arm(old: &Arm, new: &Arm, nr_cpus: u32) -> Vec<String> {
    let (old, new, name) = (&old.settings, &new.settings, &new.name);
    let profile = |s: &Settings| match s.profile() {
        none if none.is_empty() => "none".to_string(),
        some => some,
    };
    let feature = |s: &Settings, bit: FeatureSet| match s.features.has(bit) {
        true => "on".to_string(),
        false => "off".to_string(),
    };
    let tunable = |s: &Settings, row: &Tunable| match row.shown(s.value(row, nr_cpus)) {
        Value::String(word) => word,
        number => number.to_string(),
    };
    let both = |of: &dyn Fn(&Settings) -> String| (of(old), of(new));
    let mut pairs = vec![
        ("profile", both(&profile)),
        ("preset", both(&|s| s.preset.clone())),
    ];
    pairs.extend(
        FEATURES
            .iter()
            .map(|f| (f.name, both(&|s| feature(s, f.bit)))),
    );
    pairs.extend(TUNABLES.iter().map(|t| (t.name, both(&|s| tunable(s, t)))));
    let apart = pairs.into_iter().filter(|(_, (old, new))| old != new);
    apart
        .map(|(what, (old, new))| format!("{name}: {what} {old} -> {new}"))
        .collect()
}

/// The subject of each rule and the name of its arm, in their order.
fn named((arms, rules): (&Arms, &Rules)) -> Vec<(Subject, String)> {
    let name = |slot| arms.get(slot).map_or(String::new(), |arm| arm.name.clone());
    let rules = rules.iter();
    rules.map(|r| (r.subject.clone(), name(r.slot))).collect()
}

fn of_rules(old: &[(Subject, String)], new: &[(Subject, String)]) -> Vec<String> {
    let arm_of = |rules: &[(Subject, String)], subject: &Subject| {
        let rule = rules.iter().find(|(own, _)| own == subject);
        rule.map(|(_, arm)| arm.clone())
    };
    let mut lines = Vec::new();
    for (at, (subject, arm)) in new.iter().enumerate() {
        let was = match arm_of(old, subject) {
            Some(before) if before == *arm => continue,
            Some(before) => format!(", arm {before}"),
            None => String::new(),
        };
        lines.push(format!("rule {}: {subject}{was} -> arm {arm}", at + 1));
    }
    let gone = old.iter().enumerate();
    let gone = gone.filter(|(_, (subject, _))| arm_of(new, subject).is_none());
    lines.extend(gone.map(|(at, (subject, _))| format!("rule {}: {subject} deleted", at + 1)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_a_line_and_what_is_equal_is_none() {
        let (mut arms, mut rules) = (Arms::new(Settings::default()), Rules::default());
        let mut step = |change: &dyn Fn(&mut Arms, &mut Rules)| {
            let before = (arms.clone(), rules.clone());
            change(&mut arms, &mut rules);
            differences((&before.0, &before.1), (&arms, &rules), 8).join("; ")
        };
        let change = |text: &str| serde_json::from_str(text).unwrap();
        let set = |text| {
            move |arms: &mut Arms, _: &mut Rules| {
                arms.change("default", &change(text)).unwrap();
            }
        };
        let off = r#"{"disable":["smt_spread"],"set":{"slice-us":900}}"#;
        assert_eq!(
            step(&set(off)),
            "default: smt_spread on -> off; default: slice-us 2800 -> 900"
        );
        assert_eq!(step(&set(off)), "");
        assert_eq!(
            step(&set(r#"{"profile":"gaming"}"#)),
            "default: profile none -> gaming; default: smt_spread off -> on; \
             default: slice-us 900 -> 5000"
        );
        let add = |arms: &mut Arms, _: &mut Rules| {
            arms.add("a", Some("mainline"), None).unwrap();
        };
        assert_eq!(step(&add), "arm a: new, preset mainline");
        let rule = |slot| {
            move |_: &mut Arms, rules: &mut Rules| {
                let _ = rules.delete(&Subject::Comm("make".into()));
                rules.add_comm("make", slot).unwrap();
            }
        };
        assert_eq!(step(&rule(0)), "rule 1: --comm make -> arm default");
        assert_eq!(step(&rule(1)), "rule 1: --comm make, arm default -> arm a");
        let del = |arms: &mut Arms, rules: &mut Rules| {
            rules.delete(&Subject::Comm("make".into())).unwrap();
            arms.delete("a").unwrap();
        };
        assert_eq!(step(&del), "arm a: deleted; rule 1: --comm make deleted");
    }
}
