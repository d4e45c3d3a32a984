// SPDX-License-Identifier: GPL-2.0-only
//! View Rates: the groups of counters, flowing through columns.

use super::text::{Row, rate, row};
use super::theme::Role;
use super::{Room, paragraph, sparkline};
use crate::clients::monitor::history::Line;
use crate::clients::monitor::state::MonitorState;
use crate::util::text::wrap;
use crate::wire::stats::ROWS;

const NAME: usize = 23;
const COLUMN: usize = NAME + 8;
const GAP: usize = 3;
/// Lines about the chosen counter: a rule, its value and help (two lines), its past.
const BELOW: usize = 4;

/// A cell of a column.
enum Item {
    Gap,
    Group(&'static str),
    Counter(usize),
}

pub fn rows(state: &MonitorState, room: Room) -> Vec<Row> {
    let below = if room.height >= 3 * BELOW {
        BELOW
    } else {
        usize::from(room.height > 2)
    };
    let height = room.height - below;
    let mut rows = table(state, Room { height, ..room });
    let tail = past(state, room, below);
    rows.resize_with(room.height - tail.len().min(room.height), Row::default);
    rows.extend(tail);
    rows
}

/// Rate for the chosen arm or for all. None: the counter does not count by arm.
fn value(state: &MonitorState, counter: usize) -> Option<f64> {
    let arm = state.chosen.arm.as_deref();
    if arm.is_some() && ROWS[counter].machine {
        return None;
    }
    let rates = state.rates.as_ref().and_then(|r| r.of(arm));
    Some(rates.map_or(0.0, |r| r.counters[counter]))
}

/// By group.
fn items(state: &MonitorState) -> Vec<Item> {
    let listed = state.listed().into_iter();
    let mut items = Vec::new();
    let numbered: Vec<(usize, &str)> = listed.map(|c| (c, ROWS[c].group)).collect();
    for group in numbered.chunk_by(|a, b| a.1 == b.1) {
        if !items.is_empty() {
            items.push(Item::Gap);
        }
        items.push(Item::Group(group[0].1));
        items.extend(group.iter().map(|(index, _)| Item::Counter(*index)));
    }
    items
}

fn table(state: &MonitorState, room: Room) -> Vec<Row> {
    let (items, height) = (items(state), room.height.max(1));
    if items.is_empty() {
        return paragraph(
            room,
            Role::Faint,
            "nothing was counted yet; z shows all counters",
        );
    }
    let columns = ((room.width.saturating_sub(1) + GAP) / (COLUMN + GAP)).max(1);
    let counter = state.counter();
    let is_chosen = |item: &Item| matches!(item, Item::Counter(i) if *i == counter);
    let chosen = items.iter().position(is_chosen).unwrap_or(0);
    // Scroll by whole columns, so that nothing moves while the chosen counter stays visible.
    let column = chosen / height;
    let first = (column + 1).saturating_sub(columns) * height;
    let mut rows = vec![Row::default(); height];
    for (place, item) in items.iter().skip(first).take(columns * height).enumerate() {
        let row = &mut rows[place % height];
        row.pad(1 + place / height * (COLUMN + GAP));
        put(row, item, is_chosen(item), state, room);
    }
    rows
}

fn put(row: &mut Row, item: &Item, chosen: bool, state: &MonitorState, room: Room) {
    match item {
        Item::Gap => (),
        Item::Group(name) => {
            let name: String = name.chars().take(COLUMN).collect();
            row.push(room.theme, Role::Heading, name);
        }
        Item::Counter(index) => {
            let value = value(state, *index);
            let role = match chosen {
                true => Role::Chosen,
                false if value.unwrap_or(0.0) == 0.0 => Role::Faint,
                false => Role::Plain,
            };
            let text = value.map_or("-".to_string(), rate);
            let text = format!("{:<NAME$} {text:>7}", ROWS[*index].name);
            row.push(room.theme, role, text);
        }
    }
}

/// What the chosen counter means, and its last values.
fn past(state: &MonitorState, room: Room, lines: usize) -> Vec<Row> {
    let theme = room.theme;
    let chosen = state.counter();
    let arm = state.chosen.arm.as_deref();
    let of = arm.map_or("all arms".to_string(), |arm| format!("arm {arm}"));
    let wide = room.width.saturating_sub(12);
    let (now, values) = match value(state, chosen) {
        Some(now) => (
            format!("{} /s, {of}", rate(now)),
            state.history.last(arm, Line::Counter(chosen), wide),
        ),
        None => ("not counted per arm".to_string(), Vec::new()),
    };
    let head = format!(" {}: {now}", ROWS[chosen].name);
    let most = values.iter().copied().fold(0.0, f64::max);
    let mut bars = row(theme, Role::Good, format!(" {}", sparkline(theme, &values)));
    bars.push(theme, Role::Faint, format!(" max {}", rate(most)));
    match lines {
        0 => vec![],
        1 => vec![row(theme, Role::Heading, head)],
        _ => {
            let rule = theme.rule().repeat(room.width);
            let help = wrap(ROWS[chosen].help, room.width.saturating_sub(head.len() + 3));
            let mut head = row(theme, Role::Heading, head + "  ");
            head.push(
                theme,
                Role::Faint,
                help.first().cloned().unwrap_or_default(),
            );
            let more = help.get(1..).unwrap_or_default().join(" ");
            vec![
                row(theme, Role::Faint, rule),
                head,
                row(theme, Role::Faint, format!(" {more}")),
                bars,
            ]
        }
    }
}
