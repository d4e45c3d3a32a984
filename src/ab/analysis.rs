// SPDX-License-Identifier: GPL-2.0-only
//! From runs to comparisons: the values of each variant by block, and the verdicts on them.

use super::metric::Metric;
use super::result::{FailedRun, Header, Repetition};
use super::stats::sample::mean;
use super::stats::verdict::{Compared, Judged, Step, judge};
use super::variant::{Variant, exercised};
use anyhow::Result;

/// One value of the metric per whole block: that of the variant's run in it, or of all runs of its
/// boot. None if a run lacks the metric.
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

/// The geometric mean of the values of a block, so that differences are of logarithms here too. The
/// mean, if one is not above 0.
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
        // A run that does not count is for the block that follows it.
        let later = order.get(run.failed..).unwrap_or_default();
        let block = later.iter().find_map(|turn| turn.block);
        if let Some(more) = block.and_then(|block| more.get_mut(block)) {
            *more += i64::from(run.variants[0] == variant);
            *more -= i64::from(run.variants[0] == header.variants[0]);
        }
    }
    more
}

/// For each block, the step of the metric in its values up to that block, under any variant: the
/// largest power of ten that divides them all, or the least difference between two of them if that
/// is more. The source of the values shows nothing finer.
fn units(runs: &[Repetition], blocks: usize, metric: &str) -> Vec<f64> {
    let mut by_block = vec![Vec::new(); blocks];
    for run in runs {
        let values = run.block.and_then(|block| by_block.get_mut(block));
        if let Some((values, value)) = values.zip(run.values.get(metric)) {
            values.push(*value);
        }
    }
    let (mut seen, mut place, mut gap) = (Vec::<f64>::new(), f64::INFINITY, f64::INFINITY);
    let mut step = |values: Vec<f64>| {
        for value in values {
            place = place.min(last_place(value));
            let at = seen.partition_point(|other| *other < value);
            let near = [at.checked_sub(1), Some(at)].into_iter().flatten();
            let near = near
                .filter_map(|at| seen.get(at))
                .map(|other| (value - other).abs());
            gap = near.filter(|gap| *gap > 0.0).fold(gap, f64::min);
            if seen.get(at) != Some(&value) {
                seen.insert(at, value);
            }
        }
        let known = [place, gap].into_iter().filter(|step| step.is_finite());
        known.reduce(f64::max).unwrap_or(1.0)
    };
    by_block.into_iter().map(&mut step).collect()
}

/// Unit of the last place that is not 0 of the shortest decimal number that equals `value`.
/// Infinite for 0.
fn last_place(value: f64) -> f64 {
    let text = value.to_string();
    let places = match text.split_once('.') {
        Some((_, behind)) => -(behind.len() as i32),
        None => (text.len() - text.trim_end_matches('0').len()) as i32,
    };
    match value == 0.0 {
        true => f64::INFINITY,
        false => 10_f64.powi(places),
    }
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
                step: metric.step(header.tick_s()).unwrap_or(Step::Seen(units)),
                failed,
            },
        )
        .collect();
    Ok(judge(&compared, &header.rule))
}
