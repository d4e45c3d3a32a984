// SPDX-License-Identifier: GPL-2.0-only
//! From runs to comparisons: the turns of each two variants, and the verdicts on them.

use super::metric::Metric;
use super::result::{Header, Recorded, Repetition};
use super::stats::sample::mean;
use super::stats::turns::Point;
use super::stats::verdict::{Compared, Judged, judge};
use super::variant::{Variant, exercised};
use anyhow::Result;

/// The runs of these two variants that count.
fn counted<'a>(recorded: &'a Recorded, base: &str, other: &str) -> Vec<&'a Repetition> {
    let of_both = |r: &&Repetition| r.turn.is_some() && (r.variant == base || r.variant == other);
    recorded.runs.iter().filter(of_both).collect()
}

/// The numbers of these runs, with their turns.
fn numbers(runs: &[&Repetition], metric: &str) -> Vec<(usize, f64)> {
    let number = |r: &&Repetition| Some((r.turn?, *r.values.get(metric)?));
    runs.iter().filter_map(number).collect()
}

/// The turns of these two variants. The value of a turn is that of its run, or of all runs of its
/// boot. Empty if a run lacks the metric.
fn points(recorded: &Recorded, runs: &[&Repetition], other: &str, metric: &str) -> Vec<Point> {
    let point = |runs: &[&Repetition]| {
        let values = runs.iter().map(|r| r.values.get(metric).copied());
        let turn = runs[0].turn?;
        Some(Point {
            turn,
            value: together(&values.collect::<Option<Vec<f64>>>()?),
            other: runs[0].variant == other,
            drawn: runs[0].drawn,
            failed: recorded.failed_in(turn),
        })
    };
    let turns = runs.chunk_by(|a, b| a.turn == b.turn);
    turns.map(point).collect::<Option<_>>().unwrap_or_default()
}

/// The geometric mean of the values of a boot, so that differences are of logarithms here too. The
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

/// The comparisons: each other variant with the first, by metric. `judged` has the same order.
pub fn pairs(header: &Header) -> Result<Vec<(String, Metric)>> {
    let metrics = header.metrics()?;
    let others = header.variants[1..].iter();
    Ok(others
        .flat_map(|v| metrics.iter().map(|m| (v.clone(), m.clone())))
        .collect())
}

/// True if what differs between the variant and the first one acted.
fn acted(recorded: &Recorded, base: &Variant, other: Option<&Variant>) -> bool {
    let moved = |variant: &Variant, counter: &str| {
        let counted = recorded.runs.iter().filter(|r| r.turn.is_some());
        let own = counted.filter(|r| r.variant == variant.name);
        let grew = |r: &&Repetition| r.counters.get(counter).is_some_and(|n| *n > 0);
        // In more than half of the runs: other tasks on the machine also move a counter now and
        // then.
        2 * own.clone().filter(grew).count() > own.count()
    };
    other.is_none_or(|other| exercised(base, other, moved))
}

/// The verdicts on the runs so far.
pub fn judged(recorded: &Recorded) -> Result<Vec<Judged>> {
    let header = &recorded.header;
    let variants = header.variants()?;
    let base = &variants[0];
    let pairs = pairs(header)?;
    let of = |(variant, metric): &(String, Metric)| {
        let runs = counted(recorded, &base.name, variant);
        let points = points(recorded, &runs, variant, &metric.name);
        (points, numbers(&runs, &metric.name))
    };
    let points: Vec<_> = pairs.iter().map(of).collect();
    let compared: Vec<Compared> = pairs
        .iter()
        .zip(&points)
        .map(|((variant, metric), (points, numbers))| Compared {
            points,
            numbers,
            better: metric.better,
            exercised: acted(recorded, base, variants.iter().find(|v| v.name == *variant)),
            step: metric.step(header.tick_s()),
        })
        .collect();
    let rounds = recorded.rounds();
    Ok(judge(&compared, rounds, variants.len(), &header.rule))
}
