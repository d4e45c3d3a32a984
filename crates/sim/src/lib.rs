// SPDX-License-Identifier: GPL-2.0-only
//! A discrete-event simulator: the policy's own C, compiled natively, on modelled machines and
//! workloads. The same seed gives the same run. docs/simulator.md says what is modelled and what is
//! not.
//!
//! - `load/`: what tasks do; `workloads`: those with a name; `wait` and `cond`: what tasks do to
//!   each other.
//! - `machines`, `speed`, `cstates`, `caches`, `cost`: the machine, built from `params`. `daemon`:
//!   what userspace publishes to the policy.
//! - `sched`: what the engine asks of a scheduler; `cpus`: which tasks each CPU has.
//! - `ext`: the kernel's sched_ext around the policy; `fair/`: the kernel's fair class; `policy`:
//!   the names of both.
//! - `engine`: the loop, with faults; `clock`: its time; `measure`: the results; `runs`: many runs
//!   in parallel.
//! - `watch`: observers of a run; `trace/` draws it, `check` checks it, `swarm/` makes random cases
//!   for the checks.
//! - `matrix/`: roost beside eevdf on many machines and workloads.

#![warn(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod caches;
mod check;
mod clock;
mod command;
mod cond;
mod cost;
mod cpus;
mod cstates;
mod daemon;
mod engine;
mod ext;
mod fair;
pub mod load;
mod machines;
pub mod matrix;
mod measure;
mod params;
mod policy;
mod runs;
mod sched;
mod speed;
mod swarm;
mod task;
mod trace;
mod wait;
mod watch;
mod workloads;

pub use args::Plan;
pub use args::{Asked, Wanted, parse};
pub use clock::Clock;
pub use command::Report;
pub use command::{list, perform, run};
pub use machines::{MACHINES, Model, model};
pub use measure::{Measured, Times};
pub use params::Params;
pub use policy::Policy;
pub use scx_roost::util::rng::Rng;
pub use swarm::swarm;
pub use workloads::WORKLOADS;

use anyhow::{Result, ensure};
use check::Check;
use daemon::Daemon;
use engine::Engine;
use ext::Ext;
use fair::Fair;
use load::Load;
use sched::Scheduler;
use scx_roost::machine::Facts;
use scx_roost::native::{Kernel, World};
use scx_roost::policy::config::Config;
use scx_roost::policy::fair::ROOST;
use scx_roost::policy::features::FAIR_RULES;
use scx_roost::policy::settings::Settings;
use wait::Wait;
use watch::Watch;

/// The release whose rules `auto` has: the comparator's.
const COMPARED: Option<[u32; 3]> = Some([7, 2, 0]);

/// One run.
pub struct Scenario<'a> {
    pub model: &'a Model,
    pub load: Load,
    pub policy: &'a Policy,
    pub seed: u64,
}

impl Scenario<'_> {
    /// Runs it. Errors: the policy does not handle the machine; no CPU is left for a group; all
    /// tasks wait for each other; a task loops without work.
    pub fn run(self) -> Result<Measured> {
        self.watched(()).map(|(measured, ())| measured)
    }

    /// Runs with all checks at every event. Errors: also any check that fails.
    pub fn checked(self) -> Result<Measured> {
        let check = Check::new(self.model.machine.nr_cpu_ids.into(), &self.load);
        self.watched(check).map(|(measured, _)| measured)
    }

    /// Runs with `watch` observing.
    fn watched<W: Watch>(&self, watch: W) -> Result<(Measured, W)> {
        match self.policy {
            Policy::Ext(settings) => self.under(settings, watch, Ext::new),
            Policy::Fair(settings) => self.fair(settings, watch),
        }
    }

    fn fair<W: Watch>(&self, settings: &Settings, watch: W) -> Result<(Measured, W)> {
        let ends = fair::Ends::of(settings.features);
        let sched = |kernel, tasks| Fair::new(kernel, tasks, ends, &self.model.params);
        // The policy only places here: the comparator's queues have rules of their own.
        let mut places = settings.clone();
        places.put(&FAIR_RULES, ROOST)?;
        self.under(&places, watch, sched)
    }

    /// Runs under a scheduler over the policy's memory with these settings.
    fn under<S: Scheduler, W: Watch>(
        &self,
        settings: &Settings,
        watch: W,
        sched: impl Fn(Kernel, usize) -> S,
    ) -> Result<(Measured, W)> {
        let load = self.load.clone();
        let tasks = load.tasks();
        let hardware = self.model.hardware()?;
        let masks = self.masks(&load, &hardware.facts)?;
        let mut tunables = Config::default().tunables(&self.model.listens(), COMPARED, true, false);
        if load.faults.watchdog > 0 {
            tunables.wait_bound_ns = load.faults.watchdog / 4;
        }
        // Loads the policy for the machine without the CPUs in `away`.
        let anew = |away: &[usize]| {
            let facts = self.model.facts_without(away)?;
            let daemon = Daemon::new(settings, &facts, &self.model.policies());
            let arm = settings.arm(facts.machine.nr_online);
            let mut kernel = Kernel::new(World::new(facts, arm, tunables, 1), tasks);
            for mask in masks.iter().flatten() {
                kernel.mask(mask);
            }
            Ok((sched(kernel, tasks), daemon))
        };
        let (first, daemon) = anew(&[])?;
        let wait = Wait::new(load, numbers(&masks), self.seed);
        let mut engine = Engine::new(hardware, daemon, wait, first, watch, tasks);
        engine.run(&anew)?;
        Ok((engine.measured, engine.watch))
    }

    /// The CPUs that each group of tasks may use. None: every CPU. Errors: the machine has none of
    /// them.
    fn masks(&self, load: &Load, facts: &Facts) -> Result<Vec<Option<Vec<u64>>>> {
        let words = facts.cpus.len().div_ceil(64);
        let masks = load.groups.iter().map(|group| {
            let beyond = group
                .cpus
                .iter()
                .find(|c| usize::from(c.1) >= facts.cpus.len());
            ensure!(
                beyond.is_none(),
                "{} may use CPU {}, and the machine has CPUs 0 to {}",
                group.name,
                beyond.map_or(0, |c| c.1),
                facts.cpus.len() - 1
            );
            let Some(mask) = group.mask(words) else {
                return Ok(None);
            };
            let may =
                |cpu: usize| facts.cpus[cpu].online != 0 && mask[cpu / 64] >> (cpu % 64) & 1 != 0;
            let some = (0..facts.cpus.len()).any(may);
            ensure!(some, "the machine has no CPU that {} may use", group.name);
            Ok(Some(mask))
        });
        masks.collect()
    }
}

/// The number of each set of CPUs in the native kernel. 0: every CPU.
fn numbers(masks: &[Option<Vec<u64>>]) -> Vec<usize> {
    let mut next = 0;
    let number = |mask: &Option<Vec<u64>>| {
        next += usize::from(mask.is_some());
        if mask.is_some() { next } else { 0 }
    };
    masks.iter().map(number).collect()
}
