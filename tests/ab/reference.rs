// SPDX-License-Identifier: GPL-2.0-only
//! Compares our statistics with scipy and statsmodels. fixtures.py made fixtures.json.

use scx_roost::ab::stats::rank::{P, SignedRank};
use scx_roost::ab::stats::sample::quantile;
use scx_roost::ab::stats::shift::Walsh;
use serde_json::Value;

const EXACT: f64 = 1e-9;

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
        assert_near(walsh.estimate().unwrap(), &row, "estimate", EXACT);
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
fn quantiles_lie_on_a_line_between_neighbours() {
    for row in fixtures("quantile") {
        let ours = quantile(&numbers(&row, "values"), number(&row, "share"));
        assert_near(ours, &row, "quantile", EXACT);
    }
}
