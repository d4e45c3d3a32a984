// SPDX-License-Identifier: GPL-2.0-only
//! What can be compared: the policy's own C in sched_ext, and the comparators.

use crate::policy::arms::Settings;
use crate::policy::variant::settings;
use anyhow::{Result, ensure};

/// The variants, for help and documentation.
pub const NAMES: [(&str, &str); 6] = [
    (
        "PRESET",
        "the policy's own C in sched_ext, with the preset's features",
    ),
    (
        "eevdf[:PRESET]",
        "the kernel's queueing and load balancer since 6.6; the preset says how it places [mainline]",
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
    Eevdf,
    Cfs,
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
        match &name[..end] {
            "eevdf" => Ok(Policy::Fair(Rules::Eevdf, settings(&rest)?)),
            "cfs" => Ok(Policy::Fair(Rules::Cfs, settings(&rest)?)),
            "pinned" => alone(Policy::Pinned),
            "cosmos" => alone(Policy::Cosmos),
            "oracle" => alone(Policy::Oracle),
            _ => Ok(Policy::Ext(settings(name)?)),
        }
    }
}
