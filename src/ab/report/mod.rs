// SPDX-License-Identifier: GPL-2.0-only
//! The result of a comparison as data, which is also its JSON. It is shown by `text` on a terminal,
//! and by `lkml` for a mailing list. `words` has the phrases that both share.

pub mod lkml;
pub mod text;
mod words;

pub use words::*;

use super::analysis;
use super::boot::Booted;
use super::boots::interrupted;
use super::condition::warnings;
use super::result::{Header, Recorded, Repetition};
use super::stats::sample::{cv, mean, median, outliers};
use super::stats::verdict::{Direction, Judged, Verdict};
use anyhow::Result;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Counters are shown if their medians differ by this part of the largest, or more.
const MOVED: f64 = 0.1;

/// By name, in the order of the variants; None if there is no value.
type Medians = BTreeMap<String, Vec<Option<f64>>>;

#[derive(Clone, Debug, Serialize)]
pub struct Report<'a> {
    pub plan: &'a Header,
    /// Whole rounds of runs that count.
    pub rounds: usize,
    /// The metrics that were asked for, with verdicts.
    pub metrics: Vec<MetricReport>,
    /// Medians of other measured metrics, by name, in the order of the variants.
    pub also: Medians,
    /// Medians per run of the scheduler's counters that differ, in the same order.
    pub counters: Medians,
    /// Number of failed runs by variant, without warm-ups. They were repeated.
    pub failed: BTreeMap<String, usize>,
    /// What spoils the comparison.
    pub warnings: Vec<String>,
    /// Governor, boost and limits of frequencies, as they were in counted runs.
    #[serde(skip)]
    modes: BTreeSet<&'a str>,
    /// The first boot of each variant, if a turn is a boot.
    #[serde(skip)]
    boots: BTreeMap<&'a str, &'a Booted>,
}

#[derive(Clone, Debug, Serialize)]
pub struct MetricReport {
    pub metric: String,
    pub unit: &'static str,
    pub better: Direction,
    pub variants: Vec<VariantReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct VariantReport {
    pub variant: String,
    pub median: f64,
    pub mean: f64,
    /// Standard deviation as a part of the mean. None: there are fewer than two runs, or it is 0.
    pub cv: Option<f64>,
    pub min: f64,
    pub max: f64,
    /// Its runs with their numbers, in order, without warm-ups.
    pub runs: Vec<(usize, f64)>,
    /// Indices into `runs` of outliers. They count.
    pub outliers: Vec<usize>,
    /// None: the others are compared with this one.
    pub judged: Option<Judged>,
}

impl Report<'_> {
    pub fn new(recorded: &Recorded) -> Result<Report<'_>> {
        let (header, runs) = (&recorded.header, recorded.runs.as_slice());
        let judged = analysis::judged(recorded)?;
        let of: Vec<(String, String)> = analysis::pairs(header)?
            .into_iter()
            .map(|(variant, metric)| (variant, metric.name))
            .collect();
        let found = |variant: &str, metric: &str| {
            let at = of.iter().position(|(v, m)| v == variant && m == metric);
            at.map(|at| judged[at].clone())
        };
        let metrics = header.metrics()?.into_iter().map(|metric| MetricReport {
            variants: header
                .variants
                .iter()
                .map(|v| VariantReport::new(runs, v, &metric.name, found(v, &metric.name)))
                .collect(),
            unit: metric.unit(),
            better: metric.better,
            metric: metric.name,
        });
        let asked: BTreeSet<&str> = header.metrics.iter().map(|m| m.metric.as_str()).collect();
        let mut also = medians(header, runs, |r| r.values.clone());
        also.retain(|name, _| !asked.contains(name.as_str()));
        let mut counters = medians(header, runs, |r| {
            let as_number = |(name, count): (&String, &u64)| (name.clone(), *count as f64);
            r.counters.iter().map(as_number).collect()
        });
        counters.retain(|_, medians| differ(medians));
        let failed = failed(recorded);
        let mut warned = warnings(counted(runs).map(|r| (r.variant.as_str(), &r.seen)));
        warned.extend(failed.iter().map(|(variant, n)| {
            format!("{n} of the runs under {variant} failed and were repeated; a verdict must also hold if they count as the worst")
        }));
        warned.extend(interrupted(recorded));
        Ok(Report {
            plan: header,
            rounds: recorded.rounds(),
            metrics: metrics.collect(),
            also,
            counters,
            failed,
            warnings: warned,
            boots: boots_of(runs),
            modes: counted(runs).map(|r| r.seen.modes.as_str()).collect(),
        })
    }
}

fn failed(recorded: &Recorded) -> BTreeMap<String, usize> {
    let mut failed = BTreeMap::new();
    let turn = |at: usize| recorded.runs.get(at).map(|run| run.turn);
    // A warm-up does not count, and neither does its failure.
    let counted = recorded
        .failed
        .iter()
        .filter(|f| turn(f.failed) != Some(None));
    for variant in counted.flat_map(|f| &f.variants) {
        *failed.entry(variant.clone()).or_default() += 1;
    }
    failed
}

fn boots_of(runs: &[Repetition]) -> BTreeMap<&str, &Booted> {
    let mut boots = BTreeMap::new();
    for run in runs {
        if let Some(boot) = &run.boot {
            boots.entry(run.variant.as_str()).or_insert(boot);
        }
    }
    boots
}

fn counted(runs: &[Repetition]) -> impl Iterator<Item = &Repetition> + Clone {
    runs.iter().filter(|r| r.turn.is_some())
}

impl Report<'_> {
    /// A line for each comparison, with its verdict.
    pub fn headlines(&self) -> impl Iterator<Item = (Verdict, String)> {
        let of = |metric: &MetricReport| {
            let base = &self.plan.variants[0];
            let line = |(variant, judged): (&str, &Judged)| {
                (judged.verdict, headline(base, variant, metric, judged))
            };
            metric.judged().map(line).collect::<Vec<_>>()
        };
        self.metrics.iter().flat_map(of)
    }

    /// The tables of medians that are not empty, with their titles.
    fn besides(&self) -> impl Iterator<Item = (&'static str, &Medians)> {
        let all = [
            ("Also measured, medians", &self.also),
            ("Counters that differ, medians of a run", &self.counters),
        ];
        all.into_iter().filter(|(_, rows)| !rows.is_empty())
    }
}

impl MetricReport {
    /// The comparisons with the first variant.
    fn judged(&self) -> impl Iterator<Item = (&str, &Judged)> {
        let all = self.variants.iter();
        all.filter_map(|v| Some((v.variant.as_str(), v.judged.as_ref()?)))
    }

    /// A sentence for each outlier.
    fn outliers(&self) -> impl Iterator<Item = String> {
        let of = |variant: &VariantReport| {
            let sentence = |at: &usize| {
                let (run, value) = variant.runs[*at];
                let (name, value) = (&variant.variant, number(value));
                let run = run + 1;
                format!("{name}: run {run}, {value}, is far from the rest; it is included")
            };
            variant.outliers.iter().map(sentence).collect::<Vec<_>>()
        };
        self.variants.iter().flat_map(of)
    }
}

impl VariantReport {
    fn new(
        runs: &[Repetition],
        variant: &str,
        metric: &str,
        judged: Option<Judged>,
    ) -> VariantReport {
        let own = counted(runs).filter(|r| r.variant == variant);
        let runs: Vec<(usize, f64)> = own
            .filter_map(|r| Some((r.number, *r.values.get(metric)?)))
            .collect();
        let values: Vec<f64> = runs.iter().map(|(_, value)| *value).collect();
        VariantReport {
            variant: variant.to_string(),
            median: median(&values),
            mean: mean(&values),
            cv: cv(&values),
            min: values.iter().copied().reduce(f64::min).unwrap_or(0.0),
            max: values.iter().copied().reduce(f64::max).unwrap_or(0.0),
            outliers: outliers(&values),
            runs,
            judged,
        }
    }
}

fn medians(
    header: &Header,
    runs: &[Repetition],
    values: impl Fn(&Repetition) -> BTreeMap<String, f64>,
) -> Medians {
    let mut all: BTreeMap<String, Vec<Vec<f64>>> = BTreeMap::new();
    let nothing = vec![Vec::new(); header.variants.len()];
    for run in counted(runs) {
        let Some(at) = header.variants.iter().position(|v| *v == run.variant) else {
            continue;
        };
        for (name, value) in values(run) {
            all.entry(name).or_insert(nothing.clone())[at].push(value);
        }
    }
    let median_of = |v: &Vec<f64>| (!v.is_empty()).then(|| median(v));
    all.into_iter()
        .map(|(name, values)| (name, values.iter().map(median_of).collect()))
        .collect()
}

fn differ(medians: &[Option<f64>]) -> bool {
    let known = medians.iter().flatten().copied();
    let most = known.clone().fold(f64::MIN, f64::max);
    let least = known.fold(f64::MAX, f64::min);
    most > 0.0 && most - least >= MOVED * most
}
