// SPDX-License-Identifier: GPL-2.0-only
//! The machine: CPUs, cores, last-level caches, nodes. `read` makes it from the files of a /sys
//! (`caches`: which CPUs share one), `schedstat` has what the kernel's scheduler makes of them.
//! `settled` reads it while CPUs may come and go, `facts` turns it into the tables of the BPF half.
//! What changes while the scheduler runs has a small reader each: `policy`, `limits` and `modes`
//! (cpufreq), `power` (the power setting), `freq` (frequencies), `prefcore`, `idle_states`,
//! `throttle`, `load` (/proc), `clocks`.
//!
//! scx_utils has a `Topology`, but this reader replaces it. There the root is an environment
//! variable and the cpumask width a process global, so two machines cannot exist in one process. It
//! also takes AMD's preferred-core ranking for capacity, and counts offline CPUs when it looks for
//! little cores.

mod ask;
mod caches;
mod clocks;
pub mod cpufreq;
mod facts;
mod files;
mod freq;
pub mod groups;
pub mod host;
mod idle_states;
mod limits;
mod load;
mod modes;
pub mod own_group;
pub mod picture;
mod policy;
mod power;
mod prefcore;
mod read;
mod schedstat;
mod settled;
mod throttle;

pub use ask::several;
pub use clocks::{Clocks, tick_period};
pub use facts::Facts;
pub use files::{cpulist_text, cpus_text, parse_cpulist};
pub use freq::{FreqFiles, FreqSource};
pub use idle_states::{IdleState, idle_states};
pub use limits::{Limit, Limits};
pub use load::{CpuTime, cpu_times, resident_kb, waiting_permille};
pub use modes::Modes;
#[cfg(feature = "internals")]
pub use policy::Policy;
pub use policy::{Policies, driver, names};
pub use power::Power;
pub use prefcore::Rankings;
pub use read::{advice, possible_cpus, read_advised};
pub use schedstat::{Domains, kernel_domains};
pub use settled::read_machine;
pub use throttle::{Throttled, Throttles};

use serde::Serialize;

/// An online CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cpu {
    pub id: u16,
    /// Dense index over the machine, LLC by LLC.
    pub core: u16,
    /// Index into `Machine::llcs`.
    pub llc: u16,
    /// Index into `Machine::nodes`.
    pub node: u16,
    /// Rank by CPU number inside the LLC.
    pub pos: u16,
    /// 1..=1024, the kernel's cpu_capacity.
    pub capacity: u16,
    /// The other online threads of the core, by CPU number.
    pub siblings: Vec<u16>,
}

/// What makes the CPUs of an `Llc` belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LlcKind {
    L3,
    L2,
    /// Each L2 is private and the kernel shows no further cache: the CPUs of a cluster or chip, as
    /// the kernel's scheduler has them.
    Chip,
    /// The kernel shows no shared cache: all CPUs of the node count as one LLC.
    Node,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Llc {
    pub kind: LlcKind,
    pub size_kb: Option<u32>,
    pub node: u16,
    /// Online CPUs, ascending.
    pub cpus: Vec<u16>,
}

/// The number of the node of CPUs of which /sys does not say the node.
pub const UNKNOWN_NODE: u16 = u16::MAX;

/// A NUMA node with online CPUs. Its LLCs are neighbours in `Machine::llcs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The kernel's number.
    pub id: u16,
    pub first_llc: u16,
    pub nr_llcs: u16,
    /// Distance to each of `Machine::nodes`, as the firmware states it: 10 to itself. None: not
    /// known. For people; placement ignores distances.
    pub distances: Option<Vec<u16>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Highest possible CPU number + 1.
    pub nr_cpu_ids: u16,
    /// Online CPUs, ascending.
    pub cpus: Vec<Cpu>,
    /// Possible CPUs that are offline, ascending. The kernel hides their topology.
    pub offline: Vec<u16>,
    pub llcs: Vec<Llc>,
    pub nodes: Vec<Node>,
    pub nr_cores: u16,
    /// Online CPUs whose tick may stop while a task runs (nohz_full=), ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nohz_full: Vec<u16>,
    /// Sentences about files that contradict each other, or leave something open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
}

impl Machine {
    /// Some core has more than one online thread.
    pub fn smt(&self) -> bool {
        self.cpus.iter().any(|c| !c.siblings.is_empty())
    }

    /// CPUs differ in capacity by any amount (kernel: sched_asym_cpucap_active).
    pub fn asym(&self) -> bool {
        self.cpus.windows(2).any(|c| c[0].capacity != c[1].capacity)
    }

    /// The index of an online CPU in `cpus`.
    pub fn position(&self, id: u16) -> usize {
        self.cpus.partition_point(|c| c.id < id)
    }

    pub fn online(&self) -> Vec<u16> {
        self.cpus.iter().map(|c| c.id).collect()
    }
}
