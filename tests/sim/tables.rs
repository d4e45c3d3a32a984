// SPDX-License-Identifier: GPL-2.0-only
//! The published rows as they are written down.

use scx_roost::sim::table::{self, Demand, Figure, Frozen, Verdict};
use std::collections::BTreeSet;

const TABLES: &str = include_str!("../../src/sim/data/tables.tsv");

/// What a row is for.
const USES: [&str; 8] = [
    "calibrates",
    "held-out",
    "control",
    "tail",
    "summary",
    "bound",
    "foreign",
    "context",
];

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let columns = text.lines().next().unwrap().split('\t').count();
    text.lines().skip(1).map(move |line| {
        let row: Vec<&str> = line.split('\t').collect();
        assert_eq!(row.len(), columns, "{line}");
        row
    })
}

fn number(text: &str) -> Option<f64> {
    (!text.is_empty()).then(|| {
        text.parse()
            .unwrap_or_else(|_| panic!("{text:?} is no number"))
    })
}

/// What an effect and a gain are follows from the two values.
#[test]
fn published_rows_agree_with_themselves() {
    let mut names = BTreeSet::new();
    for row in rows(TABLES) {
        let (source, name, better) = (row[0], row[1], row[6]);
        assert!(
            names.insert((source, name, row[8])),
            "{source} {name} is there twice"
        );
        assert!(
            ["lower", "higher", "none"].contains(&better),
            "{source} {name}: {better}"
        );
        assert!(USES.contains(&row[14]), "{name}: {}", row[14]);
        assert!(!row[15].is_empty(), "{source} {name}: which message?");
        let values = (
            number(row[9]),
            number(row[10]),
            number(row[11]),
            number(row[12]),
        );
        let (Some(base), Some(variant), Some(effect), Some(gain)) = values else {
            continue;
        };
        let computed = (variant / base - 1.0) * 100.0;
        assert!(
            (computed - effect).abs() < 0.06,
            "{source} {name}: {effect} %, computed {computed:.2}"
        );
        let sign = if better == "lower" { -1.0 } else { 1.0 };
        assert!(
            (gain - sign * effect).abs() < 0.01,
            "{source} {name}: gain {gain}, effect {effect}"
        );
    }
    assert!(names.len() > 100);
}

/// A row is run, or says why not; and only what is known not to be modelled says so.
#[test]
fn every_row_is_run_or_says_why_not() {
    let whys = table::not_modelled().unwrap();
    for (source, row, why) in whys {
        let used = rows(TABLES)
            .find(|r| r[0] == source && r[1] == row)
            .map(|r| r[14])
            .unwrap();
        assert!(
            ["tail", "summary", "foreign", "context"].contains(&used),
            "{source} {row}: {why}"
        );
        assert!(!why.is_empty());
    }
}

fn like(effect: f64, near: f64) -> Demand {
    Demand::Like { effect, near }
}

#[test]
fn a_verdict_is_about_sign_and_size() {
    for (effect, near, simulated, verdict) in [
        (-10.0, 8.0, -10.0, Verdict::Ok),
        (-10.0, 8.0, -2.0, Verdict::Ok),
        (-10.0, 8.0, -1.9, Verdict::Size),
        (-10.0, 8.0, -18.1, Verdict::Size),
        (-10.0, 8.0, 0.1, Verdict::Sign),
        (-10.0, 8.0, 0.0, Verdict::Sign),
        // Near, but of the other sign.
        (-3.0, 8.0, 1.0, Verdict::Sign),
        (5.7, 8.0, 0.5, Verdict::Ok),
        (5.7, 8.0, -0.5, Verdict::Sign),
        (5.7, 5.0, 0.5, Verdict::Size),
    ] {
        assert_eq!(
            like(effect, near).judge(simulated),
            verdict,
            "{effect}: {simulated}"
        );
    }
    for (simulated, verdict) in [
        (0.0, Verdict::Ok),
        (-2.0, Verdict::Ok),
        (2.1, Verdict::Effect),
    ] {
        assert_eq!(Demand::None.judge(simulated), verdict, "{simulated}");
    }
}

#[test]
fn who_is_near_a_limit_is_undecided() {
    let of = |value, error| like(-10.0, 8.0).undecided(Figure { value, error }, 4);
    assert_eq!(of(-10.0, Some(1.0)), None);
    // 1 point from a limit, two standard errors are 2: four times the runs.
    assert_eq!(of(-3.0, Some(1.0)), Some(16));
    assert_eq!(of(-1.0, Some(1.0)), Some(16));
    assert_eq!(of(-3.0, Some(0.4)), None);
    assert_eq!(of(-3.0, None), None);
}

/// Who changes a parameter, a workload or what stands for a row after they were frozen tells of it in data/changes.tsv:
/// `scripts/freeze --change` does.
#[test]
fn parameters_are_frozen() {
    let frozen = Frozen::read().unwrap();
    assert!(
        !frozen.unlogged,
        "parameters are {}, and changes.tsv does not tell of that",
        frozen.hash
    );
}
