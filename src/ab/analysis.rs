// SPDX-License-Identifier: GPL-2.0-only
//! From runs to comparisons: the values of each variant by block, and the verdicts on them.

use super::metric::Metric;
use super::result::{FailedRun, Header, Repetition};
use super::stats::sample::mean;
use super::stats::verdict::{Compared, Judged, Step, judge};
use super::variant::{Variant, exercised};
use anyhow::Result;

/// One value of the metric per whole block: that of the variant's run in it, or of both runs if two
/// run at once. None if a run lacks the metric.
pub fn series(runs: &[Repetition], blocks: usize, variant: &str, metric: &str) -> Option<Vec<f64>> {
    let mut values = vec![Vec::new(); blocks];
    for run in runs.iter().filter(|r| r.variant == variant) {
        if let Some(block) = run.block.filter(|b| *b < blocks) {
            values[block].push(*run.values.get(metric)?);
        }
    }
    let known = |v: &Vec<f64>| (!v.is_empty()).then(|| together(v));
    values.iter().map(known).collect()
}

/// The geometric mean of the values of a block. It makes the difference of two variants the mean of
/// the two differences, so quantiles are compared and never averaged. The mean, if one is not
/// above 0.
fn together(values: &[f64]) -> f64 {
    match values {
        [alone] => *alone,
        several if several.iter().all(|v| *v > 0.0) => {
            let logarithms: Vec<f64> = several.iter().map(|v| v.ln()).collect();
            mean(&logarithms).exp()
        }
        several => mean(several),
    }
}

/// Failed runs of `variant` less those of the first one, by block.
fn more_failed(header: &Header, failed: &[FailedRun], blocks: usize, variant: &str) -> Vec<i64> {
    let mut more = vec![0; blocks];
    if failed.is_empty() {
        return more;
    }
    let order = header.order();
    for run in failed {
        let block = order.get(run.failed).and_then(|turn| turn.block);
        if let Some(more) = block.and_then(|block| more.get_mut(block)) {
            *more += i64::from(run.variants.iter().any(|v| v == variant));
            *more -= i64::from(run.variants.contains(&header.variants[0]));
        }
    }
    more
}

/// For each block, the unit of the last decimal place in any value of the metric up to that block,
/// under any variant. The source of the values shows nothing finer.
fn units(runs: &[Repetition], blocks: usize, metric: &str) -> Vec<f64> {
    let mut units = vec![1.0_f64; blocks];
    for run in runs {
        let unit = run.block.and_then(|block| units.get_mut(block));
        if let Some((unit, value)) = unit.zip(run.values.get(metric)) {
            *unit = unit.min(last_place(*value));
        }
    }
    for later in 1..blocks {
        units[later] = units[later].min(units[later - 1]);
    }
    units
}

/// Unit of the last place of the shortest decimal number that equals `value`; 1 if it is whole.
fn last_place(value: f64) -> f64 {
    let text = value.to_string();
    let places = text.split_once('.').map_or(0, |(_, behind)| behind.len());
    10_f64.powi(-(places as i32))
}

/// Number of blocks that have all their runs.
pub fn blocks(header: &Header, runs: &[Repetition]) -> usize {
    let counted = runs.iter().filter(|r| r.block.is_some()).count();
    counted / header.design().block_runs()
}

/// The comparisons: each other variant with the first, by metric. `judged` has the same order.
pub fn pairs(header: &Header) -> Result<Vec<(String, Metric)>> {
    let metrics = header.metrics()?;
    let others = header.variants[1..].iter();
    Ok(others
        .flat_map(|v| metrics.iter().map(|m| (v.clone(), m.clone())))
        .collect())
}

/// The verdicts on the runs so far. `failed`: the runs that were repeated.
pub fn judged(header: &Header, runs: &[Repetition], failed: &[FailedRun]) -> Result<Vec<Judged>> {
    let (blocks, variants) = (blocks(header, runs), header.variants()?);
    let base = &variants[0];
    let of = |variant: &str, metric: &Metric| series(runs, blocks, variant, &metric.name);
    let pairs = pairs(header)?;
    // If one of the two lacks a value, nothing is paired.
    let values: Vec<(Vec<f64>, Vec<f64>)> = pairs
        .iter()
        .map(|(variant, metric)| of(&base.name, metric).zip(of(variant, metric)))
        .map(Option::unwrap_or_default)
        .collect();
    let units: Vec<Vec<f64>> = pairs
        .iter()
        .map(|(_, metric)| units(runs, blocks, &metric.name))
        .collect();
    let failures: Vec<Vec<i64>> = pairs
        .iter()
        .map(|(variant, _)| more_failed(header, failed, blocks, variant))
        .collect();
    let moved = |variant: &Variant, counter: &str| {
        let own = runs
            .iter()
            .filter(|r| r.variant == variant.name && r.block.is_some());
        let grew = |r: &&Repetition| r.counters.get(counter).is_some_and(|n| *n > 0);
        // In more than half of the runs: other tasks on the machine also move a counter now and
        // then.
        2 * own.clone().filter(grew).count() > own.count()
    };
    let acted = |name: &str| {
        let other = variants.iter().find(|v| v.name == name);
        other.is_none_or(|other| exercised(base, other, moved))
    };
    let compared: Vec<Compared> = pairs
        .iter()
        .zip(values.iter().zip(&units))
        .zip(&failures)
        .map(
            |(((variant, metric), ((base, other), units)), failed)| Compared {
                base,
                other,
                better: metric.better,
                exercised: acted(variant),
                step: metric.step().map_or(Step::Seen(units), Step::Part),
                failed,
            },
        )
        .collect();
    Ok(judge(&compared, &header.rule))
}
