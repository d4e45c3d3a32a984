// SPDX-License-Identifier: GPL-2.0-only
//! Rates of the last samples, for each arm and for all arms together. Sparklines show them.

use super::rates::Rates;
use crate::wire::stats::NR_STATS;
use std::collections::{BTreeMap, VecDeque};

/// Number of samples kept: the columns of a wide terminal.
const LENGTH: usize = 240;

#[derive(Clone, Debug, Default)]
pub struct History(BTreeMap<Option<String>, VecDeque<Point>>);

#[derive(Clone, Debug)]
struct Point {
    counters: Box<[f32; NR_STATS]>,
    wakeups: f32,
    /// Of the machine, in permille.
    busy: f32,
}

/// The quantity that a sparkline shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Line {
    Counter(usize),
    Wakeups,
    Busy,
}

impl History {
    pub fn add(&mut self, rates: &Rates, busy_permille: u64) {
        self.0.retain(|arm, _| {
            arm.as_ref()
                .is_none_or(|name| rates.arms.contains_key(name))
        });
        let arms = rates
            .arms
            .iter()
            .map(|(name, arm)| (Some(name.clone()), arm));
        for (name, arm) in arms.chain([(None, &rates.all)]) {
            let points = self.0.entry(name).or_default();
            points.push_back(Point {
                counters: Box::new(arm.counters.map(|rate| rate as f32)),
                wakeups: arm.wakeups() as f32,
                busy: busy_permille as f32,
            });
            if points.len() > LENGTH {
                points.pop_front();
            }
        }
    }

    /// At most the last `count` values, the latest last.
    pub fn last(&self, arm: Option<&str>, line: Line, count: usize) -> Vec<f64> {
        let Some(points) = self.0.get(&arm.map(str::to_string)) else {
            return Vec::new();
        };
        let value = |point: &Point| match line {
            Line::Counter(index) => point.counters[index],
            Line::Wakeups => point.wakeups,
            Line::Busy => point.busy,
        };
        let skipped = points.len().saturating_sub(count);
        points
            .iter()
            .skip(skipped)
            .map(|p| value(p).into())
            .collect()
    }
}
