// SPDX-License-Identifier: GPL-2.0-only
//! A saved result file beside later ones.

use crate::reports::recorded;
use scx_roost::ab::report::Report;
use scx_roost::ab::report::compare::compare;
use scx_roost::ab::variant::Scope;

/// A saved result and a later one of the same variants: the change of each, with its interval and
/// what else differs.
#[test]
fn a_saved_result_is_a_baseline() {
    let (saved, mut later) = (recorded(12), recorded(12));
    later.header.host.insert("kernel".into(), "7.3.0".into());
    for run in &mut later.runs {
        *run.values.get_mut("wall").unwrap() *= 1.07;
    }
    (later.header.scope, later.header.user) = (Scope::Workload, Some("you".into()));
    later.header.hooks.setup = Some("true".into());
    // Older files do not have it.
    later.header.host.insert("hz".into(), "250".into());
    later
        .runs
        .iter_mut()
        .for_each(|run| run.seen.modes = "governor powersave".into());
    let mut other = saved.clone();
    other.header.command = vec!["other".into()];
    let names = ["saved", "later", "other"].map(str::to_string);
    let reports = [&saved, &later, &other].map(|r| Report::new(r).unwrap());
    let beside = compare(&names, &reports).unwrap();
    let text = beside.text();
    let (_, since) = text.split_once("\nSince saved, 95 % intervals.").unwrap();
    assert!(since.contains("  mainline  wall, +7."), "{text}");
    assert!(
        since.contains("  later: kernel differs: '7.2.13' and '7.3.0'\n"),
        "{text}"
    );
    for differs in [
        "frequencies differs: 'governor schedutil' and 'governor powersave'",
        "scope differs: 'the whole machine' and 'the command alone'",
        "user differs: 'me' and 'you'",
        "what is around the runs differs: '' and ', setup 'true''",
    ] {
        assert!(
            since.contains(&format!("  later: {differs}\n")),
            "{differs} in {text}"
        );
    }
    assert!(!text.contains("hz differs"), "{text}");
    assert!(since.contains("\nnot compared with saved, because the command is another one or no metric above 0 is common: other\n"), "{text}");
    assert!(beside.means.is_empty(), "two files have one workload");
    let means = compare(&names[1..], &reports[1..]).unwrap().means;
    assert_eq!((means.len(), means[0].workloads), (2, 2));
    let wall = beside.between.iter().find(|b| b.metric == "wall").unwrap();
    let interval = wall.interval.unwrap();
    assert!(
        interval.contains(1.07) && !interval.contains(1.0),
        "{wall:?}"
    );
    let rate = beside
        .between
        .iter()
        .find(|b| b.metric == "json:/ops")
        .unwrap();
    assert!(rate.interval.unwrap().contains(1.0), "{rate:?}");
}
