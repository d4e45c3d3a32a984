// SPDX-License-Identifier: GPL-2.0-only
//! Swarm testing (Groce et al. 2012): random machines, workloads, features, tunables and faults.
//! Each run is checked at every event. A seed is a case, and reproduces it.

mod machine;
mod workload;

use super::load::Load;
use super::machines::Model;
use super::{Params, Policy, Rng, Scenario, runs};
use anyhow::{Context, Result};
use scx_roost::machine::picture::picture;
use scx_roost::policy::features::{FEATURES, FeatureSet, MIN_SLICE, PRESETS, TUNABLES, orphans};
use scx_roost::policy::settings::Settings;
use serde::Serialize;
use std::ops::Range;

/// The totals of a swarm.
#[derive(Clone, Debug, Serialize)]
pub struct Swarmed {
    pub cases: u64,
    pub events: u64,
    /// The CPUs of the largest machine, and the most tasks at once.
    pub cpus: usize,
    pub tasks: usize,
}

impl Swarmed {
    pub fn text(&self) -> String {
        format!(
            "{} cases, {} events, machines of up to {} CPUs, up to {} tasks: all as it must be\n",
            self.cases, self.events, self.cpus, self.tasks
        )
    }
}

struct Case {
    seed: u64,
    model: Model,
    text: String,
    policy: Policy,
}

/// Runs a case for each seed. Errors: the first error of a case, with the command that reproduces
/// it.
pub fn swarm(seeds: &Range<u64>) -> Result<Swarmed> {
    let count = (seeds.end - seeds.start) as usize;
    let done = runs::all(count, |at| Case::new(seeds.start + at as u64).run())?;
    Ok(Swarmed {
        cases: count as u64,
        events: done.iter().map(|d| d.0).sum(),
        cpus: done.iter().map(|d| d.1).max().unwrap_or(0),
        tasks: done.iter().map(|d| d.2).max().unwrap_or(0),
    })
}

impl Case {
    fn new(seed: u64) -> Case {
        let mut rng = Rng::stream(seed, 0);
        let machine = machine::machine(&mut rng);
        let text = workload::text(&mut rng, &machine);
        let model = Model {
            name: format!("swarm {seed}"),
            machine,
            params: params(&mut rng),
        };
        Case {
            seed,
            model,
            text,
            policy: policy(&mut rng),
        }
    }

    /// Runs the case. Returns events, CPUs and tasks.
    fn run(&self) -> Result<(u64, usize, usize)> {
        let load = Load::parse(&self.text, &Default::default()).with_context(|| self.told())?;
        let tasks = load.groups.iter().map(|g| g.count as usize).sum();
        let scenario = Scenario {
            model: &self.model,
            load,
            policy: &self.policy,
            seed: self.seed,
        };
        let measured = scenario.checked().with_context(|| self.told())?;
        Ok((measured.events, self.model.machine.cpus.len(), tasks))
    }

    /// The command that reproduces the case, and what it is made of.
    fn told(&self) -> String {
        let machine = picture(&self.model.machine);
        let policy = self.policy_told();
        let params: String = self
            .model
            .params
            .all()
            .iter()
            .filter(|p| p.value != p.default)
            .map(|p| format!(" {}={}", p.name, p.value))
            .collect();
        format!(
            "roost-sim --swarm {}\n{machine}{policy}\nparams:{params}\n{}",
            self.seed, self.text
        )
    }

    fn policy_told(&self) -> String {
        let (name, settings) = match &self.policy {
            Policy::Ext(settings) => ("sched_ext", settings),
            Policy::Fair(settings) => ("eevdf", settings),
        };
        let cpus = self.model.machine.cpus.len() as u32;
        let tunables: String = TUNABLES
            .iter()
            .map(|row| format!(" {}={}", row.name, settings.value(row, cpus)))
            .collect();
        format!(
            "{name}, features: {}\ntunables:{tunables}",
            settings.features
        )
    }
}

/// True once in `n` times.
fn one_in(rng: &mut Rng, n: u64) -> bool {
    rng.below(n) == 0
}

fn of<T: Copy>(rng: &mut Rng, some: &[T]) -> T {
    some[rng.below(some.len() as u64) as usize]
}

/// Parameters of the machine, some at an end of their range.
fn params(rng: &mut Rng) -> Params {
    let mut params = Params::of("*");
    for _ in 0..rng.below(6) {
        let all = params.all();
        let param = &all[rng.below(all.len() as u64) as usize];
        let (name, value) = (param.name, of(rng, &[param.low, param.high]));
        // The shape is that of the random machine.
        if !["nodes", "llcs", "cores", "threads"].contains(&name) {
            params.set(name, value).expect("an end is in the range");
        }
    }
    params
}

/// Mostly the policy in sched_ext, else a comparator.
fn policy(rng: &mut Rng) -> Policy {
    let settings = settings(rng);
    match rng.below(8) {
        0 | 1 => Policy::Fair(settings),
        _ => Policy::Ext(settings),
    }
}

/// A preset or random features; tunables at their defaults, or at an end of their range.
fn settings(rng: &mut Rng) -> Settings {
    let preset = &PRESETS[rng.below(PRESETS.len() as u64) as usize];
    let mut settings = Settings::of_preset(preset.name).expect("it is a preset");
    if !one_in(rng, 3) {
        settings.features = features(rng);
    }
    let mut contradicts = false;
    for &row in TUNABLES {
        let known = row.max < u32::MAX;
        if known && one_in(rng, 4) {
            contradicts = settings.put(row, of(rng, &[row.min, row.max])).is_err();
        }
    }
    if contradicts {
        let least = settings.put(&MIN_SLICE, MIN_SLICE.min);
        least.expect("the least slice is below every other");
    }
    settings
}

fn features(rng: &mut Rng) -> FeatureSet {
    let dense = 1 + rng.below(4);
    let mut set = FeatureSet(0);
    for feature in FEATURES {
        if rng.below(4) < dense {
            set = set.with(feature.bit);
        }
    }
    while let Some(orphan) = orphans(set).next() {
        set = set.without(orphan.bit);
    }
    set
}
