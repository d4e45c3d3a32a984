// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel's own work costs, ns at full speed; and how far apart CPUs are.

/// Defaults are those of docs/simulator.md, which names their sources.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Of the waker, for each wakeup.
    pub wake: u64,
    /// From the placement until the task is on its CPU's run queue.
    pub arrive: u64,
    pub fork: u64,
    pub switch: u64,
    pub tick: u64,
    pub timer: u64,
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

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            wake: 1_000,
            arrive: 400,
            fork: 30_000,
            switch: 700,
            tick: 1_500,
            timer: 1_500,
            ipi: 950,
            idle_exit: 1_000,
            deep_exit: 25_000,
            deep_after: 100_000,
            refill_llc_per_mb: 30_000,
            refill_far_per_mb: 270_000,
            l2: 512_000,
            tick_period: 4_000_000,
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
