// SPDX-License-Identifier: GPL-2.0-only
//! The CPUs that a command may use. They belong to the workload, not to the scheduler; a variant
//! has both.

use crate::machine::{Machine, cpulist_text, parse_cpulist};
use crate::util::affinity::Affinity;
use anyhow::{Context, Result, ensure};

/// Separates the name of a variant from its CPUs.
pub const SUFFIX: &str = "@cpus=";
/// In place of a list: one thread of each core.
const CORES: &str = "cores";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cpus {
    /// All CPUs that we may use.
    #[default]
    All,
    /// The first thread of each core.
    Cores,
    /// By number.
    List(Vec<u16>),
}

impl Cpus {
    /// Reads `cores`, or a list such as `0-3,8`. Fails if it is neither, or empty.
    pub fn parse(text: &str) -> Result<Cpus> {
        if text == CORES {
            return Ok(Cpus::Cores);
        }
        let list = parse_cpulist(text);
        let list = list.with_context(|| format!("{SUFFIX}{text}: expected 'cores' or a list"))?;
        ensure!(
            !list.is_empty(),
            "{SUFFIX} needs CPUs after it, as in {SUFFIX}0-3 or {SUFFIX}{CORES}"
        );
        Ok(Cpus::List(list))
    }

    /// The CPUs by number; empty: all. Fails if one is not online.
    pub fn on(&self, machine: &Machine) -> Result<Vec<u16>> {
        let online = machine.online();
        match self {
            Cpus::All => Ok(Vec::new()),
            Cpus::Cores => Ok(cores(machine)),
            Cpus::List(list) => {
                let off = list.iter().find(|cpu| !online.contains(cpu));
                ensure!(
                    off.is_none(),
                    "CPU {} is not online; the online CPUs are {}",
                    off.copied().unwrap_or_default(),
                    cpulist_text(&online)
                );
                Ok(list.clone())
            }
        }
    }
}

/// The first online thread of each core: what remains without SMT siblings.
pub fn cores(machine: &Machine) -> Vec<u16> {
    let first = |cpu: &&crate::machine::Cpu| cpu.siblings.iter().all(|s| *s > cpu.id);
    machine.cpus.iter().filter(first).map(|c| c.id).collect()
}

/// Fails if our children cannot be kept to these CPUs, because our cpuset lacks some of them.
pub fn check(cpus: &[u16]) -> Result<()> {
    let affinity = Affinity::new(cpus);
    // Tried in a thread, so that our own mask does not change.
    let tried = std::thread::scope(|s| {
        let tried = s.spawn(|| affinity.take().and_then(|()| Affinity::of(0)));
        tried.join()
    });
    let got = tried.map_err(|_| anyhow::anyhow!("a thread panicked"))?;
    let list = cpulist_text(cpus);
    let got = got.with_context(|| format!("cannot restrict the command to CPUs {list}"))?;
    ensure!(
        got == affinity,
        "cannot restrict the command to CPUs {list}: this process's cpuset lacks some of them"
    );
    Ok(())
}
