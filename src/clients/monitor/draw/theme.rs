// SPDX-License-Identifier: GPL-2.0-only
//! Colours and symbols. Without colours (NO_COLOR) bold text marks what matters, and numbers show
//! the rest. Without UTF-8 the bars are ASCII.

use ratatui::style::{Color, Modifier, Style};

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Plain,
    Heading,
    /// Less prominent than the text around it.
    Faint,
    Good,
    Warning,
    Bad,
    /// At or below the frequency threshold.
    Low,
    /// In permille.
    Busy(u64),
    Chosen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    pub color: bool,
    pub utf8: bool,
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII_BARS: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

impl Theme {
    /// The theme that the environment asks for.
    pub fn of_environment() -> Theme {
        let var = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .find_map(|name| var(name));
        let locale = locale.unwrap_or_default().to_ascii_uppercase();
        Theme {
            color: var("NO_COLOR").is_none(),
            utf8: locale.contains("UTF-8") || locale.contains("UTF8"),
        }
    }

    pub fn style(self, role: Role) -> Style {
        let style = Style::new();
        let colored = |color| if self.color { style.fg(color) } else { style };
        match role {
            Role::Plain => style,
            Role::Heading => style.add_modifier(Modifier::BOLD),
            Role::Faint => colored(Color::DarkGray),
            Role::Good => colored(Color::Green),
            Role::Warning => colored(Color::Yellow).add_modifier(Modifier::BOLD),
            Role::Bad => colored(Color::Red).add_modifier(Modifier::BOLD),
            Role::Low => colored(Color::Cyan),
            Role::Busy(0..20) => colored(Color::DarkGray),
            Role::Busy(20..500) => colored(Color::Green),
            Role::Busy(500..850) => colored(Color::Yellow),
            Role::Busy(_) => colored(Color::Red),
            Role::Chosen => style.add_modifier(Modifier::REVERSED),
        }
    }

    /// A bar whose height shows a permille. The lowest is for less than 20, which counts as idle.
    pub fn bar(self, permille: u64) -> char {
        let index = match permille {
            0..20 => 0,
            part => (1 + part.min(999) * 7 / 1000) as usize,
        };
        let bars = if self.utf8 { BARS } else { ASCII_BARS };
        bars[index.min(bars.len() - 1)]
    }

    /// A horizontal bar that fills `part` (0 to 1) of `width` columns.
    pub fn stripe(self, part: f64, width: usize) -> String {
        let sign = if self.utf8 { "█" } else { "#" };
        let filled = (part.clamp(0.0, 1.0) * width as f64).round() as usize;
        sign.repeat(filled)
    }

    /// Marks a low frequency.
    pub fn low(self) -> &'static str {
        if self.utf8 { "↓" } else { "v" }
    }

    pub fn rule(self) -> &'static str {
        if self.utf8 { "─" } else { "-" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_grow_with_what_they_show() {
        for utf8 in [true, false] {
            let theme = Theme { color: true, utf8 };
            let bars = if utf8 { BARS } else { ASCII_BARS };
            let place = |p| bars.iter().position(|b| *b == theme.bar(p)).unwrap();
            let mut all: Vec<usize> = (0..=1000).map(place).collect();
            assert!(all.is_sorted());
            all.dedup();
            assert_eq!(all, [0, 1, 2, 3, 4, 5, 6, 7]);
            assert_eq!(place(u64::MAX), 7);
        }
    }

    #[test]
    fn without_colours_there_is_none() {
        let theme = Theme {
            color: false,
            utf8: true,
        };
        for role in [Role::Faint, Role::Bad, Role::Busy(900), Role::Low] {
            let style = theme.style(role);
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
