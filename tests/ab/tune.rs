// SPDX-License-Identifier: GPL-2.0-only
//! The search for what suits a workload, on a simulated machine.

use crate::played::{Played, header, played};
use scx_roost::ab::args::TUNE_EXAMPLES;
use scx_roost::ab::design::Design;
use scx_roost::ab::result::{Header, Recorded};
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::Verdict;
use scx_roost::ab::tune::{Tuned, candidates, tune};
use scx_roost::ab::variant::{Scope, Variant, exercised};
use scx_roost::policy::features::{FEATURES, feature};

/// Searches on a machine on which each of these changes multiplies a run's time by its factor.
fn tuned(base: &str, times: &[(&str, f64)], seed: u64) -> (Tuned, Vec<String>) {
    tuned_for(Scope::Machine, base, times, seed)
}

fn tuned_for(scope: Scope, base: &str, times: &[(&str, f64)], seed: u64) -> (Tuned, Vec<String>) {
    let mut names = Vec::new();
    let mut confirm = header(&[base], Plan::Fixed(12));
    (confirm.scope, confirm.seed) = (scope, seed);
    confirm.command.push("it's all".into());
    let tuned = tune(
        &confirm,
        &candidates(base, 8, scope).unwrap(),
        &mut |header, name| {
            names.push(format!("{name} of {}", header.variants.len()));
            Ok(runs(header, times, seed + names.len() as u64))
        },
    );
    (tuned.unwrap(), names)
}

fn runs(header: &Header, times: &[(&str, f64)], seed: u64) -> Recorded {
    let mut machine = Played::new(seed);
    for variant in &header.variants {
        let has = |change: &str| variant.split('+').any(|c| c == change);
        let slow: f64 = times
            .iter()
            .filter(|(c, _)| has(c))
            .map(|(_, t)| t)
            .product();
        machine.slow.insert(variant.clone(), slow);
    }
    let (mut recorded, _) = played(header, &mut machine).unwrap();
    // Each feature acts in each run.
    for run in &mut recorded.runs {
        for counter in FEATURES.iter().flat_map(|f| f.counters.split_whitespace()) {
            run.counters.insert(counter.to_string(), 5);
        }
    }
    recorded
}

#[test]
fn each_feature_is_tried_the_other_way_round() {
    let all = candidates("mainline", 8, Scope::Machine).unwrap();
    for there in ["mainline+prev_idle=off", "mainline+prev_core=on"] {
        assert!(all.iter().any(|c| c == there), "{there} in {all:?}");
    }
    // A sub-switch without its feature is no candidate.
    assert!(!all.iter().any(|c| c.contains("claim_plain")), "{all:?}");
    assert!(candidates("eevdf", 8, Scope::Machine).is_err());
}

/// The candidates of a base that change tunables.
fn tunables(base: &str, cpus: u32, scope: Scope) -> Vec<String> {
    let all = candidates(base, cpus, scope).unwrap();
    let changes = all.iter().map(|c| c[base.len() + 1..].to_string());
    changes
        .filter(|c| c.contains("us=") || c.contains("fits-"))
        .collect()
}

/// A tunable is tried if it acts: with its feature, and for a single command only if arms can have
/// it.
#[test]
fn tunables_are_tried_that_act() {
    let always = [
        "slice-us=1400",
        "slice-us=5600",
        "min-slice-us=350",
        "min-slice-us=1400",
    ];
    let cost = ["migration-cost-us=250", "migration-cost-us=1000"];
    let of = |parts: &[&[&str]]| -> Vec<String> {
        parts.concat().iter().map(ToString::to_string).collect()
    };
    let machine = |base| tunables(base, 8, Scope::Machine);
    assert_eq!(machine("mainline"), of(&[&always, &cost]));
    assert_eq!(tunables("mainline", 8, Scope::Workload), of(&[&always]));
    let claim = ["claim-ttl-us=500", "claim-ttl-us=2000"];
    assert_eq!(machine("roost"), of(&[&always, &claim, &cost]));
    assert_eq!(machine("patra"), of(&[&always, &claim, &cost]));
    let delay = ["delay-us=25", "delay-us=100"];
    assert_eq!(machine("smove"), of(&[&always, &cost, &delay]));
    let fits = ["fits-margin=20", "fits-rt=1"];
    assert_eq!(machine("desnoyers"), of(&[&always, &cost, &fits]));
}

/// What the base sets is kept. Values are derived from the base's, and are in range.
#[test]
fn what_the_base_sets_is_not_searched() {
    let machine = |base| tunables(base, 1, Scope::Machine);
    let rest = [
        "min-slice-us=350",
        "migration-cost-us=250",
        "migration-cost-us=1000",
    ];
    // A slice is at least min-slice-us. If the base does not set that, it is lowered to the slice.
    assert_eq!(machine("mainline+slice-us=700"), rest);
    let base = "roost+slice-us=100000+min-slice-us=100000+migration-cost-us=0+claim-ttl-us=50";
    assert_eq!(machine(base), [""; 0]);
    let base = "smove+slice-us=2000+min-slice-us=0+migration-cost-us=0";
    assert_eq!(machine(base), ["delay-us=25", "delay-us=100"]);
}

/// The numbers in the help are about right.
#[test]
fn the_help_tells_how_many_runs_there_are() {
    let all = candidates("roost", 8, Scope::Machine).unwrap().len();
    let of = |variants: usize, rounds: usize| {
        let design = Design {
            variants,
            ..header(&["roost"], Plan::Fixed(1)).design()
        };
        design.runs(rounds)
    };
    let runs = of(all + 1, 6) + of(4, 6) + of(2, 15);
    println!("{all} changes, {runs} runs");
    let number = |behind: &str| -> usize {
        let (_, rest) = TUNE_EXAMPLES.split_once(behind).unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    assert!(number("About ").abs_diff(all) <= 5, "{all}");
    assert!(number("about ").abs_diff(runs) <= 50, "{runs}");
}

#[test]
fn what_helps_is_found_put_together_and_confirmed() {
    let helps = [
        ("prev_core=on", 0.90),
        ("claim=on", 0.95),
        ("prev_idle=off", 1.2),
    ];
    let (tuned, names) = tuned("mainline", &helps, 1);
    let found = tuned.found().unwrap();
    assert!(
        found.starts_with("mainline+prev_core=on") && found.contains("+claim=on"),
        "{found}"
    );
    assert!(!found.contains("prev_idle"));
    assert_eq!(names.last().unwrap(), "confirm of 2");
    let (_, judged) = tuned.best.as_ref().unwrap();
    assert_eq!((judged.verdict, judged.rounds), (Verdict::Better, 12));
    let text = tuned.text().unwrap();
    println!("{text}{names:?}");
    let options = "Its options: --preset=mainline --enable=";
    assert!(text.contains(options), "{text}");
    if let Some((variant, _)) = &tuned.best {
        // What is recommended is what was confirmed.
        assert!(text.contains(&format!("new runs: {variant} is better")));
    }
    let again = "repeating the search until it finds something is multiple testing";
    assert_eq!(text.matches(again).count(), 1, "{text}");
    let json = serde_json::to_value(&tuned).unwrap();
    assert_eq!(
        (&json["base"], &json["best"][0]),
        (&"mainline".into(), &found.into())
    );
}

/// If two values of a tunable help, only one is taken.
#[test]
fn a_tunable_has_one_value() {
    let helps = [
        ("slice-us=1400", 0.8),
        ("slice-us=5600", 0.85),
        ("prev_core=on", 0.9),
    ];
    let (tuned, _) = tuned("mainline", &helps, 1);
    let all = tuned.tried.iter().map(|t| t.variant.as_str());
    for variant in all.chain(tuned.found()) {
        assert!(variant.matches("+slice-us=").count() <= 1, "{variant}");
    }
    assert_eq!(
        tuned.found().unwrap(),
        "mainline+slice-us=1400+prev_core=on"
    );
}

/// Searches among these candidates; `spoil` changes the runs of each step. Returns the names of the
/// steps too.
fn searched(
    candidates: &[&str],
    times: &[(&str, f64)],
    spoil: &dyn Fn(&mut Recorded),
) -> (Tuned, Vec<String>) {
    let base = candidates[0].split('+').next().unwrap();
    let mut names = Vec::new();
    let all: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    let confirm = header(&[base], Plan::Fixed(12));
    let tuned = tune(&confirm, &all, &mut |header, name| {
        names.push(format!("{name} of {}", header.variants.len()));
        let mut recorded = runs(header, times, 1);
        spoil(&mut recorded);
        Ok(recorded)
    });
    (tuned.unwrap(), names)
}

/// Four changes help: the best three of them are combined.
#[test]
fn three_are_put_together_where_so_many_help() {
    let helps = [
        ("prev_core=on", 0.6),
        ("claim=on", 0.7),
        ("slice-us=1400", 0.8),
        ("min-slice-us=350", 0.9),
    ];
    let all = helps.map(|(change, _)| format!("mainline+{change}"));
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let (tuned, names) = searched(&all, &helps, &|_| ());
    assert_eq!(names, ["pass of 5", "prune of 4", "confirm of 2"]);
    let found = "mainline+prev_core=on+claim=on+slice-us=1400";
    assert_eq!(tuned.found(), Some(found));
}

/// A value of a tunable is not combined with its feature switched off, whichever comes first.
#[test]
fn no_tunable_is_put_together_without_its_feature() {
    let (off, ttl) = (("claim=off", 0.6), ("claim-ttl-us=500", 0.6));
    // Three changes are combined in their order.
    for (first, second) in [(off, ttl), (ttl, off)] {
        let helps = [first, second, ("slice-us=1400", 0.8)];
        let all = helps.map(|(change, _)| format!("roost+{change}"));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        let (tuned, _) = searched(&all, &helps, &|_| ());
        let found = format!("roost+{}+slice-us=1400", first.0);
        assert_eq!(tuned.found(), Some(found.as_str()));
    }
}

/// A change that never acts is dropped, and still counts as looked at.
#[test]
fn what_never_acted_was_looked_at_too() {
    let all = [
        "mainline+prev_core=on",
        "mainline+claim=on",
        "mainline+slice-us=1400",
        "mainline+prev_idle=off",
    ];
    let helps = [
        ("prev_core=on", 0.5),
        ("claim=on", 0.4),
        ("slice-us=1400", 1.2),
        ("prev_idle=off", 1.2),
    ];
    let spoil = |recorded: &mut Recorded| {
        let claims = feature("claim").unwrap().counters;
        for run in &mut recorded.runs {
            run.counters
                .retain(|counter, _| !claims.split(' ').any(|c| c == counter));
        }
    };
    let (tuned, _) = searched(&all, &helps, &spoil);
    assert_eq!(tuned.found(), Some("mainline+prev_core=on"));
    let idle: Vec<_> = tuned.tried.iter().filter(|t| !t.acted).collect();
    assert_eq!((idle.len(), tuned.tried.len()), (1, 4), "{tuned:?}");
    assert_eq!(idle[0].variant, "mainline+claim=on");
    let text = tuned.text().unwrap();
    assert!(text.contains(" 4 were tried, which proves"), "{text}");
    assert!(
        text.contains("  mainline+claim=on (pass, never acted)\n"),
        "{text}"
    );
    let json = serde_json::to_value(&tuned).unwrap();
    let json = json["tried"].as_array().unwrap();
    assert_eq!(json.iter().filter(|t| t["acted"] == false).count(), 1);
    assert_eq!(json.len(), 4);
}

/// One value is 0, so its variant is compared by differences, and all others by ratios: they are
/// sorted on one scale all the same.
#[test]
fn a_step_has_one_scale() {
    let (best, zero) = ("mainline+prev_core=on", "mainline+claim=on");
    let helps = [("prev_core=on", 0.5), ("claim=on", 0.9)];
    let all = [
        best,
        zero,
        "mainline+slice-us=1400",
        "mainline+prev_idle=off",
    ];
    let spoil = |recorded: &mut Recorded| {
        for run in &mut recorded.runs {
            let value = run.values.get_mut("wall").unwrap();
            *value *= 1e6;
            if run.variant == zero && run.turn.is_some() && !run.drawn {
                *value = 0.0;
            }
        }
    };
    let (tuned, _) = searched(&all, &helps, &spoil);
    let first: Vec<&str> = tuned.tried.iter().map(|t| t.variant.as_str()).collect();
    let at = |variant: &str| first.iter().position(|v| *v == variant).unwrap();
    assert!(at(best) < at(zero), "{first:?}");
    assert!(tuned.found().unwrap().starts_with(best));
}

/// If the feature of a tunable never acts, its value has no effect.
#[test]
fn a_tunable_acts_with_its_feature() {
    let variant = |name| Variant::parse(name).unwrap();
    let acted = |base, other, counter: &str| {
        exercised(&variant(base), &variant(other), |_, moved| moved == counter)
    };
    let set = "roost+claim-ttl-us=500";
    assert!(acted("roost", set, "claim_seen"));
    assert!(acted(set, "roost", "claim_seen"));
    assert!(!acted("roost", set, "wa_prev_idle"));
    assert!(acted("roost", "roost+slice-us=500", ""));
    assert!(acted("roost+slice-us=900", "roost+slice-us=500", ""));
    assert!(acted(
        "roost",
        "roost+claim-ttl-us=500+prev_core=off",
        "prev_core"
    ));
    assert!(!acted(
        "roost+claim-ttl-us=500",
        "roost+claim-ttl-us=500+prev_core=off",
        "claim_seen"
    ));
    assert!(acted("smove", "smove+delay-us=25", "delay_wake"));
    assert!(!acted("smove", "smove+delay-us=25", "delay_stolen"));
}

/// How many of these searches may find something if the chance is 2.5 % each. More happens less
/// than once in a thousand times.
fn most(searches: u32) -> u32 {
    const CHANCE: f64 = 0.025;
    let mut exactly = (1.0 - CHANCE).powi(searches as i32);
    let mut at_most = exactly;
    let mut found = 0;
    while at_most < 0.999 {
        let others = f64::from(searches - found) / f64::from(found + 1);
        exactly *= others * CHANCE / (1.0 - CHANCE);
        at_most += exactly;
        found += 1;
    }
    found
}

/// If no change helps, at most 2.5 % of searches find something, however many changes are tried:
/// half of the 5 % level, since only better counts. The margin, which would hide all of it, is
/// left out.
#[test]
fn where_nothing_helps_nothing_is_found() {
    const SEARCHES: u32 = 1000;
    // From tables of the binomial distribution.
    assert_eq!((most(20), most(100)), (4, 8));
    let found = |seed: &u32| {
        let (tuned, _) = tuned("mainline", &[], 100 * u64::from(*seed));
        tuned
            .best
            .is_some_and(|(_, judged)| judged.verdict == Verdict::Better)
    };
    let found = (0..SEARCHES).filter(found).count() as u32;
    println!("{found} of {SEARCHES}, at most {}", most(SEARCHES));
    assert!(found <= most(SEARCHES), "{found}");
}

#[test]
fn what_is_better_by_less_than_the_margin_is_not_recommended() {
    let (tuned, _) = tuned("mainline", &[("prev_core=on", 0.99)], 1);
    let (best, judged) = tuned.best.as_ref().unwrap();
    assert!(best.starts_with("mainline+prev_core=on"), "{best}");
    assert_eq!(
        (judged.verdict, judged.within_margin),
        (Verdict::Better, true)
    );
    assert_eq!(tuned.found(), None);
    let text = tuned.text().unwrap();
    assert!(text.ends_with("So stay with mainline.\n"), "{text}");
}

#[test]
fn where_all_is_worse_the_base_stays() {
    let all: Vec<String> = candidates("mainline", 8, Scope::Machine).unwrap();
    let changes: Vec<(&str, f64)> = all
        .iter()
        .map(|c| (c.split_once('+').unwrap().1, 1.3))
        .collect();
    let (tuned, names) = tuned("mainline", &changes, 5);
    assert!(tuned.best.is_none() && names.len() == 1, "{names:?}");
    let text = tuned.text().unwrap();
    assert!(
        text.ends_with("No change was better than mainline.\n"),
        "{text}"
    );
}

/// The result can be applied to a single command, and each variant can be parsed.
#[test]
fn for_a_command_only_what_an_arm_can_have_is_tried() {
    let all = candidates("roost", 8, Scope::Workload).unwrap();
    assert!(
        !all.iter()
            .any(|c| c.contains("+avg_idle=") || c.contains("avg_idle_every"))
    );
    let mut variants = vec![Variant::parse("roost").unwrap()];
    variants.extend(all.iter().map(|c| Variant::parse(c).unwrap()));
    Scope::Workload.check(&variants).unwrap();
    assert!(candidates("roost", 8, Scope::Machine).unwrap().len() > all.len());
    assert!(candidates("roost+rescue-us=2000", 8, Scope::Workload).is_err());
}
