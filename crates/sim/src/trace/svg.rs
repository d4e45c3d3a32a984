// SPDX-License-Identifier: GPL-2.0-only
//! The few shapes that a picture is made of.

use std::fmt::Write;

#[derive(Default)]
pub struct Svg {
    body: String,
}

/// Which end of a text is at its position.
#[derive(Clone, Copy)]
pub enum At {
    Start,
    End,
}

impl Svg {
    pub fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\"/>"
        );
    }

    /// The same, with a title that is shown under the pointer.
    pub fn titled(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str, title: &str) {
        self.rect(x, y, width, height, fill);
        self.body.truncate(self.body.len() - "/>\n".len());
        let _ = writeln!(self.body, "><title>{}</title></rect>", escaped(title));
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            "<line x1=\"{x1:.2}\" y1=\"{y1:.2}\" x2=\"{x2:.2}\" y2=\"{y2:.2}\" stroke=\"{stroke}\"/>"
        );
    }

    pub fn text(&mut self, x: f64, y: f64, size: f64, at: At, text: &str) {
        let anchor = match at {
            At::Start => "start",
            At::End => "end",
        };
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.2}\" y=\"{y:.2}\" font-size=\"{size}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(text)
        );
    }

    /// The whole document; its size is in pixels.
    pub fn document(self, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" fill=\"#222\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// What is no task: an idle CPU, a core with two busy threads, short runs that are merged.
pub const IDLE: &str = "#f1f1f1";
pub const SHARED: &str = "#e5423a";
pub const MIXED: &str = "#8a8a8a";

/// A colour for each task. The hue is far from those of the tasks before, and not near red, which
/// marks shared cores.
pub fn colour(task: usize) -> String {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let hue = 0.5 + (task as f64 * GOLDEN).fract() * 5.0;
    let light = [0.62, 0.50, 0.72][task % 3];
    let (chroma, low) = (0.42, light - 0.21);
    let side = chroma * (1.0 - (hue % 2.0 - 1.0).abs());
    let rgb = match hue as u32 {
        0 => [chroma, side, 0.0],
        1 => [side, chroma, 0.0],
        2 => [0.0, chroma, side],
        3 => [0.0, side, chroma],
        4 => [side, 0.0, chroma],
        _ => [chroma, 0.0, side],
    };
    let [r, g, b] = rgb.map(|part| ((part + low) * 255.0).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}
