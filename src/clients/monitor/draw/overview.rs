// SPDX-License-Identifier: GPL-2.0-only
//! View Overview: how busy the machine is, where wakeups go, which counters count most, and what is
//! wrong. What does not fit is left out from the end.

use super::text::{Row, micros, percent, rate, row};
use super::theme::Role;
use super::{Room, paragraph, sparkline};
use crate::bpf::intf;
use crate::clients::monitor::history::Line;
use crate::clients::monitor::rates::{ArmRates, wakeup_latency};
use crate::clients::monitor::sample::Sample;
use crate::clients::monitor::state::MonitorState;
use crate::clients::monitor::topology::sum;
use crate::wire::stats::ROWS;

/// Columns of a name and of its number.
const NAME: usize = 21;
const NUMBER: usize = 10;
const HEAD: usize = 1 + NAME + NUMBER;
/// Counters shown.
const MOST: usize = 6;

/// What a wakeup got, in words.
const PLACED: [(&str, intf::roost_stat); 4] = [
    ("its previous CPU", intf::roost_stat_STAT_placed_prev),
    ("a wholly idle core", intf::roost_stat_STAT_placed_idle_core),
    ("another LLC", intf::roost_stat_STAT_placed_other_llc),
    ("no idle CPU", intf::roost_stat_STAT_sis_none),
];

pub fn rows(state: &MonitorState, room: Room) -> Vec<Row> {
    let Some(sample) = &state.sample else {
        return Vec::new();
    };
    let rates = state.rates.as_ref().map(|r| &r.all);
    let blocks = [
        machine(state, sample, room),
        wrong(sample, room),
        rates.map_or_else(Vec::new, |rates| placed(rates, room)),
        caches(state, room),
        rates.map_or_else(Vec::new, |rates| most(rates, room)),
    ];
    let mut rows: Vec<Row> = Vec::new();
    for block in blocks.into_iter().filter(|block| !block.is_empty()) {
        if !rows.is_empty() {
            rows.push(Row::default());
        }
        rows.extend(block);
    }
    rows
}

fn named(room: Room, role: Role, name: &str, number: &str) -> Row {
    let mut line = row(room.theme, Role::Plain, format!(" {name:<NAME$.NAME$}"));
    line.push(room.theme, role, format!("{number:>NUMBER$}"));
    line.push(room.theme, Role::Plain, "  ");
    line
}

fn heading(room: Room, text: &str) -> Row {
    row(room.theme, Role::Heading, format!(" {text}"))
}

/// Busy, wakeups, waits: now, and as they were.
fn machine(state: &MonitorState, sample: &Sample, room: Room) -> Vec<Row> {
    let wide = room.width.saturating_sub(HEAD + 3);
    let past = |line| state.history.last(None, line, wide);
    let busy = sample.totals.gauges.busy_permille;
    let mut first = named(
        room,
        Role::Busy(busy),
        "busy",
        &format!("{} %", percent(busy)),
    );
    for part in past(Line::Busy) {
        let bar = room.theme.bar(part as u64).to_string();
        first.push(room.theme, Role::Busy(part as u64), bar);
    }
    let mut rows = vec![first];
    let Some(rates) = state.rates.as_ref().map(|r| &r.all) else {
        return rows;
    };
    let number = format!("{} /s", rate(rates.wakeups()));
    let mut wakeups = named(room, Role::Plain, "wakeups", &number);
    let bars = sparkline(room.theme, &past(Line::Wakeups));
    wakeups.push(room.theme, Role::Good, bars);
    rows.push(wakeups);
    let at = |share| rates.quantile(wakeup_latency(), share);
    if let (Some(half), Some(most)) = (at(0.5), at(0.99)) {
        let mut waited = named(room, Role::Plain, "waited, half below", &micros(half));
        waited.push(
            room.theme,
            Role::Faint,
            format!("99 % below {}", micros(most)),
        );
        rows.push(waited);
    }
    rows
}

fn wrong(sample: &Sample, room: Room) -> Vec<Row> {
    let text = |(name, text): (&str, &str)| format!("{name}: {text}");
    let active: Vec<String> = sample.active_conditions().map(text).collect();
    if active.is_empty() {
        return paragraph(room, Role::Good, "nothing is wrong");
    }
    let lines = active
        .iter()
        .flat_map(|text| paragraph(room, Role::Warning, text));
    lines.collect()
}

fn placed(rates: &ArmRates, room: Room) -> Vec<Row> {
    let line = |(name, counter): &(&str, intf::roost_stat)| {
        let share = rates
            .share(*counter as usize)
            .filter(|share| *share > 0.0)?;
        let mut line = named(room, Role::Plain, name, &format!("{share:.0} %"));
        let wide = room.width.saturating_sub(line.width() + 1).min(50);
        line.push(
            room.theme,
            Role::Good,
            room.theme.stripe(share / 100.0, wide),
        );
        Some(line)
    };
    let lines: Vec<Row> = PLACED.iter().filter_map(line).collect();
    match lines.is_empty() {
        true => lines,
        false => [
            vec![heading(
                room,
                "Wakeups went to (one may be in several lines)",
            )],
            lines,
        ]
        .concat(),
    }
}

/// How busy each LLC is, if there are several.
fn caches(state: &MonitorState, room: Room) -> Vec<Row> {
    let llcs: Vec<_> = state.nodes.iter().flat_map(|node| &node.llcs).collect();
    if llcs.len() < 2 {
        return Vec::new();
    }
    let mut line = named(room, Role::Plain, "LLCs, each", "");
    for llc in llcs {
        let busy = sum(llc.cores.iter()).busy_permille;
        if line.width() + 1 < room.width {
            line.push(
                room.theme,
                Role::Busy(busy),
                room.theme.bar(busy).to_string(),
            );
        }
    }
    vec![line]
}

/// The counters that count most, in words.
fn most(rates: &ArmRates, room: Room) -> Vec<Row> {
    let mut counters: Vec<usize> = (0..ROWS.len())
        .filter(|c| rates.counters[*c] > 0.0)
        .collect();
    counters.sort_by(|a, b| rates.counters[*b].total_cmp(&rates.counters[*a]));
    let line = |counter: &usize| {
        let number = format!("{} /s", rate(rates.counters[*counter]));
        let mut line = named(room, Role::Plain, ROWS[*counter].name, &number);
        let wide = room.width.saturating_sub(line.width() + 1);
        let help: String = ROWS[*counter].help.chars().take(wide).collect();
        line.push(room.theme, Role::Faint, help);
        line
    };
    let lines: Vec<Row> = counters.iter().take(MOST).map(line).collect();
    match lines.is_empty() {
        true => lines,
        false => [vec![heading(room, "Counted most")], lines].concat(),
    }
}
