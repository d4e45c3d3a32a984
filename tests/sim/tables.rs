// SPDX-License-Identifier: GPL-2.0-only
//! The published rows as they are written down.

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
