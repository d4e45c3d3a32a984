// SPDX-License-Identifier: GPL-2.0-only
//! An upper bound for workloads in which nothing waits for anything: no placement ends them sooner.
//! It is not a schedule: work may be divided at will, and wakeups, switches and caches cost
//! nothing.

use super::load::{Load, Measure, Step, Vary};
use super::machines::Hardware;
use super::measure::Measured;
use super::speed::{Cores, FULL};
use anyhow::{Result, bail, ensure};
use std::cmp::Reverse;

/// The best result that the load could have. Errors: the bound of this load is not known.
pub fn bound(load: &Load, hardware: Hardware) -> Result<Measured> {
    let tasks = tasks(load)?;
    let online = |&cpu: &usize| hardware.facts.cpus[cpu].online != 0;
    let mut cpus: Vec<usize> = (0..hardware.facts.cpus.len()).filter(online).collect();
    // Big CPUs first.
    cpus.sort_by_key(|&cpu| Reverse(hardware.facts.cpus[cpu].capacity));
    let (alone, together) = speeds(hardware.cores, &cpus, tasks.len());
    let longest = tasks.iter().copied().max().unwrap_or(0);
    let all: u128 = tasks.iter().map(|&ns| u128::from(ns)).sum();
    let ns = |work: u128, speed: u64| (work * u128::from(FULL)).div_ceil(u128::from(speed)) as u64;
    let mut measured = Measured::new(load);
    measured.busy_ns = all as u64;
    measured.warm(0, Vec::new(), None);
    let ended = ns(all, together).max(ns(longest.into(), alone));
    measured.end(ended, Vec::new(), None);
    Ok(measured)
}

/// The work of each task, ns at full speed. Errors: as of `bound`.
fn tasks(load: &Load) -> Result<Vec<u64>> {
    ensure!(
        load.parallel,
        "there is no oracle of this workload: its tasks wait for each other, so the best placement is unknown"
    );
    ensure!(
        load.measure == Measure::Time && load.duration.is_none() && load.warmup == 0,
        "there is an oracle only of the time until all tasks have ended"
    );
    let mut tasks = Vec::new();
    for group in &load.groups {
        let mut work = 0;
        ensure!(
            group.cpus.is_empty() && group.memory == 0 && group.start == 0,
            "there is no oracle of tasks that may not use all CPUs, wait for memory, or start later"
        );
        for step in group.program.iter() {
            match step {
                Step::Run(ns, Vary::No) => match ns.fixed() {
                    Some(ns) => work += ns.max(0) as u64,
                    None => bail!("there is no oracle of tasks whose work differs"),
                },
                Step::Exit => break,
                _ => bail!("there is an oracle only of tasks that run and end"),
            }
        }
        tasks.extend((0..group.count).map(|_| work));
    }
    Ok(tasks)
}

/// Work per ns: of a task alone, and the most of `tasks` tasks together. First threads of cores are
/// used before second ones.
fn speeds(mut cores: Cores, cpus: &[usize], tasks: usize) -> (u64, u64) {
    let mut order = cpus.to_vec();
    let (mut alone, mut together) = (0, 0);
    let mut busy: Vec<usize> = Vec::new();
    while busy.len() < tasks && !order.is_empty() {
        let own = order.iter().position(|&cpu| {
            cores.turns(cpu, true, 0);
            let own = !cores.shared(cpu);
            cores.turns(cpu, false, 0);
            own
        });
        let cpu = order.remove(own.unwrap_or(0));
        cores.turns(cpu, true, 0);
        cores.at_best();
        busy.push(cpu);
        let rates = busy.iter().map(|&cpu| cores.rate(cpu, 0));
        alone = alone.max(cores.rate(cpu, 0));
        together = together.max(rates.sum());
    }
    (alone, together)
}
