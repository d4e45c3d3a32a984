// SPDX-License-Identifier: GPL-2.0-only
//! What can be compared: the policy's own C in sched_ext, and the comparators.

use crate::policy::settings::Settings;
use crate::policy::variant::settings;
use anyhow::{Result, ensure};

/// The variants, for help and documentation.
pub const NAMES: [(&str, &str); 7] = [
    (
        "PRESET, PROFILE",
        "the policy's own C in sched_ext, with the features of the preset or profile",
    ),
    (
        "eevdf[:PRESET]",
        "the kernel's queueing and load balancer since 6.6; the preset says how it places [mainline]",
    ),
    (
        "eevdf-6.19, eevdf-6.18",
        "that of these kernels; eevdf-next-buddy: 6.18 with source 006",
    ),
    ("cfs[:PRESET]", "the same before 6.6"),
    ("pinned", "eevdf on the first thread of each core alone"),
    (
        "cosmos",
        "scx_cosmos' rules as of source 003, reimplemented",
    ),
    (
        "oracle",
        "no scheduler: the best possible placement, for workloads where it is known",
    ),
];

/// Which of the kernel's rules order a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    Eevdf(Linux),
    Cfs,
}

/// The kernel whose EEVDF it is. They differ in what a wakeup does to the running task, and in
/// whether a CPU that runs only SCHED_IDLE counts as free for a SCHED_IDLE task (before 7.0).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linux {
    /// A fork is a wakeup like any other. Only a shorter slice shortens the protection.
    V6_18,
    /// 6.18 with source 006: a wakee becomes the next buddy.
    NextBuddy,
    V6_19,
    #[default]
    V7_2,
}

const EEVDF: [(&str, Linux); 4] = [
    ("eevdf", Linux::V7_2),
    ("eevdf-6.19", Linux::V6_19),
    ("eevdf-6.18", Linux::V6_18),
    ("eevdf-next-buddy", Linux::NextBuddy),
];

impl Rules {
    /// EEVDF of Linux 7.2.
    pub const EEVDF: Rules = Rules::Eevdf(Linux::V7_2);

    /// True if a CPU that runs only SCHED_IDLE is free for any task (before 7.0: sched_idle_cpu()
    /// instead of choose_idle_cpu()).
    pub fn shares_sched_idle(self) -> bool {
        self != Rules::EEVDF
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// The policy in sched_ext.
    Ext(Settings),
    /// The kernel's fair class: its own queues and load balancer, with placement by the policy's
    /// ladder.
    Fair(Rules, Settings),
    /// `Fair` with EEVDF and mainline's placement; tasks may use only the first thread of each
    /// core.
    Pinned,
    Cosmos,
    Oracle,
}

impl Policy {
    /// Reads `PRESET`, `eevdf:PRESET` and so on, followed by changes to the preset:
    /// `+FEATURE=on|off`, `+TUNABLE=VALUE`. Errors: an unknown name, or changes where none are
    /// possible.
    pub fn parse(name: &str) -> Result<Policy> {
        let end = name.find([':', '+']).unwrap_or(name.len());
        let rest = name[end..].strip_prefix(':').map(str::to_string);
        let rest = rest.unwrap_or_else(|| format!("mainline{}", &name[end..]));
        let alone = |policy: Policy| {
            ensure!(end == name.len(), "it takes no preset and no features");
            Ok(policy)
        };
        if let Some(&(_, linux)) = EEVDF.iter().find(|(known, _)| *known == &name[..end]) {
            return Ok(Policy::Fair(Rules::Eevdf(linux), settings(&rest)?));
        }
        match &name[..end] {
            "cfs" => Ok(Policy::Fair(Rules::Cfs, settings(&rest)?)),
            "pinned" => alone(Policy::Pinned),
            "cosmos" => alone(Policy::Cosmos),
            "oracle" => alone(Policy::Oracle),
            _ => Ok(Policy::Ext(settings(name)?)),
        }
    }
}
