// SPDX-License-Identifier: GPL-2.0-only
//! View Latency: one histogram of one arm.

use super::text::{Row, micros, rate, row};
use super::theme::Role;
use super::{Room, paragraph};
use crate::clients::monitor::rates::ArmRates;
use crate::clients::monitor::state::State;
use crate::wire::stats::{HISTS, NR_BUCKETS};

/// Columns of a bucket's name and of its numbers.
const LABEL: usize = 18;
const NUMBERS: usize = 24;

pub fn rows(state: &State, room: Room) -> Vec<Row> {
    let theme = room.theme;
    let hist = state.chosen.hist.min(HISTS.len() - 1);
    let arm = state.chosen.arm.as_deref();
    let of = arm.map_or("all arms".to_string(), |arm| format!("arm {arm}"));
    let rates = state.rates.as_ref().and_then(|r| r.of(arm));
    let mut head = row(theme, Role::Heading, format!(" {}, {of}", HISTS[hist]));
    let Some(rates) = rates.filter(|r| r.events(hist) > 0.0) else {
        let nothing = "the last interval has no times; up and down choose another histogram, left and right another arm";
        return [vec![head], paragraph(room, Role::Faint, nothing)].concat();
    };
    let at = |share| rates.quantile(hist, share).map_or("-".to_string(), micros);
    let numbers = format!(
        ": {} /s; half within {}, 90 % within {}, 99 % within {}",
        rate(rates.events(hist)),
        at(0.5),
        at(0.9),
        at(0.99)
    );
    head.push(theme, Role::Plain, numbers);
    let mut rows = vec![head];
    if room.height > 6 {
        let columns = format!(" {:<LABEL$}{:>11}  so far", "", "");
        rows.push(Row::default());
        rows.push(row(theme, Role::Faint, columns));
    }
    let height = room.height.saturating_sub(rows.len());
    rows.extend(buckets(rates, hist, room, height));
    rows
}

/// One line per bucket, from the first used one to the last. If they do not fit, the fastest are
/// left out.
fn buckets(rates: &ArmRates, hist: usize, room: Room, height: usize) -> Vec<Row> {
    let (theme, counts) = (room.theme, &rates.hists[hist]);
    let used = |n: &u64| *n > 0;
    let first = counts.iter().position(used).unwrap_or(0);
    let last = counts.iter().rposition(used).unwrap_or(0);
    let first = first.max((last + 1).saturating_sub(height));
    let all: f64 = counts.iter().map(|n| *n as f64).sum();
    let most = counts.iter().copied().max().unwrap_or(0) as f64;
    let mut seen: f64 = counts[..first].iter().map(|n| *n as f64).sum();
    let mut rows = Vec::new();
    for (bucket, count) in counts.iter().enumerate().take(last + 1).skip(first) {
        let count = *count as f64;
        seen += count;
        let mut row = row(theme, Role::Plain, format!(" {:<LABEL$}", label(bucket)));
        let share = format!(
            "{:>8} /s {:>4.0} %",
            rate(count / rates.seconds()),
            seen * 100.0 / all
        );
        row.push(theme, Role::Plain, format!("{share:<NUMBERS$}"));
        let columns = room.width.saturating_sub(row.width() + 1);
        row.push(theme, Role::Good, theme.stripe(count / most, columns));
        rows.push(row);
    }
    rows
}

/// "16 us to 32 us", for example.
fn label(bucket: usize) -> String {
    let end = |i: usize| micros((1024u64 << i) / 1000);
    match bucket {
        0 => format!("below {}", end(1)),
        b if b + 1 == NR_BUCKETS => format!("from {}", end(b)),
        b => format!("{} to {}", end(b), end(b + 1)),
    }
}
