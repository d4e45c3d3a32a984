// SPDX-License-Identifier: GPL-2.0-only
//! A line that is built piece by piece and knows its width, and short formats of numbers.

use super::theme::{Role, Theme};
use ratatui::text::{Line, Span};

/// A line under construction.
#[derive(Clone, Debug, Default)]
pub struct Row {
    spans: Vec<Span<'static>>,
    width: usize,
    /// The CPUs that are drawn, and where each begins.
    cpus: Vec<(usize, u64)>,
}

impl Row {
    pub fn push(&mut self, theme: Theme, role: Role, text: impl Into<String>) {
        let span = Span::styled(text.into(), theme.style(role));
        self.width += span.width();
        self.spans.push(span);
    }

    /// Adds spaces up to this column.
    pub fn pad(&mut self, column: usize) {
        let missing = column.saturating_sub(self.width);
        if missing > 0 {
            self.spans.push(Span::raw(" ".repeat(missing)));
            self.width += missing;
        }
    }

    /// The piece that is pushed next shows this CPU or stands for it.
    pub fn mark(&mut self, cpu: u64) {
        self.cpus.push((self.width, cpu));
    }

    /// What is marked, with its column.
    pub fn cpus(&self) -> &[(usize, u64)] {
        &self.cpus
    }

    pub fn append(&mut self, other: Row) {
        let begin = self.width;
        self.width += other.width;
        let moved = |(column, cpu): (usize, u64)| (begin + column, cpu);
        self.cpus.extend(other.cpus.into_iter().map(moved));
        self.spans.extend(other.spans);
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }
}

/// A row of one piece.
pub fn row(theme: Theme, role: Role, text: impl Into<String>) -> Row {
    let mut row = Row::default();
    row.push(theme, role, text);
    row
}

/// A rate in at most seven columns.
pub fn rate(n: f64) -> String {
    match n {
        n if n < 0.05 => "0".to_string(),
        n if n < 9.95 => format!("{n:.1}"),
        n if n < 99_999.5 => format!("{n:.0}"),
        n if n < 1e7 => format!("{:.0}k", n / 1e3),
        n if n < 1e10 => format!("{:.1}M", n / 1e6),
        n if n < 1e13 => format!("{:.1}G", n / 1e9),
        _ => ">10T".to_string(),
    }
}

pub fn percent(permille: u64) -> u64 {
    (permille.min(1000) + 5) / 10
}

/// Such as "3.9", in GHz. A placeholder of the same width if unknown.
pub fn ghz(khz: u64) -> String {
    match khz {
        0 => " - ".to_string(),
        khz => format!("{:.1}", khz.min(99_900_000) as f64 / 1e6),
    }
}

/// A time in at most seven columns: up to 9999 us, ms or s.
pub fn micros(us: u64) -> String {
    match us {
        0..10_000 => format!("{us} us"),
        10_000..10_000_000 => format!("{} ms", us / 1000),
        _ => format!("{} s", us / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_narrow() {
        for n in [
            0.0, 0.04, 9.94, 9.96, 99_999.4, 99_999.6, 9.9e6, 1e7, 1e9, 9.99e12, 1e300,
        ] {
            assert!(rate(n).len() <= 7, "{n}: {}", rate(n));
        }
        assert_eq!(rate(2.34), "2.3");
        assert_eq!(rate(f64::NAN), ">10T");
        assert_eq!((percent(4), percent(5), percent(u64::MAX)), (0, 1, 100));
        assert_eq!((ghz(3_900_000), ghz(0)), ("3.9".into(), " - ".into()));
        for us in [0, 9_999, 10_000, 9_999_999, 10_000_000] {
            assert!(micros(us).len() <= 7, "{}", micros(us));
        }
    }
}
