// SPDX-License-Identifier: GPL-2.0-only
//! The counters of a scx_roost that we started, and their growth in one run.

use crate::ab::metric::Measured;
use crate::wire::stats::client::Client;
use crate::wire::stats::{HISTS, Metrics, NR_BUCKETS, ROWS, delta, quantile_us};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const WAKEUPS: &str = "wakeup_latency";

pub struct Counts {
    counters: crate::wire::stats::Counters,
    wakeups: [u64; NR_BUCKETS],
}

impl Counts {
    /// `arm`: count this arm only; None: all arms, since rules may put tasks on others.
    pub fn ask(stats: &Path, arm: Option<&str>) -> Result<Counts> {
        let metrics: Metrics = Client::connect(stats, PATIENCE)?.ask("totals")?;
        let mut wakeups = [0; NR_BUCKETS];
        let which = HISTS.iter().position(|h| *h == WAKEUPS);
        let counted = |name: &str| arm.is_none_or(|arm| arm == name);
        let arms = metrics.arms.iter().filter(|(name, _)| counted(name));
        for ((_, arm), which) in arms.zip(which.into_iter().cycle()) {
            let (buckets, _) = arm.hists()[which];
            wakeups.iter_mut().zip(buckets).for_each(|(w, b)| *w += *b);
        }
        let own = |arm| {
            let found = metrics.arms.get(arm);
            found.with_context(|| format!("the scheduler has no counters of arm {arm}"))
        };
        let own = arm.map(own).transpose()?;
        Ok(Counts {
            counters: own.map_or_else(|| metrics.counters(), |own| own.counters.counters()),
            wakeups,
        })
    }

    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            counters: delta(&self.counters, &before.counters),
            wakeups: std::array::from_fn(|i| self.wakeups[i].saturating_sub(before.wakeups[i])),
        }
    }

    /// Upper ends of buckets in us. Empty if there was no wakeup.
    pub fn quantiles(&self) -> Vec<(Measured, f64)> {
        if self.wakeups.iter().all(|w| *w == 0) {
            return Vec::new();
        }
        [(Measured::WakeupP50, 0.5), (Measured::WakeupP99, 0.99)]
            .map(|(which, share)| (which, quantile_us(&self.wakeups, share) as f64))
            .to_vec()
    }

    pub fn counters(&self) -> BTreeMap<String, u64> {
        let named = ROWS.iter().zip(&self.counters);
        named
            .map(|(row, count)| (row.name.to_string(), *count))
            .collect()
    }
}
