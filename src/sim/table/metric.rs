// SPDX-License-Identifier: GPL-2.0-only
//! What is read of a run, and how it changes from one policy to another.

use super::Figure;
use crate::sim::Measured;
use anyhow::{Context, Result};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// ns, of the whole run or per counted item.
    Time,
    /// Counted items per second.
    Rate,
    /// us that this many of a thousand of the workload's latencies do not exceed.
    Quantile(u64),
    /// Per counted item.
    Migrations,
    Switches,
    /// Per second of a busy CPU.
    MigrationsBusy,
    SwitchesBusy,
    /// The mean number of busy CPUs.
    BusyCpus,
}

const NAMES: [(&str, Metric); 7] = [
    ("time", Metric::Time),
    ("rate", Metric::Rate),
    ("migrations", Metric::Migrations),
    ("switches", Metric::Switches),
    ("migrations/busy", Metric::MigrationsBusy),
    ("switches/busy", Metric::SwitchesBusy),
    ("busy-cpus", Metric::BusyCpus),
];

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Metric::Quantile(permille) => f.pad(&format!("p{}", *permille as f64 / 10.0)),
            _ => f.pad(
                NAMES
                    .iter()
                    .find(|(_, m)| m == self)
                    .expect("it is there")
                    .0,
            ),
        }
    }
}

impl Metric {
    /// Reads `time`, `p99.5` and so on. Errors: there is no such metric.
    pub fn parse(name: &str) -> Result<Metric> {
        if let Some(percent) = name.strip_prefix('p').and_then(|p| p.parse::<f64>().ok()) {
            return Ok(Metric::Quantile((percent * 10.0).round() as u64));
        }
        let known = NAMES.iter().find(|(known, _)| *known == name);
        Ok(known
            .with_context(|| format!("there is no metric {name}"))?
            .1)
    }

    /// Whether more of it is better. None: that depends on what is compared.
    pub fn more_is_better(self) -> Option<bool> {
        match self {
            Metric::Rate => Some(true),
            Metric::Time | Metric::Quantile(_) => Some(false),
            _ => None,
        }
    }

    /// The metric over workloads that run one after the other. Errors: the workload does not
    /// measure it.
    pub fn of(self, parts: &[&Measured]) -> Result<f64> {
        let each = parts.iter().map(|m| self.of_one(m));
        let sum = each.sum::<Result<f64>>()?;
        Ok(match self {
            // Times add up.
            Metric::Time => sum,
            _ => sum / parts.len() as f64,
        })
    }

    fn of_one(self, m: &Measured) -> Result<f64> {
        let busy = m.busy_ns as f64 / 1e9;
        let migrations = m.migrations as f64;
        Ok(match self {
            Metric::Time => m.time_of_one(),
            Metric::Rate => 1e9 / m.time_of_one(),
            Metric::Quantile(permille) => {
                let ns = m.quantile(permille).context("it measures no latency")?;
                ns as f64 / 1e3
            }
            Metric::Migrations => migrations / m.counted() as f64,
            Metric::Switches => m.switches as f64 / m.counted() as f64,
            Metric::MigrationsBusy => migrations / busy,
            Metric::SwitchesBusy => m.switches as f64 / busy,
            Metric::BusyCpus => m.busy_ns as f64 / m.ns() as f64,
        })
    }
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The change of the mean from `base` to `variant`, percent. Runs with the same seed are a pair, so
/// what the seed does to both is no error.
pub fn change(base: &[f64], variant: &[f64]) -> Figure {
    let (from, to) = (mean(base), mean(variant));
    let ratio = to / from;
    let n = base.len() as f64;
    let off = base.iter().zip(variant).map(|(b, v)| v / to - b / from);
    let spread: f64 = off.map(|off| off * off).sum();
    let error = (spread / (n - 1.0) / n).sqrt() * ratio * 100.0;
    Figure {
        value: (ratio - 1.0) * 100.0,
        error: (base.len() > 1).then_some(error),
    }
}
