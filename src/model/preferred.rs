// SPDX-License-Identifier: GPL-2.0-only
//! The cores in the firmware's order of preference. It is an order only, and says nothing about
//! capacity.

use crate::machine::{Machine, Rankings};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The first CPU of each core, the most preferred core first. Empty without a ranking, or if all
/// ranks are equal.
pub fn preferred_cores(machine: &Machine, rankings: &Rankings) -> Vec<u16> {
    let rank = |cpu: u16| rankings.0.get(usize::from(cpu)).copied().flatten();
    let mut cores: BTreeMap<u16, (Reverse<u32>, u16)> = BTreeMap::new();
    for cpu in &machine.cpus {
        let Some(rank) = rank(cpu.id) else { continue };
        let best = cores.entry(cpu.core).or_insert((Reverse(rank), cpu.id));
        best.0 = best.0.min(Reverse(rank));
    }
    let mut order: Vec<_> = cores.into_values().collect();
    order.sort_unstable();
    match (order.first(), order.last()) {
        (Some(first), Some(last)) if first.0 != last.0 => {
            order.into_iter().map(|(_, cpu)| cpu).collect()
        }
        _ => Vec::new(),
    }
}
