// SPDX-License-Identifier: GPL-2.0-only
//! Whether a run depends on the variant of the run before it. With three variants and more, nobody
//! can make all runs of a block follow the same one, so it is tested.

use super::design::Settle;
use super::result::{Header, Repetition};
use super::stats::sample::mean;
use crate::util::distributions::t_quantile;
use std::collections::BTreeMap;

/// Chance of a warning if there is nothing, for all pairs of one metric.
const ALPHA: f64 = 0.01;

/// A sentence for each metric whose runs depend on the run before.
pub fn carried_over(header: &Header, runs: &[Repetition]) -> Vec<String> {
    if header.settle != Settle::Nowhere || header.boots.is_some() {
        return Vec::new();
    }
    let metrics = header.metrics.iter().map(|m| m.metric.as_str());
    metrics
        .filter_map(|metric| sentence(header, runs, metric))
        .collect()
}

fn sentence(header: &Header, runs: &[Repetition], metric: &str) -> Option<String> {
    let left = leftovers(header, runs, metric)?;
    let tests = left.len().checked_sub(1)? as f64;
    let (base, after_base) = left.first_key_value()?;
    let others = left.iter().skip(1);
    let far = others.filter(|(_, after)| differ(after_base, after, ALPHA / tests));
    let gap = |after: &Vec<f64>| mean(after) - mean(after_base);
    let (other, after) = far.max_by(|a, b| gap(a.1).abs().total_cmp(&gap(b.1).abs()))?;
    Some(format!(
        "{metric} of runs after {} is {:.1} % {} than after {}: a run leaves something behind, and this shifts all comparisons; repeat with --settle, or with --prepare or --pause",
        header.variants[*other],
        100.0 * gap(after).exp_m1().abs(),
        if gap(after) > 0.0 { "higher" } else { "lower" },
        header.variants[*base],
    ))
}

/// What is left of the logarithm of each counted run without its block and its variant, by the
/// variant of the run before. None: a value has no logarithm.
fn leftovers(
    header: &Header,
    runs: &[Repetition],
    metric: &str,
) -> Option<BTreeMap<usize, Vec<f64>>> {
    let at = |variant: &str| header.variants.iter().position(|v| v == variant);
    let mut of_block: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut known = Vec::new();
    for pair in runs.windows(2) {
        let (before, run) = (at(&pair[0].variant)?, &pair[1]);
        let Some(block) = run.block else { continue };
        let value = Some(*run.values.get(metric)?).filter(|v| *v > 0.0)?.ln();
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
