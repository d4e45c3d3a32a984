// SPDX-License-Identifier: GPL-2.0-only
//! The runs of the matrix. Each machine, workload and policy runs once for each seed.

use super::metric::Metric;
use crate::load::{Load, Settings};
use crate::workloads::{setting, text};
use crate::{Measured, Model, Policy, Scenario, Times, model, runs};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops;

/// Short runs have the warm-up and the measured time divided by this.
const SHORT: u64 = 10;

/// A machine, a workload with its settings, and a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub machine: &'static str,
    pub load: &'static str,
    pub policy: &'static str,
}

/// A case that can be run.
struct Ready {
    model: Model,
    load: Load,
    policy: Policy,
}

/// How many runs, and how long.
#[derive(Clone, Debug)]
pub struct Effort {
    pub seeds: ops::Range<u64>,
    /// For tests: a tenth of the time.
    pub short: bool,
    /// Parameters with other values, as NAME=VALUE.
    pub params: Vec<String>,
}

impl Effort {
    /// Runs of each case.
    pub fn runs(&self) -> u64 {
        self.seeds.end - self.seeds.start
    }
}

/// The runs of all cases, one for each seed; or why a case cannot be run.
pub struct Outcomes(BTreeMap<Case, Result<Vec<Measured>, String>>);

impl Outcomes {
    /// Runs the cases. Errors: a machine, workload or policy of a case is invalid; there is no such
    /// parameter.
    pub fn of(cases: &BTreeSet<Case>, effort: &Effort) -> Result<Outcomes> {
        let ready = cases.iter().map(|case| case.ready(effort));
        let ready = ready.collect::<Result<Vec<Ready>>>()?;
        let jobs = (0..ready.len()).flat_map(|at| effort.seeds.clone().map(move |seed| (at, seed)));
        let jobs: Vec<(usize, u64)> = jobs.collect();
        let mut measured = runs::all(jobs.len(), |job| {
            let (at, seed) = jobs[job];
            Ok(ready[at].run(seed))
        })?
        .into_iter();
        let mut next = || measured.by_ref().take(effort.runs() as usize).collect();
        Ok(Outcomes(cases.iter().map(|&case| (case, next())).collect()))
    }

    /// The metric for each seed; or why there is none.
    pub fn values(&self, case: Case, metric: Metric) -> Result<Vec<f64>, String> {
        let runs = self.0[&case].as_ref().map_err(String::clone)?;
        let values = runs.iter().map(|run| metric.of(run));
        let values = values.collect::<Result<Vec<f64>>>();
        values.map_err(|e| format!("{e:#}"))
    }
}

impl Ready {
    /// Runs it. Wakeup times are dropped: the matrix does not need them, and all runs are kept in
    /// memory.
    fn run(&self, seed: u64) -> Result<Measured, String> {
        let scenario = Scenario {
            model: &self.model,
            load: self.load.clone(),
            policy: &self.policy,
            seed,
        };
        let mut measured = scenario.run().map_err(|e| format!("{e:#}"))?;
        measured.wakeups = Times::default();
        Ok(measured)
    }
}

impl Case {
    fn ready(self, effort: &Effort) -> Result<Ready> {
        let told = |what: &str| format!("matrix.tsv: {what}");
        let mut load = read(self.load).with_context(|| told(self.load))?;
        let mut model = model(self.machine).with_context(|| told(self.machine))?;
        let mut params = effort.params.iter();
        params.try_for_each(|text| model.params.change(text))?;
        let policy = Policy::parse(self.policy).with_context(|| told(self.policy))?;
        if effort.short {
            load.warmup /= SHORT;
            load.duration = load.duration.map(|d| d / SHORT);
        }
        Ok(Ready {
            model,
            load,
            policy,
        })
    }
}

/// Reads a workload by name and its settings.
fn read(words: &str) -> Result<Load> {
    let mut words = words.split_whitespace();
    let name = words.next().context("a workload was expected")?;
    let settings = words.map(setting).collect::<Result<Settings>>()?;
    Load::parse(&text(name)?, &settings)
}
