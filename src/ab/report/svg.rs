// SPDX-License-Identifier: GPL-2.0-only
//! Elements of pictures. A picture is as wide as the page: positions across are in percent of its
//! width, so that texts and dots keep their size on a narrow screen. All else is in pixels. Classes
//! are those of `page.css`.

use super::html::escape;
use super::number;

/// Most round numbers below a picture, so that they also fit on a narrow screen.
const TICKS: f64 = 6.0;

/// Maps values to positions.
pub struct Axis {
    /// Values at its ends.
    pub low: f64,
    pub high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// From a bit below the least value to a bit above the largest one.
    pub fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Axis {
        let known = values.filter(|v| v.abs() < 1e300);
        let (low, high) = known.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let room = match high > low {
            true => 0.06 * (high - low),
            false => 0.05 * if high == 0.0 { 1.0 } else { high.abs() },
        };
        let (low, high) = (low - room, high + room);
        Axis {
            low,
            high,
            from,
            to,
        }
    }

    /// A value beyond the axis is at its end.
    pub fn at(&self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    pub fn has(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Distance between round values: 1, 2 or 5 times a power of ten.
    fn step(&self) -> f64 {
        let least = (self.high - self.low) / TICKS;
        let ten = 10_f64.powf(least.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|n| n * ten);
        steps.into_iter().find(|s| *s >= least).unwrap_or(least)
    }

    /// Round values with their texts, all with the same decimals.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let step = self.step();
        let first = (self.low / step).ceil();
        let count = ((self.high / step).floor() - first).clamp(0.0, TICKS) as usize;
        let most = self.low.abs().max(self.high.abs());
        let (by, sign) = match most {
            m if m >= 1e9 => (1e9, " G"),
            m if m >= 1e6 => (1e6, " M"),
            _ => (1.0, ""),
        };
        let decimals = (-((step / by).log10() + 1e-9).floor()).max(0.0) as usize;
        let text = |value: f64| match decimals {
            6.. => number(value),
            _ if most >= 1e13 => number(value),
            _ => format!("{:.decimals$}{sign}", value / by),
        };
        // Without -0.
        let tick = |at: usize| (first + at as f64) * step + 0.0;
        let values = (0..=count).map(tick);
        values.map(|value| (value, text(value))).collect()
    }
}

/// `title`: for people who do not see it.
pub fn svg(height: f64, title: &str, inside: &str) -> String {
    let title = escape(title);
    format!(
        "<svg role=\"img\" aria-label=\"{title}\" width=\"100%\" height=\"{height:.0}\">{inside}</svg>\n"
    )
}

/// The tooltip. Empty: none.
fn tip(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("<title>{}</title>", escape(text)),
    }
}

/// `anchor`: which end of the text is at `x`.
pub fn label(x: f64, y: f64, anchor: &str, class: &str, text: &str) -> String {
    format!(
        "<text x=\"{x:.2}%\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{}</text>",
        escape(text)
    )
}

/// A label at the left, with a tooltip.
pub fn titled(y: f64, text: &str, title: &str) -> String {
    let (title, text) = (tip(title), escape(text));
    format!("<text x=\"0.00%\" y=\"{y:.1}\" text-anchor=\"start\" class=\"\">{title}{text}</text>")
}

pub fn line(x: [f64; 2], y: [f64; 2], class: &str) -> String {
    let ([x1, x2], [y1, y2]) = (x, y);
    format!(
        "<line x1=\"{x1:.2}%\" y1=\"{y1:.1}\" x2=\"{x2:.2}%\" y2=\"{y2:.1}\" class=\"{class}\"/>"
    )
}

pub fn dot(x: f64, y: f64, class: &str, title: &str) -> String {
    let title = tip(title);
    format!("<circle cx=\"{x:.2}%\" cy=\"{y:.1}\" r=\"4\" class=\"{class}\">{title}</circle>")
}

pub fn bar(x: [f64; 2], y: [f64; 2], class: &str, title: &str) -> String {
    let (width, height) = (x[1] - x[0], y[1] - y[0]);
    format!(
        "<rect x=\"{:.2}%\" y=\"{:.1}\" width=\"{width:.2}%\" height=\"{height:.1}\" class=\"{class}\">{}</rect>",
        x[0],
        y[0],
        tip(title)
    )
}

pub const DIAMOND: &str = "M0-6 5 0 0 6-5 0z";
pub const TO_LEFT: &str = "M-6 0 3-5V5z";
pub const TO_RIGHT: &str = "M6 0-3-5V5z";
pub const UPWARDS: &str = "M0-6 5 3H-5z";
pub const DOWNWARDS: &str = "M0 6 5-3H-5z";

/// An outline around a point.
pub fn shape(x: f64, y: f64, outline: &str, class: &str, title: &str) -> String {
    let title = tip(title);
    format!(
        "<svg x=\"{x:.2}%\" y=\"{y:.1}\"><path d=\"{outline}\" class=\"{class}\">{title}</path></svg>"
    )
}
