// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel's own work costs, ns at full speed; and how far apart CPUs are.

use super::params::Params;

#[derive(Clone, Debug)]
pub struct Costs {
    /// Of the waker, for each wakeup.
    pub wake: u64,
    /// From the placement until the task is on its CPU's run queue.
    pub arrive: u64,
    pub fork: u64,
    /// After who sleeps, and from who could have gone on.
    pub switch: u64,
    pub preempt: u64,
    pub tick: u64,
    pub timer: u64,
    /// From its order until a timer is due at the soonest.
    pub timer_late: u64,
    /// Until another CPU hears.
    pub ipi: u64,
    /// Out of a shallow idle state, and of a deep one.
    pub idle_exit: u64,
    pub deep_exit: u64,
    /// So long idle, a CPU is in the deep one.
    pub deep_after: u64,
    /// For each byte of what a task uses again and again: after a move within an LLC (L2 from L3), and to another.
    pub refill_llc_per_mb: u64,
    pub refill_far_per_mb: u64,
    /// The L2 of a core, bytes: no more of a working set is refilled within an LLC.
    pub l2: u64,
    /// Period of the tick.
    pub tick_period: u64,
}

impl Costs {
    pub fn new(params: &Params) -> Costs {
        let ns = |name| params.ns(name);
        let enqueue = ns("sched_enqueue");
        Costs {
            wake: ns("sched_select") + enqueue,
            arrive: enqueue,
            fork: ns("fork"),
            switch: ns("switch_voluntary"),
            preempt: ns("switch_involuntary"),
            tick: ns("tick"),
            timer: ns("hrtimer_fire"),
            timer_late: ns("timer_late"),
            ipi: ns("ipi_send") + ns("ipi_receive"),
            idle_exit: ns("idle_c1_exit"),
            deep_exit: ns("idle_deep_exit"),
            deep_after: match params.count("idle_deep") {
                0 => u64::MAX,
                _ => ns("idle_deep_after"),
            },
            refill_llc_per_mb: ns("refill_llc"),
            refill_far_per_mb: ns("refill_other_llc"),
            l2: params.bytes("l2"),
            tick_period: ns("tick_period"),
        }
    }
}

/// From where to where a task moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    SameCore,
    SameLlc,
    OtherLlc,
}

impl Costs {
    /// ns until the caches hold `set` bytes again.
    pub fn refill(&self, moved: Move, set: u64) -> u64 {
        match moved {
            Move::SameCore => 0,
            Move::SameLlc => set.min(self.l2) * self.refill_llc_per_mb / 1_000_000,
            Move::OtherLlc => set * self.refill_far_per_mb / 1_000_000,
        }
    }

    /// ns until a CPU that has been idle for so long runs.
    pub fn exit(&self, idle: u64) -> u64 {
        if idle >= self.deep_after {
            self.deep_exit
        } else {
            self.idle_exit
        }
    }
}
