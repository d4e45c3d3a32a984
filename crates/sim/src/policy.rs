// SPDX-License-Identifier: GPL-2.0-only
//! What can be compared: the policy's own C in sched_ext, and the comparators.

use anyhow::{Result, ensure};
use scx_roost::policy::settings::Settings;
use scx_roost::policy::variant::settings;

/// The variants, for help and documentation.
pub const NAMES: [(&str, &str); 4] = [
    (
        "PRESET, PROFILE",
        "the policy's own C in sched_ext, with the features of the preset or profile",
    ),
    (
        "eevdf[:PRESET]",
        "the kernel's queueing and load balancer, of 7.2; the preset says how it places [mainline]",
    ),
    ("pinned", "eevdf on the first thread of each core alone"),
    (
        "oracle",
        "no scheduler: the best possible placement, for workloads where it is known",
    ),
];

#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// The policy in sched_ext.
    Ext(Settings),
    /// The kernel's fair class: its own queues and load balancer, with placement by the policy's
    /// ladder.
    Fair(Settings),
    /// `Fair` with mainline's placement; tasks may use only the first thread of each
    /// core.
    Pinned,
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
            "eevdf" => Ok(Policy::Fair(settings(&rest)?)),
            "pinned" => alone(Policy::Pinned),
            "oracle" => alone(Policy::Oracle),
            _ => Ok(Policy::Ext(settings(name)?)),
        }
    }
}
