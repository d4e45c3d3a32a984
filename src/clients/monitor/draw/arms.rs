// SPDX-License-Identifier: GPL-2.0-only
//! View Arms: arms side by side.

use super::text::{Row, micros, rate, row};
use super::theme::Role;
use super::{Room, paragraph, sparkline};
use crate::bpf::intf;
use crate::clients::monitor::history::Line;
use crate::clients::monitor::rates::{ArmRates, wakeup_latency};
use crate::clients::monitor::state::MonitorState;

/// A column: two lines of heading, width, and the text for an arm.
type Column = (&'static str, &'static str, usize, fn(&ArmRates) -> String);

const NAME: usize = 16;
const PRESET: usize = 22;
/// A longer name leaves a blank before the next column.
const CUT: usize = PRESET - 1;
const NUMBERS: &[Column] = &[
    ("wakeups", "/s", 9, |arm| rate(arm.wakeups())),
    ("latency", "p50", 9, |arm| latency(arm, 0.5)),
    ("latency", "p99", 9, |arm| latency(arm, 0.99)),
    ("previous", "CPU", 10, |arm| {
        part(arm, intf::roost_stat_STAT_placed_prev)
    }),
    ("idle", "core", 7, |arm| {
        part(arm, intf::roost_stat_STAT_placed_idle_core)
    }),
    ("other", "LLC", 8, |arm| {
        part(arm, intf::roost_stat_STAT_placed_other_llc)
    }),
    ("nothing", "idle", 9, |arm| {
        part(arm, intf::roost_stat_STAT_sis_none)
    }),
    ("preempts", "/s", 10, |arm| {
        rate(arm.counters[intf::roost_stat_STAT_preempt_wakeup as usize])
    }),
];

fn latency(arm: &ArmRates, share: f64) -> String {
    let quantile = arm.quantile(wakeup_latency(), share);
    quantile.map_or("-".to_string(), micros)
}

fn part(arm: &ArmRates, counter: intf::roost_stat) -> String {
    let share = arm.share(counter as usize);
    share.map_or("-".to_string(), |percent| format!("{percent:.0} %"))
}

pub fn rows(state: &MonitorState, room: Room) -> Vec<Row> {
    let theme = room.theme;
    let preset = room.width >= 100;
    let name_width = if room.width < 50 { NAME - 6 } else { NAME };
    let line = |name: &str, preset_name: &str, role, cell: &dyn Fn(&Column) -> String| {
        let mut text = format!(" {name:<name_width$.name_width$}");
        if preset {
            text += &format!("{preset_name:<PRESET$.CUT$}");
        }
        for column in NUMBERS {
            if text.chars().count() + column.2 <= room.width {
                text += &format!("{:>1$}", cell(column), column.2);
            }
        }
        row(theme, role, text)
    };
    let mut rows = Vec::new();
    if room.height > 3 {
        rows.push(line("", "", Role::Heading, &|c| c.0.to_string()));
        rows.push(line("arm", "preset", Role::Heading, &|c| c.1.to_string()));
    }
    let mut arms = vec![None];
    arms.extend(state.arms().into_iter().map(Some));
    let chosen = state.chosen.arm.as_deref();
    let at = arms.iter().position(|arm| *arm == chosen).unwrap_or(0);
    let lines = arms.iter().map(|arm| {
        let role = if *arm == chosen {
            Role::Chosen
        } else {
            Role::Plain
        };
        let rates = state.rates.as_ref().and_then(|r| r.of(*arm));
        let cell = |c: &Column| rates.map_or("-".to_string(), c.3);
        line(arm.unwrap_or("all"), preset_of(state, *arm), role, &cell)
    });
    let lines: Vec<Row> = lines.collect();
    let room_for_arms = room.height.saturating_sub(rows.len());
    rows.extend(super::window(lines, at, room_for_arms));
    rows.extend(below(state, room));
    rows
}

fn preset_of<'a>(state: &'a MonitorState, arm: Option<&str>) -> &'a str {
    let arms = state.sample.as_ref().map(|s| &s.totals.arms);
    let arm = arm.and_then(|name| arms?.get(name));
    arm.map_or("", |arm| arm.preset.as_str())
}

/// Wakeups of the chosen arm over time, and its features.
fn below(state: &MonitorState, room: Room) -> Vec<Row> {
    let theme = room.theme;
    let arm = state.chosen.arm.as_deref();
    let name = arm.map_or("all arms".to_string(), |arm| format!("arm {arm}"));
    let values = state
        .history
        .last(arm, Line::Wakeups, room.width.saturating_sub(14));
    let most = values.iter().copied().fold(0.0, f64::max);
    let mut bars = row(theme, Role::Good, format!(" {}", sparkline(theme, &values)));
    bars.push(theme, Role::Faint, format!(" max {}", rate(most)));
    let mut rows = vec![
        Row::default(),
        row(theme, Role::Heading, format!(" wakeups/s, {name}")),
        bars,
    ];
    let arms = state.sample.as_ref().map(|s| &s.totals.arms);
    if let Some(arm) = arms.and_then(|arms| arms.get(state.one_arm())) {
        rows.push(Row::default());
        let head = format!(" features of arm {}", state.one_arm());
        rows.push(row(theme, Role::Heading, head));
        rows.extend(paragraph(room, Role::Plain, &arm.features));
    }
    rows
}
