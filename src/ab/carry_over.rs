// SPDX-License-Identifier: GPL-2.0-only
//! Whether a run depends on the variant of the run before it. That is tested where nothing prevents
//! it: with three variants and more that do not settle (`--unsettled`).

use super::design::Settle;
use super::result::{Header, Repetition};
use super::stats::sample::mean;
use crate::util::distributions::t_quantile;
use std::collections::BTreeMap;

/// Chance of a finding if there is nothing, for all pairs of one metric.
const ALPHA: f64 = 0.01;

/// A sentence for each metric whose runs depend on the run before.
pub fn sentences(header: &Header, runs: &[Repetition]) -> Vec<String> {
    let metrics = header.metrics.iter().map(|m| m.metric.as_str());
    let found = metrics.filter_map(|metric| Some((metric, carried_over(header, runs, metric)?)));
    let sentence = |(metric, found): (&str, Found)| {
        format!(
            "{metric} of runs after {} is {} than after {}: a run leaves something behind, which shifts all comparisons, so none has a verdict; repeat without --unsettled, or with --prepare or --pause",
            found.after,
            found.text(),
            header.variants[0],
        )
    };
    found.map(sentence).collect()
}

/// The variant whose next runs differ most from those after the first variant.
pub struct Found<'a> {
    after: &'a str,
    gap: f64,
    /// The gap is one of logarithms.
    is_ratio: bool,
}

impl Found<'_> {
    fn text(&self) -> String {
        let word = if self.gap > 0.0 { "higher" } else { "lower" };
        match self.is_ratio {
            true => format!("{:.1} % {word}", 100.0 * self.gap.exp_m1().abs()),
            false => format!("{:.3} {word}", self.gap.abs()),
        }
    }
}

/// None: no dependence is seen, or the runs settle.
pub fn carried_over<'a>(
    header: &'a Header,
    runs: &[Repetition],
    metric: &str,
) -> Option<Found<'a>> {
    if header.settle != Settle::Nowhere || header.boots.is_some() {
        return None;
    }
    let values = runs.iter().map(|run| run.values.get(metric));
    let is_ratio = values.clone().all(|value| value.is_some_and(|v| *v > 0.0));
    let left = leftovers(header, runs, metric, is_ratio)?;
    let tests = left.len().checked_sub(1)? as f64;
    let (_, after_base) = left.first_key_value()?;
    let others = left.iter().skip(1);
    let far = others.filter(|(_, after)| differ(after_base, after, ALPHA / tests));
    let gaps = far.map(|(other, after)| (*other, mean(after) - mean(after_base)));
    let (other, gap) = gaps.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    Some(Found {
        after: &header.variants[other],
        gap,
        is_ratio,
    })
}

/// What is left of each counted run without its block and its variant, by the variant of the run
/// before. None: a run lacks the metric.
fn leftovers(
    header: &Header,
    runs: &[Repetition],
    metric: &str,
    is_ratio: bool,
) -> Option<BTreeMap<usize, Vec<f64>>> {
    let at = |variant: &str| header.variants.iter().position(|v| v == variant);
    let mut of_block: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut known = Vec::new();
    for pair in runs.windows(2) {
        let (before, run) = (at(&pair[0].variant)?, &pair[1]);
        let Some(block) = run.block else { continue };
        let value = *run.values.get(metric)?;
        let value = if is_ratio { value.ln() } else { value };
        of_block.entry(block).or_default().push(value);
        known.push((before, at(&run.variant)?, block, value));
    }
    let whole = |block: &usize| of_block[block].len() == header.variants.len();
    known.retain(|(_, _, block, _)| whole(block));
    let mut of_variant: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (_, variant, block, value) in &mut known {
        *value -= mean(&of_block[block]);
        of_variant.entry(*variant).or_default().push(*value);
    }
    let mut left: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (before, variant, _, value) in known {
        let rest = value - mean(&of_variant[&variant]);
        left.entry(before).or_default().push(rest);
    }
    Some(left)
}

/// Welch's test, with the degrees of freedom of the smaller sample.
fn differ(one: &[f64], other: &[f64], alpha: f64) -> bool {
    let n = one.len().min(other.len());
    let error = |values: &[f64]| {
        let center = mean(values);
        let squares: f64 = values.iter().map(|v| (v - center).powi(2)).sum();
        squares / (values.len() as f64 * (values.len() as f64 - 1.0))
    };
    let Some(bound) = n
        .checked_sub(1)
        .and_then(|f| t_quantile(f, 1.0 - alpha / 2.0))
    else {
        return false;
    };
    (mean(one) - mean(other)).abs() > bound * (error(one) + error(other)).sqrt()
}
