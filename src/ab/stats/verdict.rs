// SPDX-License-Identifier: GPL-2.0-only
//! Verdicts on variants, each compared with the first.
//!
//! One interval tells the verdict: that of the shift, at the level that is left when all
//! comparisons and looks share the allowed error, widened by a step of the metric on each side.
//! Without "no difference" in it there is a difference; within the margin the variants are
//! equivalent, unless the mean, failed runs or too few runs speak against it. Only the looks of the
//! plan count.

use super::Interval;
use super::mean::MeanShift;
use super::pairs::{Pairs, Scale};
use super::plan::{Look, Plan};
use super::power::least_shift;
use super::rank::{P, SignedRank};
use super::shift::Walsh;
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Largest error rate. Above it a verdict says nothing.
const ALPHA_MAX: f64 = 0.2;
/// Fewer blocks are not `equivalent`: of a variant with one slow run in ten they show none in more
/// than 5 % of cases (0.9^29 = 4.7 %).
pub const EQUIVALENT_MIN: usize = 29;

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
    /// The difference is less than the margin.
    Equivalent,
    /// Neither a difference nor its absence is shown.
    Inconclusive,
    /// What differs in this variant acted in no more than half of the runs that have it.
    NotExercised,
}

/// What speaks against the verdict that the interval alone would give. The verdict is then
/// `Inconclusive`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// With failed runs counted as its worst, no difference is shown; or equivalence, with unequal
    /// numbers of failed runs.
    Failures,
    /// The steps of the metric are wider than the difference, or too wide for the margin.
    Steps,
    /// The mean may differ by more than the margin: some runs are far off.
    Mean,
    /// So few runs would show no rare slow ones.
    Few,
}

/// Declared before the first run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    pub plan: Plan,
    /// Chance of reporting any difference, among all comparisons, if there is none.
    pub alpha: f64,
    /// The part of the smaller value that does not matter.
    pub margin: f64,
    /// Chance with which `least_effect` would be found.
    pub power: f64,
}

impl Rule {
    pub fn new(plan: Plan) -> Rule {
        Rule {
            plan,
            alpha: 0.05,
            margin: 0.02,
            power: 0.8,
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
        part("power", self.power, 0.999)?;
        self.plan.checked()
    }
}

/// One variant compared with the base, by one metric.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// One value per block, in order.
    pub base: &'a [f64],
    pub other: &'a [f64],
    pub better: Direction,
    /// False: what differs did not act.
    pub exercised: bool,
    pub step: Step<'a>,
    /// Failed runs of the other variant less those of the base, by block. They were repeated.
    pub failed: &'a [i64],
}

/// Smallest difference between two possible values of a metric. The true values of two equal ones
/// may differ by it.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// As a part of the lower value. 0: no limit.
    Part(f64),
    /// In the metric's unit.
    Unit(f64),
    /// In the metric's unit, for each block from all values up to it. A look uses no later values,
    /// so its verdict is final.
    Seen(&'a [f64]),
}

/// A value and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub interval: Option<Interval>,
}

/// The result of a comparison. Values are other / base, or other - base, as `scale` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    pub verdict: Verdict,
    pub against: Option<Against>,
    pub scale: Scale,
    /// Blocks of the look that gave the verdict, or of the last look. All estimates are from these.
    pub blocks: usize,
    /// Level of the intervals: what all comparisons and looks leave for this one. None: there was
    /// no look.
    pub level: Option<f64>,
    /// The shift of Hodges and Lehmann. Its interval, a step wider on each side, tells the verdict.
    pub effect: Estimate,
    /// The shift of the mean. Its interval, too, is within the margin if `equivalent`.
    pub mean: Estimate,
    /// The differences that do not matter.
    pub margin: Interval,
    /// Two-sided, at this look alone. Failed runs count as the worst if that makes it larger.
    pub p: f64,
    /// p adjusted for all comparisons and looks.
    pub p_adjusted: f64,
    /// The least effect that this many blocks would have found, as a part of the smaller value or
    /// in the metric's unit. None: they could find none.
    pub least_effect: Option<f64>,
}

/// Judges all comparisons together.
pub fn judge(compared: &[Compared], rule: &Rule) -> Vec<Judged> {
    let many = compared.len();
    compared.iter().map(|c| c.judged(rule, many)).collect()
}

/// True if every comparison has a verdict. What speaks against one may change: a later run may
/// print a finer number.
pub fn settled(judged: &[Judged]) -> bool {
    judged.iter().all(|j| j.verdict != Verdict::Inconclusive)
}

impl Step<'_> {
    /// On the scale of the differences, after this many blocks.
    fn of(&self, blocks: usize, pairs: &Pairs) -> f64 {
        match self {
            Step::Part(part) => pairs.part(*part),
            Step::Unit(unit) => pairs.unit(*unit),
            Step::Seen(units) => pairs.unit(units[blocks - 1]),
        }
    }
}

impl Compared<'_> {
    /// `many`: the number of comparisons that share the allowed error.
    fn judged(&self, rule: &Rule, many: usize) -> Judged {
        let alpha = rule.alpha / many as f64;
        let mut looks = rule.plan.looks(alpha);
        looks.retain(|look| look.blocks <= self.base.len());
        let mut taken = looks
            .into_iter()
            .map(|look| Taken::new(self, look, rule, alpha * look.share));
        let mut last = taken.next();
        while let Some(now) = &last
            && now.verdict().0 == Verdict::Inconclusive
            && let Some(next) = taken.next()
        {
            last = Some(next);
        }
        let judged = last.map(|taken| taken.judged(many));
        let judged = judged.unwrap_or_else(|| self.without_look(rule));
        match self.exercised {
            true => judged,
            false => Judged {
                verdict: Verdict::NotExercised,
                against: None,
                ..judged
            },
        }
    }

    /// Estimates for display.
    fn without_look(&self, rule: &Rule) -> Judged {
        let pairs = Pairs::new(self.base, self.other);
        let without_interval = |value: f64| Estimate {
            value: pairs.shown(value),
            interval: None,
        };
        Judged {
            verdict: Verdict::Inconclusive,
            against: None,
            scale: pairs.scale,
            blocks: 0,
            level: None,
            effect: without_interval(Walsh::new(&pairs.differences).estimate()),
            mean: without_interval(MeanShift::new(pairs.scale, self.base, self.other).value),
            margin: margin(&pairs, rule).map(|d| pairs.shown(d)),
            p: 1.0,
            p_adjusted: 1.0,
            least_effect: None,
        }
    }

    /// The chances of these differences, and the larger ones of the differences in which a failed
    /// run counts as the worst.
    fn p(&self, differences: &[f64]) -> P {
        let p = SignedRank::new(differences).p();
        let failed = &self.failed[..differences.len()];
        if failed.iter().all(|more| *more == 0) {
            return p;
        }
        let worst = match self.better {
            Direction::Lower => f64::INFINITY,
            Direction::Higher => f64::NEG_INFINITY,
        };
        let counted = differences.iter().zip(failed);
        let counted = counted.map(|(difference, more)| match more.signum() {
            0 => *difference,
            sign => sign as f64 * worst,
        });
        p.both(SignedRank::new(&counted.collect::<Vec<_>>()).p())
    }
}

fn margin(pairs: &Pairs, rule: &Rule) -> Interval {
    let margin = pairs.part(rule.margin);
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
    pairs: Pairs,
    p: P,
    effect: f64,
    /// None: too few blocks.
    interval: Option<Interval>,
    /// `interval`, widened by a step.
    wide: Option<Interval>,
    mean: MeanShift,
    margin: Interval,
    step: f64,
    /// Failed runs are equally many in both variants.
    failed_alike: bool,
    least_effect: Option<f64>,
}

impl Taken {
    fn new(compared: &Compared, look: Look, rule: &Rule, alpha: f64) -> Taken {
        let n = look.blocks;
        let (base, other) = (&compared.base[..n], &compared.other[..n]);
        let pairs = Pairs::new(base, other);
        let walsh = Walsh::new(&pairs.differences);
        let tested = SignedRank::new(&pairs.differences).p().two_sided();
        let interval = walsh.interval(1.0 - alpha);
        let least = interval.and_then(|i| least_shift(i, n, alpha, rule.power));
        let interval = interval.map(|i| if tested <= alpha { i } else { i.and(0.0) });
        let step = compared.step.of(n, &pairs);
        Taken {
            look,
            alpha,
            better: compared.better,
            // With ties the test and the interval count differently: a difference needs both.
            p: compared.p(&pairs.differences).both(walsh.p()),
            effect: walsh.estimate(),
            interval,
            wide: interval.map(|i| i.widened(step)),
            mean: MeanShift::new(pairs.scale, base, other),
            margin: margin(&pairs, rule),
            step,
            failed_alike: compared.failed[..n].iter().sum::<i64>() == 0,
            least_effect: least.map(|shift| match pairs.scale {
                Scale::Ratio => (shift + step).exp_m1(),
                Scale::Difference => shift + step,
            }),
            pairs,
        }
    }

    fn verdict(&self) -> (Verdict, Option<Against>) {
        let Some((interval, wide)) = self.interval.zip(self.wide) else {
            return (Verdict::Inconclusive, None);
        };
        if wide.within(self.margin) {
            return match self.against_equivalence() {
                None => (Verdict::Equivalent, None),
                against => (Verdict::Inconclusive, against),
            };
        }
        if wide.contains(0.0) {
            let seen = !interval.contains(0.0);
            let against = match interval.within(self.margin) {
                false if seen && self.p.two_sided() > self.alpha => Some(Against::Failures),
                within => (within || seen).then_some(Against::Steps),
            };
            return (Verdict::Inconclusive, against);
        }
        if self.p.two_sided() > self.alpha {
            return (Verdict::Inconclusive, Some(Against::Failures));
        }
        match (wide.low > 0.0) == (self.better == Direction::Higher) {
            true => (Verdict::Better, None),
            false => (Verdict::Worse, None),
        }
    }

    fn mean_interval(&self) -> Option<Interval> {
        let interval = self.mean.interval(1.0 - self.alpha);
        interval.map(|mean| mean.widened(self.step))
    }

    /// What speaks against equivalence, although the interval is within the margin.
    fn against_equivalence(&self) -> Option<Against> {
        let mean = self.mean_interval();
        match () {
            () if !self.failed_alike => Some(Against::Failures),
            () if !mean.is_some_and(|mean| mean.within(self.margin)) => Some(Against::Mean),
            () if self.look.blocks < EQUIVALENT_MIN => Some(Against::Few),
            () => None,
        }
    }

    fn judged(&self, many: usize) -> Judged {
        let (verdict, against) = self.verdict();
        let shown = |d| self.pairs.shown(d);
        let p = self.p.two_sided();
        Judged {
            verdict,
            against,
            scale: self.pairs.scale,
            blocks: self.look.blocks,
            level: Some(1.0 - self.alpha),
            effect: Estimate {
                value: shown(self.effect),
                interval: self.wide.map(|i| i.map(shown)),
            },
            mean: Estimate {
                value: shown(self.mean.value),
                interval: self.mean_interval().map(|i| i.map(shown)),
            },
            margin: self.margin.map(shown),
            p,
            p_adjusted: (p * many as f64 / self.look.share).min(1.0),
            least_effect: self.least_effect,
        }
    }
}
