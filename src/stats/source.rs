// SPDX-License-Identifier: GPL-2.0-only
//! Where counters come from: the memory of the loaded scheduler, and what schedulers before a restart had counted.
//! Server threads read it without the scheduler's loop, so that neither waits for the other.

use super::{Counters, Metrics, NR_STATS, add, delta};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Clients that ask within this time of each other get the same snapshot.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_millis(50);

/// What can be counted: the BPF half's counters, or a test's own.
pub trait Counted: Send {
    fn read(&self) -> Counters;
}

/// What runs, for the fields of `Metrics` that are not counters.
#[derive(Clone, Debug, Default)]
pub struct Running {
    pub preset: String,
    pub features: String,
    pub governor: String,
    pub cpuperf: String,
    pub restarts: u64,
}

/// A shared handle; clones see the same counters.
#[derive(Clone, Default)]
pub struct CounterSource(Arc<Mutex<State>>);

/// Counting is over when this is dropped; what was counted is kept.
pub struct Counting(CounterSource);

impl Drop for Counting {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.base = Some(Box::new(state.read()));
        state.counted = None;
        state.snapshot = None;
    }
}

#[derive(Default)]
struct State {
    /// None while no scheduler is loaded.
    counted: Option<Box<dyn Counted>>,
    running: Running,
    /// Counted by schedulers that were unloaded.
    base: Option<Box<Counters>>,
    snapshot: Option<(Instant, Box<Counters>)>,
}

impl CounterSource {
    /// A scheduler was loaded. It is to be unloaded only after the returned value is dropped.
    #[must_use]
    pub fn attach(&self, counted: Box<dyn Counted>, running: Running) -> Counting {
        let mut state = self.lock();
        state.counted = Some(counted);
        state.running = running;
        state.snapshot = None;
        Counting(self.clone())
    }

    /// Counters since the first load; they never run backwards, over restarts neither.
    pub fn totals(&self) -> Metrics {
        let mut state = self.lock();
        let counters = state.snapshot();
        let mut metrics = state.describe();
        metrics.set_counters(&counters);
        metrics
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn snapshot(&mut self) -> Counters {
        if let Some((at, counters)) = &self.snapshot
            && at.elapsed() < SNAPSHOT_AGE_MAX
        {
            return **counters;
        }
        let counters = self.read();
        self.snapshot = Some((Instant::now(), Box::new(counters)));
        counters
    }

    fn read(&self) -> Counters {
        let base = self.base.as_deref().copied().unwrap_or([0; NR_STATS]);
        self.counted
            .as_ref()
            .map_or(base, |c| add(&base, &c.read()))
    }

    fn describe(&self) -> Metrics {
        Metrics {
            preset: self.running.preset.clone(),
            features: self.running.features.clone(),
            governor: self.running.governor.clone(),
            cpuperf: self.running.cpuperf.clone(),
            restarts: self.running.restarts,
            running: self.counted.is_some().into(),
            ..Metrics::default()
        }
    }
}

/// The view of one client: growth since it last asked; the first time, since it came.
pub struct Deltas {
    source: CounterSource,
    last: Counters,
    at: Instant,
}

impl Deltas {
    pub fn new(source: CounterSource) -> Deltas {
        let last = source.totals().counters();
        Deltas {
            source,
            last,
            at: Instant::now(),
        }
    }

    pub fn take(&mut self) -> Metrics {
        let mut metrics = self.source.totals();
        let now = metrics.counters();
        metrics.set_counters(&delta(&now, &self.last));
        metrics.interval_ms = self.at.elapsed().as_millis() as u64;
        self.last = now;
        self.at = Instant::now();
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread::sleep;

    struct Fake(Arc<AtomicU64>);

    impl Counted for Fake {
        fn read(&self) -> Counters {
            [self.0.load(Ordering::Relaxed); NR_STATS]
        }
    }

    fn loaded(source: &CounterSource, restarts: u64) -> (Arc<AtomicU64>, Counting) {
        let counter = Arc::new(AtomicU64::new(0));
        let running = Running {
            preset: "roost".into(),
            restarts,
            ..Running::default()
        };
        let counting = source.attach(Box::new(Fake(counter.clone())), running);
        (counter, counting)
    }

    fn take(deltas: &mut Deltas) -> Metrics {
        sleep(SNAPSHOT_AGE_MAX + Duration::from_millis(5));
        deltas.take()
    }

    #[test]
    fn each_client_has_its_own_delta() {
        let source = CounterSource::default();
        let (counter, _counting) = loaded(&source, 0);
        let mut early = Deltas::new(source.clone());
        counter.store(10, Ordering::Relaxed);
        assert_eq!(take(&mut early).sis_target, 10);
        let mut late = Deltas::new(source.clone());
        counter.store(15, Ordering::Relaxed);
        assert_eq!(take(&mut late).sis_target, 5);
        assert_eq!(take(&mut early).sis_target, 5);
        assert_eq!(take(&mut early).sis_target, 0);
    }

    #[test]
    fn counters_survive_a_restart() {
        let source = CounterSource::default();
        assert!(!source.totals().was_loaded());
        let (counter, counting) = loaded(&source, 0);
        counter.store(7, Ordering::Relaxed);
        let mut deltas = Deltas::new(source.clone());
        drop(counting);
        assert_eq!(source.totals().running, 0);
        assert!(source.totals().was_loaded());
        let (counter, _counting) = loaded(&source, 1);
        counter.store(2, Ordering::Relaxed);
        let metrics = take(&mut deltas);
        assert_eq!(
            (metrics.sis_target, metrics.restarts, metrics.running),
            (2, 1, 1)
        );
        assert_eq!(source.totals().sis_target, 9);
    }
}
