// SPDX-License-Identifier: GPL-2.0-only
//! What is read of a run, and the mean of it over seeds.

use crate::sim::Measured;
use anyhow::{Context, Result};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// ns, of the whole or of one of what is counted.
    Time,
    /// A second.
    Rate,
    /// Of the workload's latency: us that so many of a thousand do not exceed.
    Quantile(u64),
    /// For each of what is counted.
    Migrations,
    Switches,
    /// For each second of a CPU that works.
    MigrationsBusy,
    SwitchesBusy,
    /// CPUs that work, in the mean.
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
    /// `time`, `p99.5` and so on. Errors: there is none of that name.
    pub fn parse(name: &str) -> Result<Metric> {
        if let Some(percent) = name.strip_prefix('p').and_then(|p| p.parse::<f64>().ok()) {
            return Ok(Metric::Quantile((percent * 10.0).round() as u64));
        }
        let known = NAMES.iter().find(|(known, _)| *known == name);
        Ok(known
            .with_context(|| format!("there is no metric {name}"))?
            .1)
    }

    /// Whether more of it is better, where that can be said of a single policy.
    pub fn more_is_better(self) -> Option<bool> {
        match self {
            Metric::Rate => Some(true),
            Metric::Time | Metric::Quantile(_) => Some(false),
            _ => None,
        }
    }

    /// Of workloads that are run one after the other. Errors: the workload has no such thing.
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

/// A mean and its standard error.
#[derive(Clone, Copy, Debug)]
pub struct Mean {
    pub mean: f64,
    /// None: there is one run only.
    pub error: Option<f64>,
}

impl Mean {
    pub fn of(values: &[f64]) -> Mean {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let spread: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let error = (values.len() > 1).then(|| (spread / (n - 1.0) / n).sqrt());
        Mean { mean, error }
    }

    /// The change from `base` to this, percent; its error is that of the ratio of two independent means.
    pub fn change_from(self, base: Mean) -> Mean {
        let ratio = self.mean / base.mean;
        let part = |m: Mean| m.error.map(|e| e / m.mean);
        let error = part(self).zip(part(base));
        Mean {
            mean: (ratio - 1.0) * 100.0,
            error: error.map(|(a, b)| ratio * a.hypot(b) * 100.0),
        }
    }
}
