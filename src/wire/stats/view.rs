// SPDX-License-Identifier: GPL-2.0-only
//! Metrics as text: a head line, then the groups of the table. Columns are fixed, so that intervals
//! can be compared by eye.

use super::{Metrics, ROWS, Row};
use crate::util::escape;
use std::fmt::Write;

const COLUMNS: usize = 4;
const NAME_WIDTH: usize = 22;

pub fn block(metrics: &Metrics) -> String {
    let mut text = head(metrics);
    let counters = metrics.counters();
    let rows: Vec<(&Row, u64)> = ROWS.iter().zip(counters).collect();
    for group in rows.chunk_by(|a, b| a.0.group == b.0.group) {
        let _ = writeln!(text, "{}", group[0].0.group);
        for line in group.chunks(COLUMNS) {
            let cells: Vec<String> = line.iter().map(|(row, n)| cell(row.name, *n)).collect();
            let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
        }
    }
    if metrics.arms.len() > 1 {
        text += &arms(metrics);
    }
    text.push('\n');
    text
}

/// Wakeup latency of each arm's tasks: the time from the wakeup until the task runs.
fn arms(metrics: &Metrics) -> String {
    let mut text = "arms\n".to_string();
    for (name, arm) in &metrics.arms {
        let latency = arm.histograms.wakeup_latency.iter();
        let wakeups = latency.fold(0u64, |sum, n| sum.saturating_add(*n));
        let line = format!(
            "  {name:<NAME_WIDTH$} {:>7} wakeups, p50 {} us, p99 {} us; {}",
            short(wakeups),
            arm.wakeup_p50_us,
            arm.wakeup_p99_us,
            arm.preset
        );
        text += &(escape::line(&line) + "\n");
    }
    text
}

fn head(m: &Metrics) -> String {
    let state = if m.running == 1 { "" } else { "  (not loaded)" };
    let line = format!(
        "scx_roost {}: {}; governor {}, cpuperf {}; restarts {}; {:.1} s{state}",
        m.preset,
        m.features,
        m.governor,
        m.cpuperf,
        m.restarts,
        m.interval_ms as f64 / 1000.0
    );
    (escape::line(&line) + "\n").into_owned()
}

fn cell(name: &str, n: u64) -> String {
    format!("{name:<NAME_WIDTH$} {:>7}", short(n))
}

/// At most seven characters below about 10^13.
fn short(n: u64) -> String {
    match n {
        0..10_000_000 => n.to_string(),
        10_000_000..10_000_000_000 => format!("{:.1}M", n as f64 / 1e6),
        _ => format!("{:.1}G", n as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ArmMetrics;
    use super::*;

    fn sample() -> Metrics {
        let mut m = Metrics {
            preset: "roost".into(),
            features: "prev_idle".into(),
            running: 1,
            ..Default::default()
        };
        m.interval_ms = 2500;
        m.sis_prev = 123;
        m
    }

    #[test]
    fn every_counter_is_shown_below_its_group() {
        let text = block(&sample());
        for row in ROWS {
            assert!(text.contains(row.name), "{}", row.name);
            assert!(
                text.contains(&format!("\n{}\n", row.group)),
                "{}",
                row.group
            );
        }
        assert!(text.contains(&cell("sis_prev", 123)));
        assert!(text.starts_with("scx_roost roost: prev_idle; "));
        assert!(text.contains("2.5 s\n"));
    }

    #[test]
    fn a_block_between_two_loads_says_so() {
        let mut m = sample();
        assert!(!head(&m).contains("(not loaded)"));
        m.running = 0;
        assert!(head(&m).ends_with("  (not loaded)\n"));
    }

    #[test]
    fn arms_are_shown_when_there_are_several() {
        let mut m = sample();
        m.arms.insert("default".into(), ArmMetrics::default());
        assert!(!block(&m).contains("\narms\n"));
        let mut arm = ArmMetrics {
            preset: "mainline".into(),
            wakeup_p99_us: 16,
            ..ArmMetrics::default()
        };
        arm.histograms.wakeup_latency = vec![5, 2];
        m.arms.insert("x".into(), arm);
        let line = format!(
            "{:<NAME_WIDTH$} {:>7} wakeups, p50 0 us, p99 16 us; mainline",
            "x", 7
        );
        assert!(block(&m).contains(&line), "{}", block(&m));
    }

    #[test]
    fn columns_stay_fixed() {
        let mut full = sample();
        full.set_counters(&[u64::MAX / 4_000_000_000; super::super::NR_STATS]);
        let starts = |text: &str| {
            text.lines()
                .skip(1)
                .map(|l| l.match_indices("  ").count() > 0)
                .collect::<Vec<_>>()
        };
        assert_eq!(starts(&block(&sample())), starts(&block(&full)));
        assert!(block(&full).lines().skip(1).all(|l| l.len() <= 132));
    }

    #[test]
    fn large_numbers_stay_short() {
        for (n, text) in [
            (0, "0"),
            (9_999_999, "9999999"),
            (10_000_000, "10.0M"),
            (12_345_678_901, "12.3G"),
        ] {
            assert_eq!(short(n), text);
        }
    }
}
