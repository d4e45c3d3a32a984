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
use serde::{Deserialize, Serialize};

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
    /// What is different in this variant never acted.
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
}

impl Rule {
    pub fn new(plan: Plan) -> Rule {
        Rule {
            plan,
            alpha: 0.05,
            margin: 0.02,
            power: 0.8,
            resamples: 10_000,
        }
    }
}

/// One variant and metric beside the base.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// A value a block, in the order of the blocks.
    pub base: &'a [f64],
    pub other: &'a [f64],
    pub better: Direction,
    /// False: what is different never acted.
    pub exercised: bool,
}

/// A value and where it may lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub value: f64,
    pub interval: Option<Interval>,
}

/// What came of a comparison. Values are other / base, or other - base where `scale` says so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    pub verdict: Verdict,
    pub scale: Scale,
    /// That were looked at.
    pub blocks: usize,
    /// The median over blocks, with its bootstrap interval.
    pub median: Estimate,
    /// Hodges and Lehmann's, with the interval of the signed-rank test.
    pub shift: Estimate,
    /// Two-sided, over all looks so far.
    pub p: f64,
    /// As it counts among all comparisons.
    pub p_adjusted: f64,
    /// The least effect that this many blocks would have found, as a part of the base or in its unit; None: they could find none.
    pub least_effect: Option<f64>,
}

/// Judges all comparisons together. `seed` is for the bootstrap alone.
pub fn judge(compared: &[Compared], rule: &Rule, seed: u64) -> Vec<Judged> {
    let seen: Vec<Seen> = compared.iter().map(|c| Seen::new(c, rule)).collect();
    let ps: Vec<f64> = seen.iter().map(|s| s.p.two_sided()).collect();
    let adjusted = holm::adjusted(&ps);
    let many = ps.len() as f64;
    let each = compared.iter().zip(&seen).zip(adjusted);
    each.map(|((compared, seen), p)| seen.judged(compared, rule, p, many, seed))
        .collect()
}

/// Nothing more is needed of these: each has its verdict.
pub fn settled(judged: &[Judged]) -> bool {
    judged.iter().all(|j| j.verdict != Verdict::Inconclusive)
}

/// What all looks so far have shown.
struct Seen {
    /// The last look; None before the first.
    look: Option<Look>,
    pairs: Pairs,
    walsh: Walsh,
    p: P,
    equivalent: bool,
}

impl Seen {
    fn new(compared: &Compared, rule: &Rule) -> Seen {
        let looks = rule.plan.taken(compared.base.len());
        let pairs_at =
            |blocks: usize| Pairs::new(&compared.base[..blocks], &compared.other[..blocks]);
        let mut seen = Seen {
            look: None,
            // Shown before there is anything to tell.
            pairs: pairs_at(compared.base.len()),
            walsh: Walsh::new(&[]),
            p: P::NOTHING,
            equivalent: false,
        };
        for look in looks {
            seen.take(look, pairs_at(look.blocks), rule);
        }
        seen
    }

    fn take(&mut self, look: Look, pairs: Pairs, rule: &Rule) {
        let p = SignedRank::new(&pairs.differences).p();
        let counted = |now: f64, before: f64| before.min(now / look.share);
        self.p = P {
            greater: counted(p.greater, self.p.greater),
            less: counted(p.less, self.p.less),
        };
        self.walsh = Walsh::new(&pairs.differences);
        let margin = pairs.margin(rule.margin);
        let within = |i: Interval| -margin <= i.low && i.high <= margin;
        let interval = self.walsh.interval(1.0 - 2.0 * rule.alpha * look.share);
        self.equivalent |= interval.is_some_and(within);
        (self.pairs, self.look) = (pairs, Some(look));
    }

    fn judged(&self, compared: &Compared, rule: &Rule, p: f64, many: f64, seed: u64) -> Judged {
        let alpha = self.look.map(|look| rule.alpha * look.share);
        let shift = self.walsh.estimate();
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
            verdict: self.verdict(compared, rule, p),
            scale: self.pairs.scale,
            blocks: self.look.map_or(0, |look| look.blocks),
            median: Estimate {
                value: shown(median(differences)),
                interval: median_interval.map(|i| i.map(shown)),
            },
            shift: Estimate {
                value: shown(shift),
                interval: shift_interval.map(|i| i.map(shown)),
            },
            p: self.p.two_sided(),
            p_adjusted: p,
            least_effect: alpha.and_then(|alpha| self.least_effect(rule, alpha / many)),
        }
    }

    fn verdict(&self, compared: &Compared, rule: &Rule, p: f64) -> Verdict {
        let higher = self.p.greater < self.p.less;
        if !compared.exercised {
            Verdict::NotExercised
        } else if self.equivalent {
            Verdict::Equivalent
        } else if p > rule.alpha {
            Verdict::Inconclusive
        } else if higher == (compared.better == Direction::Higher) {
            Verdict::Better
        } else {
            Verdict::Worse
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
