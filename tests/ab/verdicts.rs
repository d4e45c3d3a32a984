// SPDX-License-Identifier: GPL-2.0-only
//! Verdicts on clear numbers, on numbers that allow none, and on data that flatter a test: printed
//! and rounded numbers, tails, runs that fail. And properties of any data.

use crate::noise::normal;
use crate::played::{asked, header, played_runs};
use scx_roost::ab::analysis;
use scx_roost::ab::design::Design;
use scx_roost::ab::metric::Metric;
use scx_roost::ab::report::{MetricReport, headline};
use scx_roost::ab::result::Recorded;
use scx_roost::ab::stats::plan::{MAX_AUTO, Plan};
use scx_roost::ab::stats::sample::outliers;
use scx_roost::ab::stats::turns::{Point, Scale};
use scx_roost::ab::stats::verdict::{
    Against, Compared, Direction, Judged, Rule, Step, Verdict, judge, settled,
};
use scx_roost::util::rng::Rng;

const TIMES: u64 = 400;
/// 5 % of that, and three standard deviations of the count.
const ALLOWED: usize = 33;

/// The turns of two variants, whose values depend on the turn and on whether it is the other one.
fn turns(rounds: usize, seed: u64, mut value: impl FnMut(usize, bool) -> f64) -> Vec<Point> {
    let design = Design {
        seed,
        variants: 2,
        warmups: 0,
        boots: None,
        even: false,
    };
    let order = design.order(rounds).into_iter().enumerate();
    let point = |(turn, at): (usize, scx_roost::ab::design::Turn)| Point {
        turn,
        value: value(turn, at.variant == 1),
        other: at.variant == 1,
        drawn: at.drawn,
        failed: 0,
    };
    order.map(point).collect()
}

fn rule(plan: Plan, margin: f64) -> Rule {
    Rule {
        margin,
        ..Rule::new(plan)
    }
}

fn judged(points: &[Point], step: Step, better: Direction, rule: &Rule) -> Judged {
    let numbers: Vec<(usize, f64)> = points.iter().map(|p| (p.turn, p.value)).collect();
    let compared = Compared {
        points,
        numbers: &numbers,
        better,
        exercised: true,
        step,
    };
    let rounds = (points.len() / 2).saturating_sub(1);
    judge(&[compared], rounds, 2, rule).remove(0)
}

/// Lower is better, with a margin of 2 %.
fn told(points: &[Point], step: Step) -> Judged {
    let plan = Plan::Fixed(points.len() / 2 - 1);
    judged(points, step, Direction::Lower, &rule(plan, 0.02))
}

const FINE: Step = Step::Part(0.0);

/// A value near this one that differs by turn.
fn near(usual: f64, turn: usize) -> f64 {
    usual * (1.0 + 0.003 * ((turn * 7 % 11) as f64 - 5.0))
}

fn differs(judged: &Judged) -> bool {
    matches!(judged.verdict, Verdict::Better | Verdict::Worse)
}

/// How many comparisons are so.
fn count(so: impl Fn(u64) -> bool) -> usize {
    (0..TIMES).filter(|seed| so(*seed)).count()
}

#[test]
fn the_direction_decides_what_is_better() {
    for (factor, direction, verdict) in [
        (1.1, Direction::Lower, Verdict::Worse),
        (0.9, Direction::Lower, Verdict::Better),
        (1.1, Direction::Higher, Verdict::Better),
        (0.9, Direction::Higher, Verdict::Worse),
    ] {
        let points = turns(8, 1, |turn, other| {
            near(if other { factor } else { 1.0 }, turn)
        });
        let judged = judged(&points, FINE, direction, &rule(Plan::Fixed(8), 0.02));
        assert_eq!((judged.verdict, judged.within_margin), (verdict, false));
        let shift = judged.shift.unwrap();
        assert!((shift / factor - 1.0).abs() < 0.02, "{judged:?}");
        assert!(judged.interval.unwrap().contains(shift));
    }
}

/// The line that tells it.
fn line(judged: &Judged) -> String {
    let metric = MetricReport {
        metric: "wall".to_string(),
        unit: "s",
        better: Direction::Lower,
        variants: Vec::new(),
    };
    headline("a", "b", &metric, judged)
}

#[test]
fn words_and_rule_agree() {
    let case = |factor: f64, rounds: usize| {
        let points = turns(rounds, 1, |turn, other| {
            near(if other { factor } else { 1.0 }, turn)
        });
        told(&points, FINE)
    };
    let less = case(1.01, 60);
    assert_eq!((less.verdict, less.within_margin), (Verdict::Worse, true));
    let text = line(&less);
    assert!(text.starts_with("b against a: worse, wall +1."), "{text}");
    assert!(text.ends_with("p below 0.0001; by less than 2 %"), "{text}");
    let same = case(1.0, 30);
    assert_eq!(
        (same.verdict, same.within_margin),
        (Verdict::Equivalent, true)
    );
    let rare = "; within 2 %; a run in 10 or more may be slow without being seen";
    assert!(line(&same).ends_with(rare), "{}", line(&same));
    let unknown = case(1.02, 3);
    assert_eq!(unknown.verdict, Verdict::Inconclusive);
    assert!(line(&unknown).contains("has 'no change' in it"));
    let two = case(1.3, 2);
    assert_eq!((two.verdict, two.interval), (Verdict::Inconclusive, None));
    assert!(line(&two).ends_with("too few runs for a verdict"));
}

#[test]
fn a_plan_that_is_not_done_is_not_looked_at() {
    let points = turns(8, 1, |_, other| if other { 2.0 } else { 1.0 });
    let all = judged(
        &points,
        FINE,
        Direction::Lower,
        &rule(Plan::Fixed(12), 0.02),
    );
    assert_eq!((all.verdict, all.rounds), (Verdict::Inconclusive, 0));
    assert_eq!((all.p, all.interval), (1.0, None));
    assert!(line(&all).ends_with("no verdict yet: the plan is not complete"));
}

/// The first rounds differ by 30 % and later ones by less than nothing: the verdict stands, with
/// the numbers of the look that gave it, also when there is more data.
#[test]
fn the_first_verdict_stays() {
    let plan = rule(Plan::Auto(80), 0.02);
    let points = turns(80, 1, |turn, other| {
        let factor = if turn < 42 { 1.3 } else { 0.9 };
        near(if other { factor } else { 1.0 }, turn)
    });
    let at = |rounds: usize| judged(&points[..2 * (rounds + 1)], FINE, Direction::Lower, &plan);
    let early = at(20);
    assert_eq!((early.verdict, early.rounds), (Verdict::Worse, 20));
    assert!(early.level.unwrap() > 0.99, "{early:?}");
    assert_eq!(
        [at(21), at(30), at(80)],
        [early.clone(), early.clone(), early.clone()]
    );
    // p is of that look, and adjusted for all comparisons.
    let compared = Compared {
        points: &points,
        numbers: &[],
        better: Direction::Lower,
        exercised: true,
        step: FINE,
    };
    let both = judge(&[compared; 2], 80, 2, &plan);
    assert_eq!((both[0].rounds, both[0].p), (20, early.p));
    assert!((both[0].p_adjusted / early.p_adjusted - 2.0).abs() < 1e-9);
    let late = judged(
        &points,
        FINE,
        Direction::Lower,
        &rule(Plan::Fixed(80), 0.02),
    );
    assert_eq!(
        (late.verdict, late.level),
        (Verdict::Inconclusive, Some(0.95))
    );
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
        assert!(looks.is_sorted_by(|a, b| a.rounds < b.rounds));
        assert_eq!(looks.last().unwrap().rounds, plan.max());
        for look in &looks {
            assert!(0.5_f64.powi(2 * look.rounds as i32 - 1) <= 0.05 * look.share);
        }
    }
}

#[test]
fn what_never_acted_is_not_equal() {
    let points = turns(30, 1, |_, _| 1.0);
    let compared = Compared {
        points: &points,
        numbers: &[],
        better: Direction::Lower,
        exercised: false,
        step: FINE,
    };
    let judged = judge(&[compared], 30, 2, &Rule::new(Plan::Fixed(30))).remove(0);
    assert_eq!(
        (judged.verdict, judged.within_margin),
        (Verdict::NotExercised, false)
    );
}

#[test]
fn values_that_are_zero_are_subtracted() {
    let points = turns(12, 1, |turn, other| {
        (turn % 4) as f64 + if other { 5.0 } else { 0.0 }
    });
    let judged = told(&points, FINE);
    assert_eq!(
        (judged.verdict, judged.scale),
        (Verdict::Worse, Scale::Difference)
    );
    assert!((judged.shift.unwrap() - 5.0).abs() < 1.0, "{judged:?}");
    let none = told(&turns(30, 1, |_, _| 0.0), FINE);
    assert_eq!(none.verdict, Verdict::Equivalent);
}

#[test]
fn what_lies_far_off_is_named() {
    assert_eq!(outliers(&[1.0, 1.1, 0.9, 9.0, 1.05, 0.95]), [3]);
    assert!(outliers(&[10.0, 10.3, 9.9, 10.1, 10.2, 9.8]).is_empty());
    assert!(outliers(&[1.0; 5]).is_empty());
}

/// Powers of two: equal ones may stand for measurements that differ by almost a factor of two. Two
/// that differ do differ, by an amount that is not known.
#[test]
fn steps_speak_against_equivalence_alone() {
    let coarse = |other_value: f64| {
        let points = turns(30, 1, |_, other| if other { other_value } else { 16.0 });
        let judged = told(&points, Step::Part(1.0));
        (judged.verdict, judged.against)
    };
    let steps = Some(Against::Steps);
    assert_eq!(coarse(16.0), (Verdict::Inconclusive, steps));
    assert_eq!(coarse(32.0), (Verdict::Worse, steps));
    assert_eq!(coarse(128.0), (Verdict::Worse, None));
    // A count is exact.
    let counted = |other_value: f64| {
        let points = turns(40, 1, |_, other| if other { other_value } else { 2.0 });
        told(&points, Metric::parse("migrations").unwrap().step(0.004)).verdict
    };
    assert_eq!(counted(3.0), Verdict::Worse);
    assert_eq!(counted(2.0), Verdict::Equivalent);
}

const SECONDS: &str = "regex:([0-9.]+) s";

/// The verdict of a report on these values.
fn reported(metric: &str, plan: Plan, mut value: impl FnMut(usize, bool) -> f64) -> Judged {
    let mut header = header(&["mainline", "scx:other"], Plan::Fixed(plan.max()));
    let mut runs = played_runs(&header, 1);
    header.rule.plan = plan;
    header.metrics = vec![asked(metric, Direction::Lower)];
    for run in &mut runs {
        let value = value(run.turn.unwrap_or(0), run.variant != "mainline");
        run.values.insert(metric.to_string(), value);
    }
    let recorded = Recorded {
        runs,
        ..Recorded::new(header)
    };
    analysis::judged(&recorded).unwrap().remove(0)
}

/// Equal whole seconds may stand for times that differ by almost one. A number is as fine as the
/// last digit that any of them has, at the size of the largest.
#[test]
fn what_is_printed_no_finer_than_the_margin_is_not_equivalent() {
    for (metric, usual, once, coarse) in [
        (SECONDS, 5.0, 5.0, true),
        (SECONDS, 49.0, 49.0, true),
        // Perhaps two digits are printed, and this would be 110 otherwise.
        (SECONDS, 100.0, 99.0, true),
        (SECONDS, 100.0, 100.0, true),
        (SECONDS, 100.0, 101.0, false),
        (SECONDS, 200.0, 210.0, true),
        (SECONDS, 2000.0, 2010.0, false),
        // A clock of 4 ms.
        (SECONDS, 0.124, 0.128, true),
        // 1,000 turns in 3 s, and once in 4.
        (SECONDS, 1000.0 / 3.0, 1000.0 / 3.0, true),
        (SECONDS, 1000.0 / 3.0, 250.0, true),
        (SECONDS, 4.9, 4.9, true),
        (SECONDS, 4.9, 4.91, false),
        ("migrations", 5.0, 5.0, false),
        ("migrations", 0.0, 0.0, false),
        ("wall", 5.0, 5.0, false),
        // Less than a tick, of which none may have hit the kernel.
        ("system", 0.0, 0.0, true),
        ("user", 0.15, 0.15, true),
        ("user", 5.0, 5.0, false),
    ] {
        let judged = reported(metric, Plan::Fixed(30), |turn, _| {
            if turn == 33 { once } else { usual }
        });
        let seen = (judged.verdict, judged.against);
        let expected = match coarse {
            true => (Verdict::Inconclusive, Some(Against::Steps)),
            false => (Verdict::Equivalent, None),
        };
        assert_eq!(seen, expected, "{metric} {usual} {once}");
    }
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

type Rounding = Box<dyn Fn(f64) -> f64>;

/// Truly apart by 2.4 to 4.6 %, and printed in whole seconds, in tens, in hundreds of which all are
/// alike, by a clock of 4 ms, or with two digits.
#[test]
fn no_rounding_makes_what_differs_equivalent() {
    let steps = |step: f64| move |v: f64| (v / step).round() * step;
    let digits = |v: f64| {
        let place = 10_f64.powf(v.log10().floor() - 1.0);
        (v / place).round() * place
    };
    let cases: [(&str, f64, f64, f64, Rounding); 7] = [
        ("seconds", 20.0, 20.48, 0.003, Box::new(steps(1.0))),
        ("seconds", 60.0, 61.44, 0.01, Box::new(steps(1.0))),
        ("tens", 197.0, 203.0, 0.003, Box::new(steps(10.0))),
        ("hundreds", 197.0, 203.0, 0.003, Box::new(steps(100.0))),
        ("4 ms", 197.0, 203.0, 0.003, Box::new(steps(4.0))),
        ("two digits", 99.7, 104.3, 0.01, Box::new(digits)),
        ("two digits", 99.7, 104.3, 0.003, Box::new(digits)),
    ];
    for (name, usual, slower, cv, rounded) in cases {
        let equivalent = count(|seed| {
            let mut rng = Rng::stream(seed, 5);
            let judged = reported(SECONDS, Plan::Fixed(30), |_, other| {
                let usual = if other { slower } else { usual };
                rounded(usual * (1.0 + cv * normal(&mut rng)))
            });
            judged.within_margin
        });
        println!("{name}, {usual}: {equivalent} of {TIMES}");
        assert!(equivalent <= ALLOWED, "{name}: {equivalent}");
    }
}

/// How many comparisons are within the margin if so many runs of a hundred under the other variant
/// are so many times as slow. The rest scatters by half a percent.
fn with_slow_runs(plan: Plan, of_hundred: u64, slow: f64) -> usize {
    let told = count(|seed| {
        let mut rng = Rng::stream(seed, 7);
        let points = turns(plan.max(), seed, |_, other| {
            let slow = if other && rng.below(100) < of_hundred {
                slow
            } else {
                1.0
            };
            slow * (1.0 + 0.005 * normal(&mut rng))
        });
        judged(&points, FINE, Direction::Lower, &rule(plan, 0.02)).within_margin
    });
    println!("{of_hundred} % of runs {slow} times as slow, {plan:?}: {told} of {TIMES}");
    told
}

/// One run in ten is 30 % slower, so the mean is 3 % slower. That is seen if it happens: in 12 runs
/// it does not in 28 % of comparisons, as the verdict says, and `auto` may end after ten.
#[test]
fn what_is_sometimes_slow_is_not_equivalent() {
    for plan in [Plan::Fixed(30), Plan::Fixed(60)] {
        let told = with_slow_runs(plan, 10, 1.3);
        assert!(told <= ALLOWED, "{plan:?}: {told}");
    }
    for plan in [Plan::Fixed(12), Plan::Auto(MAX_AUTO)] {
        let told = with_slow_runs(plan, 10, 1.3);
        assert!((60..170).contains(&told), "{told}");
    }
}

/// A failed run counts as the worst, so that one that is fast when it does not crash is not better.
#[test]
fn what_fails_more_often_is_not_better() {
    let crashed = |n: usize, better: Direction| {
        let mut points = turns(12, 1, |turn, other| {
            near(if other { 9.0 } else { 10.0 }, turn)
        });
        let own = points.iter_mut().filter(|p| p.drawn && p.other);
        own.take(n).for_each(|p| p.failed = 1);
        let judged = judged(&points, FINE, better, &rule(Plan::Fixed(12), 0.02));
        (judged.verdict, judged.against)
    };
    assert_eq!(crashed(0, Direction::Lower), (Verdict::Better, None));
    assert_eq!(crashed(1, Direction::Lower), (Verdict::Better, None));
    let withheld = (Verdict::Inconclusive, Some(Against::Failures));
    assert_eq!(crashed(8, Direction::Lower), withheld);
    // A lower rate is worse, and so are failed runs.
    assert_eq!(crashed(8, Direction::Higher), (Verdict::Worse, None));
    // Once is not as often as fifty times.
    let mut same = turns(30, 1, |_, _| 1.0);
    same.iter_mut().rfind(|p| !p.other).unwrap().failed = 1;
    same.iter_mut().rfind(|p| p.other).unwrap().failed = 50;
    let judged = told(&same, FINE);
    assert_eq!((judged.verdict, judged.against), withheld);
}

/// Runs of the other variant above its median crash in six of ten cases and are repeated: what
/// survives is faster.
#[test]
fn survivors_are_not_better() {
    let better = count(|seed| {
        let mut rng = Rng::new(seed);
        let mut failed = Vec::new();
        let mut points = turns(25, seed, |turn, other| {
            loop {
                let z = normal(&mut rng);
                if !other || z < 0.0 || rng.below(10) >= 6 {
                    return 1.0 + 0.03 * z;
                }
                failed.push(turn);
            }
        });
        points
            .iter_mut()
            .for_each(|p| p.failed = usize::from(failed.contains(&p.turn)));
        told(&points, FINE).verdict == Verdict::Better
    });
    println!("{better} of {TIMES}");
    assert!(better <= ALLOWED, "{better}");
}

fn draw<T: Copy>(of: &[T], rng: &mut Rng) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// Values of some kind: few, printed, of any sign, or smooth.
fn any_points(rng: &mut Rng) -> Vec<Point> {
    let rounds = match rng.below(50) {
        // The test approximates.
        0 => 51 + rng.below(20) as usize,
        _ => 1 + rng.below(30) as usize,
    };
    let (kind, shift) = (rng.below(6), rng.below(6));
    let fails = rng.below(3) == 0;
    let mut values = Rng::stream(rng.below(1 << 30), 1);
    let mut points = turns(rounds, rng.below(1 << 30), |_, other| {
        let rng = &mut values;
        let value = match kind {
            0 => draw(&[40.0, 41.0, 42.0], rng),
            1 => draw(&[12.3, 12.4], rng),
            2 => draw(&[1.0, 2.0, 4.0, 8.0], rng),
            3 => (4.0 * normal(rng)).round(),
            4 => normal(rng),
            _ => (0.03 * normal(rng)).exp(),
        };
        match shift {
            0 if other => value + 1.0,
            1 if other => value * 0.5,
            _ => value,
        }
    });
    for point in &mut points {
        point.failed = usize::from(fails && rng.below(5) == 0);
    }
    points
}

/// Exchange the variants: what was better is worse, with the same p. And the verdict can be read
/// off the interval that is shown.
#[test]
fn a_verdict_is_the_same_seen_from_the_other_variant_and_its_interval_agrees() {
    let opposite = |verdict: Verdict| match verdict {
        Verdict::Better => Verdict::Worse,
        Verdict::Worse => Verdict::Better,
        same => same,
    };
    let (mut differ, mut equal) = (0, 0);
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let points = any_points(&mut rng);
        let rounds = points.len() / 2 - 1;
        let plan = match rng.below(3) {
            0 if rounds >= 24 => Plan::Auto(rounds),
            _ => Plan::Fixed(rounds),
        };
        let rule = rule(plan, draw(&[0.0001, 0.005, 0.02, 0.1, 1.0], &mut rng));
        let better = draw(&[Direction::Lower, Direction::Higher], &mut rng);
        let fine = draw(&[0.0, 0.001, 0.1, 1.0], &mut rng);
        let step = draw(&[Step::Part(fine), Step::Unit(fine), Step::Seen], &mut rng);
        let mut exchanged = points.clone();
        exchanged.iter_mut().for_each(|p| p.other = !p.other);
        let one = judged(&points, step, better, &rule);
        let two = judged(&exchanged, step, better, &rule);
        assert_eq!(
            two.verdict,
            opposite(one.verdict),
            "{points:?} {one:?} {two:?}"
        );
        assert_eq!((two.p, two.against), (one.p, one.against), "{points:?}");
        assert_eq!(two.within_margin, one.within_margin, "{points:?}");
        differ += usize::from(differs(&one));
        equal += usize::from(one.verdict == Verdict::Equivalent);
        let Some(interval) = one.interval else {
            assert_eq!(one.verdict, Verdict::Inconclusive);
            continue;
        };
        let nothing = if one.scale == Scale::Ratio { 1.0 } else { 0.0 };
        let apart = !interval.contains(nothing);
        if one.against != Some(Against::Failures) {
            assert_eq!(differs(&one), apart, "{points:?} {one:?}");
            assert_eq!(
                one.p <= 1.0 - one.level.unwrap(),
                apart,
                "{points:?} {one:?}"
            );
        }
        assert!(!one.within_margin || interval.within(one.margin), "{one:?}");
        let equivalent = one.verdict == Verdict::Equivalent;
        assert_eq!(equivalent, one.within_margin && !apart, "{one:?}");
    }
    println!("{differ} differ, {equal} equivalent");
    assert!(differ > 500 && equal > 300, "{differ} {equal}");
}

/// Numbers that are all 100 may stand for anything up to 149. One run in twenty prints 101 and
/// shows that they do not, often after the first look, which is then not the last.
#[test]
fn auto_goes_on_where_only_a_finer_number_is_missing() {
    let plan = Plan::Auto(MAX_AUTO);
    let told = count(|seed| {
        let mut rng = Rng::stream(seed, 11);
        let points = turns(MAX_AUTO, seed, |_, _| {
            if rng.below(20) == 0 { 101.0 } else { 100.0 }
        });
        let at = |rounds: usize| {
            let points = &points[..2 * (rounds + 1)];
            judged(points, Step::Seen, Direction::Lower, &rule(plan, 0.02))
        };
        let end = plan
            .times()
            .into_iter()
            .find(|rounds| settled(&[at(*rounds)]));
        at(end.unwrap_or(MAX_AUTO)).verdict == Verdict::Equivalent
    });
    println!("equivalent: {told} of {TIMES}");
    assert!(told >= 380, "{told}");
}
