// SPDX-License-Identifier: GPL-2.0-only
//! What is run for a table: each machine, workload and policy once for each seed, however many rows ask for it.

use super::metric::Metric;
use crate::sim::args::{setting, text};
use crate::sim::load::{Load, Settings};
use crate::sim::{Measured, Model, Policy, Scenario, model, runs};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Short runs have this part of the warm-up and of the time that is measured.
const SHORT: u64 = 10;

/// A machine, a workload with its settings, and a policy, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub machine: &'static str,
    pub load: &'static str,
    pub policy: &'static str,
}

/// A parameter of the machines is at an end of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extreme {
    pub name: &'static str,
    pub high: bool,
}

/// A case that can be run.
struct Ready {
    model: Model,
    load: Load,
    policy: Policy,
}

/// How often, and how long.
#[derive(Clone, Debug)]
pub struct Effort {
    pub seeds: Range<u64>,
    /// For tests: a tenth of the time.
    pub short: bool,
    /// Parameters that are other, as NAME=VALUE.
    pub params: Vec<String>,
}

impl Effort {
    /// Of each case.
    pub fn runs(&self) -> u64 {
        self.seeds.end - self.seeds.start
    }
}

/// What came of cases, a run for each seed; or why it cannot be run.
pub struct Outcomes(BTreeMap<Case, Result<Vec<Measured>, String>>);

impl Outcomes {
    /// Runs them, with the parameters as they are and with each extreme: outcomes for each of these. Errors: a workload or policy
    /// of a case is none; there is no such parameter.
    pub fn of(
        cases: &BTreeSet<Case>,
        effort: &Effort,
        extremes: &[Extreme],
    ) -> Result<(Outcomes, Vec<Outcomes>)> {
        let mut all: Vec<Outcomes> = Vec::new();
        let mut ready = Vec::new();
        let each = [None].into_iter().chain(extremes.iter().map(Some));
        for (set, extreme) in each.enumerate() {
            all.push(Outcomes(BTreeMap::new()));
            for &case in cases {
                match case.ready(effort, extreme)? {
                    Ok(case_ready) => ready.push((set, case, case_ready)),
                    Err(why) => drop(all[set].0.insert(case, Err(why))),
                }
            }
        }
        let seeds = effort.runs() as usize;
        let measured = runs::all(ready.len() * seeds, |at| {
            let ready = &ready[at / seeds].2;
            let scenario = Scenario {
                model: &ready.model,
                load: ready.load.clone(),
                policy: &ready.policy,
                seed: effort.seeds.start + (at % seeds) as u64,
            };
            Ok(scenario.run().map_err(|e| format!("{e:#}")))
        })?;
        let mut measured = measured.into_iter();
        for (set, case, _) in ready {
            // All are taken, also behind one that failed.
            let runs: Vec<_> = measured.by_ref().take(seeds).collect();
            all[set].0.insert(case, runs.into_iter().collect());
        }
        let extremes = all.split_off(1);
        Ok((all.remove(0), extremes))
    }

    /// The metric for each seed, of workloads that are run one after the other; or why there is none.
    pub fn values(
        &self,
        machine: &'static str,
        loads: &[&'static str],
        policy: &'static str,
        metric: Metric,
    ) -> Result<Vec<f64>, String> {
        let runs = loads.iter().map(|&load| {
            let case = Case {
                machine,
                load,
                policy,
            };
            self.0[&case].as_ref().map_err(String::clone)
        });
        let runs: Vec<&Vec<Measured>> = runs.collect::<Result<_, _>>()?;
        let seeds = 0..runs[0].len();
        let values = seeds.map(|seed| {
            let parts: Vec<&Measured> = runs.iter().map(|r| &r[seed]).collect();
            metric.of(&parts)
        });
        let values = values.collect::<Result<Vec<f64>>>();
        values.map_err(|e| format!("{e:#}"))
    }
}

impl Case {
    /// Why it cannot be run. Errors: its workload or policy is none.
    pub fn not_ready(self) -> Result<Option<String>> {
        let effort = Effort {
            seeds: 0..1,
            short: true,
            params: Vec::new(),
        };
        Ok(self.ready(&effort, None)?.err())
    }

    /// Or why it cannot be run. Errors: its workload or policy is none.
    fn ready(self, effort: &Effort, extreme: Option<&Extreme>) -> Result<Result<Ready, String>> {
        let load = read(self.load).with_context(|| format!("cells.tsv: {}", self.load))?;
        let Some(mut model) = model(self.machine) else {
            return Ok(Err(format!("machine {} not modelled", self.machine)));
        };
        let mut params = effort.params.iter();
        params.try_for_each(|text| model.params.change(text))?;
        if let Some(extreme) = extreme {
            extreme.take(&mut model)?;
        }
        let policy = Policy::parse(self.policy);
        let policy = policy.with_context(|| format!("cells.tsv: {}", self.policy))?;
        let load = match effort.short {
            true => shortened(load),
            false => load,
        };
        Ok(Ok(Ready {
            model,
            load,
            policy,
        }))
    }
}

impl Extreme {
    fn take(&self, model: &mut Model) -> Result<()> {
        let Some(param) = model.params.get(self.name) else {
            return Ok(());
        };
        let end = if self.high { param.high } else { param.low };
        model.params.set(self.name, end)
    }
}

/// A workload by name and what is other: params, and `warmup` and `duration`.
fn read(words: &str) -> Result<Load> {
    let mut words = words.split_whitespace();
    let name = words.next().context("a workload was expected")?;
    let mut settings = words.map(setting).collect::<Result<Settings>>()?;
    let (warmup, duration) = (settings.remove("warmup"), settings.remove("duration"));
    let mut load = Load::parse(&text(name)?, &settings)?;
    if let Some(warmup) = warmup {
        load.warmup = warmup as u64;
    }
    if let Some(duration) = duration {
        load.duration = Some(duration as u64);
    }
    Ok(load)
}

fn shortened(mut load: Load) -> Load {
    load.warmup /= SHORT;
    load.duration = load.duration.map(|d| d / SHORT);
    load
}
