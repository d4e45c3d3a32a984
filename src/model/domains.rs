// SPDX-License-Identifier: GPL-2.0-only
//! Which CPUs share one frequency. Where all CPUs of a last-level cache do, none of them is slower
//! than another, and delay_migration has no use inside that cache.

use crate::machine::{Llc, Machine, Policies};
use serde::Serialize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sharing {
    /// Last-level caches with more than one core, whose CPUs are all managed by cpufreq.
    pub llcs: usize,
    /// Those of them in which all CPUs share one frequency.
    pub spanned: usize,
    /// Groups of CPUs that share a frequency, on the whole machine.
    pub domains: usize,
}

impl Sharing {
    pub fn new(machine: &Machine, policies: &Policies) -> Sharing {
        let related = |cpu: u16| policies.of(cpu.into()).map(|p| &p.related);
        let known = |llc: &&Llc| {
            let core = |&cpu: &u16| &machine.cpus[machine.position(cpu)].core;
            let first = llc.cpus.first().map(core);
            llc.cpus.iter().any(|cpu| Some(core(cpu)) != first)
                && llc.cpus.iter().all(|&cpu| related(cpu).is_some())
        };
        let spans = |llc: &&Llc| {
            let one = related(llc.cpus[0]);
            one.is_some_and(|one| llc.cpus.iter().all(|cpu| one.contains(cpu)))
        };
        let llcs = || machine.llcs.iter().filter(known);
        let mut domains: Vec<_> = machine.cpus.iter().filter_map(|c| related(c.id)).collect();
        domains.sort_unstable();
        domains.dedup();
        Sharing {
            llcs: llcs().count(),
            spanned: llcs().filter(spans).count(),
            domains: domains.len(),
        }
    }

    /// A sentence about the consequence for delay_migration, if there is one.
    pub fn condition(&self) -> Option<String> {
        let which = match self.spanned {
            0 => return None,
            n if n == self.llcs => "each last-level cache".to_string(),
            n => format!("{n} of {} last-level caches", self.llcs),
        };
        Some(format!(
            "all CPUs of {which} share one frequency (related_cpus): delay_migration cannot help there"
        ))
    }
}
