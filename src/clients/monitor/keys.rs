// SPDX-License-Identifier: GPL-2.0-only
//! Keys and their actions. The help text comes from the same table.

use super::state::{Action, MonitorState, View};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Of view Rates.
const ZEROS: &str = "z zeros";

/// Keys, what they do, and for some a short text for the bar at the bottom.
pub const HELP: &[(&str, &str, &str)] = &[
    ("Tab, Shift-Tab, 1 to 4", "another view", "Tab view"),
    (
        "arrows, PgUp, PgDn, Home, End",
        "choose: a CPU, a counter, an arm",
        "arrows choose",
    ),
    (
        "z",
        "also counters that have not counted (view Rates)",
        ZEROS,
    ),
    ("p", "pause, and go on", "p pause"),
    ("+ and -", "longer or shorter interval", "+/- interval"),
    ("?, h", "this help; also closes it", "? help"),
    ("Esc", "closes this help", ""),
    ("q", "closes this help; else ends, as Ctrl-C does", "q quit"),
];

/// While the help is open, the bar shows only this.
const BAR_OF_HELP: &[&str] = &["q close"];

/// The bar at the bottom: keys that do something now.
pub fn bar(state: &MonitorState) -> Vec<&'static str> {
    if state.help {
        return BAR_OF_HELP.to_vec();
    }
    let short = HELP.iter().map(|(_, _, short)| *short);
    let works = |short: &&str| match *short {
        ZEROS => state.view == View::Rates,
        short => !short.is_empty(),
    };
    short.filter(works).collect()
}

pub fn action(key: &KeyEvent) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        KeyCode::Char('c' | 'd') if control => Action::Quit,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char('q') => Action::Leave,
        KeyCode::Esc => Action::Close,
        KeyCode::Char('z') => Action::Zeros,
        KeyCode::Char('?' | 'h') => Action::Help,
        KeyCode::Char('p') => Action::Pause,
        KeyCode::Char('+' | '=') => Action::Longer,
        KeyCode::Char('-' | '_') => Action::Shorter,
        KeyCode::Char(c @ '1'..='9') => {
            let index = c.to_digit(10)? as usize - 1;
            Action::Go(*View::ALL.get(index)?)
        }
        KeyCode::Tab => Action::NextView,
        KeyCode::BackTab => Action::PreviousView,
        KeyCode::Up => Action::Up,
        KeyCode::Down => Action::Down,
        KeyCode::Left => Action::Left,
        KeyCode::Right => Action::Right,
        KeyCode::PageUp => Action::PageUp,
        KeyCode::PageDown => Action::PageDown,
        KeyCode::Home => Action::Home,
        KeyCode::End => Action::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: KeyCode, modifiers: KeyModifiers) -> Option<Action> {
        action(&KeyEvent::new(code, modifiers))
    }

    #[test]
    fn each_view_has_its_number() {
        for (i, view) in View::ALL.iter().enumerate() {
            let digit = char::from_digit(i as u32 + 1, 10).unwrap();
            let got = of(KeyCode::Char(digit), KeyModifiers::NONE);
            assert_eq!(got, Some(Action::Go(*view)));
        }
        assert_eq!(of(KeyCode::Char('9'), KeyModifiers::NONE), None);
    }

    #[test]
    fn the_bar_tells_of_what_works() {
        let mut state = MonitorState::new(std::time::Duration::from_secs(1));
        for view in View::ALL {
            state.act(Action::Go(*view));
            let zeros = bar(&state).contains(&ZEROS);
            assert_eq!(zeros, *view == View::Rates, "{view:?}");
            assert!(bar(&state).ends_with(&["? help", "q quit"]));
        }
        state.act(Action::Help);
        assert_eq!(bar(&state), BAR_OF_HELP);
    }

    #[test]
    fn control_c_ends_and_c_does_nothing() {
        let c = KeyCode::Char('c');
        assert_eq!(of(c, KeyModifiers::CONTROL), Some(Action::Quit));
        assert_eq!(of(c, KeyModifiers::NONE), None);
        let q = of(KeyCode::Char('q'), KeyModifiers::NONE);
        assert_eq!(q, Some(Action::Leave));
        assert_eq!(of(KeyCode::Char('p'), KeyModifiers::CONTROL), None);
    }
}
