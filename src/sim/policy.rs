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
    (
        "cfs[:PRESET]",
        "the same before 6.6: of 6.5; cfs-5.9, cfs-4.15: of these kernels",
    ),
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

/// Which of the kernel's rules order a queue, and of which kernel they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    Eevdf(Linux),
    Cfs(Linux),
}

/// A kernel, older before newer. What differs is asked for by name, below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Linux {
    V4_15,
    V5_9,
    V6_5,
    /// A fork is a wakeup like any other. Only a shorter slice shortens the protection.
    V6_18,
    /// 6.18 with source 006: a wakee becomes the next buddy.
    NextBuddy,
    V6_19,
    #[default]
    V7_2,
}

impl Linux {
    /// True if an idle CPU keeps its tick while it expects to be woken before that (since 4.17).
    /// Before, it stopped its tick first, and then asked its governor.
    pub fn keeps_idle_ticks(self) -> bool {
        self >= Linux::V5_9
    }

    /// True if the governor of idle states may leave out the shortest idle periods (since 6.15).
    pub fn leaves_short_idles_out(self) -> bool {
        self >= Linux::V6_18
    }

    /// True if a CPU that goes idle looks for work however short its idle periods are, as long as
    /// they pay for the look (since 5.16).
    pub fn looks_after_short_idles(self) -> bool {
        self >= Linux::V6_5
    }

    /// True if idle CPUs look for work from idle cores, if there are any (since 6.6).
    pub fn looks_from_idle_cores(self) -> bool {
        self >= Linux::V6_18
    }

    /// True if an idle CPU of the waker's LLC does the rest of its wakeups itself (since 6.0).
    pub fn queues_for_idle(self) -> bool {
        self >= Linux::V6_5
    }

    /// True if a task that wakes up on another CPU makes CPUs write one line that all of them share
    /// (before 6.7: update_tg_load_avg()).
    pub fn writes_group_load(self) -> bool {
        self <= Linux::V6_5
    }

    /// True if a node keeps a fork while it has an idle CPU (before 5.11).
    pub fn keeps_forks_on_node(self) -> bool {
        self <= Linux::V5_9
    }

    /// True if a CPU that runs only SCHED_IDLE is free for any task (before 7.0: sched_idle_cpu()
    /// instead of choose_idle_cpu()).
    pub fn shares_sched_idle(self) -> bool {
        self < Linux::V7_2
    }
}

const FAIR: [(&str, Rules); 7] = [
    ("eevdf", Rules::EEVDF),
    ("eevdf-6.19", Rules::Eevdf(Linux::V6_19)),
    ("eevdf-6.18", Rules::Eevdf(Linux::V6_18)),
    ("eevdf-next-buddy", Rules::Eevdf(Linux::NextBuddy)),
    ("cfs", Rules::CFS),
    ("cfs-5.9", Rules::Cfs(Linux::V5_9)),
    ("cfs-4.15", Rules::Cfs(Linux::V4_15)),
];

impl Rules {
    /// EEVDF of Linux 7.2.
    pub const EEVDF: Rules = Rules::Eevdf(Linux::V7_2);
    /// CFS of Linux 6.5, its last.
    pub const CFS: Rules = Rules::Cfs(Linux::V6_5);

    pub fn linux(self) -> Linux {
        let (Rules::Eevdf(linux) | Rules::Cfs(linux)) = self;
        linux
    }

    pub fn is_cfs(self) -> bool {
        matches!(self, Rules::Cfs(_))
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
        if let Some(&(_, rules)) = FAIR.iter().find(|(known, _)| *known == &name[..end]) {
            return Ok(Policy::Fair(rules, settings(&rest)?));
        }
        match &name[..end] {
            "pinned" => alone(Policy::Pinned),
            "cosmos" => alone(Policy::Cosmos),
            "oracle" => alone(Policy::Oracle),
            _ => Ok(Policy::Ext(settings(name)?)),
        }
    }

    /// The kernel that it runs on.
    pub fn linux(&self) -> Linux {
        match self {
            Policy::Fair(rules, _) => rules.linux(),
            _ => Linux::default(),
        }
    }
}
