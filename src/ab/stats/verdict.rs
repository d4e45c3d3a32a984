// SPDX-License-Identifier: GPL-2.0-only
//! Verdicts on variants, each compared with the first.
//!
//! A difference is reported if the signed-rank test, corrected for all comparisons, rejects that
//! there is none. Equivalence is reported if the interval of the shift is within the margin (two
//! one-sided tests, Schuirmann 1987). Otherwise nothing is. Only the looks of the plan count.

use super::Interval;
use super::bootstrap;
use super::holm;
use super::pairs::{Pairs, Scale};
use super::plan::{Look, Plan};
use super::power::least_shift;
use super::rank::{P, SignedRank};
use super::sample::{median, median_of};
use super::shift::Walsh;
use crate::util::rng::Rng;
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// More resamples take long and change nothing.
const RESAMPLES_MAX: usize = 1_000_000;

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

/// Declared before the first run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    pub plan: Plan,
    /// Chance of reporting any difference, among all comparisons, if there is none.
    pub alpha: f64,
    /// The part of the base that does not matter.
    pub margin: f64,
    /// Chance with which `least_effect` would be found.
    pub power: f64,
    pub resamples: usize,
    /// Number of comparisons in the whole suite, if this is a workload of a suite with early looks.
    /// A verdict at a look must also hold in the suite. 0: correct among its own comparisons.
    #[serde(default)]
    pub suite: usize,
}

impl Rule {
    pub fn new(plan: Plan) -> Rule {
        Rule {
            plan,
            alpha: 0.05,
            margin: 0.02,
            power: 0.8,
            resamples: 10_000,
            suite: 0,
        }
    }

    /// Each p adjusted for all comparisons it is corrected with.
    fn adjusted(&self, ps: &[f64]) -> Vec<f64> {
        match self.suite {
            0 => holm::adjusted(ps),
            all => ps.iter().map(|p| holm::among(*p, all)).collect(),
        }
    }

    /// Fails if no verdict is possible with these values.
    pub fn checked(&self) -> Result<()> {
        let part = |name: &str, value: f64, most: f64| {
            ensure!(value > 0.0 && value <= most, "{name} is {value}");
            Ok(())
        };
        part("alpha", self.alpha, 0.5)?;
        part("margin", self.margin, 1.0)?;
        part("power", self.power, 0.999)?;
        ensure!(
            (1..=RESAMPLES_MAX).contains(&self.resamples),
            "resamples are {}",
            self.resamples
        );
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
}

/// Smallest difference between two possible values of a metric. If it exceeds the margin, equal
/// values do not show that the true values are within the margin.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// As a part of the lower value. 0: no limit.
    Part(f64),
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

/// The test of equivalence: whether the interval of the shift is within the margin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equivalence {
    /// Level of the interval. Lower than that of other intervals, since the two tests are
    /// one-sided.
    pub level: f64,
    pub interval: Interval,
    pub margin: Interval,
}

impl Equivalence {
    fn is_met(&self) -> bool {
        self.margin.low <= self.interval.low && self.interval.high <= self.margin.high
    }
}

/// The result of a comparison. Values are other / base, or other - base, as `scale` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    pub verdict: Verdict,
    /// It would be equivalent if the metric were less coarse.
    #[serde(default)]
    pub same_bucket: bool,
    pub scale: Scale,
    /// Blocks of the look that gave the verdict, or of the last look. All estimates are from these.
    pub blocks: usize,
    /// Level of the intervals of `median` and `shift`. Higher at early looks, which may spend less
    /// error. None: there was no look.
    pub level: Option<f64>,
    /// The median over blocks, with its bootstrap interval.
    pub median: Estimate,
    /// The Hodges-Lehmann estimate, with the interval of the signed-rank test.
    pub shift: Estimate,
    /// None: there was no look, or there are too few blocks.
    #[serde(default)]
    pub equivalence: Option<Equivalence>,
    /// Two-sided, over all looks up to the one that gave the verdict.
    pub p: f64,
    /// p adjusted for all comparisons at that look.
    pub p_adjusted: f64,
    /// The least effect that this many blocks would have found, as a part of the base or in its
    /// unit. None: they could find none.
    pub least_effect: Option<f64>,
}

/// Judges all comparisons together. `seed` is only for the bootstrap.
pub fn judge(compared: &[Compared], rule: &Rule, seed: u64) -> Vec<Judged> {
    let seen: Vec<Seen> = compared.iter().map(|c| Seen::new(c, rule)).collect();
    let looks = seen.iter().map(|s| s.looks.len()).max().unwrap_or(0);
    // After each look. One entry even if there was no look.
    let adjusted: Vec<Vec<f64>> = (0..looks.max(1))
        .map(|look| rule.adjusted(&seen.iter().map(|s| s.p_at(look)).collect::<Vec<_>>()))
        .collect();
    let many = seen.len().max(rule.suite) as f64;
    let each = compared.iter().zip(&seen).enumerate();
    each.map(|(i, (compared, seen))| {
        let ps: Vec<f64> = adjusted.iter().map(|all| all[i]).collect();
        seen.judged(compared, rule, &ps, many, seed)
    })
    .collect()
}

/// True if every comparison has a verdict, or cannot get another one.
pub fn settled(judged: &[Judged]) -> bool {
    let open = |j: &Judged| j.verdict == Verdict::Inconclusive && !j.same_bucket;
    !judged.iter().any(open)
}

/// The data at one look.
struct Taken {
    /// None: there was no look yet, and the data are only for display.
    look: Option<Look>,
    pairs: Pairs,
    walsh: Walsh,
}

/// The result of all looks up to this one.
#[derive(Clone, Copy)]
struct SoFar {
    look: Look,
    p: P,
    /// Index of the look that gave `p`.
    by: usize,
}

/// The result of all looks.
struct Seen {
    looks: Vec<SoFar>,
    /// Index of the first look that showed equivalence.
    equivalent: Option<usize>,
    /// A look would have shown equivalence if the metric were less coarse.
    same_bucket: bool,
}

/// The verdict, and the look that gave it. None: the last look.
type Decided = (Verdict, Option<usize>);

impl Seen {
    fn new(compared: &Compared, rule: &Rule) -> Seen {
        let mut seen = Seen {
            looks: Vec::new(),
            equivalent: None,
            same_bucket: false,
        };
        for look in rule.plan.taken(compared.base.len()) {
            let taken = compared.at(Some(look));
            let coarse = compared.step.of(look.blocks, &taken.pairs) > rule.margin;
            seen.take(look, &taken, coarse, rule);
        }
        seen
    }

    fn take(&mut self, look: Look, taken: &Taken, coarse: bool, rule: &Rule) {
        let (at, before) = (self.looks.len(), self.last());
        let p = SignedRank::new(&taken.pairs.differences).p();
        let counted = |now: f64, before: f64| before.min(now / look.share);
        let p_before = before.map_or(P::NOTHING, |b| b.p);
        let p = P {
            greater: counted(p.greater, p_before.greater),
            less: counted(p.less, p_before.less),
        };
        let by = before.filter(|b| b.p.two_sided() <= p.two_sided());
        self.looks.push(SoFar {
            look,
            p,
            by: by.map_or(at, |b| b.by),
        });
        let equivalent = taken.equivalence(rule).is_some_and(|e| e.is_met());
        match equivalent {
            true if coarse => self.same_bucket = true,
            true => self.equivalent = self.equivalent.or(Some(at)),
            false => (),
        }
    }

    fn last(&self) -> Option<&SoFar> {
        self.looks.last()
    }

    /// The result up to this look, or up to the last one.
    fn after(&self, look: usize) -> Option<&SoFar> {
        self.looks.get(look).or(self.last())
    }

    fn p_at(&self, look: usize) -> f64 {
        self.after(look).map_or(1.0, |s| s.p.two_sided())
    }

    /// `ps`: p adjusted for all comparisons, after each look.
    fn judged(&self, compared: &Compared, rule: &Rule, ps: &[f64], many: f64, seed: u64) -> Judged {
        let (verdict, decided_at) = self.decide(compared, rule, ps);
        let same_bucket = verdict == Verdict::Inconclusive && self.same_bucket;
        // The numbers are those of the look that gave the verdict. Later looks may show something
        // else.
        let at = decided_at.unwrap_or(ps.len() - 1);
        let shown = match verdict {
            // p may be significant only now, after another comparison was (Holm), but stem from an
            // earlier look.
            Verdict::Better | Verdict::Worse => self.after(at).and_then(|s| self.after(s.by)),
            _ => self.after(at),
        };
        Judged {
            verdict,
            same_bucket,
            p: self.p_at(at),
            p_adjusted: ps[at],
            ..compared.at(shown.map(|s| s.look)).judged(rule, many, seed)
        }
    }

    /// The first verdict is final. If one look shows a difference and equivalence, the verdict is
    /// equivalent.
    fn decide(&self, compared: &Compared, rule: &Rule, ps: &[f64]) -> Decided {
        let differs = ps.iter().position(|p| *p <= rule.alpha);
        match (self.equivalent, differs) {
            _ if !compared.exercised => (Verdict::NotExercised, None),
            (Some(at), differs) if differs.is_none_or(|first| at <= first) => {
                (Verdict::Equivalent, Some(at))
            }
            (_, Some(at)) => {
                let p = self.after(at).map_or(P::NOTHING, |s| s.p);
                let higher = p.greater < p.less;
                match higher == (compared.better == Direction::Higher) {
                    true => (Verdict::Better, Some(at)),
                    false => (Verdict::Worse, Some(at)),
                }
            }
            (_, None) => (Verdict::Inconclusive, None),
        }
    }
}

impl Step<'_> {
    /// As a part of the base, after this many blocks.
    fn of(&self, blocks: usize, pairs: &Pairs) -> f64 {
        match self {
            Step::Part(part) => *part,
            Step::Seen(units) => units[blocks - 1] / pairs.base.abs(),
        }
    }
}

impl Compared<'_> {
    /// The blocks of a look; None: all blocks.
    fn at(&self, look: Option<Look>) -> Taken {
        let blocks = look.map_or(self.base.len(), |look| look.blocks);
        let pairs = Pairs::new(&self.base[..blocks], &self.other[..blocks]);
        Taken::new(look, pairs)
    }
}

impl Taken {
    fn new(look: Option<Look>, pairs: Pairs) -> Taken {
        let differences: &[f64] = match look {
            Some(_) => &pairs.differences,
            None => &[],
        };
        Taken {
            look,
            walsh: Walsh::new(differences),
            pairs,
        }
    }

    /// On the scale of the differences.
    fn equivalence(&self, rule: &Rule) -> Option<Equivalence> {
        let level = 1.0 - 2.0 * rule.alpha * self.look?.share;
        let margin = self.pairs.margin(rule.margin);
        Some(Equivalence {
            level,
            interval: self.walsh.interval(level)?,
            margin: Interval {
                low: -margin,
                high: margin,
            },
        })
    }

    /// The numbers of this look. Verdict and p depend on all looks, and are set by the caller.
    fn judged(&self, rule: &Rule, many: f64, seed: u64) -> Judged {
        let alpha = self.look.map(|look| rule.alpha * look.share);
        let differences = &self.pairs.differences;
        let shown = |d| self.pairs.shown(d);
        let median_interval = alpha.and_then(|alpha| {
            let mut rng = Rng::new(seed);
            bootstrap::interval(
                differences,
                median_of,
                1.0 - alpha,
                rule.resamples,
                &mut rng,
            )
        });
        let shift_interval = alpha.and_then(|alpha| self.walsh.interval(1.0 - alpha));
        Judged {
            verdict: Verdict::Inconclusive,
            same_bucket: false,
            scale: self.pairs.scale,
            blocks: self.look.map_or(0, |look| look.blocks),
            level: alpha.map(|alpha| 1.0 - alpha),
            median: Estimate {
                value: shown(median(differences)),
                interval: median_interval.map(|i| i.map(shown)),
            },
            shift: Estimate {
                value: shown(self.walsh.estimate()),
                interval: shift_interval.map(|i| i.map(shown)),
            },
            equivalence: self.equivalence(rule).map(|e| Equivalence {
                interval: e.interval.map(shown),
                margin: e.margin.map(shown),
                ..e
            }),
            p: 1.0,
            p_adjusted: 1.0,
            least_effect: alpha.and_then(|alpha| self.least_effect(rule, alpha / many)),
        }
    }

    fn least_effect(&self, rule: &Rule, alpha: f64) -> Option<f64> {
        let n = self.pairs.differences.len();
        let interval = self.walsh.interval(1.0 - alpha)?;
        let shift = least_shift(interval, n, alpha, rule.power)?;
        Some(match self.pairs.scale {
            Scale::Ratio => shift.exp_m1(),
            Scale::Difference => shift,
        })
    }
}
