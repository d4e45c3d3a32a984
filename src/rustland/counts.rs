// SPDX-License-Identifier: GPL-2.0-only
//! The counters of this backend, under the names of stats.tbl.h. The thread that schedules writes
//! them and waits for nobody.

use crate::bpf::intf::roost_hist_HIST_wakeup_latency as WAKEUP_LATENCY;
use crate::placement::{Decision, Now};
use crate::wire::stats::source::Counted;
use crate::wire::stats::{ArmCounts, Counters, NR_BUCKETS, NR_STATS, ROWS};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Clones count into the same numbers.
#[derive(Clone)]
pub struct Counts {
    /// By CPU, then by counter.
    cpus: Arc<[[AtomicU64; NR_STATS]]>,
    rows: Arc<HashMap<&'static str, usize>>,
    waits: Arc<Waits>,
}

/// The histogram `wakeup_latency` of hist.tbl.h.
#[derive(Default)]
struct Waits {
    buckets: [AtomicU64; NR_BUCKETS],
    sum_ns: AtomicU64,
}

impl Counts {
    pub fn new(nr_cpus: usize) -> Counts {
        let row = || [const { AtomicU64::new(0) }; NR_STATS];
        Counts {
            cpus: (0..nr_cpus).map(|_| row()).collect(),
            rows: Arc::new(ROWS.iter().map(|row| row.name).zip(0..).collect()),
            waits: Arc::default(),
        }
    }

    /// One more of `name`, a row of the table, for that CPU.
    pub fn count(&self, cpu: usize, name: &str) {
        if let (Some(cpu), Some(row)) = (self.cpus.get(cpu), self.rows.get(name)) {
            cpu[*row].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A woken task ran after this time.
    pub fn waited(&self, ns: u64) {
        let bucket = (ns >> 10).max(1).ilog2() as usize;
        self.waits.buckets[bucket.min(NR_BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.waits.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// A placement: its rung, and what the task got. `got`: the CPU that it was sent to; None: it
    /// joined the queue for all CPUs.
    pub fn placed(&self, now: &Now, decision: &Decision, got: Option<usize>, prev: usize) {
        self.count(decision.cpu, decision.rung);
        if !decision.affine.is_empty() {
            self.count(decision.cpu, decision.affine);
        }
        let Some(cpu) = got else { return };
        if cpu == prev {
            self.count(cpu, "placed_prev");
        }
        let mut siblings = now.machine.siblings(cpu).iter();
        if siblings.all(|&s| now.cpus[s].idle) {
            self.count(cpu, "placed_idle_core");
        }
        if now.machine.cpus[cpu].llc != now.machine.cpus[prev].llc {
            self.count(cpu, "placed_other_llc");
        }
    }

    fn row(&self, cpu: usize) -> Counters {
        let mut counters = [0; NR_STATS];
        for (to, from) in counters.iter_mut().zip(&self.cpus[cpu]) {
            *to = from.load(Ordering::Relaxed);
        }
        counters
    }
}

impl Counted for Counts {
    /// There is one arm.
    fn read(&self, slot: usize) -> ArmCounts {
        let mut counts = ArmCounts::default();
        if slot != 0 {
            return counts;
        }
        let at = WAKEUP_LATENCY as usize;
        counts.hists[at] = self
            .waits
            .buckets
            .each_ref()
            .map(|n| n.load(Ordering::Relaxed));
        counts.sums[at] = self.waits.sum_ns.load(Ordering::Relaxed);
        for cpu in 0..self.cpus.len() {
            counts = counts.plus(&ArmCounts {
                counters: self.row(cpu),
                ..ArmCounts::default()
            });
        }
        counts
    }

    fn read_cpu(&self, cpu: usize) -> Counters {
        match cpu < self.cpus.len() {
            true => self.row(cpu),
            false => [0; NR_STATS],
        }
    }
}
