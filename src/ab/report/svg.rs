// SPDX-License-Identifier: GPL-2.0-only
//! Elements of pictures. Lengths are in pixels.

use super::html::escape;

pub const WIDTH: f64 = 840.0;
/// Largest mean width of a character in a text.
pub const SIGN: f64 = 7.5;
/// Colors that people with colour blindness can distinguish (Okabe and Ito 2008).
const COLORS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000",
];

pub fn color(variant: usize) -> &'static str {
    COLORS[variant % COLORS.len()]
}

/// Maps values to positions.
pub struct Axis {
    /// The least and the largest value.
    pub low: f64,
    pub high: f64,
    /// Values at the ends of the axis, a bit further out.
    least: f64,
    most: f64,
    pub from: f64,
    pub to: f64,
}

impl Axis {
    pub fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let room = match high > low {
            true => 0.05 * (high - low),
            false => 0.05 * high.abs().max(1.0),
        };
        Axis {
            low,
            high,
            least: low - room,
            most: high + room,
            from,
            to,
        }
    }

    pub fn at(&self, value: f64) -> f64 {
        self.from + (value - self.least) / (self.most - self.least) * (self.to - self.from)
    }
}

pub fn svg(height: f64, title: &str, inside: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.1}\" width=\"{WIDTH}\" height=\"{height:.1}\" role=\"img\"><title>{}</title>{inside}</svg>\n",
        escape(title)
    )
}

pub fn label(x: f64, y: f64, anchor: &str, text: &str) -> String {
    titled_label(x, y, anchor, text, "")
}

/// `title`: the tooltip.
pub fn titled_label(x: f64, y: f64, anchor: &str, text: &str, title: &str) -> String {
    let title = match title {
        "" => String::new(),
        title => format!("<title>{}</title>", escape(title)),
    };
    format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{title}{}</text>",
        escape(text)
    )
}

pub fn line(x1: f64, y1: f64, x2: f64, y2: f64, style: &str) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>")
}

pub fn dot(x: f64, y: f64, color: &str, far: bool, title: &str) -> String {
    let fill = if far { "none" } else { color };
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{fill}\" stroke=\"{color}\"><title>{}</title></circle>",
        escape(title)
    )
}

/// Texts below an axis, in order of priority: those that would overlap earlier ones are left out.
pub fn ticks(axis: &Axis, y: f64, texts: &[(f64, String)]) -> String {
    let (mut drawn, mut taken) = (String::new(), Vec::<(f64, f64)>::new());
    for (value, text) in texts {
        let (x, half) = (
            axis.at(*value),
            SIGN * (text.chars().count() + 1) as f64 / 2.0,
        );
        if taken
            .iter()
            .all(|(other, room)| (x - other).abs() > half + room)
        {
            drawn += &label(x, y, "middle", text);
            taken.push((x, half));
        }
    }
    drawn
}

pub fn bar(x: f64, y: f64, width: f64, height: f64, color: &str, title: &str) -> String {
    format!(
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{color}\"><title>{}</title></rect>",
        escape(title)
    )
}
