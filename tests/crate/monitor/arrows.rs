// SPDX-License-Identifier: GPL-2.0-only
//! In view Machine the arrow keys move as the CPUs are drawn. The chosen CPU is the one drawn
//! reversed.

use super::*;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use scx_roost::clients::monitor::draw::places;
use scx_roost::clients::monitor::state::{Action, View};

/// The first line below the lines with the facts and the views.
const BODY: usize = 2;

struct Seen {
    state: MonitorState,
    width: u16,
    height: u16,
}

impl Seen {
    fn new(shape: Shape, width: u16, height: u16) -> Seen {
        Seen {
            state: in_view(shape, View::Machine),
            width,
            height,
        }
    }

    /// As the live view does: draws a picture, then handles a key.
    fn press(&mut self, action: Action) -> Option<u64> {
        let area = Rect::new(0, 0, self.width, self.height);
        let places = places(&self.state, THEME, area);
        self.state.drawn(places);
        self.state.act(action);
        self.state.chosen.cpu
    }

    /// Line and column of the chosen CPU.
    fn chosen(&self) -> Option<(usize, usize)> {
        let mut terminal = Terminal::new(TestBackend::new(self.width, self.height)).unwrap();
        terminal.draw(|f| frame(f, &self.state, THEME)).unwrap();
        let buffer = terminal.backend().buffer();
        let width = usize::from(self.width);
        let cells = buffer.content().iter().enumerate().skip(BODY * width);
        let reversed = |(_, cell): &(usize, &ratatui::buffer::Cell)| {
            cell.modifier.contains(Modifier::REVERSED)
        };
        let mut found = cells.filter(reversed).map(|(i, _)| (i / width, i % width));
        found.next()
    }
}

fn in_view(shape: Shape, view: View) -> MonitorState {
    let mut state = state_of(shape);
    state.act(Action::Go(view));
    state
}

/// The list of counters: what has not counted is hidden, and keys move along what is shown.
#[test]
fn keys_move_along_the_counters_that_are_shown() {
    let mut seen = Seen::new(EIGHT, 80, 24);
    seen.press(Action::Go(View::Rates));
    let name = |seen: &Seen| ROWS[seen.state.counter()].name;
    assert_eq!(name(&seen), "wa_sync", "the first that counts");
    seen.press(Action::Down);
    assert_eq!(name(&seen), "wa_prev_idle");
    let hidden = ROWS.len() - seen.state.listed().len();
    assert!(hidden > 0);
    seen.press(Action::Zeros);
    assert_eq!(seen.state.listed().len(), ROWS.len());
}

#[test]
fn arrows_move_to_the_item_drawn_there() {
    use Action::*;
    let mut seen = Seen::new(THREADRIPPER, 120, 24);
    // Threads of a core are n and n + 32, and four caches are side by side.
    let path = [
        (Right, 32),
        (Right, 4),
        (Left, 32),
        (Left, 0),
        (Left, 0),
        (Up, 0),
        (Down, 1),
        (Down, 2),
        (Down, 3),
        (Down, 16),
        (Right, 48),
        (Up, 35),
        (End, 51),
        (PageUp, 32),
        (PageDown, 51),
        (Home, 32),
    ];
    for (step, (action, cpu)) in path.into_iter().enumerate() {
        assert_eq!(seen.press(action), Some(cpu), "step {step}: {action:?}");
    }
}

#[test]
fn in_every_picture_they_go_that_way_or_stay() {
    use Action::*;
    // Cores, bars of threads, LLCs, nodes.
    for (shape, width, height) in [
        (EIGHT, 80, 18),
        (THREADRIPPER, 120, 24),
        (THREADRIPPER, 80, 20),
        (LARGE, 120, 40),
        (LARGE, 80, 24),
        (LARGE, 60, 12),
    ] {
        let mut seen = Seen::new(shape, width, height);
        let mut moves = 0;
        for action in [Right, Right, Down, Down, Left, Down, Right, Up, Left, Up] {
            let (was, before) = (seen.state.chosen.cpu, seen.chosen().unwrap());
            let now = seen.press(action);
            let after = seen.chosen().unwrap();
            let goes = match action {
                Right => after.0 == before.0 && after.1 > before.1,
                Left => after.0 == before.0 && after.1 < before.1,
                Down => after.0 > before.0,
                _ => after.0 < before.0,
            };
            let stays = now == was && after == before;
            assert!(
                goes || stays,
                "{width}x{height} {action:?}: {before:?} {after:?}"
            );
            moves += usize::from(goes);
        }
        assert!(moves >= 3, "{width}x{height}: {moves}");
    }
}

/// A CPU for which there is no room can be chosen, and its facts are shown.
#[test]
fn what_is_hidden_can_be_chosen() {
    let mut seen = Seen::new(LARGE, 40, 10);
    let last = seen.press(Action::End);
    assert_ne!(last, Some(0));
    assert!(
        picture(&seen.state, 40, 10)
            .iter()
            .any(|l| l.contains(&format!("CPU {}", last.unwrap())))
    );
}

#[test]
fn before_the_first_picture_they_do_nothing() {
    let mut state = in_view(EIGHT, View::Machine);
    state.act(Action::Right);
    assert_eq!(state.chosen.cpu, Some(0));
}
