// SPDX-License-Identifier: GPL-2.0-only
//! Pictures of a metric: its runs in order, how they are distributed, and the effects with their intervals.

use super::html::escape;
use super::{MetricReport, VariantReport, number};
use crate::ab::stats::pairs::Scale;
use std::fmt::Write;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 20.0;
const ROW: f64 = 28.0;
const PLOT: f64 = 180.0;
/// Told apart also by who sees few colours (Okabe and Ito 2008).
const COLORS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];

pub fn color(variant: usize) -> &'static str {
    COLORS[variant % COLORS.len()]
}

/// From values to places.
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(v), m.max(v)));
        let (least, most) = if least > most {
            (0.0, 1.0)
        } else {
            (least, most)
        };
        let room = match most > least {
            true => 0.05 * (most - least),
            false => 0.05 * most.abs().max(1.0),
        };
        Axis {
            least: least - room,
            most: most + room,
            from,
            to,
        }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.least) / (self.most - self.least) * (self.to - self.from)
    }
}

fn svg(height: f64, title: &str, inside: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\"><title>{}</title>{inside}</svg>\n",
        escape(title)
    )
}

fn label(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
        escape(text)
    )
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64, style: &str) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>")
}

fn dot(x: f64, y: f64, color: &str, far: bool, title: &str) -> String {
    let fill = if far { "none" } else { color };
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{fill}\" stroke=\"{color}\"><title>{}</title></circle>",
        escape(title)
    )
}

fn ends(axis: &Axis, y: f64) -> String {
    label(axis.from, y, "middle", &number(axis.least))
        + &label(axis.to, y, "middle", &number(axis.most))
}

fn name(row: usize, variant: &VariantReport) -> String {
    label(LEFT - 15.0, row_at(row) + 4.0, "end", &variant.variant)
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

/// Whatever drifts shows here.
pub fn in_order(metric: &MetricReport) -> String {
    let numbers = metric
        .variants
        .iter()
        .flat_map(|v| v.runs.iter().map(|(n, _)| *n as f64));
    let across = Axis::over(numbers, LEFT, WIDTH - RIGHT);
    let up = Axis::over(values(metric), PLOT - 20.0, 10.0);
    let mut inside = label(LEFT - 15.0, up.to + 4.0, "end", &number(up.most));
    inside += &label(LEFT - 15.0, up.from + 4.0, "end", &number(up.least));
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
    let axis = Axis::over(values(metric), LEFT, WIDTH - RIGHT);
    let mut inside = String::new();
    for (at, variant) in metric.variants.iter().enumerate() {
        let y = row_at(at);
        inside += &name(at, variant);
        let middle = axis.at(variant.median);
        inside += &line(middle, y - 10.0, middle, y + 10.0, "stroke=\"black\"");
        for (place, (run, value)) in variant.runs.iter().enumerate() {
            let title = format!("run {}: {}", run + 1, number(*value));
            let far = variant.outliers.contains(&place);
            inside += &dot(axis.at(*value), y, color(at), far, &title);
        }
    }
    let height = row_at(metric.variants.len()) + 10.0;
    inside += &ends(&axis, height - 8.0);
    svg(height, &format!("{}: distribution", metric.metric), &inside)
}

/// Of each of the other variants, with the line where nothing changes.
pub fn effects(metric: &MetricReport) -> String {
    let judged = || {
        metric
            .variants
            .iter()
            .filter_map(|v| Some((v, v.judged.as_ref()?)))
    };
    let Some(scale) = judged().map(|(_, j)| j.scale).next() else {
        return String::new();
    };
    let same = if scale == Scale::Ratio { 1.0 } else { 0.0 };
    let values = judged().flat_map(|(_, j)| {
        let interval = j.median.interval.map(|i| [i.low, i.high]);
        interval.into_iter().flatten().chain([j.median.value])
    });
    let axis = Axis::over(values.chain([same]), LEFT, WIDTH - RIGHT);
    let height = row_at(judged().count()) + 10.0;
    let mut inside = line(
        axis.at(same),
        0.0,
        axis.at(same),
        height - 22.0,
        "stroke=\"gray\" stroke-dasharray=\"4\"",
    );
    for (at, (variant, judged)) in judged().enumerate() {
        let (y, color) = (row_at(at), color(at + 1));
        inside += &name(at, variant);
        if let Some(i) = judged.median.interval {
            let style = format!("stroke=\"{color}\" stroke-width=\"2\"");
            inside += &line(axis.at(i.low), y, axis.at(i.high), y, &style);
        }
        inside += &dot(
            axis.at(judged.median.value),
            y,
            color,
            false,
            &super::effect(judged),
        );
    }
    let mut ends = ends(&axis, height - 8.0);
    let _ = write!(
        ends,
        "{}",
        label(axis.at(same), height - 8.0, "middle", &number(same))
    );
    svg(
        height,
        &format!("{}: effects", metric.metric),
        &(inside + &ends),
    )
}
