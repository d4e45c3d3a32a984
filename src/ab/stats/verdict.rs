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
    /// The steps of its values are wider than the margin: that values are the same does not say that they are within it.
    pub coarse: bool,
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
    let looks = seen.iter().map(|s| s.ps.len()).max().unwrap_or(0);
    // At each look, and without one.
    let adjusted: Vec<Vec<f64>> = (0..looks.max(1))
        .map(|look| holm::adjusted(&seen.iter().map(|s| s.p_at(look)).collect::<Vec<_>>()))
        .collect();
    let many = seen.len() as f64;
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

/// What all looks so far have shown.
struct Seen {
    last: Taken,
    /// The look that gave the least p.
    differs: Option<Taken>,
    /// The first that showed it, and which that was.
    equivalent: Option<(usize, Taken)>,
    p: P,
    /// Two-sided, as it was after each look.
    ps: Vec<f64>,
}

impl Seen {
    fn new(compared: &Compared, rule: &Rule) -> Seen {
        let pairs_at =
            |blocks: usize| Pairs::new(&compared.base[..blocks], &compared.other[..blocks]);
        let blocks = compared.base.len();
        let mut seen = Seen {
            last: Taken::new(None, pairs_at(blocks)),
            differs: None,
            equivalent: None,
            p: P::NOTHING,
            ps: Vec::new(),
        };
        for look in rule.plan.taken(blocks) {
            seen.take(look, || Taken::new(Some(look), pairs_at(look.blocks)), rule);
        }
        seen
    }

    fn take(&mut self, look: Look, taken: impl Fn() -> Taken, rule: &Rule) {
        self.last = taken();
        let p = SignedRank::new(&self.last.pairs.differences).p();
        let counted = |now: f64, before: f64| before.min(now / look.share);
        let all = P {
            greater: counted(p.greater, self.p.greater),
            less: counted(p.less, self.p.less),
        };
        if all.two_sided() < self.p.two_sided() {
            self.differs = Some(taken());
        }
        self.p = all;
        if self.equivalent.is_none() && self.last.equivalent(look, rule) {
            self.equivalent = Some((self.ps.len(), taken()));
        }
        self.ps.push(all.two_sided());
    }

    /// What it was after that look, or is.
    fn p_at(&self, look: usize) -> f64 {
        let at = self.ps.get(look).copied();
        at.unwrap_or(self.p.two_sided())
    }

    /// `ps`: as it counts among all comparisons, after each look.
    fn judged(&self, compared: &Compared, rule: &Rule, ps: &[f64], many: f64, seed: u64) -> Judged {
        let verdict = self.verdict(compared, rule, ps);
        let p = ps.last().copied().unwrap_or(1.0);
        let same_bucket = verdict == Verdict::Inconclusive && self.equivalent.is_some();
        // Verdict and numbers are of one look: later ones may say another thing, and are not what was told.
        let told = match verdict {
            Verdict::Better | Verdict::Worse => self.differs.as_ref(),
            Verdict::Equivalent => self.equivalent.as_ref().map(|(_, taken)| taken),
            Verdict::Inconclusive | Verdict::NotExercised => None,
        };
        let told = told.unwrap_or(&self.last);
        Judged {
            verdict,
            same_bucket,
            p: self.p.two_sided(),
            p_adjusted: p,
            ..told.judged(rule, many, seed)
        }
    }

    /// What was told first stands; of one look, that it does not matter.
    fn verdict(&self, compared: &Compared, rule: &Rule, ps: &[f64]) -> Verdict {
        let higher = self.p.greater < self.p.less;
        let equivalent = self.equivalent.as_ref().filter(|_| !compared.coarse);
        let differs = ps.iter().position(|p| *p <= rule.alpha);
        if !compared.exercised {
            Verdict::NotExercised
        } else if equivalent.is_some_and(|(at, _)| differs.is_none_or(|first| *at <= first)) {
            Verdict::Equivalent
        } else if differs.is_none() {
            Verdict::Inconclusive
        } else if higher == (compared.better == Direction::Higher) {
            Verdict::Better
        } else {
            Verdict::Worse
        }
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

    fn equivalent(&self, look: Look, rule: &Rule) -> bool {
        let margin = self.pairs.margin(rule.margin);
        let within = |i: Interval| -margin <= i.low && i.high <= margin;
        let interval = self.walsh.interval(1.0 - 2.0 * rule.alpha * look.share);
        interval.is_some_and(within)
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
