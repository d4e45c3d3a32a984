// SPDX-License-Identifier: GPL-2.0-only
//! The runs of a table. Each machine, workload and policy runs once for each seed, however many
//! rows ask for it.

use super::cells::Cell;
use super::metric::Metric;
use crate::sim::args::{setting, text};
use crate::sim::load::{Load, Range, Settings, number};
use crate::sim::{Measured, Model, Policy, Scenario, Times, model, runs};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops;
use std::sync::Arc;

/// Short runs have the warm-up and the measured time divided by this.
const SHORT: u64 = 10;
/// More seeds of a case are run up to this many events.
const CHEAP: u64 = 10_000_000;

/// A machine, a workload with its settings, and a policy, as in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub machine: &'static str,
    pub load: &'static str,
    pub policy: &'static str,
}

/// A parameter of the machines, or a param of a workload, at an end of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    Machine { name: &'static str, high: bool },
    Load(&'static str, Range<'static>, bool),
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
    /// The most runs of cases with short runs, as far as CHEAP allows.
    pub most_seeds: Option<u64>,
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

    /// The most runs of a case with short runs.
    pub fn most(&self) -> u64 {
        self.most_seeds.unwrap_or(0).max(self.runs())
    }

    /// More seeds for such a case, after the first ones.
    fn besides(&self, done: &[Measured]) -> ops::Range<u64> {
        let events: u64 = done.iter().map(|m| m.events).sum();
        let each = (events / self.runs()).max(1);
        let runs = (CHEAP / each).clamp(self.runs(), self.most());
        self.seeds.end..self.seeds.start.saturating_add(runs)
    }
}

/// The runs of one case, or why it cannot be run.
type Runs = Result<Arc<Vec<Measured>>, String>;

/// The runs of all cases, one for each seed; or why a case cannot be run.
#[derive(Default)]
pub struct Outcomes(BTreeMap<Case, Runs>);

impl Outcomes {
    /// Runs the cases, with the parameters as they are and with each extreme. Returns the outcomes
    /// of each. Errors: a workload or policy of a case is invalid; there is no such parameter.
    pub fn of(
        cases: &BTreeSet<Case>,
        effort: &Effort,
        extremes: &[Extreme],
    ) -> Result<(Outcomes, Vec<Outcomes>)> {
        let mut all: Vec<Outcomes> = Vec::new();
        let (mut asked, mut ready) = (Vec::new(), Vec::new());
        let each = [None].into_iter().chain(extremes.iter().map(Some));
        for (set, extreme) in each.enumerate() {
            all.push(Outcomes(BTreeMap::new()));
            for &case in cases {
                if extreme.is_some_and(|e| !e.concerns(case)) {
                    continue;
                }
                match case.ready(effort, extreme)? {
                    Ok(case_ready) => {
                        asked.push((set, case));
                        ready.push(case_ready);
                    }
                    Err(why) => drop(all[set].0.insert(case, Err(why))),
                }
            }
        }
        for ((set, case), runs) in asked.into_iter().zip(run(&ready, effort)?) {
            all[set].0.insert(case, runs);
        }
        let plain = all.remove(0);
        for outcomes in &mut all {
            for (&case, runs) in &plain.0 {
                outcomes.0.entry(case).or_insert_with(|| runs.clone());
            }
        }
        Ok((plain, all))
    }

    /// The metric of two policies for each seed that both have; or why there is none.
    pub fn pairs(
        &self,
        cell: &Cell,
        base: &'static str,
        variant: &'static str,
    ) -> Result<(Vec<f64>, Vec<f64>), String> {
        let of = |policy| self.values(cell.machine, &cell.loads, policy, cell.metric);
        let (mut base, mut variant) = (of(base)?, of(variant)?);
        let both = base.len().min(variant.len());
        base.truncate(both);
        variant.truncate(both);
        Ok((base, variant))
    }

    /// The metric for each seed, of workloads that run one after the other; or why there is none.
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
        let runs: Vec<&Arc<Vec<Measured>>> = runs.collect::<Result<_, _>>()?;
        let seeds = 0..runs.iter().map(|r| r.len()).min().unwrap_or(0);
        let values = seeds.map(|seed| {
            let parts: Vec<&Measured> = runs.iter().map(|r| &r[seed]).collect();
            metric.of(&parts)
        });
        let values = values.collect::<Result<Vec<f64>>>();
        values.map_err(|e| format!("{e:#}"))
    }
}

/// Runs each of `ready` with all its seeds. A text says why a case failed.
fn run(ready: &[Ready], effort: &Effort) -> Result<Vec<Runs>> {
    let mut done: Vec<Result<Vec<Measured>, String>> =
        ready.iter().map(|_| Ok(Vec::new())).collect();
    add(&mut done, ready, |_| effort.seeds.clone())?;
    if effort.most() > effort.runs() {
        let besides = |done: &Result<Vec<Measured>, String>| match done {
            Ok(done) => effort.besides(done),
            Err(_) => 0..0,
        };
        let seeds: Vec<ops::Range<u64>> = done.iter().map(besides).collect();
        add(&mut done, ready, |at| seeds[at].clone())?;
    }
    Ok(done.into_iter().map(|runs| runs.map(Arc::new)).collect())
}

/// Adds runs with these seeds to `done`.
fn add(
    done: &mut [Result<Vec<Measured>, String>],
    ready: &[Ready],
    seeds: impl Fn(usize) -> ops::Range<u64>,
) -> Result<()> {
    let jobs = (0..ready.len()).flat_map(|at| seeds(at).map(move |seed| (at, seed)));
    let jobs: Vec<(usize, u64)> = jobs.collect();
    let measured = runs::all(jobs.len(), |job| {
        let (at, seed) = jobs[job];
        Ok(ready[at].run(seed))
    })?;
    for (&(at, _), measured) in jobs.iter().zip(measured) {
        match (&mut done[at], measured) {
            (Ok(runs), Ok(measured)) => runs.push(measured),
            (runs @ Ok(_), Err(why)) => *runs = Err(why),
            (Err(_), _) => {}
        }
    }
    Ok(())
}

impl Ready {
    /// Runs it. Wakeup times are dropped: no table needs them, and all runs are kept in memory.
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
    /// The name of its workload.
    pub fn name(self) -> &'static str {
        self.load.split_whitespace().next().unwrap_or_default()
    }

    /// Why it cannot be run. None: it can. Errors: its workload or policy is invalid.
    #[cfg(feature = "internals")]
    pub fn not_ready(self) -> Result<Option<String>> {
        let effort = Effort {
            seeds: 0..1,
            most_seeds: None,
            short: true,
            params: Vec::new(),
        };
        Ok(self.ready(&effort, None)?.err())
    }

    /// Ready to run, or why it cannot be run. Errors: its workload or policy is invalid.
    fn ready(self, effort: &Effort, extreme: Option<&Extreme>) -> Result<Result<Ready, String>> {
        let load = read(self.load, extreme).with_context(|| format!("cells.tsv: {}", self.load))?;
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
    /// True if the extreme can change the case.
    pub fn concerns(&self, case: Case) -> bool {
        match self {
            Extreme::Machine { .. } => true,
            Extreme::Load(load, ..) => case.name() == *load,
        }
    }

    fn take(&self, model: &mut Model) -> Result<()> {
        let &Extreme::Machine { name, high } = self else {
            return Ok(());
        };
        let Some(param) = model.params.get(name) else {
            return Ok(());
        };
        model
            .params
            .set(name, if high { param.high } else { param.low })
    }

    /// Sets the param, also where the case has a value of its own.
    fn settle(&self, settings: &mut Settings) -> Result<()> {
        if let Extreme::Load(_, range, high) = self {
            let end = number(if *high { range.high } else { range.low })?;
            settings.insert(range.name.to_string(), end.0);
        }
        Ok(())
    }
}

/// Reads a workload by name and its settings.
fn read(words: &str, extreme: Option<&Extreme>) -> Result<Load> {
    let mut words = words.split_whitespace();
    let name = words.next().context("a workload was expected")?;
    let mut settings = words.map(setting).collect::<Result<Settings>>()?;
    extreme.map_or(Ok(()), |e| e.settle(&mut settings))?;
    Load::parse(&text(name)?, &settings)
}

fn shortened(mut load: Load) -> Load {
    load.warmup /= SHORT;
    load.duration = load.duration.map(|d| d / SHORT);
    load
}
