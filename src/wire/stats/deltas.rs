// SPDX-License-Identifier: GPL-2.0-only
//! What a client gets: the growth of all counters since its last request.

use super::Metrics;
use super::snapshot::Snapshot;
use super::source::CounterSource;
use std::time::Instant;

/// Growth of the counters for one client: since its last request, or since this was created.
pub struct Deltas {
    source: CounterSource,
    last: Snapshot,
    at: Instant,
}

impl Deltas {
    pub fn new(source: CounterSource) -> Deltas {
        let last = source.view();
        Deltas {
            source,
            last,
            at: Instant::now(),
        }
    }

    pub fn take(&mut self) -> Metrics {
        let now = self.source.view();
        let mut metrics = now.since(&self.last).metrics();
        metrics.interval_ms = self.at.elapsed().as_millis() as u64;
        self.last = now;
        self.at = Instant::now();
        metrics
    }
}
