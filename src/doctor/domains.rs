// SPDX-License-Identifier: GPL-2.0-only
//! The LLCs beside the kernel's own scheduling domains: two readers of one machine.

use super::Check;
use crate::machine::host::Host;
use crate::machine::{Cpu, Domains, LlcKind, Machine, cpus_text, kernel_domains};

/// None: the machine is described elsewhere than the kernel, or the kernel names no domains.
pub fn check(host: &Host, machine: &Machine) -> Option<Check> {
    let domains = kernel_domains(host).filter(|d| !host.described() && !d.is_empty())?;
    let differs = |cpu: &Cpu| difference(machine, cpu, domains.get(&cpu.id)?);
    let mut items: Vec<String> = machine.cpus.iter().filter_map(differs).collect();
    items.sort_unstable();
    items.dedup();
    if items.is_empty() {
        return Some(Check::ok(
            "domains",
            "the kernel's scheduling domains have the same LLCs",
        ));
    }
    let found = "the kernel's scheduling domains have other LLCs";
    let fix = "report this with /proc/schedstat and the output of 'scx_roost topology --json'";
    Some(Check {
        items,
        ..Check::warn("domains", found, fix)
    })
}

/// A cpuset partition cuts the kernel's domains, so CPUs outside it do not count. Where neither
/// knows of a cache that cores share, scx_roost takes the node for one and the kernel none.
fn difference(machine: &Machine, cpu: &Cpu, kernel: &Domains) -> Option<String> {
    let llc = &machine.llcs[usize::from(cpu.llc)];
    let ours = llc.cpus.iter().filter(|c| kernel.widest.contains(c));
    let ours: Vec<u16> = ours.copied().collect();
    let of_core = |c: &u16| *c == cpu.id || cpu.siblings.contains(c);
    let unknown = llc.kind == LlcKind::Node && kernel.llc.iter().all(of_core);
    let (here, there) = (cpus_text(&ours), cpus_text(&kernel.llc));
    (ours != kernel.llc && !unknown).then(|| format!("{here} here, {there} for the kernel"))
}
