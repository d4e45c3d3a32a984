// SPDX-License-Identifier: GPL-2.0-only
//! Kernel threads, a group of one task for each CPU. They wake now and then, and compete with the
//! other tasks.

use super::load::{Expr, Group, Load, Step, Vary};
use super::params::Params;
use scx_roost::machine::Machine;
use scx_roost::native::Attr;
use std::sync::Arc;

/// Adds the machine's kernel threads to a workload.
pub fn add(load: &mut Load, params: &Params, machine: &Machine) {
    let rate = params.per_second("noise_rate");
    if rate <= 0.0 {
        return;
    }
    let run = Expr::number(params.ns("noise_run") as i64);
    let each = Step::Sleep(Expr::number((1e9 / rate) as i64), Vary::Exponential);
    let program = Arc::new(vec![each, Step::Run(run, Vary::No), Step::Jump(0)]);
    for cpu in &machine.cpus {
        load.groups.push(Group {
            name: format!("noise/{}", cpu.id),
            kernel: true,
            forked: false,
            count: 1,
            set: 0,
            memory: 0,
            attr: Attr::default(),
            cpus: vec![(cpu.id, cpu.id)],
            start: 0,
            program: Arc::clone(&program),
        });
    }
}
