// SPDX-License-Identifier: GPL-2.0-only
//! Passes frequencies and idle periods from the machine to the loaded scheduler, while an arm wants
//! them.

use super::{Control, ControlState, Refused};
use crate::bpf::intf::policy_image;
use crate::machine::{Clocks, FreqFiles};
use crate::model::{FreqRule, suppressed_suffix};
use crate::policy::features::bits;
use crate::publish::{Frequencies, Reading, Scans};
use crate::util::text::count;
use crate::wire::stats::host::{Condition, Event};
use crate::wire::stats::source::KhzReader;
use anyhow::Result;
use log::{info, warn};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After this many samples it is clear whether ticks see frequencies.
const SAMPLES_TO_KNOW: u32 = 50;

const NO_SOURCE: &str =
    "delay_migration does nothing: no frequency of a CPU is known (see --freq-source)";

/// By CPU number, as far as known.
#[derive(Default)]
pub struct CpuLive {
    pub khz: Vec<Option<u32>>,
    /// When the frequencies were sampled; None: not known.
    pub khz_at: Option<Instant>,
    /// Of arm default; 0: nothing is low.
    pub threshold_khz: Vec<u32>,
    pub idle_ns: Vec<u64>,
}

/// The last sample of frequencies.
#[derive(Default)]
pub(super) struct Sampled {
    /// By CPU number.
    khz: Vec<Option<u32>>,
    at: Option<Instant>,
}

/// The thresholds of each arm.
pub(super) fn rows(image: &policy_image) -> Vec<Vec<u32>> {
    image.threshold.iter().map(|row| row.to_vec()).collect()
}

impl Control {
    /// Sets the source of frequencies, for the running scheduler and the next one.
    pub fn set_frequencies(&self, frequencies: Frequencies) {
        let mut state = self.lock();
        let old = std::mem::replace(&mut state.frequencies, frequencies);
        state.unread = 0;
        state.silent_before.clear();
        state.sampled = Sampled::default();
        state.show_frequencies();
        // A running scheduler has thresholds in the unit of the old source.
        state.arms_changed |= state.live.is_some();
        let flushed = state.flush();
        // Unlocked while the old source's files are closed.
        drop(state);
        drop(old);
        if let Err(e) = flushed {
            warn!("cannot follow the new source of frequencies: {e:#}");
        }
    }

    /// Sets the caches of the next scheduler's machine.
    pub fn set_scans(&self, scans: Scans) {
        self.lock().scans = scans;
    }

    /// Sets the CPUs that were online at the load and are offline now. Their frequencies cannot be
    /// read.
    pub fn set_away(&self, cpus: Vec<u16>) {
        self.lock().away = cpus;
    }

    /// Called at each look at the machine, after `set_away`. A CPU that goes offline loses its file
    /// some time before it is listed as offline, so only a CPU that two looks found silent counts.
    pub fn judge_unread(&self) {
        self.lock().judge_unread();
    }

    /// Some arm bounds its scans by idle periods.
    pub fn wants_scans(&self) -> bool {
        self.lock().arms.want_scans()
    }

    /// Called repeatedly: reads idle periods, if an arm wants them, and sets the bounds of scans.
    pub fn sample_idle(&self) {
        self.lock().sample_idle();
    }

    /// Called when sampling of idle periods pauses: old ones must not bound a scan.
    pub fn forget_idle(&self) {
        let mut state = self.lock();
        let nothing = state.scans.nothing();
        if let Some(live) = state.live.as_mut() {
            live.set_scans(&nothing, 0);
        }
    }

    /// Called when sampling of frequencies pauses: the last sample is not shown any more.
    pub fn forget_frequencies(&self) {
        self.lock().sampled = Sampled::default();
    }

    /// Called repeatedly. If an arm wants frequencies, reads them by `read` and publishes them, and
    /// the thresholds if these were learnt again. Errors: the thresholds cannot be published.
    pub fn sample(&self, read: impl FnOnce(&FreqFiles) -> Vec<Option<u32>>) -> Result<()> {
        let state = self.lock();
        if state.live.is_none() || !state.wants_frequencies() {
            return Ok(());
        }
        let files = state.frequencies.files();
        // Unlocked during the read, because a file may hang.
        drop(state);
        let read = files.map(|files| Reading::new(files, read));
        self.lock().sample(read.as_ref())
    }

    /// Some arm delays moves to slow CPUs, and delays are possible.
    pub fn wants_frequencies(&self) -> bool {
        self.lock().wants_frequencies()
    }

    pub fn groups_refused(&self) -> Refused {
        let state = self.lock();
        state
            .live
            .as_ref()
            .map_or(Refused::default(), |live| live.refused())
    }

    /// What statistics show of each CPU.
    pub fn cpu_gauges(&self) -> CpuLive {
        let state = self.lock();
        let nr_cpus = state.capacity.len();
        let everybody = &state.arms.everybody().settings;
        let every = everybody.features.has(bits::avg_idle_every);
        let live = state.live.as_ref();
        let sampled = state.fresh();
        CpuLive {
            idle_ns: live.map_or(Vec::new(), |live| live.idle_means(nr_cpus, every)),
            threshold_khz: state.frequencies.thresholds_khz(state.arms.freq_rules()[0]),
            khz: sampled.map_or(Vec::new(), |sampled| sampled.khz.clone()),
            khz_at: sampled.and_then(|sampled| sampled.at),
        }
    }
}

impl ControlState {
    fn wants_frequencies(&self) -> bool {
        let rules = self.arms.freq_rules();
        self.frequencies.wanted() && rules.iter().any(|rule| *rule != FreqRule::Off)
    }

    /// The last sample, if an arm wants samples and it is not too old.
    fn fresh(&self) -> Option<&Sampled> {
        let age = self.sampled.at.map(|at| at.elapsed());
        let fresh = age.is_some_and(|age| age <= self.frequencies.stale());
        (fresh && self.wants_frequencies()).then_some(&self.sampled)
    }

    fn sample_idle(&mut self) {
        let everybody = self.arms.everybody().settings.features;
        let Some(live) = self.live.as_mut().filter(|_| self.arms.want_scans()) else {
            return;
        };
        let every = everybody.has(bits::avg_idle_every);
        let means = live.idle_means(self.capacity.len(), every);
        live.set_scans(&self.scans.worth(&means), self.scans.counts_ms);
    }

    fn sample(&mut self, read: Option<&Reading>) -> Result<()> {
        let Some(live) = &mut self.live else {
            return Ok(());
        };
        let speeds = live.speeds(self.capacity.len());
        // A reading that does not count says nothing about the files.
        let Some(sample) = self.frequencies.sample(&speeds, read) else {
            return Ok(());
        };
        let age = read.map_or(Duration::ZERO, Reading::age);
        if let Some(khz) = sample.khz {
            live.set_frequencies(khz, age);
        }
        let of_ticks = || self.frequencies.khz_of_ticks(&speeds);
        self.sampled = Sampled {
            khz: sample.khz.map_or_else(of_ticks, <[_]>::to_vec),
            at: Instant::now().checked_sub(age),
        };
        if sample.switched {
            self.show_frequencies();
        }
        self.judge_samples();
        if sample.learnt {
            self.compare_thresholds();
        }
        self.flush()
    }

    /// Has the thresholds published if they differ from those of the last image.
    fn compare_thresholds(&mut self) {
        if self.thresholds == rows(&self.image()) {
            return;
        }
        self.arms_changed = true;
        self.source.event(Event::ThresholdsChanged);
        if let Some(left_out) = self.thresholds_log.admit(Clocks::now().monotonic) {
            info!(
                "the frequencies that count as low were updated from the samples{}",
                suppressed_suffix(left_out)
            );
        }
    }

    /// Updates the condition: whether a source is known.
    fn judge_samples(&mut self) {
        let known = self.frequencies.known();
        if known || self.frequencies.samples() >= SAMPLES_TO_KNOW {
            let text = (!known).then(|| NO_SOURCE.to_string());
            self.source.set_condition(Condition::NoFreqSource, text);
        }
    }

    /// CPUs of the load whose file the last sample could not read, while an arm wants samples.
    fn silent(&self) -> Vec<usize> {
        if self.frequencies.files().is_none() || !self.wants_frequencies() {
            return Vec::new();
        }
        let silent = |(cpu, khz): (usize, &Option<u32>)| {
            let known = self.capacity.get(cpu).is_some_and(|capacity| *capacity > 0);
            (known && khz.is_none()).then_some(cpu)
        };
        let read = self.sampled.khz.iter().enumerate();
        read.filter_map(silent).collect()
    }

    /// Updates the condition: whether every online CPU's file can be read.
    fn judge_unread(&mut self) {
        let silent = self.silent();
        let before = std::mem::replace(&mut self.silent_before, silent);
        let away = |cpu: &usize| self.away.iter().any(|away| usize::from(*away) == *cpu);
        let lasting = self.silent_before.iter().copied();
        let cpus: Vec<usize> = lasting
            .filter(|cpu| before.contains(cpu) && !away(cpu))
            .collect();
        (self.unread..cpus.len()).for_each(|_| self.source.event(Event::ReadFailed));
        self.unread = cpus.len();
        let text = cpus.first().map(|first| {
            format!(
                "{} gives no frequency of {}, CPU {first} first: moves there are not delayed",
                self.frequencies.name(),
                count(cpus.len(), "online CPU")
            )
        });
        self.source.set_condition(Condition::FreqUnreadable, text);
    }

    pub(super) fn show_frequencies(&self) {
        let files = self.frequencies.files().filter(|files| files.of_kernel);
        let reader = files.map(|files| Arc::new(move || files.read()) as Arc<KhzReader>);
        self.source.set_freq_source(self.frequencies.name(), reader);
    }
}
