// SPDX-License-Identifier: GPL-2.0-only
//! From runs to comparisons: the values of each variant block by block, and what may be said of them.

use super::metric::Metric;
use super::result::{Header, Repetition};
use super::stats::sample::mean;
use super::stats::verdict::{Compared, Judged, judge};
use super::variant::{Variant, exercised};
use anyhow::Result;

/// Of one metric, a value for each whole block: the mean of its runs there, which are two where blocks are mirrored. None: some run has none.
pub fn series(runs: &[Repetition], blocks: usize, variant: &str, metric: &str) -> Option<Vec<f64>> {
    let mut values = vec![Vec::new(); blocks];
    for run in runs.iter().filter(|r| r.variant == variant) {
        if let Some(block) = run.block.filter(|b| *b < blocks) {
            values[block].push(*run.values.get(metric)?);
        }
    }
    let known = |v: &Vec<f64>| (!v.is_empty()).then(|| mean(v));
    values.iter().map(known).collect()
}

/// Blocks of which all runs are there.
pub fn blocks(header: &Header, runs: &[Repetition]) -> usize {
    let warm = header.warmups * header.variants.len();
    runs.len().saturating_sub(warm) / header.design().block_runs()
}

/// Each of the other variants with the first, metric by metric; `judged` has them in the same order.
pub fn pairs(header: &Header) -> Result<Vec<(String, Metric)>> {
    let metrics = header.metrics()?;
    let others = header.variants[1..].iter();
    Ok(others
        .flat_map(|v| metrics.iter().map(|m| (v.clone(), m.clone())))
        .collect())
}

/// What may be said so far.
pub fn judged(header: &Header, runs: &[Repetition]) -> Result<Vec<Judged>> {
    let (blocks, variants) = (blocks(header, runs), header.variants()?);
    let base = &variants[0];
    let of = |variant: &str, metric: &Metric| series(runs, blocks, variant, &metric.name);
    let pairs = pairs(header)?;
    // Where one of them lacks a value nothing is paired.
    let values: Vec<(Vec<f64>, Vec<f64>)> = pairs
        .iter()
        .map(|(variant, metric)| of(&base.name, metric).zip(of(variant, metric)))
        .map(Option::unwrap_or_default)
        .collect();
    let moved = |variant: &Variant, counter: &str| {
        let own = runs
            .iter()
            .filter(|r| r.variant == variant.name && r.block.is_some());
        let grew = |r: &&Repetition| r.counters.get(counter).is_some_and(|n| *n > 0);
        // Whatever else runs on the machine moves it now and then.
        2 * own.clone().filter(grew).count() > own.count()
    };
    let acted = |name: &str| {
        let other = variants.iter().find(|v| v.name == name);
        other.is_none_or(|other| exercised(base, other, moved))
    };
    let compared: Vec<Compared> = pairs
        .iter()
        .zip(&values)
        .map(|((variant, metric), (base, other))| Compared {
            base,
            other,
            better: metric.better,
            exercised: acted(variant),
            coarse: metric.step() > header.rule.margin,
        })
        .collect();
    Ok(judge(&compared, &header.rule, header.seed))
}
