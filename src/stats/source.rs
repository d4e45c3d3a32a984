// SPDX-License-Identifier: GPL-2.0-only
//! Where counters come from: the map of the loaded scheduler, and what schedulers before a restart had counted.
//! Server threads read it without the scheduler's loop, so that neither waits for the other.

use super::{Counters, Metrics, NR_STATS, add, delta, sum};
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Clients that ask within this time of each other get the same snapshot.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_millis(50);

/// What can be counted: the BPF map, or a test's own.
pub trait Counted: Send {
    fn read(&self) -> Result<Counters>;
}

impl Counted for MapHandle {
    fn read(&self) -> Result<Counters> {
        let values = self
            .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
            .context("cannot read the BPF map 'stats'")?
            .context("the BPF map 'stats' has no entry")?;
        sum(&values)
    }
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
pub struct Source(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// None while no scheduler is loaded.
    map: Option<Box<dyn Counted>>,
    running: Running,
    /// Counted by schedulers that were unloaded.
    base: Option<Box<Counters>>,
    snapshot: Option<(Instant, Box<Counters>)>,
}

impl Source {
    /// A scheduler was loaded.
    pub fn attach(&self, map: Box<dyn Counted>, running: Running) {
        let mut state = self.lock();
        state.map = Some(map);
        state.running = running;
        state.snapshot = None;
    }

    /// The scheduler is about to be unloaded: keep what it counted.
    pub fn detach(&self) {
        let mut state = self.lock();
        if let Ok(last) = state.read() {
            state.base = Some(Box::new(last));
        }
        state.map = None;
        state.snapshot = None;
    }

    /// Counters since the first load; they never run backwards, over restarts neither.
    pub fn totals(&self) -> Result<Metrics> {
        let mut state = self.lock();
        let counters = state.snapshot()?;
        let mut metrics = state.describe();
        metrics.set_counters(&counters);
        Ok(metrics)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn snapshot(&mut self) -> Result<Counters> {
        if let Some((at, counters)) = &self.snapshot
            && at.elapsed() < SNAPSHOT_AGE_MAX
        {
            return Ok(**counters);
        }
        let counters = self.read()?;
        self.snapshot = Some((Instant::now(), Box::new(counters)));
        Ok(counters)
    }

    fn read(&self) -> Result<Counters> {
        let base = self.base.as_deref().copied().unwrap_or([0; NR_STATS]);
        match &self.map {
            Some(map) => Ok(add(&base, &map.read()?)),
            None => Ok(base),
        }
    }

    fn describe(&self) -> Metrics {
        Metrics {
            preset: self.running.preset.clone(),
            features: self.running.features.clone(),
            governor: self.running.governor.clone(),
            cpuperf: self.running.cpuperf.clone(),
            restarts: self.running.restarts,
            running: self.map.is_some().into(),
            ..Metrics::default()
        }
    }
}

/// The view of one client: growth since it last asked; the first time, since it came.
pub struct Deltas {
    source: Source,
    last: Counters,
    at: Instant,
}

impl Deltas {
    pub fn new(source: Source) -> Result<Deltas> {
        let last = source.totals()?.counters();
        Ok(Deltas {
            source,
            last,
            at: Instant::now(),
        })
    }

    pub fn next(&mut self) -> Result<Metrics> {
        let mut metrics = self.source.totals()?;
        let now = metrics.counters();
        metrics.set_counters(&delta(&now, &self.last));
        metrics.interval_ms = self.at.elapsed().as_millis() as u64;
        self.last = now;
        self.at = Instant::now();
        Ok(metrics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread::sleep;

    struct Fake(Arc<AtomicU64>);

    impl Counted for Fake {
        fn read(&self) -> Result<Counters> {
            Ok([self.0.load(Ordering::Relaxed); NR_STATS])
        }
    }

    fn loaded(source: &Source, restarts: u64) -> Arc<AtomicU64> {
        let counter = Arc::new(AtomicU64::new(0));
        let running = Running {
            restarts,
            ..Running::default()
        };
        source.attach(Box::new(Fake(counter.clone())), running);
        counter
    }

    fn next(deltas: &mut Deltas) -> Metrics {
        sleep(SNAPSHOT_AGE_MAX + Duration::from_millis(5));
        deltas.next().unwrap()
    }

    #[test]
    fn each_client_has_its_own_delta() {
        let source = Source::default();
        let counter = loaded(&source, 0);
        let mut early = Deltas::new(source.clone()).unwrap();
        counter.store(10, Ordering::Relaxed);
        assert_eq!(next(&mut early).sis_target, 10);
        let mut late = Deltas::new(source.clone()).unwrap();
        counter.store(15, Ordering::Relaxed);
        assert_eq!(next(&mut late).sis_target, 5);
        assert_eq!(next(&mut early).sis_target, 5);
        assert_eq!(next(&mut early).sis_target, 0);
    }

    #[test]
    fn counters_survive_a_restart() {
        let source = Source::default();
        loaded(&source, 0).store(7, Ordering::Relaxed);
        let mut deltas = Deltas::new(source.clone()).unwrap();
        source.detach();
        assert_eq!(source.totals().unwrap().running, 0);
        loaded(&source, 1).store(2, Ordering::Relaxed);
        let metrics = next(&mut deltas);
        assert_eq!(
            (metrics.sis_target, metrics.restarts, metrics.running),
            (2, 1, 1)
        );
        assert_eq!(source.totals().unwrap().sis_target, 9);
    }
}
