// SPDX-License-Identifier: GPL-2.0-only
//! Pictures of a metric: the effects with the intervals that tell the verdicts, the distribution of
//! its runs, and its runs in order.

use super::svg::{Axis, DIAMOND, DOWNWARDS, TO_LEFT, TO_RIGHT, UPWARDS};
use super::svg::{bar, dot, label, line, shape, svg, titled};
use super::{MetricReport, VariantReport, effect, number, verdict_name, with_unit};
use crate::ab::stats::pairs::Scale;
use crate::ab::stats::verdict::{Direction, Judged};
use std::ops::Range;

/// Classes of the variants' colors. More colors are hard to tell apart.
pub const COLORS: [&str; 7] = ["v0", "v1", "v2", "v3", "v4", "v5", "v6"];
/// Most characters of a name.
const SIGNS: usize = 44;
/// Ends of a plot, in percent. A number there has room.
const ENDS: [f64; 2] = [3.0, 97.0];
/// Of a variant: its name, and its marks below.
const ROW: f64 = 42.0;
const NAME: f64 = 14.0;
const MARKS: f64 = 28.0;
/// Height of a line of text.
const TEXT: f64 = 16.0;
/// Ends of the runs in order, from top to bottom.
const PLOT: [f64; 2] = [14.0, 190.0];
/// Where they begin: the numbers of the axis are left of it.
const FIRST_RUN: f64 = 11.0;
/// Values beyond the axis stand apart by at least this, in percent.
const APART: f64 = 12.0;

/// If it is too long, its middle is cut, and its tooltip has all of it.
fn name(y: f64, name: &str) -> String {
    titled(y + NAME, &fitted(name), name)
}

fn fitted(name: &str) -> String {
    let signs: Vec<char> = name.chars().collect();
    if signs.len() <= SIGNS {
        return name.to_string();
    }
    let half = (SIGNS - 1) / 2;
    let (begin, end) = (&signs[..SIGNS - 1 - half], &signs[signs.len() - half..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

/// The class of a variant's color.
pub fn color(variant: usize) -> &'static str {
    COLORS[variant % COLORS.len()]
}

/// Lines at round values between these heights, and the values below. `text`: of a value.
fn grid(axis: &Axis, y: [f64; 2], text: impl Fn(f64, &str) -> String) -> String {
    let tick = |(value, shown): (f64, String)| {
        let (x, below) = (axis.at(value), y[1] + TEXT);
        line([x; 2], y, "grid") + &label(x, below, "middle", "tick", &text(value, &shown))
    };
    axis.ticks().into_iter().map(tick).collect()
}

/// Without outliers, which would squeeze the rest.
fn usual(metric: &MetricReport) -> impl Iterator<Item = f64> {
    let of = |v: &VariantReport| {
        let runs = v.runs.iter().enumerate();
        let near = runs.filter(|(place, _)| !v.outliers.contains(place));
        near.map(|(_, (_, value))| *value).collect::<Vec<_>>()
    };
    metric.variants.iter().flat_map(of)
}

/// What a tooltip says of a run.
fn run_text(metric: &MetricReport, variant: &VariantReport, place: usize) -> String {
    let (run, value) = variant.runs[place];
    let value = with_unit(value, metric.unit);
    format!("{}, run {}: {value}", variant.variant, run + 1)
}

fn dot_class(at: usize, variant: &VariantReport, place: usize) -> String {
    let far = variant.outliers.contains(&place);
    format!("dot {}{}", color(at), if far { " far" } else { "" })
}

/// The runs of these variants in order, which shows drift. Only colors tell them apart, so they are
/// no more than there are colors. A run beyond the axis is a triangle at its end.
pub fn in_order(metric: &MetricReport, variants: Range<usize>) -> String {
    let all = metric.variants.iter().flat_map(|v| &v.runs);
    let numbers = all.map(|(run, _)| *run as f64 + 1.0);
    let across = Axis::over(numbers, FIRST_RUN, ENDS[1]);
    let up = Axis::over(usual(metric), PLOT[1], PLOT[0]);
    let whole = |value: f64, text: &str| match value.fract() {
        0.0 => format!("run {text}"),
        _ => String::new(),
    };
    let mut inside = grid(&across, [PLOT[0], PLOT[1] + 6.0], whole);
    for (value, text) in up.ticks() {
        let (y, text) = (up.at(value), with_text(&text, metric.unit));
        inside += &line([0.0, 100.0], [y; 2], "grid");
        inside += &label(0.0, y - 3.0, "start", "tick", &text);
    }
    for at in variants.clone() {
        let variant = &metric.variants[at];
        for (place, (run, value)) in variant.runs.iter().enumerate() {
            let (x, title) = (
                across.at(*run as f64 + 1.0),
                run_text(metric, variant, place),
            );
            let class = format!("beyond {}", color(at));
            inside += &match () {
                () if *value > up.high => shape(x, PLOT[0], UPWARDS, &class, &title),
                () if *value < up.low => shape(x, PLOT[1], DOWNWARDS, &class, &title),
                () => dot(x, up.at(*value), &dot_class(at, variant, place), &title),
            };
        }
    }
    inside += &far_values(&metric.variants[variants], &across, &up);
    let title = format!("{}: runs in order", metric.metric);
    svg(PLOT[1] + 6.0 + TEXT + 4.0, &title, &inside)
}

/// The values of the runs beyond the axis `up`, unless they would touch.
fn far_values(variants: &[VariantReport], across: &Axis, up: &Axis) -> String {
    let (mut drawn, mut taken) = (String::new(), Vec::new());
    for (run, value) in variants.iter().flat_map(|v| &v.runs) {
        let (x, y) = (across.at(*run as f64 + 1.0), up.at(*value) - 8.0);
        let free = |(left, row): &(f64, f64)| (x - left).abs() > APART || *row != y;
        if !up.has(*value) && taken.iter().all(free) {
            drawn += &label(x, y, "middle", "", &number(*value));
            taken.push((x, y));
        }
    }
    drawn
}

/// A row of runs for each variant, with median and mean. Runs and means beyond the axis are at its
/// end, with their values below.
pub fn distribution(metric: &MetricReport) -> String {
    let medians = metric.variants.iter().map(|v| v.median);
    let axis = Axis::over(usual(metric).chain(medians), ENDS[0], ENDS[1]);
    let (mut inside, mut y) = (String::new(), 0.0);
    for (at, variant) in metric.variants.iter().enumerate() {
        inside += &name(y, &variant.variant);
        inside += &marks(metric, &axis, at, y + MARKS);
        let beyond = beyond(variant, &axis, metric.unit);
        y += if beyond.iter().any(|text| !text.is_empty()) {
            ROW + TEXT
        } else {
            ROW
        };
        for (x, anchor, text) in [(0.0, "start", &beyond[0]), (100.0, "end", &beyond[1])] {
            inside += &label(x, y - 5.0, anchor, "tick", text);
        }
        inside += &line([0.0, 100.0], [y; 2], "grid");
    }
    let unit = |_: f64, text: &str| with_text(text, metric.unit);
    let inside = grid(&axis, [0.0, y], unit) + &inside;
    svg(
        y + TEXT + 4.0,
        &format!("{}: distribution", metric.metric),
        &inside,
    )
}

fn with_text(text: &str, unit: &str) -> String {
    format!("{text} {unit}").trim_end().to_string()
}

/// The runs of a variant, its median and its mean.
fn marks(metric: &MetricReport, axis: &Axis, at: usize, y: f64) -> String {
    let variant = &metric.variants[at];
    let mut drawn = String::new();
    for (place, (_, value)) in variant.runs.iter().enumerate() {
        let (x, title) = (axis.at(*value), run_text(metric, variant, place));
        let outline = if *value < axis.low { TO_LEFT } else { TO_RIGHT };
        drawn += &match axis.has(*value) {
            true => dot(x, y, &dot_class(at, variant, place), &title),
            false => shape(x, y, outline, &format!("beyond {}", color(at)), &title),
        };
    }
    if variant.runs.is_empty() {
        return drawn;
    }
    let middle = axis.at(variant.median);
    drawn += &line([middle; 2], [y - 10.0, y + 10.0], "median");
    let title = format!(
        "mean of {}: {}",
        variant.variant,
        with_unit(variant.mean, metric.unit)
    );
    match axis.has(variant.mean) {
        true => drawn + &shape(axis.at(variant.mean), y, DIAMOND, "mean", &title),
        false => drawn,
    }
}

/// What is below the axis and above it, in words.
fn beyond(variant: &VariantReport, axis: &Axis, unit: &str) -> [String; 2] {
    let values = variant.runs.iter().map(|(_, value)| *value);
    [true, false].map(|below| {
        let out = |v: &f64| if below { *v < axis.low } else { *v > axis.high };
        let mut all: Vec<f64> = values.clone().filter(out).collect();
        all.sort_unstable_by(f64::total_cmp);
        let runs = match all.as_slice() {
            [] => return String::new(),
            [least, .., most] if all.len() > 3 => {
                let (n, least) = (all.len(), number(*least));
                format!("{n} runs, {least} to {}", with_unit(*most, unit))
            }
            few => {
                let texts: Vec<String> = few.iter().map(|v| number(*v)).collect();
                with_text(&texts.join(", "), unit)
            }
        };
        match out(&variant.mean) {
            true => format!("{runs}; mean {}", with_unit(variant.mean, unit)),
            false => runs,
        }
    })
}

/// Effects of the other variants that use this scale, on their margins, with a line at no change.
/// Ratios and differences cannot share an axis. Empty: there are none.
pub fn effects(metric: &MetricReport, scale: Scale) -> String {
    let all = metric.variants.iter().enumerate();
    let judged = all.filter_map(|(at, v)| Some((at, v, v.judged.as_ref()?)));
    let shown: Vec<_> = judged.filter(|(_, _, j)| j.scale == scale).collect();
    if shown.is_empty() {
        return String::new();
    }
    let change = |value: f64| match scale {
        Scale::Ratio => 100.0 * (value - 1.0),
        Scale::Difference => value,
    };
    let ends = shown.iter().flat_map(|(_, _, j)| {
        let (value, margin) = (j.effect.value, j.margin);
        let interval = j.effect.interval.unwrap_or(margin);
        [value, margin.low, margin.high, interval.low, interval.high].map(change)
    });
    let axis = Axis::over(ends.chain([0.0]), ENDS[0], ENDS[1]);
    let bottom = TEXT + ROW * shown.len() as f64;
    let (mut bands, mut rows) = (String::new(), String::new());
    for (row, (at, variant, judged)) in shown.into_iter().enumerate() {
        let (y, place) = (TEXT + ROW * row as f64, |v: f64| axis.at(change(v)));
        let margin = [judged.margin.low, judged.margin.high];
        let [low, high] = margin.map(|end| with_unit(change(end), unit(scale, metric.unit)));
        let title = format!("margin, {low} to {high}");
        bands += &bar(margin.map(place), [y, y + ROW], "band", &title);
        rows += &name(y, &variant.variant);
        rows += &drawn(judged, metric, y, place, color(at));
    }
    let inside = bands
        + &grid(&axis, [TEXT, bottom], |value, text| {
            change_text(value, text, scale, metric.unit)
        })
        + &line([axis.at(0.0); 2], [TEXT, bottom], "same")
        + &sides(metric.better)
        + &rows;
    svg(
        bottom + TEXT + 4.0,
        &format!("{}: effects", metric.metric),
        &inside,
    )
}

/// An effect with the interval that tells the verdict, and both in words.
fn drawn(
    judged: &Judged,
    metric: &MetricReport,
    y: f64,
    place: impl Fn(f64) -> f64,
    color: &str,
) -> String {
    let verdict = verdict_name(judged.verdict);
    let text = format!("{}, {verdict}", effect(judged, metric.unit));
    let mut drawn = label(100.0, y + NAME, "end", &format!("wide {verdict}"), &text);
    let y = y + MARKS;
    if let Some(interval) = judged.effect.interval {
        let ends = [interval.low, interval.high].map(&place);
        drawn += &line(ends, [y; 2], &format!("interval {color}"));
    }
    drawn
        + &dot(
            place(judged.effect.value),
            y,
            &format!("dot effect {color}"),
            &text,
        )
}

fn unit(scale: Scale, unit: &str) -> &str {
    match scale {
        Scale::Ratio => "%",
        Scale::Difference => unit,
    }
}

/// Such as '+5 %'.
fn change_text(value: f64, text: &str, scale: Scale, of: &str) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    with_text(&format!("{sign}{text}"), unit(scale, of))
}

/// On which side it is better.
fn sides(better: Direction) -> String {
    let (left, right) = match better {
        Direction::Lower => ("\u{25c0} better", "worse"),
        Direction::Higher => ("worse", "better \u{25b6}"),
    };
    let side = |x: f64, anchor: &str, text: &str| {
        let class = if text == "worse" { "tick" } else { "better" };
        label(x, TEXT - 5.0, anchor, class, text)
    };
    side(0.0, "start", left) + &side(100.0, "end", right)
}
