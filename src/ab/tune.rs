// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost tune`: which features and tunables suit a workload. Search rounds claim nothing. Each
//! keeps the better half of the candidates (successive halving, Jamieson and Talwalkar 2016).
//!
//! What remains is combined and compared with the base on new runs, by the usual rule. Earlier runs
//! do not count there, so the error of that comparison is the error of the whole.

use super::analysis;
use super::cpus::Cpus;
use super::design::{Design, Settle};
use super::lasting::Lasting;
use super::metric::Metric;
use super::result::{Header, Recorded};
use super::stats::pairs::{Pairs, Scale};
use super::stats::plan::Plan;
use super::stats::shift::Walsh;
use super::stats::verdict::{Direction, Judged, Verdict};
use super::variant::{Kind, Scope, Variant};
use crate::policy::features::{
    CLAIM_TTL, DELAY, FEATURES, FITS_MARGIN, FITS_RT, MIGRATION_COST, MIN_SLICE, SLICE, Tunable,
    feature, known_tunable,
};
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Blocks of each round: the fewest that allow any verdict.
const BLOCKS: usize = 6;
/// Number of candidates that are combined.
const LEFT: usize = 3;
/// The name of the last comparison.
const CONFIRM: &str = "confirm";

/// A variant that was tried in the search, and its effect there. It gets no verdict, since many
/// were tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    pub variant: String,
    /// Difference from the base in percent, or in the metric's unit if a value is 0 or less.
    /// Negative is better.
    pub effect: f64,
    pub round: usize,
    /// The change had an effect there. If not, it is dropped.
    pub acted: bool,
}

/// The outcome of a search.
#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    pub base: String,
    pub command: Vec<String>,
    pub scope: Scope,
    pub metric: String,
    /// The last round of each, latest round first. Within a round the best first, and those that
    /// never acted last.
    pub tried: Vec<Tried>,
    /// The best, compared with the base on new runs. None: nothing was better in the search.
    pub best: Option<(String, Judged)>,
}

/// Result file of a round.
pub fn file(folder: &Path, round: &str) -> PathBuf {
    folder.join(round).with_extension("jsonl")
}

/// The name of a round, from 1.
pub fn round(number: usize) -> String {
    format!("round-{number}")
}

/// Most candidates that stay after a round. At least as many as are combined.
fn half(candidates: usize) -> usize {
    candidates.div_ceil(2).max(LEFT)
}

/// Rounds claim nothing, so they spend no runs on settling. The last comparison has two variants.
fn settle(variants: usize) -> Settle {
    match variants {
        0..=2 => Settle::usual(variants),
        _ => Settle::Nowhere,
    }
}

/// The names of all rounds and of the last comparison, with the most runs that each can have.
pub fn rounds(confirm: &Header, candidates: usize) -> Vec<(String, usize)> {
    let runs = |variants: usize, plan: Plan| {
        let design = Design {
            variants,
            settle: settle(variants),
            ..confirm.design()
        };
        design.runs(plan.max())
    };
    let searched = std::iter::successors(Some(candidates), |n| (*n > LEFT).then(|| half(*n)));
    let rounds = searched.filter(|n| *n > 1).zip(1..);
    let rounds = rounds.map(|(n, at)| (round(at), runs(n + 1, Plan::Fixed(BLOCKS))));
    let last = (CONFIRM.to_string(), runs(2, confirm.rule.plan));
    rounds.chain([last]).collect()
}

/// Makes or resumes the runs of a comparison. The name is the round's.
pub type Run<'a> = &'a mut dyn FnMut(&Header, &str) -> Result<Recorded>;

/// The values of a tunable to try.
enum Others {
    HalfAndTwice,
    /// A value from the source of its feature.
    Of(u32),
}

/// Tunables that are searched. Not `rescue-us`, a safety net, nor `freq-threshold`, which is learnt
/// for each CPU.
const TUNED: [(&Tunable, Others); 7] = [
    (&SLICE, Others::HalfAndTwice),
    (&MIN_SLICE, Others::HalfAndTwice),
    (&CLAIM_TTL, Others::HalfAndTwice),
    (&MIGRATION_COST, Others::HalfAndTwice),
    (&DELAY, Others::HalfAndTwice),
    (&FITS_MARGIN, Others::Of(20)),
    (&FITS_RT, Others::Of(1)),
];

impl Others {
    fn values(&self, own: u32) -> Vec<u32> {
        let mut values = match self {
            Others::HalfAndTwice => vec![own / 2, own.saturating_mul(2)],
            Others::Of(value) => vec![*value],
        };
        values.retain(|value| *value != own);
        values
    }
}

/// The base with one change each, as far as this scope allows it. A change switches a feature, or
/// sets a tunable that acts in the base and that the base does not set.
pub fn candidates(base: &str, cpus: u32, scope: Scope) -> Result<Vec<String>> {
    let parsed = Variant::parse(base)?;
    scope.check(std::slice::from_ref(&parsed))?;
    ensure!(
        parsed.cpus == Cpus::All,
        "{base} sets CPUs, which tune does not search: restrict the command to them, as by taskset"
    );
    let Kind::Roost(roost) = &parsed.kind else {
        bail!("{base} has no features: give a preset, as --base mainline");
    };
    let (change, settings) = roost.as_ref();
    let features = FEATURES.iter().map(|feature| {
        let on = settings.features.has(feature.bit);
        format!("{}={}", feature.name, if on { "off" } else { "on" })
    });
    let acts = |row: &Tunable| {
        let parent = feature(row.parent);
        parent.is_none_or(|parent| settings.features.has(parent.bit))
    };
    let searched = TUNED
        .iter()
        .filter(|(row, _)| acts(row) && !change.set.contains_key(row.name));
    let tunables = searched.flat_map(|(row, others)| {
        let values = others.values(settings.value(row, cpus));
        values.into_iter().map(|v| format!("{}={v}", row.name))
    });
    let all = features.chain(tunables).map(|c| format!("{base}+{c}"));
    // Leaves out sub-switches without their feature, and values out of range.
    let can_be = |name: &String| {
        let variant = Variant::parse(name);
        variant.is_ok_and(|v| scope.check(&[parsed.clone(), v]).is_ok())
    };
    Ok(all.filter(can_be).collect())
}

/// `confirm`: header of the last comparison. Its only variant is the base, its plan is the last
/// one's.
pub fn tune(confirm: &Header, candidates: Vec<String>, run: Run) -> Result<Tuned> {
    ensure!(
        confirm.metrics.len() == 1,
        "tune ranks by a single metric: give --metric once"
    );
    let mut search = Search {
        base: confirm.variants[0].clone(),
        confirm,
        round: 0,
        tried: Vec::new(),
        run,
    };
    let mut left = candidates;
    while left.len() > LEFT {
        let half = half(left.len());
        left = search.better(left)?;
        left.truncate(half);
    }
    let together = search.together(&left)?;
    let best = match together.len() {
        0 | 1 => together.into_iter().next(),
        _ => search.better(together)?.into_iter().next(),
    };
    let best = best.map(|best| search.confirmed(best)).transpose()?;
    let mut tried = search.tried;
    tried.sort_by(|a, b| {
        let order = b.round.cmp(&a.round).then(b.acted.cmp(&a.acted));
        order.then(a.effect.total_cmp(&b.effect))
    });
    Ok(Tuned {
        base: confirm.variants[0].clone(),
        command: confirm.command.clone(),
        scope: confirm.scope,
        metric: confirm.metrics[0].metric.clone(),
        tried,
        best,
    })
}

struct Search<'a> {
    base: String,
    confirm: &'a Header,
    round: usize,
    tried: Vec<Tried>,
    run: Run<'a>,
}

impl Search<'_> {
    fn judged(
        &mut self,
        variants: &[String],
        plan: Plan,
        name: &str,
    ) -> Result<(Recorded, Vec<Judged>)> {
        let mut header = self.confirm.clone();
        header.variants.extend_from_slice(variants);
        header.rule.plan = plan;
        header.settle = settle(header.variants.len());
        let recorded = (self.run)(&header, name)?;
        let judged = analysis::judged(&recorded.header, &recorded.runs, &recorded.failed)?;
        Ok((recorded, judged))
    }

    /// Runs a round. Returns the variants that acted and were better than the base, best first.
    fn better(&mut self, variants: Vec<String>) -> Result<Vec<String>> {
        self.round += 1;
        let name = round(self.round);
        let (recorded, judged) = self.judged(&variants, Plan::Fixed(BLOCKS), &name)?;
        let values = effects(&recorded, &judged);
        let mut round: Vec<Tried> = variants
            .into_iter()
            .zip(judged.iter().zip(values))
            .map(|(variant, (judged, effect))| Tried {
                variant,
                effect,
                round: self.round,
                acted: judged.verdict != Verdict::NotExercised,
            })
            .collect();
        round.sort_by(|a, b| a.effect.total_cmp(&b.effect));
        self.tried
            .retain(|t| round.iter().all(|r| r.variant != t.variant));
        self.tried.extend_from_slice(&round);
        round.retain(|tried| tried.acted && tried.effect < 0.0);
        Ok(round.into_iter().map(|tried| tried.variant).collect())
    }

    /// The first change, the first two combined, and so on. Skips changes that exclude each other:
    /// a tunable has one value.
    fn together(&self, left: &[String]) -> Result<Vec<String>> {
        let mut all: Vec<String> = Vec::new();
        for variant in left {
            let change = variant.strip_prefix(&self.base).unwrap_or_default();
            let before = all.last().unwrap_or(&self.base);
            let of = change.split('=').next().unwrap_or_default();
            if before.contains(&format!("{of}=")) {
                continue;
            }
            let next = format!("{before}{change}");
            all.extend(self.acts(&next)?.then_some(next));
        }
        Ok(all)
    }

    /// True if the variant is valid, and no changed tunable or sub-switch has its feature off.
    fn acts(&self, variant: &str) -> Result<bool> {
        let Ok(parsed) = Variant::parse(variant) else {
            return Ok(false);
        };
        let Kind::Roost(roost) = &parsed.kind else {
            bail!("{variant} has no features");
        };
        let changes = variant.strip_prefix(&self.base).unwrap_or_default();
        let idle = |change: &str| {
            let name = change.split('=').next().unwrap_or_default();
            let tunable = known_tunable(name).map(|row| row.parent);
            let parent = tunable.or(feature(name).map(|row| row.parent));
            let parent = parent.and_then(feature);
            parent.is_some_and(|parent| !roost.1.features.has(parent.bit))
        };
        Ok(!changes.split('+').any(idle))
    }

    fn confirmed(&mut self, best: String) -> Result<(String, Judged)> {
        let plan = self.confirm.rule.plan;
        let (_, judged) = self.judged(std::slice::from_ref(&best), plan, CONFIRM)?;
        let judged = judged.into_iter().next().context("it was compared")?;
        Ok((best, judged))
    }
}

/// The effect of each variant of a round; negative is better. All are on one scale, so they can be
/// sorted: percent, or the metric's unit if some value is 0 or less.
fn effects(recorded: &Recorded, judged: &[Judged]) -> Vec<f64> {
    let (header, runs) = (&recorded.header, &recorded.runs);
    let asked = &header.metrics[0];
    let blocks = analysis::blocks(header, runs);
    let of = |variant: &str| analysis::series(runs, blocks, variant, &asked.metric);
    let base = of(&header.variants[0]);
    let difference = |variant: &str| {
        let both = base.as_ref().zip(of(variant));
        both.map_or(f64::NAN, |(base, other)| {
            let pairs = Pairs::on(Scale::Difference, base, &other);
            Walsh::new(&pairs.differences).estimate()
        })
    };
    let ratios = judged.iter().all(|judged| judged.scale == Scale::Ratio);
    let each = header.variants[1..].iter().zip(judged);
    let value = |(variant, judged): (&String, &Judged)| match ratios {
        true => 100.0 * (judged.effect.value - 1.0),
        false => difference(variant),
    };
    let values = each.map(value);
    match asked.better {
        Direction::Lower => values.collect(),
        Direction::Higher => values.map(|value| -value).collect(),
    }
}

impl Tuned {
    /// The best variant, if its verdict is `better`.
    pub fn found(&self) -> Option<&str> {
        let best = self.best.as_ref();
        let best = best.filter(|(_, judged)| judged.verdict == Verdict::Better);
        best.map(|(variant, _)| variant.as_str())
    }

    fn unit(&self) -> &'static str {
        let metric = Metric::parse(&self.metric, Direction::Lower);
        metric.map_or("", |metric| metric.unit())
    }

    /// How to keep what was found; None: nothing was found.
    pub fn lasting(&self) -> Result<Option<Lasting>> {
        let lasting = |found| Lasting::new(&self.base, found, self.scope, &self.command);
        self.found().map(lasting).transpose()
    }

    /// The whole outcome, for JSON.
    pub fn whole(&self) -> Result<impl Serialize + '_> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            tuned: &'a Tuned,
            lasting: Option<Lasting>,
        }
        let lasting = self.lasting()?;
        Ok(Whole {
            tuned: self,
            lasting,
        })
    }

    pub fn text(&self) -> Result<String> {
        let mut text = format!(
            "Changes of {}, by {} of '{}'; less than 0 is better, in % of {} (in its unit where a value is 0 or less).\n\
             {} were tried on the way, which proves nothing; repeating the search until it finds something is multiple testing:\n",
            self.base,
            self.metric,
            self.command.join(" "),
            self.base,
            self.tried.len()
        );
        for tried in &self.tried {
            let change = tried.variant.strip_prefix(&self.base);
            let change = change.unwrap_or(&tried.variant).trim_start_matches('+');
            text += &match tried.acted {
                true => format!("  {:8.2}  {change} (round {})\n", tried.effect, tried.round),
                false => format!(
                    "  {:>8}  {change} (round {}, never acted)\n",
                    "-", tried.round
                ),
            };
        }
        let Some((best, judged)) = &self.best else {
            return Ok(text + &format!("No change was better than {}.\n", self.base));
        };
        text += &format!(
            "Compared with new runs, {} blocks: {best} is {}: {}, p {:.4}\n",
            judged.blocks,
            super::report::verdict_name(judged.verdict),
            super::report::effect(judged, self.unit()),
            judged.p_adjusted
        );
        Ok(text
            + &match self.lasting()? {
                Some(lasting) => lasting.text(),
                None => format!("So stay with {}.\n", self.base),
            })
    }
}
