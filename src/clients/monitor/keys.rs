// SPDX-License-Identifier: GPL-2.0-only
//! Keys and their actions. The help text comes from the same table.

use super::state::{Action, State, Typed, View};
use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

const SWITCH: &str = "space switch";
/// Of view Rates.
const OF_RATES: [&str; 3] = ["z zeros", "s sort", "/ filter"];

/// Keys, what they do, and for some a short text for the bar at the bottom.
pub const HELP: &[(&str, &str, &str)] = &[
    ("Tab, Shift-Tab, 1 to 7", "another view", "Tab view"),
    (
        "arrows, PgUp, PgDn, Home, End",
        "choose: a CPU, a counter, an arm, a feature",
        "arrows choose",
    ),
    (
        "space",
        "switch the chosen feature of the chosen arm (view Features)",
        SWITCH,
    ),
    (
        "z, s",
        "counters that have not counted; the highest first (view Rates)",
        OF_RATES[0],
    ),
    ("", "", OF_RATES[1]),
    (
        "/",
        "show counters with this in their names; Esc: all",
        OF_RATES[2],
    ),
    (
        "mouse",
        "choose a view or an item; with Shift the terminal marks text",
        "",
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
pub fn bar(state: &State) -> Vec<&'static str> {
    if state.help {
        return BAR_OF_HELP.to_vec();
    }
    let short = HELP.iter().map(|(_, _, short)| *short);
    let switches = |short: &&str| match *short {
        SWITCH => state.view == View::Features,
        short => !OF_RATES.contains(&short) || state.view == View::Rates,
    };
    short
        .filter(|short| !short.is_empty())
        .filter(switches)
        .collect()
}

pub fn click(mouse: &MouseEvent) -> Option<Action> {
    Some(match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => Action::Click(mouse.column, mouse.row),
        MouseEventKind::ScrollUp => Action::Up,
        MouseEventKind::ScrollDown => Action::Down,
        _ => return None,
    })
}

/// `typing`: letters are part of the filter.
pub fn action(key: &KeyEvent, typing: bool) -> Option<Action> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if typing && !control {
        let typed = match key.code {
            KeyCode::Char(c) => Some(Typed::Char(c)),
            KeyCode::Backspace => Some(Typed::Rubout),
            KeyCode::Enter => Some(Typed::Done),
            KeyCode::Esc => Some(Typed::Clear),
            _ => None,
        };
        if let Some(typed) = typed {
            return Some(Action::Filter(typed));
        }
    }
    Some(match key.code {
        KeyCode::Char('c' | 'd') if control => Action::Quit,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char('q') => Action::Leave,
        KeyCode::Esc => Action::Close,
        KeyCode::Char('z') => Action::Zeros,
        KeyCode::Char('s') => Action::Sort,
        KeyCode::Char('/') => Action::Filter(Typed::Begin),
        KeyCode::Char('?' | 'h') => Action::Help,
        KeyCode::Char('p') => Action::Pause,
        KeyCode::Char('+' | '=') => Action::Longer,
        KeyCode::Char('-' | '_') => Action::Shorter,
        KeyCode::Char(' ') => Action::Toggle,
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
        action(&KeyEvent::new(code, modifiers), false)
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
        let mut state = State::new(std::time::Duration::from_secs(1));
        for view in View::ALL {
            state.act(Action::Go(*view));
            let switch = bar(&state).contains(&SWITCH);
            assert_eq!(switch, *view == View::Features, "{view:?}");
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
