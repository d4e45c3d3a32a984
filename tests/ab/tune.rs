// SPDX-License-Identifier: GPL-2.0-only
//! What suits a workload is searched for, on a machine that is played.

use crate::played::{Played, header};
use scx_roost::ab::result::{Header, Recorded, ResultFile};
use scx_roost::ab::run::run;
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::Verdict;
use scx_roost::ab::tune::{Tuned, candidates, tune};
use scx_roost::ab::variant::{Scope, TRACES, Variant};

/// On a machine where each of these changes takes so many times as long as without it.
fn tuned(base: &str, times: &[(&str, f64)], seed: u64) -> (Tuned, Vec<String>) {
    tuned_for(Scope::Machine, base, times, seed)
}

fn tuned_for(scope: Scope, base: &str, times: &[(&str, f64)], seed: u64) -> (Tuned, Vec<String>) {
    let mut names = Vec::new();
    let mut confirm = header(&[base], Plan::Fixed(12));
    confirm.scope = scope;
    confirm.command.push("it's all".into());
    let tuned = tune(
        &confirm,
        candidates(base, 8, scope).unwrap(),
        &mut |header, name| {
            names.push(format!("{name} of {}", header.variants.len()));
            Ok(runs(header, times, seed + names.len() as u64))
        },
    );
    (tuned.unwrap(), names)
}

fn runs(header: &Header, times: &[(&str, f64)], seed: u64) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let mut file = ResultFile::create(&folder.path().join("r"), header).unwrap();
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
    let mut runs = Vec::new();
    let never = || false;
    run(
        header,
        &mut runs,
        &mut machine,
        &mut file,
        &never,
        &mut |_| (),
    )
    .unwrap();
    // Each feature acts.
    for run in &mut runs {
        for counter in TRACES.iter().flat_map(|(_, counters)| *counters) {
            run.counters.insert(counter.to_string(), 5);
        }
    }
    Recorded {
        header: header.clone(),
        runs,
    }
}

#[test]
fn each_feature_is_tried_the_other_way_round_and_slices_too() {
    let all = candidates("mainline", 8, Scope::Machine).unwrap();
    for there in [
        "mainline+prev_idle=off",
        "mainline+prev_core=on",
        "mainline+slice-us=1400",
        "mainline+slice-us=5600",
    ] {
        assert!(all.iter().any(|c| c == there), "{there} in {all:?}");
    }
    // A sub-switch whose feature is off.
    assert!(!all.iter().any(|c| c.contains("claim_plain")), "{all:?}");
    assert!(candidates("eevdf", 8, Scope::Machine).is_err());
    let set = candidates("mainline+slice-us=1000", 8, Scope::Machine).unwrap();
    assert_eq!(
        set.iter().filter(|c| c.contains("slice")).count(),
        set.len()
    );
    assert!(set.iter().all(|c| c.matches("slice-us").count() == 1));
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
    assert_eq!((judged.verdict, judged.blocks), (Verdict::Better, 12));
    let text = tuned.text().unwrap();
    println!("{text}{names:?}");
    for part in [
        "for all tasks, as it was measured:\n",
        "  scx_roost --preset mainline --enable prev_core --enable claim",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("--arm"), "{text}");
}

/// Of twenty searches where nothing helps, each has an error of 5 %.
#[test]
fn where_nothing_helps_nothing_is_found() {
    let found = (0..20).filter(|s| tuned("mainline", &[], 100 * s).0.found().is_some());
    let found = found.count();
    println!("{found} of 20");
    assert!(found <= 3, "{found}");
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
        text.ends_with("Nothing did better than mainline.\n"),
        "{text}"
    );
}

/// Each file can be read, and what is told is for the command alone.
#[test]
fn for_a_command_only_what_an_arm_can_have_is_tried() {
    let all = candidates("roost", 8, Scope::Workload).unwrap();
    assert!(
        !all.iter()
            .any(|c| c.contains("+avg_idle=") || c.contains("avg_idle_every"))
    );
    let mut variants = vec![Variant::parse("roost").unwrap()];
    variants.extend(all.iter().map(|c| Variant::parse(c).unwrap()));
    Scope::Workload.takes(&variants).unwrap();
    assert!(candidates("roost", 8, Scope::Machine).unwrap().len() > all.len());
    assert!(candidates("roost+rescue-us=2000", 8, Scope::Workload).is_err());
    let helps = [("prev_core=on", 0.90), ("slice-us=5600", 0.95)];
    let (tuned, _) = tuned_for(Scope::Workload, "mainline", &helps, 1);
    let text = tuned.text().unwrap();
    for part in [
        "scx_roost ctl arms add tuned --preset mainline\n",
        "scx_roost ctl set --arm tuned --enable prev_core --set slice-us=5600\n",
        "scx_roost ctl rules add --comm make --arm tuned\n",
        r"scx_roost exec --arm tuned -- make -j16 /home/me/secret 'it'\''s all'",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
