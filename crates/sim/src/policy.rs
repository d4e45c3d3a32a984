// SPDX-License-Identifier: GPL-2.0-only
//! What can be compared: the policy's own C in sched_ext, and the comparator.

use anyhow::Result;
use scx_roost::policy::settings::Settings;

/// The variants, for help and documentation.
pub const NAMES: [(&str, &str); 2] = [
    (
        "PRESET, PROFILE",
        "the policy's own C in sched_ext, with the features of the preset or profile",
    ),
    (
        "eevdf[:PRESET]",
        "the kernel's queueing and load balancer, of 7.2; the preset says how it places [mainline]",
    ),
];

#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// The policy in sched_ext.
    Ext(Settings),
    /// The kernel's fair class: its own queues and load balancer, with placement by the policy's
    /// ladder.
    Fair(Settings),
}

impl Policy {
    /// Reads `PRESET`, `eevdf:PRESET` and so on, followed by changes to the preset:
    /// `+FEATURE=on|off`, `+TUNABLE=VALUE`. Errors: an unknown name.
    pub fn parse(name: &str) -> Result<Policy> {
        let end = name.find([':', '+']).unwrap_or(name.len());
        let rest = name[end..].strip_prefix(':').map(str::to_string);
        let rest = rest.unwrap_or_else(|| format!("mainline{}", &name[end..]));
        match &name[..end] {
            "eevdf" => Ok(Policy::Fair(Settings::of_variant(&rest)?)),
            _ => Ok(Policy::Ext(Settings::of_variant(name)?)),
        }
    }
}
