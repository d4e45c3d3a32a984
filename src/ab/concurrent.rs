// SPDX-License-Identifier: GPL-2.0-only
//! Two copies of the command at once, one per variant, each on last-level caches of its own: a
//! side. What disturbs the machine meets both at the same time.
//!
//! A block is two such runs, the second with the sides swapped. A variant's value in a block is the
//! mean of its two runs, so a faster side cancels. Which variant begins on which side is random.

use super::cpus::Cpus;
use super::variant::{Kind, Variant};
use crate::machine::{Llc, Machine, cpulist_text, parse_cpulist};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// The CPUs of each side, as cpulists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sides(pub [String; 2]);

impl Sides {
    /// Half of the LLCs that have equally many CPUs, and the other half. If their number is odd,
    /// the last is unused. Fails if there are not two such LLCs.
    pub fn of(machine: &Machine) -> Result<Sides> {
        ensure!(
            machine.llcs.len() > 1,
            "--concurrent puts each copy on its own last-level caches, and this machine has only one"
        );
        let alike = alike(machine);
        let half = alike.len() / 2;
        ensure!(
            half > 0,
            "--concurrent puts the copies on last-level caches with equally many CPUs, and this machine has no two such caches"
        );
        let side = |llcs: &[&Llc]| {
            let mut cpus: Vec<u16> = llcs.iter().flat_map(|l| l.cpus.iter().copied()).collect();
            cpus.sort_unstable();
            cpulist_text(&cpus)
        };
        Ok(Sides([side(&alike[..half]), side(&alike[half..2 * half])]))
    }

    /// The CPUs of each side, by number.
    pub fn cpus(&self) -> Result<[Vec<u16>; 2]> {
        let cpus = |side: &String| {
            let cpus = parse_cpulist(side).with_context(|| format!("side {side}"))?;
            ensure!(!cpus.is_empty(), "a side has no CPU");
            Ok(cpus)
        };
        let [one, other] = [cpus(&self.0[0])?, cpus(&self.0[1])?];
        ensure!(
            !one.iter().any(|cpu| other.contains(cpu)),
            "the sides {} and {} have CPUs in common",
            self.0[0],
            self.0[1]
        );
        Ok([one, other])
    }

    /// A sentence for the reports.
    pub fn text(&self) -> String {
        format!(
            "two copies at once, on CPUs {} and {}, sides swapped in each block",
            self.0[0], self.0[1]
        )
    }
}

/// LLCs with equally many CPUs: the group that has the most CPUs in total. They may differ in cache
/// size and speed, which swapping the sides cancels.
fn alike(machine: &Machine) -> Vec<&Llc> {
    let of = |one: &Llc| -> Vec<&Llc> {
        let all = machine.llcs.iter();
        all.filter(|other| one.cpus.len() == other.cpus.len())
            .collect()
    };
    let cpus = |llcs: &Vec<&Llc>| llcs.iter().map(|l| l.cpus.len()).sum::<usize>();
    let several = machine.llcs.iter().map(of).filter(|llcs| llcs.len() > 1);
    several.max_by_key(cpus).unwrap_or_default()
}

/// Fails if these variants cannot run at the same time.
pub fn check(variants: &[Variant]) -> Result<()> {
    ensure!(
        variants.len() == 2,
        "--concurrent compares two variants, but {} are given",
        variants.len()
    );
    for variant in variants {
        let whole = match variant.kind {
            Kind::Roost(_) => None,
            Kind::Eevdf => Some("is the kernel's own scheduler, which schedules the whole machine"),
            Kind::Scx(_) => Some("is another scheduler, which schedules the whole machine"),
        };
        ensure!(
            whole.is_none(),
            "{} {}: variants that run at once are arms of scx_roost",
            variant.name,
            whole.unwrap_or_default()
        );
        ensure!(
            variant.cpus == Cpus::All,
            "{} sets its own CPUs, but --concurrent assigns it those of a side",
            variant.name
        );
    }
    Ok(())
}
