// SPDX-License-Identifier: GPL-2.0-only
//! Verdicts on variants, each compared with the first.
//!
//! One interval tells the verdict: that of the shift, at the level that is left when all
//! comparisons and looks share the allowed error. Without "no difference" in it there is a
//! difference, whatever its size. Otherwise, within the margin, the variants are equivalent, unless
//! the steps of the metric, the mean or failed runs speak against it. Only the looks of the plan
//! count.

use super::Interval;
use super::plan::{Look, Plan};
use super::rank::{P, SignedRank};
use super::shift::Walsh;
use super::turns::{Differences, Point, Scale, mean_interval};
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Largest error rate. Above it a verdict says nothing.
const ALPHA_MAX: f64 = 0.2;

/// Which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Lower,
    Higher,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Better,
    Worse,
    /// No difference is shown, and it is less than the margin.
    Equivalent,
    /// Neither a difference nor its absence is shown.
    Inconclusive,
    /// What differs in this variant acted in no more than half of the runs that have it.
    NotExercised,
}

/// What speaks against a difference (`Failures`), or against being within the margin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// With failed runs counted as its worst, no difference is shown; or equivalence, with unequal
    /// numbers of failed runs.
    Failures,
    /// The steps of the metric are too wide for the margin.
    Steps,
    /// The mean may differ by more than the margin: some runs are far off.
    Mean,
}

/// Declared before the first run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    pub plan: Plan,
    /// Chance of reporting any difference, among all comparisons, if there is none.
    pub alpha: f64,
    /// The part of the smaller value that does not matter.
    pub margin: f64,
}

impl Rule {
    pub fn new(plan: Plan) -> Rule {
        Rule {
            plan,
            alpha: 0.05,
            margin: 0.02,
        }
    }

    /// Fails if no verdict is possible with these values.
    pub fn checked(&self) -> Result<()> {
        let part = |name: &str, value: f64, most: f64| {
            ensure!(
                value > 0.0 && value <= most,
                "{name} is {value}: above 0 and at most {most} are possible"
            );
            Ok(())
        };
        part("alpha", self.alpha, ALPHA_MAX)?;
        part("margin", self.margin, 1.0)?;
        self.plan.checked()
    }
}

/// One variant compared with the base, by one metric.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The turns of both, in order.
    pub points: &'a [Point],
    /// The numbers of their runs, with their turns. Of a boot there are several.
    pub numbers: &'a [(usize, f64)],
    pub better: Direction,
    /// False: what differs did not act.
    pub exercised: bool,
    pub step: Step,
}

/// Smallest difference between two possible values of a metric. The true values of two equal ones
/// may differ by it.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// As a part of the lower value. 0: values are exact, or much finer than any margin.
    Part(f64),
    /// In the metric's unit.
    Unit(f64),
    /// Unknown: as the values show it.
    Seen,
}

/// The result of a comparison. Values are other / base, or other - base, as `scale` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    pub verdict: Verdict,
    pub against: Option<Against>,
    /// The difference is shown to be less than the margin. True of each `Equivalent`.
    pub within_margin: bool,
    pub scale: Scale,
    /// Rounds of the look that gave the verdict, or of the last look. All estimates are from these.
    pub rounds: usize,
    /// Level of the interval: what all comparisons and looks leave for this one. None: there was
    /// no look.
    pub level: Option<f64>,
    /// The shift (Hodges and Lehmann), and its interval. None: there is nothing to compare.
    pub shift: Option<f64>,
    pub interval: Option<Interval>,
    /// The differences that do not matter.
    pub margin: Interval,
    /// Two-sided, at this look alone. Failed runs count as the worst if that makes it larger.
    pub p: f64,
    /// p adjusted for all comparisons and looks.
    pub p_adjusted: f64,
}

/// Judges all comparisons together, after so many rounds of runs of so many variants.
pub fn judge(compared: &[Compared], rounds: usize, variants: usize, rule: &Rule) -> Vec<Judged> {
    let share = Share {
        rule,
        alpha: rule.alpha / compared.len() as f64,
        comparisons: compared.len(),
        variants,
    };
    compared.iter().map(|c| share.judged(c, rounds)).collect()
}

/// True if every comparison has a verdict. What speaks against one may change: a later run may
/// print a finer number.
pub fn settled(judged: &[Judged]) -> bool {
    judged.iter().all(|j| j.verdict != Verdict::Inconclusive)
}

impl Step {
    /// On the scale of the differences.
    fn of(self, numbers: &[(usize, f64)], differences: &Differences) -> f64 {
        match self {
            Step::Part(part) => differences.part(part),
            Step::Unit(unit) => differences.unit(unit),
            Step::Seen => differences.unit(seen(numbers)),
        }
    }
}

/// The step of these numbers at the size of the largest: one in the last digit that any of them
/// has, since a program that prints two digits prints 99 and then 100; or the least gap between two
/// of them if that is more, as of a clock. A fraction that is always the same may be what a coarse
/// clock was divided into: its step is itself.
fn seen(numbers: &[(usize, f64)]) -> f64 {
    let mut values: Vec<f64> = numbers.iter().map(|(_, value)| value.abs()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    let digits = values.iter().map(|v| digits(*v)).max().unwrap_or(0);
    let most = values.last().copied().unwrap_or(0.0);
    if most == 0.0 {
        return 1.0;
    }
    let gaps = values.windows(2).map(|two| two[1] - two[0]);
    let always = if most.fract() == 0.0 { 0.0 } else { most };
    let last = 10_f64.powi(most.log10().floor() as i32 + 1 - digits);
    gaps.reduce(f64::min).unwrap_or(always).max(last)
}

/// Significant digits of the shortest decimal number that equals the value. 0 for 0.
fn digits(value: f64) -> i32 {
    let text = format!("{value:e}");
    let digits = text.split('e').next().unwrap_or_default();
    let count = digits.chars().filter(char::is_ascii_digit).count();
    if value == 0.0 { 0 } else { count as i32 }
}

/// What a comparison has of the allowed error.
struct Share<'a> {
    rule: &'a Rule,
    alpha: f64,
    comparisons: usize,
    variants: usize,
}

impl Share<'_> {
    fn judged(&self, compared: &Compared, rounds: usize) -> Judged {
        let mut looks = self.rule.plan.looks(self.alpha);
        looks.retain(|look| look.rounds <= rounds);
        let mut taken = looks.into_iter().map(|look| self.taken(compared, look));
        let mut last = taken.next();
        while let Some(now) = &last
            && now.verdict().0 == Verdict::Inconclusive
            && let Some(next) = taken.next()
        {
            last = Some(next);
        }
        let judged = last.map(|taken| taken.judged(self.comparisons));
        let judged = judged.unwrap_or_else(|| self.without_look(compared));
        match compared.exercised {
            true => judged,
            false => Judged {
                verdict: Verdict::NotExercised,
                against: None,
                within_margin: false,
                ..judged
            },
        }
    }

    fn taken(&self, compared: &Compared, look: Look) -> Taken {
        let turns = self.variants * (look.rounds + 1);
        let end = compared.points.partition_point(|p| p.turn < turns);
        let seen = Compared {
            points: &compared.points[..end],
            numbers: &compared.numbers[..compared.numbers.partition_point(|(t, _)| *t < turns)],
            ..*compared
        };
        Taken::new(&seen, look, self)
    }

    /// Estimates for display.
    fn without_look(&self, compared: &Compared) -> Judged {
        let differences = Differences::new(compared.points, 0.0);
        let shift = Walsh::new(&differences.values).estimate();
        Judged {
            verdict: Verdict::Inconclusive,
            against: None,
            within_margin: false,
            scale: differences.scale,
            rounds: 0,
            level: None,
            shift: shift.map(|shift| differences.shown(shift)),
            interval: None,
            margin: margin(&differences, self.rule).map(|d| differences.shown(d)),
            p: 1.0,
            p_adjusted: 1.0,
        }
    }
}

fn margin(differences: &Differences, rule: &Rule) -> Interval {
    let margin = differences.part(rule.margin);
    Interval {
        low: -margin,
        high: margin,
    }
}

/// The data at one look, on the scale of the differences.
struct Taken {
    look: Look,
    /// The error that this look may make.
    alpha: f64,
    better: Direction,
    differences: Differences,
    p: P,
    shift: Option<f64>,
    /// None: too few differences.
    interval: Option<Interval>,
    margin: Interval,
    step: f64,
    /// The mean is within the margin.
    mean: bool,
    /// Failed runs are equally many in both variants.
    failed_alike: bool,
}

impl Taken {
    fn new(compared: &Compared, look: Look, share: &Share) -> Taken {
        let points = compared.points;
        let alpha = share.alpha * look.share;
        let worst = match compared.better {
            Direction::Lower => f64::INFINITY,
            Direction::Higher => f64::NEG_INFINITY,
        };
        let differences = Differences::new(points, worst);
        let walsh = Walsh::new(&differences.values);
        let tested = SignedRank::new(&differences.values).p();
        let interval = walsh.interval(1.0 - alpha);
        let no_more = Interval {
            low: -share.rule.margin,
            high: share.rule.margin,
        };
        let failed = |other: bool| {
            let own = points.iter().filter(|p| p.other == other);
            own.map(|p| p.failed).sum::<usize>()
        };
        Taken {
            look,
            alpha,
            better: compared.better,
            // With ties the test and the interval count differently: a difference needs both.
            p: tested
                .both(SignedRank::new(&differences.with_failed).p())
                .both(walsh.p()),
            shift: walsh.estimate(),
            interval: interval.map(|i| match tested.two_sided() <= alpha {
                true => i,
                false => i.and(0.0),
            }),
            margin: margin(&differences, share.rule),
            step: compared.step.of(compared.numbers, &differences),
            mean: mean_interval(points, 1.0 - alpha).is_some_and(|mean| mean.within(no_more)),
            failed_alike: failed(true) == failed(false),
            differences,
        }
    }

    /// What speaks against being within the margin, or for a difference; and whether the
    /// difference is within the margin.
    fn verdict(&self) -> (Verdict, Option<Against>, bool) {
        let Some(interval) = self.interval else {
            return (Verdict::Inconclusive, None, false);
        };
        let against = match interval.within(self.margin) {
            true => self.against_equivalence(interval),
            // How large the difference is, its steps do not tell.
            false => {
                let coarse = interval.widened(self.step).contains(0.0);
                (coarse && !interval.contains(0.0)).then_some(Against::Steps)
            }
        };
        let within = interval.within(self.margin) && against.is_none();
        match (interval.contains(0.0), within) {
            (true, true) => (Verdict::Equivalent, None, true),
            (true, false) => (Verdict::Inconclusive, against, false),
            _ if self.p.two_sided() > self.alpha => {
                (Verdict::Inconclusive, Some(Against::Failures), false)
            }
            _ if (interval.low > 0.0) == (self.better == Direction::Higher) => {
                (Verdict::Better, against, within)
            }
            _ => (Verdict::Worse, against, within),
        }
    }

    /// What speaks against equivalence, although the interval is within the margin.
    fn against_equivalence(&self, interval: Interval) -> Option<Against> {
        match () {
            () if !self.failed_alike => Some(Against::Failures),
            () if !interval.widened(self.step).within(self.margin) => Some(Against::Steps),
            () if !self.mean => Some(Against::Mean),
            () => None,
        }
    }

    fn judged(&self, comparisons: usize) -> Judged {
        let (verdict, against, within_margin) = self.verdict();
        let shown = |d| self.differences.shown(d);
        let p = self.p.two_sided();
        Judged {
            verdict,
            against,
            within_margin,
            scale: self.differences.scale,
            rounds: self.look.rounds,
            level: Some(1.0 - self.alpha),
            shift: self.shift.map(shown),
            interval: self.interval.map(|i| i.map(shown)),
            margin: self.margin.map(shown),
            p,
            p_adjusted: (p * comparisons as f64 / self.look.share).min(1.0),
        }
    }
}
