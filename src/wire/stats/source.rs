// SPDX-License-Identifier: GPL-2.0-only
//! Where counters come from: the memory of the loaded scheduler, plus what schedulers counted
//! before a restart. Server threads read that memory directly. Neither they nor the scheduler's
//! loop wait for the other.

use super::host::{
    self, Condition, Conditions, CpuGauges, CpuMetrics, CpusMetrics, Event, Events, Gauges,
};
use super::snapshot::{ArmShown, Snapshot};
use super::{ArmCounts, CounterFields, Counters, Metrics, NR_STATS, add};
use crate::bpf::intf::MAX_ARMS;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Clients that ask within this time of one another get the same snapshot.
const SNAPSHOT_AGE_MAX: Duration = Duration::from_millis(50);
/// Frequencies of CPUs that are at most this old are not read again.
const KHZ_AGE_MAX: Duration = Duration::from_secs(1);
const SLOTS: usize = MAX_ARMS as usize;

/// A source of counts: the BPF half's counters, or a test's own.
pub trait Counted: Send {
    /// Counts of the arm in this slot since the load.
    fn read(&self, slot: usize) -> ArmCounts;
    /// Counts of this CPU for all arms since the load.
    fn read_cpu(&self, cpu: usize) -> Counters;
}

/// Returns the frequency of each CPU, in kHz, by CPU number; None: unknown. Empty: another thread
/// is reading them. Must not hang.
pub type KhzReader = dyn Fn() -> Vec<Option<u32>> + Send + Sync;

/// What runs, for the fields of `Metrics` that are not counters.
#[derive(Clone, Debug, Default)]
pub struct Running {
    pub cpuperf: String,
    pub restarts: u64,
}

/// A shared handle; clones see the same counters.
#[derive(Clone, Default)]
pub struct CounterSource(Arc<Mutex<SourceState>>);

/// Ends the counting when it is dropped. The counts are kept.
pub struct Counting(CounterSource);

impl Drop for Counting {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.base = state.read();
        state.cpu_base = state.read_cpus();
        state.counted = None;
        state.snapshot = None;
        state.cpu_snapshot = None;
    }
}

/// By slot, for each slot that was ever in use.
type Sample = BTreeMap<usize, ArmCounts>;
/// By CPU, for each CPU that was online at some load.
type CpuSample = BTreeMap<usize, Counters>;

#[derive(Default)]
struct SourceState {
    /// None while no scheduler is loaded.
    counted: Option<Box<dyn Counted>>,
    /// True if a scheduler is loaded or was.
    loaded: bool,
    /// When the run began, s since 1970.
    start_time_s: u64,
    running: Running,
    governor: String,
    freq_source: String,
    khz_reader: Option<Arc<KhzReader>>,
    /// When the frequencies in `cpus` were read or sampled.
    khz_read: Option<Instant>,
    arms: Vec<LiveArm>,
    /// Number of arms there ever were.
    born: u64,
    /// Counts of unloaded schedulers.
    base: Sample,
    /// Counts of unloaded schedulers by CPU.
    cpu_base: CpuSample,
    snapshot: Option<(Instant, Sample)>,
    cpu_snapshot: Option<(Instant, CpuSample)>,
    events: Events,
    gauges: Gauges,
    /// By number, the CPUs that were online at the load.
    cpus: BTreeMap<usize, CpuGauges>,
    /// Only those that were ever set.
    conditions: Conditions,
}

#[derive(Clone)]
struct LiveArm {
    shown: ArmShown,
    /// Unique: a later arm of the same name in the same slot has another number.
    number: u64,
    /// Counts of the slot before this arm.
    before: ArmCounts,
}

impl CounterSource {
    /// The run begins at this time, in seconds since 1970.
    pub fn begin(&self, start_time_s: u64) {
        self.lock().start_time_s = start_time_s;
    }

    /// Reads from `counted`. Drop the returned value before the scheduler is unloaded.
    #[must_use]
    pub fn attach(&self, counted: Box<dyn Counted>, running: Running) -> Counting {
        let mut state = self.lock();
        state.counted = Some(counted);
        state.loaded = true;
        state.running = running;
        state.snapshot = None;
        state.cpu_snapshot = None;
        Counting(self.clone())
    }

    /// Replaces the arms. An arm counts as the same one if both its slot and name are unchanged.
    pub fn set_arms(&self, arms: Vec<ArmShown>) {
        let mut state = self.lock();
        let old = std::mem::take(&mut state.arms);
        for shown in arms {
            let same = |a: &&LiveArm| (a.shown.slot, &a.shown.name) == (shown.slot, &shown.name);
            let arm = match old.iter().find(same) {
                Some(arm) => LiveArm {
                    shown,
                    ..arm.clone()
                },
                None => state.bear(shown),
            };
            state.arms.push(arm);
        }
        state.snapshot = None;
    }

    /// Sets where frequencies of CPUs come from. `reader` is called when a client asks for them.
    pub fn set_freq_source(&self, name: &str, reader: Option<Arc<KhzReader>>) {
        let mut state = self.lock();
        state.freq_source = name.to_string();
        state.khz_read = None;
        let old = std::mem::replace(&mut state.khz_reader, reader);
        // Close its files without holding the lock.
        drop(state);
        drop(old);
    }

    /// Sets the cpufreq governor to show.
    pub fn set_governor(&self, governor: &str) {
        self.lock().governor = governor.to_string();
    }

    pub fn event(&self, event: Event) {
        self.events(event, 1);
    }

    /// Counts `event`, `times` times.
    pub fn events(&self, event: Event, times: u64) {
        self.lock().events.count(event, times);
    }

    pub fn set_gauges(&self, gauges: Gauges) {
        self.lock().gauges = gauges;
    }

    /// Replaces the gauges of all CPUs that were online at the load, by number. `khz_at`: when
    /// their frequencies were sampled; None: they are not sampled.
    pub fn set_cpus(&self, mut cpus: BTreeMap<usize, CpuGauges>, khz_at: Option<Instant>) {
        let mut state = self.lock();
        // Keep the frequencies that a client read, if they are as new as the samples.
        // `follow_frequencies` reads them again when they are too old.
        if state.khz_reader.is_some() && state.khz_read >= khz_at {
            let old = std::mem::take(&mut state.cpus);
            for (cpu, gauges) in &mut cpus {
                gauges.khz = old.get(cpu).map_or(0, |old| old.khz);
            }
        } else {
            state.khz_read = khz_at;
        }
        state.cpus = cpus;
    }

    /// Reads the frequencies if they are old. Only done on request, because reading one costs its
    /// CPU time.
    fn follow_frequencies(&self) {
        let state = self.lock();
        let old = state.khz_read.is_none_or(|at| at.elapsed() >= KHZ_AGE_MAX);
        let reader = state.khz_reader.clone().filter(|_| old);
        drop(state);
        let Some(reader) = reader else { return };
        // Read without holding the lock.
        let (begun, khz) = (Instant::now(), reader());
        let mut state = self.lock();
        let ours = state.khz_reader.as_ref();
        // Empty: another thread is reading them. Newer: another thread has read them meanwhile.
        let newer = state.khz_read.is_some_and(|at| at > begun);
        if khz.is_empty() || newer || !ours.is_some_and(|ours| Arc::ptr_eq(ours, &reader)) {
            return;
        }
        for (cpu, gauges) in &mut state.cpus {
            gauges.khz = khz.get(*cpu).copied().flatten().unwrap_or(0).into();
        }
        state.khz_read = Some(begun);
    }

    /// A condition lasts while it has a text. The text says what was read and what to do.
    pub fn set_condition(&self, which: Condition, text: Option<String>) {
        host::set_condition(&mut self.lock().conditions, which, text);
    }

    /// Counters since the first load and gauges, by CPU.
    pub fn cpus(&self) -> CpusMetrics {
        self.follow_frequencies();
        self.lock().describe_cpus()
    }

    /// Gauges by CPU, without counters.
    pub fn cpu_gauges(&self) -> BTreeMap<usize, CpuGauges> {
        self.follow_frequencies();
        self.lock().cpus.clone()
    }

    /// Counters since the first load. They never decrease, not even over a restart.
    pub fn totals(&self) -> Metrics {
        self.view().metrics()
    }

    pub(super) fn view(&self) -> Snapshot {
        let mut state = self.lock();
        let sample = state.snapshot();
        let none = ArmCounts::default();
        let arms = state.arms.iter().map(|arm| {
            let now = sample.get(&arm.shown.slot).unwrap_or(&none);
            (arm.number, (arm.shown.clone(), now.since(&arm.before)))
        });
        Snapshot {
            total: sample
                .values()
                .fold([0; NR_STATS], |sum, arm| add(&sum, &arm.counters)),
            arms: arms.collect(),
            rest: state.describe(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SourceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SourceState {
    fn bear(&mut self, shown: ArmShown) -> LiveArm {
        self.base.entry(shown.slot).or_default();
        self.born += 1;
        LiveArm {
            number: self.born,
            before: self.read().remove(&shown.slot).unwrap_or_default(),
            shown,
        }
    }

    fn snapshot(&mut self) -> Sample {
        if let Some((at, sample)) = &self.snapshot
            && at.elapsed() < SNAPSHOT_AGE_MAX
        {
            return sample.clone();
        }
        let sample = self.read();
        self.snapshot = Some((Instant::now(), sample.clone()));
        sample
    }

    fn read(&self) -> Sample {
        let now = |(slot, base): (&usize, &ArmCounts)| match &self.counted {
            Some(counted) => (*slot, base.plus(&counted.read(*slot))),
            None => (*slot, base.clone()),
        };
        self.base
            .iter()
            .filter(|(slot, _)| **slot < SLOTS)
            .map(now)
            .collect()
    }

    fn read_cpus(&self) -> CpuSample {
        let now = |cpu: usize| {
            let base = self.cpu_base.get(&cpu).unwrap_or(&[0; NR_STATS]);
            match &self.counted {
                Some(counted) => (cpu, add(base, &counted.read_cpu(cpu))),
                None => (cpu, *base),
            }
        };
        let gone = self.cpu_base.keys();
        self.cpus.keys().chain(gone).copied().map(now).collect()
    }

    fn describe_cpus(&mut self) -> CpusMetrics {
        let fresh = |(at, _): &(Instant, CpuSample)| at.elapsed() < SNAPSHOT_AGE_MAX;
        let sample = match self.cpu_snapshot.take().filter(fresh) {
            Some(fresh) => fresh,
            None => (Instant::now(), self.read_cpus()),
        };
        let counted = |cpu: &usize| sample.1.get(cpu).unwrap_or(&[0; NR_STATS]);
        let cpus = self.cpus.iter().map(|(cpu, gauges)| {
            let metrics = CpuMetrics {
                gauges: gauges.clone(),
                counters: CounterFields::new(counted(cpu)),
            };
            (*cpu as u64, metrics)
        });
        let metrics = CpusMetrics {
            running: self.counted.is_some().into(),
            cpus: cpus.collect(),
        };
        self.cpu_snapshot = Some(sample);
        metrics
    }

    fn describe(&self) -> Metrics {
        let everybody = self.arms.iter().find(|arm| arm.shown.slot == 0);
        let everybody = everybody.filter(|_| self.loaded);
        let everybody = everybody.map(|arm| arm.shown.clone()).unwrap_or_default();
        Metrics {
            version: env!("CARGO_PKG_VERSION").to_string(),
            profile: everybody.profile,
            preset: everybody.preset,
            features: everybody.features,
            governor: self.governor.clone(),
            cpuperf: self.running.cpuperf.clone(),
            freq_source: self.freq_source.clone(),
            start_time_s: self.start_time_s,
            restarts: self.running.restarts,
            running: self.counted.is_some().into(),
            conditions: host::no_conditions()
                .into_iter()
                .chain(self.conditions.clone())
                .collect(),
            events: self.events.clone(),
            gauges: self.gauges.clone(),
            ..Metrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stats::deltas::Deltas;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread::sleep;

    struct Fake(Arc<AtomicU64>);

    impl Counted for Fake {
        fn read(&self, slot: usize) -> ArmCounts {
            let count = self.0.load(Ordering::Relaxed) * (slot as u64 + 1);
            ArmCounts {
                counters: [count; NR_STATS],
                ..ArmCounts::default()
            }
        }

        fn read_cpu(&self, cpu: usize) -> Counters {
            [self.0.load(Ordering::Relaxed) * (cpu as u64 + 1); NR_STATS]
        }
    }

    fn shown(slot: usize, name: &str) -> ArmShown {
        ArmShown {
            slot,
            name: name.into(),
            preset: "roost".into(),
            ..ArmShown::default()
        }
    }

    fn loaded(source: &CounterSource, restarts: u64) -> (Arc<AtomicU64>, Counting) {
        let counter = Arc::new(AtomicU64::new(0));
        if restarts == 0 {
            source.set_arms(vec![shown(0, "default")]);
        }
        let running = Running {
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

    #[test]
    fn an_arm_counts_from_its_own_beginning() {
        let source = CounterSource::default();
        let (counter, counting) = loaded(&source, 0);
        let of = |name: &str| {
            sleep(SNAPSHOT_AGE_MAX + Duration::from_millis(5));
            let totals = source.totals();
            (totals.arms[name].counters.sis_target, totals.sis_target)
        };
        counter.store(10, Ordering::Relaxed);
        source.set_arms(vec![shown(0, "default"), shown(1, "x")]);
        counter.store(15, Ordering::Relaxed);
        assert_eq!(of("x"), (10, 45));
        assert_eq!(of("default"), (15, 45));
        // Another arm in the same slot. The totals keep what the first one counted.
        source.set_arms(vec![shown(0, "default"), shown(1, "y")]);
        counter.store(16, Ordering::Relaxed);
        assert_eq!(of("y"), (2, 48));
        assert!(!source.totals().arms.contains_key("x"));
        drop(counting);
        assert_eq!(of("y"), (2, 48));
        let (counter, _counting) = loaded(&source, 1);
        counter.store(1, Ordering::Relaxed);
        assert_eq!(of("y"), (4, 51));
    }

    #[test]
    fn a_client_gets_the_growth_of_each_arm() {
        let source = CounterSource::default();
        let (counter, _counting) = loaded(&source, 0);
        let mut deltas = Deltas::new(source.clone());
        source.set_arms(vec![shown(0, "default"), shown(1, "x")]);
        counter.store(3, Ordering::Relaxed);
        let metrics = take(&mut deltas);
        let of = |m: &Metrics, arm: &str| m.arms[arm].counters.sis_target;
        assert_eq!((of(&metrics, "default"), of(&metrics, "x")), (3, 6));
        counter.store(4, Ordering::Relaxed);
        let metrics = take(&mut deltas);
        assert_eq!((of(&metrics, "default"), of(&metrics, "x")), (1, 2));
    }

    #[test]
    fn cpus_count_over_restarts_and_forget_none() {
        let source = CounterSource::default();
        let set = |cpus: &[usize]| {
            let gauges = |cpu: &usize| {
                let capacity = 100 + *cpu as u64;
                (
                    *cpu,
                    CpuGauges {
                        capacity,
                        ..CpuGauges::default()
                    },
                )
            };
            source.set_cpus(cpus.iter().map(gauges).collect(), None);
        };
        let counted = |cpu: u64| {
            sleep(SNAPSHOT_AGE_MAX + Duration::from_millis(5));
            let cpus = source.cpus().cpus;
            cpus.get(&cpu)
                .map(|c| (c.gauges.capacity, c.counters.sis_target))
        };
        let (counter, counting) = loaded(&source, 0);
        set(&[0, 2]);
        counter.store(5, Ordering::Relaxed);
        assert_eq!(
            (counted(0), counted(1), counted(2)),
            (Some((100, 5)), None, Some((102, 15)))
        );
        drop(counting);
        assert_eq!(source.cpus().running, 0);
        let (counter, counting) = loaded(&source, 1);
        set(&[0]);
        counter.store(1, Ordering::Relaxed);
        assert_eq!((counted(0), counted(2)), (Some((100, 6)), None));
        drop(counting);
        let (_, _counting) = loaded(&source, 2);
        set(&[0, 2]);
        assert_eq!(counted(2), Some((102, 18)));
    }

    #[test]
    fn clients_get_the_growth_of_events_and_all_conditions() {
        let source = CounterSource::default();
        source.event(Event::Suspend);
        let mut deltas = Deltas::new(source.clone());
        source.event(Event::Suspend);
        source.set_condition(Condition::NoTimers, Some("none".into()));
        let metrics = deltas.take();
        assert_eq!(
            (metrics.events.suspends, source.totals().events.suspends),
            (1, 2)
        );
        assert_eq!(metrics.conditions.len(), Condition::ALL.len());
        assert_eq!(metrics.conditions["no_timers"].active, 1);
        assert_eq!(deltas.take().events.suspends, 0);
    }
}
