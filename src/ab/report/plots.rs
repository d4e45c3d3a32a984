// SPDX-License-Identifier: GPL-2.0-only
//! Pictures of a metric: its runs in order, their distribution, and the effects with intervals.
//! Also of the counters that differ.

use super::svg::{Axis, SIGN, WIDTH, bar, color, dot, label, line, svg, ticks, titled_label};
use super::{MetricReport, Report, median_text, number};
use crate::ab::stats::Interval;
use crate::ab::stats::pairs::Scale;
use crate::ab::stats::verdict::Judged;

/// Left of the plot there is room for names of at least and at most this many characters.
const SIGNS_MIN: usize = 8;
const SIGNS_MAX: usize = 36;
const RIGHT: f64 = 20.0;
/// Space between a name and the plot.
const GAP: f64 = 15.0;
const ROW: f64 = 28.0;
const PLOT: f64 = 180.0;
/// The color of the margin, in which differences do not matter.
const MARGIN: &str = "#e6e6e6";
/// Height of a counter's bar.
const BAR: f64 = 10.0;
/// Space for the number after a bar.
const NUMBER: f64 = 80.0;

/// Left end of the plot, after the longest name.
fn left<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let longest = names.map(|n| n.chars().count()).max().unwrap_or(0);
    GAP + SIGN * longest.clamp(SIGNS_MIN, SIGNS_MAX) as f64
}

fn left_of(metric: &MetricReport) -> f64 {
    left(metric.variants.iter().map(|v| v.variant.as_str()))
}

/// A name. If it is too long, its middle is cut, and its tooltip has all of it.
fn name(left: f64, y: f64, name: &str) -> String {
    titled_label(left - GAP, y, "end", &fitted(name), name)
}

fn fitted(name: &str) -> String {
    let signs: Vec<char> = name.chars().collect();
    if signs.len() <= SIGNS_MAX {
        return name.to_string();
    }
    let half = (SIGNS_MAX - 1) / 2;
    let (begin, end) = (&signs[..SIGNS_MAX - 1 - half], &signs[signs.len() - half..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

fn tick(value: f64) -> (f64, String) {
    (value, number(value))
}

fn row_at(row: usize) -> f64 {
    ROW * (row as f64 + 0.7)
}

fn values(metric: &MetricReport) -> impl Iterator<Item = f64> {
    metric
        .variants
        .iter()
        .flat_map(|v| v.runs.iter().map(|(_, value)| *value))
}

/// The runs in order, which shows drift.
pub fn in_order(metric: &MetricReport) -> String {
    let numbers = metric
        .variants
        .iter()
        .flat_map(|v| v.runs.iter().map(|(n, _)| *n as f64));
    let left = left_of(metric);
    let across = Axis::over(numbers, left, WIDTH - RIGHT);
    let up = Axis::over(values(metric), PLOT - 30.0, 10.0);
    let mut inside = label(left - GAP, up.at(up.high) + 4.0, "end", &number(up.high));
    if up.high > up.low {
        inside += &label(left - GAP, up.at(up.low) + 4.0, "end", &number(up.low));
    }
    let run = |n: f64| (n, format!("run {}", n + 1.0));
    inside += &ticks(&across, PLOT - 5.0, &[run(across.low), run(across.high)]);
    for (at, variant) in metric.variants.iter().enumerate() {
        for (place, (run, value)) in variant.runs.iter().enumerate() {
            let title = format!("{}, run {}: {}", variant.variant, run + 1, number(*value));
            let far = variant.outliers.contains(&place);
            inside += &dot(
                across.at(*run as f64),
                up.at(*value),
                color(at),
                far,
                &title,
            );
        }
    }
    svg(PLOT, &format!("{}: runs in order", metric.metric), &inside)
}

pub fn distribution(metric: &MetricReport) -> String {
    let left = left_of(metric);
    let axis = Axis::over(values(metric), left, WIDTH - RIGHT);
    let mut inside = String::new();
    for (at, variant) in metric.variants.iter().enumerate() {
        let y = row_at(at);
        inside += &name(left, y + 4.0, &variant.variant);
        let middle = axis.at(variant.median);
        inside += &line(middle, y - 10.0, middle, y + 10.0, "stroke=\"black\"");
        for (place, (run, value)) in variant.runs.iter().enumerate() {
            let title = format!("run {}: {}", run + 1, number(*value));
            let far = variant.outliers.contains(&place);
            inside += &dot(axis.at(*value), y, color(at), far, &title);
        }
    }
    let height = row_at(metric.variants.len()) + 10.0;
    inside += &ticks(&axis, height - 8.0, &[axis.low, axis.high].map(tick));
    svg(height, &format!("{}: distribution", metric.metric), &inside)
}

/// Effects of the other variants that use this scale, with a line at no change. Ratios and
/// differences cannot share an axis.
pub fn effects(metric: &MetricReport, scale: Scale) -> String {
    let all = metric.variants.iter().enumerate();
    let judged = all.filter_map(|(at, v)| Some((at, v, v.judged.as_ref()?)));
    let shown: Vec<_> = judged.filter(|(_, _, j)| j.scale == scale).collect();
    if shown.is_empty() {
        return String::new();
    }
    let same = if scale == Scale::Ratio { 1.0 } else { 0.0 };
    let values = shown.iter().flat_map(|(_, _, j)| {
        let ends = j.effect.interval.map_or(vec![], |i| vec![i.low, i.high]);
        ends.into_iter().chain([j.effect.value])
    });
    let left = left_of(metric);
    let axis = Axis::over(values.chain([same]), left, WIDTH - RIGHT);
    let height = row_at(shown.len()) + 10.0;
    let nothing = axis.at(same);
    let dashed = "stroke=\"gray\" stroke-dasharray=\"4\"";
    let mut inside = String::new();
    for (row, (at, variant, judged)) in shown.into_iter().enumerate() {
        let y = row_at(row);
        inside += &name(left, y + 4.0, &variant.variant);
        inside += &effect(&axis, y, color(at), judged, metric.unit);
    }
    inside += &line(nothing, 0.0, nothing, height - 22.0, dashed);
    inside += &ticks(&axis, height - 8.0, &[same, axis.low, axis.high].map(tick));
    svg(height, &format!("{}: effects", metric.metric), &inside)
}

/// An effect with the interval that tells the verdict, on the margin.
fn effect(axis: &Axis, y: f64, color: &str, judged: &Judged, unit: &str) -> String {
    let mut drawn = margin(axis, y, judged.margin);
    if let Some(interval) = judged.effect.interval {
        let style = format!("stroke=\"{color}\" stroke-width=\"2\"");
        drawn += &line(axis.at(interval.low), y, axis.at(interval.high), y, &style);
    }
    let title = super::effect(judged, unit);
    drawn + &dot(axis.at(judged.effect.value), y, color, false, &title)
}

/// The margin, as far as it is within the picture.
fn margin(axis: &Axis, y: f64, margin: Interval) -> String {
    let place = |value: f64| axis.at(value).clamp(axis.from, axis.to);
    let (low, high) = (place(margin.low), place(margin.high));
    let title = format!("margin, {} to {}", number(margin.low), number(margin.high));
    bar(low, y - ROW / 2.0, high - low, ROW, MARGIN, &title)
}

/// Medians per run, a bar for each variant. The longest bar of each counter fills the width.
pub fn counters(report: &Report) -> String {
    let left = left(report.counters.keys().map(String::as_str));
    let (mut inside, mut y) = (String::new(), 0.0);
    for (counter, medians) in &report.counters {
        let most = medians.iter().flatten().copied().fold(0.0, f64::max);
        inside += &name(left, y + BAR, counter);
        for (at, median) in medians.iter().enumerate() {
            let length = median.unwrap_or(0.0) / most * (WIDTH - left - NUMBER);
            let shown = median_text(*median);
            let title = format!("{}: {shown}", report.plan.variants[at]);
            inside += &bar(left, y, length, BAR, color(at), &title);
            inside += &label(left + length + 5.0, y + BAR - 1.0, "start", &shown);
            y += BAR + 3.0;
        }
        y += BAR;
    }
    svg(y, "counters that differ", &inside)
}
