// SPDX-License-Identifier: GPL-2.0-only
//! Compares our statistics with scipy and statsmodels. fixtures.py made fixtures.json.

use scx_roost::ab::stats::rank::{P, SignedRank};
use scx_roost::ab::stats::sample::{mean, median_of, quantile};
use scx_roost::ab::stats::shift::Walsh;
use scx_roost::ab::stats::{bootstrap, holm, power};
use scx_roost::util::rng::Rng;
use serde_json::Value;

/// For values that both compute exactly.
const EXACT: f64 = 1e-9;
/// The error of a resampled end of an interval against 400,000 resamples, as a part of the width.
const RESAMPLED: f64 = 0.03;

fn fixtures(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("fixtures.json")).unwrap();
    let rows = all[name].as_array().unwrap().clone();
    assert!(!rows.is_empty());
    rows
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap()
}

fn numbers(row: &Value, key: &str) -> Vec<f64> {
    let list = row[key].as_array().unwrap();
    list.iter().map(|v| v.as_f64().unwrap()).collect()
}

fn assert_near(ours: f64, row: &Value, key: &str, tolerance: f64) {
    let theirs = number(row, key);
    assert!((ours - theirs).abs() <= tolerance, "{ours} of {row}");
}

fn check_tests(name: &str, p: fn(&SignedRank) -> P) {
    for row in fixtures(name) {
        let p = p(&SignedRank::new(&numbers(&row, "differences")));
        assert_near(p.greater, &row, "greater", EXACT);
        assert_near(p.less, &row, "less", EXACT);
        assert_near(p.two_sided(), &row, "two_sided", EXACT);
    }
}

#[test]
fn the_signed_rank_test_is_exact() {
    check_tests("exact", SignedRank::exact);
}

#[test]
fn ties_and_zeros_leave_it_exact() {
    check_tests("tied", SignedRank::p);
}

#[test]
fn many_differences_are_approximated() {
    check_tests("approximate", SignedRank::approximate);
}

#[test]
fn the_interval_of_a_shift_is_what_the_test_does_not_refuse() {
    for row in fixtures("shift") {
        let walsh = Walsh::new(&numbers(&row, "differences"));
        assert_near(walsh.estimate(), &row, "estimate", EXACT);
        let ours = walsh.interval(number(&row, "level"));
        assert_eq!(ours.is_none(), row["interval"].is_null(), "{row}");
        if let Some(ours) = ours {
            let theirs = numbers(&row, "interval");
            assert!((ours.low - theirs[0]).abs() <= EXACT, "{ours:?} of {row}");
            assert!((ours.high - theirs[1]).abs() <= EXACT, "{ours:?} of {row}");
        }
    }
}

#[test]
fn few_blocks_widen_the_interval_of_percentiles() {
    for row in fixtures("tail") {
        let blocks = row["blocks"].as_u64().unwrap() as usize;
        let tail = bootstrap::tail(blocks, number(&row, "level")).unwrap();
        assert_near(tail, &row, "tail", EXACT);
    }
    assert_eq!(bootstrap::tail(5, 0.95), None);
}

#[test]
fn resampling_comes_to_the_same_interval() {
    for row in fixtures("bootstrap") {
        let (values, theirs) = (numbers(&row, "values"), numbers(&row, "interval"));
        let statistic = |drawn: &mut [f64]| match row["statistic"].as_str() {
            Some("mean") => mean(drawn),
            _ => median_of(drawn),
        };
        let level = number(&row, "level");
        let ours =
            bootstrap::interval(&values, statistic, level, 40_000, &mut Rng::new(1)).unwrap();
        let tolerance = RESAMPLED * (theirs[1] - theirs[0]);
        assert!((ours.low - theirs[0]).abs() <= tolerance, "{ours:?} {row}");
        assert!((ours.high - theirs[1]).abs() <= tolerance, "{ours:?} {row}");
    }
}

#[test]
fn quantiles_lie_on_a_line_between_neighbours() {
    for row in fixtures("quantile") {
        let ours = quantile(&numbers(&row, "values"), number(&row, "share"));
        assert_near(ours, &row, "quantile", EXACT);
    }
}

#[test]
fn many_comparisons_are_corrected() {
    for row in fixtures("holm") {
        let pairs = holm::adjusted(&numbers(&row, "ps"));
        let theirs = numbers(&row, "adjusted");
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= EXACT;
        assert!(pairs.iter().zip(&theirs).all(near), "{pairs:?} of {row}");
    }
}

#[test]
fn blocks_are_planned() {
    for row in fixtures("blocks") {
        let at = |key| number(&row, key);
        let blocks = power::blocks_needed(at("cv"), at("effect"), at("alpha"), at("power"));
        assert_eq!(blocks as u64, row["blocks"].as_u64().unwrap(), "{row}");
    }
}
