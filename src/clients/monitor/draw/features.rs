// SPDX-License-Identifier: GPL-2.0-only
//! View Features: which features are on, by arm.

use super::text::{Row, row};
use super::theme::Role;
use super::{Room, window};
use crate::clients::monitor::choose::Target;
use crate::clients::monitor::sample::Sample;
use crate::clients::monitor::state::State;
use crate::policy::features::{FEATURES, Feature};
use crate::util::text::wrap;

const NAME: usize = 24;
const ARM: usize = 17;

pub fn rows(state: &State, room: Room) -> Vec<Row> {
    let theme = room.theme;
    let Some(sample) = &state.sample else {
        return Vec::new();
    };
    if room.width < 1 + NAME + ARM {
        return narrow(state, sample, room);
    }
    let arms = shown(state, room);
    let on: Vec<Vec<bool>> = arms.iter().map(|arm| sample.features_of(arm)).collect();
    let mut head = row(theme, Role::Heading, format!(" {:<NAME$}", "feature"));
    for arm in &arms {
        head.push(theme, Role::Heading, format!("{arm:<ARM$}"));
    }
    let mut lines = Vec::new();
    for (index, feature) in FEATURES.iter().enumerate() {
        let chosen = index == state.chosen.feature;
        let indent = if feature.parent.is_empty() { "" } else { "  " };
        let name = format!("{indent}{}", feature.name);
        let role = if chosen { Role::Heading } else { Role::Plain };
        let mut line = row(theme, role, format!(" {name:<NAME$}"));
        for (place, (arm, on)) in arms.iter().zip(&on).enumerate() {
            let role = match (chosen && *arm == state.one_arm(), on[index]) {
                (true, _) => Role::Chosen,
                (_, true) => Role::Good,
                (_, false) => Role::Faint,
            };
            line.mark(Target::Feature(index, arm.to_string()));
            line.push(theme, role, theme.on_off(on[index]));
            line.pad(1 + NAME + (place + 1) * ARM);
        }
        lines.push(line);
    }
    let below = below(state, room);
    let height = room.height.saturating_sub(below.len() + 1);
    let mut rows = vec![head];
    rows.extend(window(lines, state.chosen.feature, height));
    rows.resize_with(room.height.saturating_sub(below.len()), Row::default);
    rows.extend(below);
    rows
}

fn column_of(arms: &[&str], arm: &str) -> usize {
    arms.iter().position(|a| *a == arm).unwrap_or(0)
}

/// For narrow terminals: only the chosen arm, with the state before the name.
fn narrow(state: &State, sample: &Sample, room: Room) -> Vec<Row> {
    let theme = room.theme;
    let on = sample.features_of(state.one_arm());
    let line = |(index, feature): (usize, &Feature)| {
        let role = match (index == state.chosen.feature, on[index]) {
            (true, _) => Role::Chosen,
            (_, true) => Role::Good,
            (_, false) => Role::Faint,
        };
        let text = format!("{:<6} {}", theme.on_off(on[index]), feature.name);
        row(theme, role, text)
    };
    let lines = FEATURES.iter().enumerate().map(line).collect();
    let head = format!(" arm {}", state.one_arm());
    let mut rows = vec![row(theme, Role::Heading, head)];
    let height = room.height.saturating_sub(1);
    rows.extend(window(lines, state.chosen.feature, height));
    rows
}

/// The arms that fit, including the chosen one.
fn shown(state: &State, room: Room) -> Vec<&str> {
    let arms = state.arms();
    let fit = (room.width.saturating_sub(1 + NAME) / ARM).max(1);
    window(arms.clone(), column_of(&arms, state.one_arm()), fit)
}

/// Help text of the chosen feature.
fn below(state: &State, room: Room) -> Vec<Row> {
    let (theme, feature) = (room.theme, state.feature());
    if room.height < 8 {
        return Vec::new();
    }
    let of = match feature.parent {
        "" => String::new(),
        parent => format!("with {parent}: "),
    };
    let text = format!("{of}{} ({})", feature.help, feature.source);
    let lines = wrap(&text, room.width.saturating_sub(2))
        .into_iter()
        .take(2);
    let mut rows = vec![row(theme, Role::Faint, theme.rule().repeat(room.width))];
    rows.push(row(theme, Role::Heading, format!(" {}", feature.name)));
    rows.extend(lines.map(|line| row(theme, Role::Plain, format!(" {line}"))));
    rows
}
