// SPDX-License-Identifier: GPL-2.0-only
//! View Conditions: states that an operator may want to act on, and the daemon's own events and
//! gauges.

use super::Room;
use super::text::{Row, row};
use super::theme::Role;
use crate::clients::monitor::state::State;
use crate::util::text::wrap;
use crate::wire::stats::host::{Condition, EVENTS, GAUGES};

const NAME: usize = 24;

pub fn rows(state: &State, room: Room) -> Vec<Row> {
    let first = state.chosen.line.min(last_line(state, room));
    let rows = all(state, room).into_iter();
    rows.skip(first).take(room.height).collect()
}

/// Number of lines above the window when the last line is visible.
pub fn last_line(state: &State, room: Room) -> usize {
    all(state, room).len().saturating_sub(room.height)
}

fn all(state: &State, room: Room) -> Vec<Row> {
    let Some(sample) = &state.sample else {
        return Vec::new();
    };
    let theme = room.theme;
    let (mut active, mut others) = (Vec::new(), Vec::new());
    for condition in Condition::ALL {
        let now = sample.totals.conditions.get(condition.name());
        let now = now.cloned().unwrap_or_default();
        let count = format!("{:>7} times", now.count);
        if now.active != 0 {
            let mut head = row(
                theme,
                Role::Warning,
                format!(" {:<NAME$}", condition.name()),
            );
            head.push(theme, Role::Plain, format!("{count}  "));
            active.push(head);
            active.extend(indented(room, Role::Plain, &now.text));
            active.extend(indented(room, Role::Faint, condition.help()));
        } else {
            let mut line = row(
                theme,
                Role::Faint,
                format!(" {:<NAME$}{count}  ", condition.name()),
            );
            line.push(theme, Role::Faint, condition.help());
            others.push(line);
        }
    }
    let mut rows = match active.is_empty() {
        true => vec![row(theme, Role::Good, " No condition is active")],
        false => active,
    };
    let tables = [
        ("Conditions that are not active", others),
        (
            "Events",
            values(room, EVENTS, &sample.totals.events.values()),
        ),
        ("Now", values(room, GAUGES, &sample.totals.gauges.values())),
    ];
    for (title, lines) in tables {
        rows.push(Row::default());
        rows.push(row(theme, Role::Heading, format!(" {title}")));
        rows.extend(lines);
    }
    rows
}

fn indented(room: Room, role: Role, text: &str) -> impl Iterator<Item = Row> {
    let lines = wrap(text, room.width.saturating_sub(4)).into_iter();
    lines.map(move |line| row(room.theme, role, format!("   {line}")))
}

fn values(room: Room, table: &[crate::wire::stats::host::HostRow], values: &[u64]) -> Vec<Row> {
    let line = |(row_of, value): (&crate::wire::stats::host::HostRow, &u64)| {
        let mut line = row(
            room.theme,
            Role::Plain,
            format!(" {:<NAME$}{value:>7}        ", row_of.name),
        );
        line.push(room.theme, Role::Faint, row_of.help);
        line
    };
    table.iter().zip(values).map(line).collect()
}
