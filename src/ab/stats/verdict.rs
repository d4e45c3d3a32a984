// SPDX-License-Identifier: GPL-2.0-only
//! What may be said of variants, each compared with the first. A difference is told when the signed-rank test, corrected for all comparisons,
//! refuses that there is none; no difference is told when the interval of the shift lies within the margin (two one-sided tests, Schuirmann
//! 1987); else nothing is told. Looks are those of the plan, and nothing between them is looked at.

use super::Interval;
use super::bootstrap;
use super::holm;
use super::pairs::{Pairs, Scale};
use super::plan::{Look, Plan};
use super::power::least_shift;
use super::rank::{P, SignedRank};
use super::sample::{median, median_of};
use super::shift::Walsh;
use crate::rng::Rng;
use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// More take long and change nothing.
const RESAMPLES_MAX: usize = 1_000_000;

/// What is better.
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
    /// Less than the margin apart.
    Equivalent,
    /// Neither a difference nor its absence is shown.
    Inconclusive,
    /// What is different in this variant acted in no more than half of the runs that have it.
    NotExercised,
}

/// What was declared before the first run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    pub plan: Plan,
    /// Chance to tell of a difference, among all comparisons, when there is none.
    pub alpha: f64,
    /// The part of the base that does not matter.
    pub margin: f64,
    /// With which chance the least effect is found.
    pub power: f64,
    pub resamples: usize,
    /// Comparisons of the suite that this is a workload of, when looks are taken early: what is told at a look stands in the suite, too.
    /// 0: it is corrected within itself.
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

    /// Each p as it counts among all that it is corrected with.
    fn adjusted(&self, ps: &[f64]) -> Vec<f64> {
        match self.suite {
            0 => holm::adjusted(ps),
            all => ps.iter().map(|p| holm::among(*p, all)).collect(),
        }
    }

    /// Errors: by these values nothing can be told.
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

/// One variant and metric beside the base.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// A value a block, in the order of the blocks.
    pub base: &'a [f64],
    pub other: &'a [f64],
    pub better: Direction,
    /// False: what is different did not act.
    pub exercised: bool,
    pub step: Step<'a>,
}

/// Between two values that a metric can take. Where it is wider than the margin, that values are the same does not say that they are within it.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// As a part of the lower one. 0: nothing keeps them apart.
    Part(f64),
    /// In its unit, by all that was seen up to each block. A look knows of no later one, so that what it told stands.
    Seen(&'a [f64]),
}

/// A value and where it may lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub interval: Option<Interval>,
}

/// What is asked where two variants may be equivalent: does this interval of the shift lie within the margin?
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equivalence {
    /// Of two tests, each one-sided: less than that of the other intervals.
    pub level: f64,
    pub interval: Interval,
    pub margin: Interval,
}

impl Equivalence {
    fn holds(&self) -> bool {
        self.margin.low <= self.interval.low && self.interval.high <= self.margin.high
    }
}

/// What came of a comparison. Values are other / base, or other - base where `scale` says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    pub verdict: Verdict,
    /// It would be equivalent, were the metric not too coarse to say so.
    #[serde(default)]
    pub same_bucket: bool,
    pub scale: Scale,
    /// Of the look that told the verdict, or of the last one. All estimates are of these.
    pub blocks: usize,
    /// Of both intervals; less is left for error at an early look. None: nothing was looked at.
    pub level: Option<f64>,
    /// The median over blocks, with its bootstrap interval.
    pub median: Estimate,
    /// Hodges and Lehmann's, with the interval of the signed-rank test.
    pub shift: Estimate,
    /// None: nothing was looked at, or so few blocks cannot tell.
    #[serde(default)]
    pub equivalence: Option<Equivalence>,
    /// Two-sided, over all looks up to the one that told the verdict.
    pub p: f64,
    /// As it counts among all comparisons there.
    pub p_adjusted: f64,
    /// The least effect that this many blocks would have found, as a part of the base or in its unit; None: they could find none.
    pub least_effect: Option<f64>,
}

/// Judges all comparisons together. `seed` is for the bootstrap alone.
pub fn judge(compared: &[Compared], rule: &Rule, seed: u64) -> Vec<Judged> {
    let seen: Vec<Seen> = compared.iter().map(|c| Seen::new(c, rule)).collect();
    let looks = seen.iter().map(|s| s.looks.len()).max().unwrap_or(0);
    // At each look, and without one.
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

/// Nothing more is needed of these: each has its verdict, or cannot have another one.
pub fn settled(judged: &[Judged]) -> bool {
    let open = |j: &Judged| j.verdict == Verdict::Inconclusive && !j.same_bucket;
    !judged.iter().any(open)
}

/// What one look has shown.
struct Taken {
    /// None: there was none yet, and this is only shown.
    look: Option<Look>,
    pairs: Pairs,
    walsh: Walsh,
}

/// What all looks up to one have shown.
#[derive(Clone, Copy)]
struct SoFar {
    look: Look,
    p: P,
    /// The look that gave it, by its number.
    by: usize,
}

/// What all looks have shown.
struct Seen {
    looks: Vec<SoFar>,
    /// The first that showed that what differs does not matter.
    equivalent: Option<usize>,
    /// One would have, were the metric not too coarse.
    same_bucket: bool,
}

/// Which verdict, and the look that told it. None: that is the last one.
type Told = (Verdict, Option<usize>);

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
        let equivalent = taken.equivalence(rule).is_some_and(|e| e.holds());
        match equivalent {
            true if coarse => self.same_bucket = true,
            true => self.equivalent = self.equivalent.or(Some(at)),
            false => (),
        }
    }

    fn last(&self) -> Option<&SoFar> {
        self.looks.last()
    }

    /// As it was after that look, or is.
    fn after(&self, look: usize) -> Option<&SoFar> {
        self.looks.get(look).or(self.last())
    }

    fn p_at(&self, look: usize) -> f64 {
        self.after(look).map_or(1.0, |s| s.p.two_sided())
    }

    /// `ps`: as it counts among all comparisons, after each look.
    fn judged(&self, compared: &Compared, rule: &Rule, ps: &[f64], many: f64, seed: u64) -> Judged {
        let (verdict, told) = self.told(compared, rule, ps);
        let same_bucket = verdict == Verdict::Inconclusive && self.same_bucket;
        // Verdict and numbers are of one look: later ones may say another thing, and are not what was told.
        let at = told.unwrap_or(ps.len() - 1);
        let shown = match verdict {
            // Another comparison may have let this one through, by what was seen before.
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

    /// What was told first stands; of one look, that it does not matter.
    fn told(&self, compared: &Compared, rule: &Rule, ps: &[f64]) -> Told {
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
    /// As a part of the base, after so many blocks.
    fn of(&self, blocks: usize, pairs: &Pairs) -> f64 {
        match self {
            Step::Part(part) => *part,
            Step::Seen(units) => units[blocks - 1] / pairs.base.abs(),
        }
    }
}

impl Compared<'_> {
    /// The blocks of that look, or all.
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

    /// In differences, as they are counted.
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

    /// Its numbers; verdict and p are not of one look.
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
