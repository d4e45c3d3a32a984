// SPDX-License-Identifier: GPL-2.0-only
//! Verdicts on clear numbers, and on numbers that allow none.

use crate::played::{asked, header, played_runs};
use scx_roost::ab::analysis;
use scx_roost::ab::metric::Metric;
use scx_roost::ab::report::remark;
use scx_roost::ab::stats::pairs::Scale;
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::sample::outliers;
use scx_roost::ab::stats::verdict::{
    Compared, Direction, Judged, Rule, Step, Verdict, judge, settled,
};

const RUNS: [f64; 8] = [10.0, 10.3, 9.9, 10.1, 10.2, 9.8, 10.05, 10.15];

fn one(base: &[f64], other: &[f64], better: Direction, plan: Plan) -> Judged {
    let compared = Compared {
        base,
        other,
        better,
        exercised: true,
        step: Step::Part(0.0),
    };
    judge(&[compared], &Rule::new(plan), 1).remove(0)
}

fn times(factor: f64) -> Vec<f64> {
    RUNS.iter()
        .enumerate()
        .map(|(i, r)| r * factor * (1.0 + 0.001 * i as f64))
        .collect()
}

#[test]
fn the_direction_decides_what_is_better() {
    for (factor, direction, verdict) in [
        (1.1, Direction::Lower, Verdict::Worse),
        (0.9, Direction::Lower, Verdict::Better),
        (1.1, Direction::Higher, Verdict::Better),
        (0.9, Direction::Higher, Verdict::Worse),
        (1.0, Direction::Higher, Verdict::Equivalent),
    ] {
        let judged = one(&RUNS, &times(factor), direction, Plan::Fixed(8));
        assert_eq!(judged.verdict, verdict, "{factor} {direction:?} {judged:?}");
        assert!(
            (judged.shift.value / factor - 1.0).abs() < 0.01,
            "{judged:?}"
        );
        assert!(
            judged
                .median
                .interval
                .unwrap()
                .contains(judged.median.value)
        );
    }
}

#[test]
fn few_blocks_say_nothing() {
    let judged = one(
        &RUNS[..5],
        &times(2.0)[..5],
        Direction::Lower,
        Plan::Fixed(5),
    );
    assert_eq!(judged.verdict, Verdict::Inconclusive);
    assert_eq!((judged.least_effect, judged.median.interval), (None, None));
}

#[test]
fn a_plan_that_is_not_done_is_not_looked_at() {
    let judged = one(&RUNS, &times(2.0), Direction::Lower, Plan::Fixed(12));
    assert_eq!((judged.verdict, judged.blocks), (Verdict::Inconclusive, 0));
    assert_eq!((judged.p, judged.shift.interval), (1.0, None));
}

#[test]
fn between_two_looks_nothing_changes() {
    let plan = Plan::Auto(24);
    let base: Vec<f64> = RUNS.iter().cycle().take(8).copied().collect();
    let at = |n: usize| one(&base[..n], &times(1.3)[..n], Direction::Lower, plan);
    assert_eq!(at(6), Judged { ..at(7) });
    assert_eq!(at(8).blocks, 6);
}

/// The first blocks differ and later ones do not: the verdict stands, with the numbers that led to
/// it.
#[test]
fn a_verdict_is_shown_with_the_numbers_of_its_look() {
    let base: Vec<f64> = RUNS.iter().cycle().take(24).copied().collect();
    // Six blocks can never decide here: the first look has too small an error rate.
    let plan = Plan::Auto(80);
    let base: Vec<f64> = base.iter().cycle().take(80).copied().collect();
    let other: Vec<f64> = base
        .iter()
        .enumerate()
        .map(|(i, b)| b * if i < 20 { 1.3 + 0.001 * i as f64 } else { 0.9 })
        .collect();
    let at = |n: usize| one(&base[..n], &other[..n], Direction::Lower, plan);
    let early = at(20);
    assert_eq!((early.verdict, early.blocks), (Verdict::Worse, 20));
    assert!(early.level.unwrap() > 0.99, "{early:?}");
    let later = at(30);
    assert_eq!((later.verdict, later.blocks), (Verdict::Worse, 20));
    assert_eq!((later.median, later.shift), (early.median, early.shift));
    assert!(later.median.interval.unwrap().low > 1.0);
    let fixed = one(&RUNS, &times(1.1), Direction::Lower, Plan::Fixed(8));
    assert_eq!(fixed.level, Some(0.95));
}

#[test]
fn what_never_acted_is_not_equal() {
    let compared = Compared {
        base: &RUNS,
        other: &RUNS,
        better: Direction::Lower,
        exercised: false,
        step: Step::Part(0.0),
    };
    let judged = judge(&[compared], &Rule::new(Plan::Fixed(8)), 1);
    assert_eq!(judged[0].verdict, Verdict::NotExercised);
}

#[test]
fn values_that_are_zero_are_subtracted() {
    let base = [0.0, 3.0, 2.0, 1.0, 2.0, 4.0, 2.0, 3.0];
    let other = base.map(|b| b + 5.0);
    let judged = one(&base, &other, Direction::Lower, Plan::Fixed(8));
    assert_eq!(
        (judged.verdict, judged.scale),
        (Verdict::Worse, Scale::Difference)
    );
    assert_eq!((judged.shift.value, judged.median.value), (5.0, 5.0));
    let same = one(&[0.0; 8], &[0.0; 8], Direction::Lower, Plan::Fixed(8));
    assert_eq!(same.verdict, Verdict::Equivalent);
}

#[test]
fn many_comparisons_ask_for_more() {
    let other = times(1.05);
    let compared = Compared {
        base: &RUNS[..6],
        other: &other[..6],
        better: Direction::Lower,
        exercised: true,
        step: Step::Part(0.0),
    };
    let rule = Rule::new(Plan::Fixed(6));
    assert_eq!(judge(&[compared], &rule, 1)[0].verdict, Verdict::Worse);
    // With six blocks p is at least 1 in 32.
    let two = judge(&[compared; 2], &rule, 1);
    assert!(
        two.iter()
            .all(|j| j.verdict == Verdict::Inconclusive && j.p_adjusted == 0.0625)
    );
    assert!(two.iter().all(|j| j.least_effect.is_none()));
}

#[test]
fn the_share_of_each_look_adds_up_to_the_whole() {
    for plan in [
        Plan::Fixed(7),
        Plan::Auto(24),
        Plan::Auto(40),
        Plan::Auto(50),
    ] {
        let looks = plan.looks();
        let sum: f64 = looks.iter().map(|l| l.share).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{plan:?}");
        assert!(looks.is_sorted_by(|a, b| a.blocks < b.blocks));
        assert_eq!(looks.last().unwrap().blocks, plan.max());
    }
}

#[test]
fn what_lies_far_off_is_named() {
    assert_eq!(outliers(&[1.0, 1.1, 0.9, 9.0, 1.05, 0.95]), [3]);
    assert!(outliers(&RUNS).is_empty());
    assert!(outliers(&[1.0; 5]).is_empty());
}

/// Values are powers of two: equal ones may stand for measurements that differ by almost a factor
/// of two.
#[test]
fn what_is_coarser_than_the_margin_is_not_equivalent() {
    let coarse = |base: &[f64], other: &[f64]| {
        let compared = Compared {
            base,
            other,
            better: Direction::Lower,
            exercised: true,
            step: Step::Part(1.0),
        };
        judge(&[compared], &Rule::new(Plan::Fixed(8)), 1).remove(0)
    };
    let same = coarse(&[16.0; 8], &[16.0; 8]);
    assert_eq!(
        (same.verdict, same.same_bucket),
        (Verdict::Inconclusive, true)
    );
    assert!(
        remark(&same).starts_with("same bucket"),
        "{}",
        remark(&same)
    );
    assert!(settled(&[same]));
    let twice = coarse(&[16.0; 8], &[32.0; 8]);
    assert_eq!((twice.verdict, twice.same_bucket), (Verdict::Worse, false));
    let step = |name: &str| Metric::parse(name, Direction::Lower).unwrap().step();
    assert_eq!((step("wakeup-p99"), step("wall")), (Some(1.0), Some(0.0)));
}

const SECONDS: &str = "regex:([0-9.]+) s";

/// The verdict on these values, which depend on the block and on whether it is the other variant.
fn told(metric: &str, plan: Plan, value: impl Fn(usize, bool) -> f64) -> Judged {
    let mut header = header(&["mainline", "scx:other"], Plan::Fixed(plan.max()));
    let mut runs = played_runs(&header, 1);
    header.rule.plan = plan;
    header.metrics = vec![asked(metric, Direction::Lower)];
    for run in &mut runs {
        let value = value(run.block.unwrap_or(0), run.variant != "mainline");
        run.values.insert(metric.to_string(), value);
    }
    analysis::judged(&header, &runs).unwrap().remove(0)
}

/// Equal whole seconds may stand for times that differ by almost one. A number is as fine as its
/// last decimal place.
#[test]
fn what_is_printed_no_finer_than_the_margin_is_not_equivalent() {
    let once =
        |usual: f64, other: f64| move |b: usize, o: bool| if b == 3 && o { other } else { usual };
    for (metric, usual, other, same_bucket) in [
        (SECONDS, 5.0, 5.0, true),
        (SECONDS, 5.0, 6.0, true),
        (SECONDS, 49.0, 49.0, true),
        (SECONDS, 50.0, 50.0, false),
        (SECONDS, 4.9, 4.9, true),
        (SECONDS, 4.9, 4.91, false),
        ("migrations", 5.0, 5.0, true),
        ("migrations", 0.0, 0.0, true),
        ("migrations", 5000.0, 5000.0, false),
        ("wall", 5.0, 5.0, false),
        ("system", 0.0, 0.0, false),
    ] {
        let judged = told(metric, Plan::Fixed(12), once(usual, other));
        let verdict = match same_bucket {
            true => Verdict::Inconclusive,
            false => Verdict::Equivalent,
        };
        let seen = (judged.verdict, judged.same_bucket);
        assert_eq!(seen, (verdict, same_bucket), "{metric} {usual} {other}");
        assert_eq!(remark(&judged).starts_with("same bucket"), same_bucket);
    }
    let apart = told(
        SECONDS,
        Plan::Fixed(12),
        |_, other| if other { 6.0 } else { 5.0 },
    );
    assert_eq!((apart.verdict, apart.same_bucket), (Verdict::Worse, false));
}

/// A look judges how fine its own blocks were, and no later look revokes its verdict. When 50
/// becomes 49, a step of 1 is no longer within 2 %. A half in the last block does not turn what was
/// equal before into a difference.
#[test]
fn how_fine_a_metric_is_takes_nothing_back() {
    let early = told(
        SECONDS,
        Plan::Auto(40),
        |b, _| if b < 10 { 50.0 } else { 49.0 },
    );
    assert_eq!((early.verdict, early.blocks), (Verdict::Equivalent, 10));
    let worse = told(SECONDS, Plan::Auto(40), |b, other| match b {
        39 => 49.5,
        10.. if other => 70.0,
        _ => 49.0,
    });
    assert_eq!(worse.verdict, Verdict::Worse, "{worse:?}");
}

/// At an early look the interval shown beside it reaches beyond the margin. So the interval that
/// decided must be shown too, or it reads as a contradiction.
#[test]
fn the_interval_that_decides_equivalence_is_shown() {
    let base = [100.0; 10];
    let other = [
        97.2, 99.0, 99.5, 99.8, 100.1, 100.3, 100.4, 100.9, 101.1, 102.5,
    ];
    let judged = one(&base, &other, Direction::Lower, Plan::Auto(40));
    assert_eq!((judged.verdict, judged.blocks), (Verdict::Equivalent, 10));
    let (beside, by) = (judged.shift.interval.unwrap(), judged.equivalence.unwrap());
    assert!(beside.low < by.margin.low, "{beside:?} {by:?}");
    assert!(
        by.margin.low <= by.interval.low && by.interval.high <= by.margin.high,
        "{by:?}"
    );
    // A look at a quarter of the blocks has a sixteenth of the 5 % error, on each side.
    assert!((by.level - (1.0 - 2.0 * 0.05 / 16.0)).abs() < 1e-12);
    assert!((by.margin.high - 1.02).abs() < 1e-12 && (by.margin.low * 1.02 - 1.0).abs() < 1e-12);
    let told = format!(
        "99.38 % interval of the shift {:.3} to {:.3}, within 0.980 to 1.020",
        by.interval.low, by.interval.high
    );
    assert_eq!(remark(&judged), told);
    let few = one(&base[..4], &other[..4], Direction::Lower, Plan::Fixed(4));
    assert_eq!(few.equivalence, None);
}

/// The first look of 80 sees other values than the later ones. A verdict that only a later look
/// would give replaces nothing: no equivalence, no difference, and no opposite difference.
#[test]
fn the_first_verdict_stays() {
    let base: Vec<f64> = RUNS.iter().cycle().take(80).copied().collect();
    for (first, then, told, later) in [
        (1.03, 1.0, Verdict::Worse, Verdict::Equivalent),
        (1.0, 1.3, Verdict::Equivalent, Verdict::Worse),
        (1.3, 0.5, Verdict::Worse, Verdict::Better),
    ] {
        let at = |early: usize, plan: Plan| {
            let times = |i: usize| if i < early { first } else { then };
            let other: Vec<f64> = (0..80).map(|i| base[i] * times(i)).collect();
            let taken = plan.taken(80).last().unwrap().blocks;
            one(&base[..taken], &other[..taken], Direction::Lower, plan)
        };
        let all = at(20, Plan::Auto(80));
        assert_eq!((all.verdict, all.blocks), (told, 20), "{first}: {all:?}");
        assert!((all.median.value - first).abs() < 1e-9, "{first}: {all:?}");
        let alone = at(20, Plan::Fixed(80));
        assert_eq!(alone.verdict, later, "{first}: {alone:?}");
    }
}

/// Later looks have a smaller p, but they did not decide.
#[test]
fn p_is_of_the_look_that_decided() {
    let base: Vec<f64> = RUNS.iter().cycle().take(80).copied().collect();
    let worse: Vec<f64> = base.iter().map(|b| b * 1.3).collect();
    let early = one(&base[..20], &worse[..20], Direction::Lower, Plan::Auto(80));
    let late = one(&base, &worse, Direction::Lower, Plan::Auto(80));
    assert_eq!((early.p, early.p_adjusted), (late.p, late.p_adjusted));
    let told = Compared {
        base: &base,
        other: &worse,
        better: Direction::Lower,
        exercised: true,
        step: Step::Part(0.0),
    };
    let rule = Rule::new(Plan::Auto(80));
    let both = judge(&[told, told], &rule, 1);
    assert_eq!(both[0], both[1]);
    assert_eq!((both[0].blocks, both[0].p), (20, early.p));
    assert_eq!(both[0].p_adjusted, 2.0 * early.p);
}
