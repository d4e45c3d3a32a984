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
    Against, Compared, Direction, Judged, Rule, Step, Verdict, judge, settled,
};

/// No run failed.
const NONE: [i64; 100] = [0; 100];

const RUNS: [f64; 8] = [10.0, 10.3, 9.9, 10.1, 10.2, 9.8, 10.05, 10.15];

fn one(base: &[f64], other: &[f64], better: Direction, plan: Plan) -> Judged {
    let compared = Compared {
        base,
        other,
        better,
        exercised: true,
        step: Step::Part(0.0),
        failed: &NONE,
    };
    judge(&[compared], &Rule::new(plan)).remove(0)
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
        (1.0, Direction::Higher, Verdict::Inconclusive),
    ] {
        let judged = one(&RUNS, &times(factor), direction, Plan::Fixed(8));
        assert_eq!(judged.verdict, verdict, "{factor} {direction:?} {judged:?}");
        for estimate in [&judged.effect, &judged.mean] {
            let value = estimate.value;
            assert!((value / factor - 1.0).abs() < 0.01, "{judged:?}");
            assert!(estimate.interval.unwrap().contains(value));
        }
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
    assert_eq!((judged.least_effect, judged.effect.interval), (None, None));
}

#[test]
fn a_plan_that_is_not_done_is_not_looked_at() {
    let judged = one(&RUNS, &times(2.0), Direction::Lower, Plan::Fixed(12));
    assert_eq!((judged.verdict, judged.blocks), (Verdict::Inconclusive, 0));
    assert_eq!((judged.p, judged.effect.interval), (1.0, None));
}

#[test]
fn between_two_looks_nothing_changes() {
    let plan = Plan::Auto(40);
    let base: Vec<f64> = RUNS.iter().cycle().take(14).copied().collect();
    let other: Vec<f64> = base.iter().map(|b| b * 1.001).collect();
    let at = |n: usize| one(&base[..n], &other[..n], Direction::Lower, plan);
    assert_eq!(at(10), at(11));
    assert_eq!(at(14).blocks, 10);
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
    assert_eq!((later.mean, later.effect), (early.mean, early.effect));
    assert!(later.effect.interval.unwrap().low > 1.0);
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
        failed: &NONE,
    };
    let judged = judge(&[compared], &Rule::new(Plan::Fixed(8)));
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
    assert_eq!((judged.effect.value, judged.mean.value), (5.0, 5.0));
    let same = one(&[0.0; 30], &[0.0; 30], Direction::Lower, Plan::Fixed(30));
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
        failed: &NONE,
    };
    let rule = Rule::new(Plan::Fixed(6));
    assert_eq!(judge(&[compared], &rule)[0].verdict, Verdict::Worse);
    // With six blocks p is at least 1 in 32.
    let two = judge(&[compared; 2], &rule);
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
        let looks = plan.looks(0.05);
        let sum: f64 = looks.iter().map(|l| l.share).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{plan:?}");
        assert!(looks.is_sorted_by(|a, b| a.blocks < b.blocks));
        assert_eq!(looks.last().unwrap().blocks, plan.max());
        // Each look can tell a difference. That of a quarter of 24 blocks could not.
        for look in &looks {
            assert!(0.5_f64.powi(look.blocks as i32 - 1) <= 0.05 * look.share);
        }
        assert!(plan != Plan::Auto(24) || looks[0].blocks == 9, "{looks:?}");
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
            failed: &NONE,
        };
        judge(&[compared], &Rule::new(Plan::Fixed(30))).remove(0)
    };
    let same = coarse(&[16.0; 30], &[16.0; 30]);
    assert_eq!(
        (same.verdict, same.against),
        (Verdict::Inconclusive, Some(Against::Steps))
    );
    let told = remark(&same, "us");
    assert!(told.starts_with("within 2 %, but the steps"), "{told}");
    assert!(!settled(&[same]));
    // A bucket's end lies between 16.0 and 16.1, too.
    let twice = coarse(&[16.0; 30], &[32.0; 30]);
    assert_eq!(
        (twice.verdict, twice.against),
        (Verdict::Inconclusive, Some(Against::Steps))
    );
    let told = remark(&twice, "us");
    assert!(
        told.starts_with("a difference is seen, but the steps"),
        "{told}"
    );
    let apart = coarse(&[16.0; 30], &[64.0; 30]);
    assert_eq!((apart.verdict, apart.against), (Verdict::Worse, None));
    let interval = apart.effect.interval.unwrap();
    assert!((interval.low - 2.0).abs() < 1e-9 && (interval.high - 8.0).abs() < 1e-9);
    let metric = |name: &str| Metric::parse(name).unwrap();
    let step = |name: &str| metric(name).step(0.004);
    assert!(matches!(step("wakeup-p99"), Some(Step::Part(1.0))));
    assert!(matches!(step("system"), Some(Step::Unit(0.004))));
    assert!(matches!(step("migrations"), Some(Step::Unit(1.0))));
    assert!(step("regex:x").is_none());
}

const SECONDS: &str = "regex:([0-9.]+) s";

/// The verdict on these values, which depend on the block and on whether it is the other variant.
fn verdict_on(metric: &str, plan: Plan, value: impl Fn(usize, bool) -> f64) -> Judged {
    let mut header = header(&["mainline", "scx:other"], Plan::Fixed(plan.max()));
    let mut runs = played_runs(&header, 1);
    header.rule.plan = plan;
    header.metrics = vec![asked(metric, Direction::Lower)];
    for run in &mut runs {
        let value = value(run.block.unwrap_or(0), run.variant != "mainline");
        run.values.insert(metric.to_string(), value);
    }
    analysis::judged(&header, &runs, &[]).unwrap().remove(0)
}

/// Equal whole seconds may stand for times that differ by almost one. A number is as fine as its
/// last decimal place.
#[test]
fn what_is_printed_no_finer_than_the_margin_is_not_equivalent() {
    let once =
        |usual: f64, other: f64| move |b: usize, o: bool| if b == 3 && o { other } else { usual };
    for (metric, usual, other, coarse) in [
        (SECONDS, 5.0, 5.0, true),
        (SECONDS, 5.0, 6.0, true),
        (SECONDS, 49.0, 49.0, true),
        // All the same: perhaps only tens were printed.
        (SECONDS, 50.0, 50.0, true),
        (SECONDS, 100.0, 101.0, false),
        (SECONDS, 200.0, 210.0, true),
        (SECONDS, 2000.0, 2010.0, false),
        // A clock of 4 ms.
        (SECONDS, 0.124, 0.128, true),
        (SECONDS, 4.9, 4.9, true),
        (SECONDS, 4.9, 4.91, false),
        (SECONDS, 20.0, 20.0, true),
        ("migrations", 5.0, 5.0, true),
        ("migrations", 0.0, 0.0, true),
        ("migrations", 5000.0, 5000.0, false),
        ("wall", 5.0, 5.0, false),
        // Less than a tick, of which none may have hit the kernel.
        ("system", 0.0, 0.0, true),
        ("user", 0.15, 0.15, true),
        ("user", 5.0, 5.0, false),
    ] {
        let judged = verdict_on(metric, Plan::Fixed(30), once(usual, other));
        let seen = (judged.verdict, judged.against);
        let expected = match coarse {
            true => (Verdict::Inconclusive, Some(Against::Steps)),
            false => (Verdict::Equivalent, None),
        };
        assert_eq!(seen, expected, "{metric} {usual} {other}");
    }
    let told = |now: f64| {
        let apart = verdict_on(SECONDS, Plan::Fixed(12), |block, other| match block {
            0 => 5.0,
            _ if other => now,
            _ => 6.0,
        });
        (apart.verdict, apart.against)
    };
    let steps = (Verdict::Inconclusive, Some(Against::Steps));
    assert_eq!(told(7.0), steps);
    assert_eq!(told(8.0), (Verdict::Worse, None));
}

/// The kernel's tick is a fact about the machine, and unknown in files without it.
#[test]
fn a_tick_is_known_or_the_longest() {
    let mut plan = header(&["mainline", "roost"], Plan::Fixed(6));
    let mut tick = |hz: Option<&str>| {
        plan.host.remove("hz");
        let fact = hz.map(|hz| ("hz".to_string(), hz.to_string()));
        plan.host.extend(fact);
        plan.tick_s()
    };
    assert_eq!(tick(Some("250")), 0.004);
    assert_eq!([None, Some("x"), Some("0")].map(tick), [0.01; 3]);
}

/// A look judges how fine its own blocks were, and no later look revokes its verdict. When 100
/// becomes 40, a step of 1 is no longer within 2 %. A half in the last block does not turn what was
/// equal before into a difference.
#[test]
fn how_fine_a_metric_is_takes_nothing_back() {
    let early = verdict_on(SECONDS, Plan::Auto(40), |b, o| match b {
        3 if o => 101.0,
        30.. => 40.0,
        _ => 100.0,
    });
    assert_eq!((early.verdict, early.blocks), (Verdict::Equivalent, 30));
    let worse = verdict_on(SECONDS, Plan::Auto(40), |b, other| match b {
        39 => 49.5,
        10.. if other => 70.0,
        _ => 49.0,
    });
    assert_eq!(worse.verdict, Verdict::Worse, "{worse:?}");
}

/// The interval that is shown is the one that decides, at the level that all comparisons and looks
/// leave for it.
#[test]
fn the_interval_that_decides_is_shown() {
    let base = [100.0; 30];
    let other: Vec<f64> = (0..30).map(|i| 99.0 + 2.0 * f64::from(i) / 29.0).collect();
    let judged = one(&base, &other, Direction::Lower, Plan::Auto(40));
    assert_eq!((judged.verdict, judged.blocks), (Verdict::Equivalent, 30));
    let interval = judged.effect.interval.unwrap();
    assert!(interval.within(judged.margin), "{judged:?}");
    // A look at three quarters of the blocks has what those at a half left, of 5 %.
    let level = 1.0 - 0.05 * (9.0 / 16.0 - 4.0 / 16.0);
    assert!((judged.level.unwrap() - level).abs() < 1e-12, "{judged:?}");
    assert_eq!(remark(&judged, "s"), "within 2 %");
    let few = one(&base[..4], &other[..4], Direction::Lower, Plan::Fixed(4));
    assert_eq!(few.effect.interval, None);
}

/// Failed runs count as the worst, so that one that is fast when it does not crash is not better.
#[test]
fn what_fails_more_often_is_not_better() {
    let (base, fast) = ([10.0; 12], [9.0; 12]);
    let crashed = |n: usize, better: Direction, step: f64| {
        let failed: Vec<i64> = (0..12).map(|block| i64::from(block < n)).collect();
        let compared = Compared {
            base: &base,
            other: &fast,
            better,
            exercised: true,
            step: Step::Part(step),
            failed: &failed,
        };
        judge(&[compared], &Rule::new(Plan::Fixed(12))).remove(0)
    };
    let told = |n: usize, better| {
        let judged = crashed(n, better, 0.0);
        (judged.verdict, judged.against)
    };
    assert_eq!(told(0, Direction::Lower), (Verdict::Better, None));
    assert_eq!(told(1, Direction::Lower), (Verdict::Better, None));
    let withheld = (Verdict::Inconclusive, Some(Against::Failures));
    assert_eq!(told(3, Direction::Lower), withheld);
    assert!(crashed(3, Direction::Lower, 0.0).p_adjusted > 0.05);
    // A lower rate is worse, and so are failed runs.
    assert_eq!(told(3, Direction::Higher), (Verdict::Worse, None));
    // Nor is it within the margin because steps are coarse.
    let coarse = |n: usize| crashed(n, Direction::Lower, 0.2).against;
    assert_eq!(coarse(0), Some(Against::Steps));
    assert_eq!(coarse(12), Some(Against::Failures));
}

/// The first look of 80 sees other values than the later ones. A verdict that only a later look
/// would give replaces nothing: no equivalence, no difference, and no opposite difference.
#[test]
fn the_first_verdict_stays() {
    let base: Vec<f64> = RUNS.iter().cycle().take(80).copied().collect();
    for (look, first, then, told, later) in [
        (20, 1.03, 1.0, Verdict::Worse, Verdict::Equivalent),
        (30, 1.0, 1.3, Verdict::Equivalent, Verdict::Worse),
        (20, 1.3, 0.5, Verdict::Worse, Verdict::Better),
    ] {
        let at = |early: usize, plan: Plan| {
            let times = |i: usize| if i < early { first } else { then };
            let other: Vec<f64> = (0..80).map(|i| base[i] * times(i)).collect();
            one(&base, &other, Direction::Lower, plan)
        };
        let all = at(look, Plan::Auto(80));
        assert_eq!((all.verdict, all.blocks), (told, look), "{first}: {all:?}");
        assert!((all.effect.value - first).abs() < 1e-9, "{first}: {all:?}");
        let alone = at(look, Plan::Fixed(80));
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
        failed: &NONE,
    };
    let rule = Rule::new(Plan::Auto(80));
    let both = judge(&[told, told], &rule);
    assert_eq!(both[0], both[1]);
    assert_eq!((both[0].blocks, both[0].p), (20, early.p));
    assert_eq!(both[0].p_adjusted, 2.0 * early.p_adjusted);
}
