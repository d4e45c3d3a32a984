// SPDX-License-Identifier: GPL-2.0-only
//! Kernel threads, a group of one task for each CPU. They compete with the other tasks. Some wake
//! now and then, the governor's kworkers when a tick of their CPU calls them.

use super::load::{Expr, Group, Load, Step, Vary};
use super::params::Params;
use crate::machine::Machine;
use crate::native::Attr;
use std::sync::Arc;

/// Adds the machine's kernel threads to a workload.
pub fn add(load: &mut Load, params: &Params, machine: &Machine) {
    let ns = |name| params.ns(name) as i64;
    let rate = params.per_second("noise_rate");
    let each = Step::Sleep(Expr::number((1e9 / rate) as i64), Vary::Exponential);
    let noise = [each, Step::Run(Expr::number(ns("noise_run")), Vary::No)];
    let period = ns("kworker_period");
    for cpu in &machine.cpus {
        if rate > 0.0 {
            load.groups.push(group("noise", cpu.id, &noise));
        }
        if period > 0 {
            let run = Step::Run(Expr::number(ns("kworker_run")), Vary::No);
            load.groups
                .push(group("kworker", cpu.id, &[Step::Called, run]));
        }
    }
}

fn group(name: &str, cpu: u16, steps: &[Step]) -> Group {
    let again = [Step::Jump(0)];
    Group {
        name: format!("{name}/{cpu}"),
        kernel: true,
        forked: false,
        count: 1,
        set: 0,
        memory: 0,
        attr: Attr::default(),
        cpus: vec![(cpu, cpu)],
        start: 0,
        program: Arc::new(steps.iter().chain(&again).cloned().collect()),
    }
}
