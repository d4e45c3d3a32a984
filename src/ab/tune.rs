// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost tune`: which features and tunables suit a workload. A pass tries each change by
//! itself, a pruning the best three combined. Neither claims anything. The best is then compared
//! with the base on new runs, so the error of that comparison is the error of the whole.

use super::cpus::Cpus;
use super::report::{Report, VariantReport, shift, verdict_name};
use super::result::{Header, Recorded};
use super::stats::plan::Plan;
use super::stats::verdict::{Direction, Judged, Verdict};
use super::variant::{Kind, Scope, Variant, options};
use crate::policy::features::{
    CLAIM_TTL, DELAY, FEATURES, FITS_MARGIN, FITS_RT, MIGRATION_COST, MIN_SLICE, SLICE, Tunable,
    feature, parent_of,
};
use anyhow::{Context, Result, bail};
use serde::Serialize;

/// Runs of each variant in the pass and in the pruning, after one.
const RUNS: usize = 6;
/// Number of changes that are combined.
const LEFT: usize = 3;
pub const PASS: &str = "pass";

/// A variant that was tried. It gets no verdict, since many were.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    pub step: &'static str,
    pub variant: String,
    /// Of its median, in percent of the base's; in its unit if that is 0. Negative is better.
    pub effect: f64,
    /// False: its change had no effect, and is dropped.
    pub acted: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Tuned {
    pub base: String,
    pub metric: String,
    /// The best of each step first.
    pub tried: Vec<Tried>,
    /// The best, compared with the base on new runs. None: nothing was better in the search.
    pub best: Option<(String, Judged)>,
}

/// Makes or resumes the runs of a step.
pub type Run<'a> = &'a mut dyn FnMut(&Header, &'static str) -> Result<Recorded>;

/// Tunables that are searched, with the value to try; None: half and twice the base's. Not
/// `rescue-us`, a safety net, nor `freq-threshold`, which is learnt for each CPU.
const TUNED: [(&Tunable, Option<u32>); 7] = [
    (&SLICE, None),
    (&MIN_SLICE, None),
    (&CLAIM_TTL, None),
    (&MIGRATION_COST, None),
    (&DELAY, None),
    (&FITS_MARGIN, Some(20)),
    (&FITS_RT, Some(1)),
];

/// The base with one change each, as far as this scope allows it. A change switches a feature, or
/// sets a tunable that acts in the base and that the base does not set.
pub fn candidates(base: &str, cpus: u32, scope: Scope) -> Result<Vec<String>> {
    let parsed = Variant::parse(base)?;
    scope.check(std::slice::from_ref(&parsed))?;
    let (Kind::Roost(roost), Cpus::All) = (&parsed.kind, &parsed.cpus) else {
        bail!("--base {base}: tune changes a preset or a profile on all CPUs, as --base mainline");
    };
    let (change, settings) = roost.as_ref();
    let features = FEATURES.iter().map(|feature| {
        let on = settings.features.has(feature.bit);
        format!("{}={}", feature.name, if on { "off" } else { "on" })
    });
    let acts = |row: &Tunable| feature(row.parent).is_none_or(|f| settings.features.has(f.bit));
    let searched = TUNED
        .iter()
        .filter(|(row, _)| acts(row) && !change.set.contains_key(row.name));
    let tunables = searched.flat_map(|(row, other)| {
        let own = settings.value(row, cpus);
        let mut values = other.map_or(vec![own / 2, own.saturating_mul(2)], |value| vec![value]);
        values.retain(|value| *value != own);
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

/// `confirm`: header of the last comparison, with one metric. Its only variant is the base.
pub fn tune(confirm: &Header, candidates: &[String], run: Run) -> Result<Tuned> {
    let mut compare = |variants: &[String], plan: Plan, step: &'static str| {
        let mut header = confirm.clone();
        header.variants.extend_from_slice(variants);
        header.rule.plan = plan;
        header.even = step != "confirm";
        run(&header, step)
    };
    let mut tried = Vec::new();
    let mut better = |variants: &[String], step: &'static str| {
        let recorded = compare(variants, Plan::Fixed(RUNS), step)?;
        let mut all = tried_in(step, &Report::new(&recorded)?);
        all.sort_by(|a, b| b.acted.cmp(&a.acted).then(a.effect.total_cmp(&b.effect)));
        tried.extend_from_slice(&all);
        all.retain(|tried| tried.acted && tried.effect < 0.0);
        anyhow::Ok(all.into_iter().map(|tried| tried.variant))
    };
    let base = &confirm.variants[0];
    let good: Vec<String> = better(candidates, PASS)?.take(LEFT).collect();
    let best = match combined(base, &good).as_slice() {
        [] | [_] => good.into_iter().next(),
        several => better(several, "prune")?.next(),
    };
    let best = best.map(|best| {
        let recorded = compare(std::slice::from_ref(&best), confirm.rule.plan, "confirm")?;
        let mut metric = Report::new(&recorded)?.metrics.swap_remove(0);
        let judged = metric.variants.swap_remove(1).judged;
        anyhow::Ok((best, judged.context("it was compared")?))
    });
    Ok(Tuned {
        best: best.transpose()?,
        base: base.clone(),
        metric: confirm.metrics[0].metric.clone(),
        tried,
    })
}

/// The first change, the first two combined, and so on, with one change of each feature: a tunable
/// has one value, and does not act with its feature off.
fn combined(base: &str, good: &[String]) -> Vec<String> {
    let (mut all, mut features): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for variant in good {
        let change = variant.strip_prefix(base).unwrap_or_default();
        let name = change.split(['+', '=']).nth(1).unwrap_or_default();
        let of = parent_of(name).unwrap_or(name);
        let next = format!("{}{change}", all.last().map_or(base, String::as_str));
        if !features.contains(&of) && Variant::parse(&next).is_ok() {
            features.push(of);
            all.push(next);
        }
    }
    all
}

fn tried_in(step: &'static str, report: &Report) -> Vec<Tried> {
    let (base, others) = report.metrics[0].variants.split_at(1);
    let unit = match base[0].median.abs() {
        0.0 => 1.0,
        size => size / 100.0,
    };
    let sign = match report.metrics[0].better {
        Direction::Lower => 1.0,
        Direction::Higher => -1.0,
    };
    let acted = |judged: &Judged| judged.verdict != Verdict::NotExercised;
    let one = |other: &VariantReport| Tried {
        step,
        variant: other.variant.clone(),
        effect: sign * (other.median - base[0].median) / unit,
        acted: other.judged.as_ref().is_some_and(acted),
    };
    others.iter().map(one).collect()
}

impl Tuned {
    /// The best variant, if its verdict is `better` by more than the margin.
    pub fn found(&self) -> Option<&str> {
        let (variant, judged) = self.best.as_ref()?;
        let found = judged.verdict == Verdict::Better && !judged.within_margin;
        found.then_some(variant)
    }

    pub fn text(&self) -> Result<String> {
        let (base, metric, all) = (&self.base, &self.metric, self.tried.len());
        let mut text = format!(
            "Changes of {base}, by {metric}, in %; less than 0 is better. {all} were tried, which proves nothing; \
             repeating the search until it finds something is multiple testing:\n"
        );
        for tried in &self.tried {
            let idle = if tried.acted { "" } else { ", never acted" };
            let (change, effect, step) = (&tried.variant, tried.effect, tried.step);
            text += &format!("  {effect:8.2}  {change} ({step}{idle})\n");
        }
        let Some((best, judged)) = &self.best else {
            return Ok(text + &format!("No change was better than {base}.\n"));
        };
        let (told, change) = (verdict_name(judged.verdict), shift(judged, ""));
        let less = ["", ", which is less than the margin"][usize::from(judged.within_margin)];
        text += &format!("Compared with new runs: {best} is {told}: {change}{less}\n");
        Ok(match (self.found(), Variant::parse(best)?.kind) {
            (Some(_), Kind::Roost(roost)) => {
                text + &format!("Its options: {}\n", options(&roost.0).join(" "))
            }
            _ => text + &format!("So stay with {base}.\n"),
        })
    }
}
