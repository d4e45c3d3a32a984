// SPDX-License-Identifier: GPL-2.0-only
//! Frequencies of CPUs: their source, what is learnt from them, and what counts as low.

use super::STALE_PERIODS;
use crate::bpf::intf::{CAPACITY_SCALE, MAX_ARMS, MAX_CPUS, policy_image};
use crate::machine::host::Host;
use crate::machine::{FreqFiles, FreqSource, Policies};
use crate::model::{FreqRule, Learner};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Default)]
enum From {
    #[default]
    Nothing,
    /// As seen by ticks, as a part of the highest frequency.
    Ticks,
    Files(Arc<FreqFiles>),
}

/// The thresholds are learnt again after this many samples.
const SAMPLES_TO_LEARN: u32 = 50;

/// What a sample says.
pub struct Sample<'a> {
    /// The frequencies for the scheduler, in kHz. None: it has those that ticks see, or no source
    /// is known.
    pub khz: Option<&'a [Option<u32>]>,
    /// Ticks are the source from now on.
    pub switched: bool,
    /// The thresholds were learnt again, with this sample too.
    pub learnt: bool,
}

/// A sample read from a source's files.
pub struct Reading {
    files: Arc<FreqFiles>,
    begun: Instant,
    /// By CPU number.
    khz: Vec<Option<u32>>,
}

impl Reading {
    /// Reads by `read`, which may take long.
    pub fn new(
        files: Arc<FreqFiles>,
        read: impl FnOnce(&FreqFiles) -> Vec<Option<u32>>,
    ) -> Reading {
        Reading {
            begun: Instant::now(),
            khz: read(&files),
            files,
        }
    }

    /// Time since the read began.
    pub fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// What was read, if it is of these files and not `stale`. None too if nothing was read,
    /// because another thread still waits for a file.
    fn of(&self, files: &Arc<FreqFiles>, stale: Duration) -> Option<&[Option<u32>]> {
        let good = Arc::ptr_eq(&self.files, files) && self.age() <= stale && !self.khz.is_empty();
        good.then_some(&self.khz)
    }
}

#[derive(Default)]
pub struct Frequencies {
    /// Moves can be delayed, so frequencies may be needed.
    wanted: bool,
    from: From,
    /// Switch to ticks as soon as they see a frequency below the highest.
    ticks_may: bool,
    learner: Learner,
    /// The number of samples.
    samples: u32,
    stale_ms: u32,
}

impl Frequencies {
    /// A sample is taken every `period`.
    pub fn new(host: &Host, asked: &FreqSource, policies: &Policies, period: Duration) -> Self {
        let nr_cpu_ids = policies.cpus.len();
        let files = |files| From::Files(Arc::new(files));
        let cpufreq = || FreqFiles::of_cpufreq(host, nr_cpu_ids).map_or(From::Nothing, files);
        Frequencies {
            wanted: true,
            from: match asked {
                FreqSource::Auto | FreqSource::Cpufreq => cpufreq(),
                FreqSource::Cpuperf => From::Ticks,
                FreqSource::Off => From::Nothing,
                FreqSource::Folder(folder) => files(FreqFiles::of_folder(folder, nr_cpu_ids)),
            },
            ticks_may: *asked == FreqSource::Auto,
            learner: Learner::new(policies),
            samples: 0,
            stale_ms: STALE_PERIODS * period.as_millis() as u32,
        }
    }

    /// The name of the source in use, for people.
    pub fn name(&self) -> &str {
        match &self.from {
            From::Nothing => "none",
            From::Ticks => "cpuperf",
            From::Files(files) => &files.name,
        }
    }

    pub fn wanted(&self) -> bool {
        self.wanted
    }

    /// The age at which a sample is no longer valid.
    pub fn stale(&self) -> Duration {
        Duration::from_millis(self.stale_ms.into())
    }

    pub fn known(&self) -> bool {
        !matches!(self.from, From::Nothing)
    }

    /// The files to read for the next sample. The caller must hold no lock then: a file may hang.
    pub fn files(&self) -> Option<Arc<FreqFiles>> {
        match &self.from {
            From::Files(files) => Some(files.clone()),
            From::Nothing | From::Ticks => None,
        }
    }

    /// Learns from the first sample on, and not only after many.
    #[cfg(feature = "internals")]
    pub fn learning_at_once(self) -> Self {
        Frequencies {
            samples: SAMPLES_TO_LEARN - 1,
            ..self
        }
    }

    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// Takes one more sample, and now and then learns what is low. `speeds`: what ticks see;
    /// `read`: read from `files()`. None: the reading is empty, took too long, or is of other
    /// files, so it does not count.
    pub fn sample<'a>(&mut self, speeds: &[u32], read: Option<&'a Reading>) -> Option<Sample<'a>> {
        let switched = self.ticks_may && speeds.iter().any(|&speed| speed != CAPACITY_SCALE);
        if switched {
            self.from = From::Ticks;
            self.ticks_may = false;
        }
        let khz = match &self.from {
            From::Nothing => None,
            From::Ticks => {
                self.learner.add(&self.khz_of_ticks(speeds));
                None
            }
            From::Files(files) => {
                let khz = read.and_then(|read| read.of(files, self.stale()))?;
                self.learner.add(khz);
                Some(khz)
            }
        };
        self.samples = self.samples.wrapping_add(1);
        let learnt = switched || self.samples.is_multiple_of(SAMPLES_TO_LEARN);
        if learnt {
            self.learner.look();
        }
        Some(Sample {
            khz,
            switched,
            learnt,
        })
    }

    /// What ticks see, if they are the source.
    pub fn khz_of_ticks(&self, speeds: &[u32]) -> Vec<Option<u32>> {
        match self.from {
            From::Ticks => self.learner.in_khz(speeds, CAPACITY_SCALE),
            From::Nothing | From::Files(_) => Vec::new(),
        }
    }

    /// The threshold of each CPU; empty without a source.
    pub fn thresholds_khz(&self, rule: FreqRule) -> Vec<u32> {
        match self.from {
            From::Nothing => Vec::new(),
            From::Ticks | From::Files(_) => self.learner.thresholds(rule),
        }
    }

    /// As `thresholds_khz`, in the unit of the source.
    fn thresholds(&self, rule: FreqRule) -> Vec<u32> {
        let khz = self.thresholds_khz(rule);
        match self.from {
            From::Ticks => self.learner.scaled(&khz, CAPACITY_SCALE),
            From::Nothing | From::Files(_) => khz,
        }
    }

    /// Writes into `image` when samples expire, and the thresholds of each arm. `rules`: by slot of
    /// the arm.
    pub fn fill(&self, image: &mut policy_image, rules: &[FreqRule; MAX_ARMS as usize]) {
        image.freq_stale_ms = match self.from {
            From::Ticks => 0,
            _ => self.stale_ms.max(1),
        };
        for (row, rule) in image.threshold.iter_mut().zip(rules) {
            *row = [0; MAX_CPUS as usize];
            for (to, khz) in row.iter_mut().zip(self.thresholds(*rule)) {
                *to = khz;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::settings::Settings;
    use crate::publish::image;
    use std::fs;
    use tempfile::TempDir;

    const PERIOD: Duration = Duration::from_secs(1);

    /// Two CPUs of 1 to 4 GHz. CPU 0 runs at 1 GHz.
    fn machine() -> (TempDir, Host) {
        let dir = tempfile::tempdir().unwrap();
        for cpu in 0..2 {
            let folder = dir
                .path()
                .join(format!("devices/system/cpu/cpu{cpu}/cpufreq"));
            fs::create_dir_all(&folder).unwrap();
            let files = [
                ("cpuinfo_min_freq", "1000000"),
                ("cpuinfo_max_freq", "4000000"),
                ("scaling_max_freq", "4000000"),
                ("scaling_cur_freq", ["1000000", "3000000"][cpu]),
            ];
            for (name, text) in files {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        let host = Host::in_folder(dir.path());
        (dir, host)
    }

    fn of(host: &Host, asked: &FreqSource) -> Frequencies {
        Frequencies::new(host, asked, &Policies::read(host, 2), PERIOD)
    }

    fn read(frequencies: &Frequencies) -> Option<Reading> {
        Some(Reading::new(frequencies.files()?, FreqFiles::read))
    }

    /// The frequencies for the scheduler.
    fn sampled(frequencies: &mut Frequencies, speeds: &[u32]) -> Option<Vec<Option<u32>>> {
        let read = read(frequencies);
        let sample = frequencies.sample(speeds, read.as_ref());
        Some(sample?.khz?.to_vec())
    }

    fn filled(frequencies: &Frequencies, rule: FreqRule) -> (u32, Vec<u32>, u32) {
        let mut image = image(&[Settings::default().arm(2)], &[1024; 2]);
        let mut rules = [FreqRule::Off; MAX_ARMS as usize];
        rules[1] = rule;
        frequencies.fill(&mut image, &rules);
        assert_eq!(image.threshold[0][0], 0, "arm 0 has no rule");
        let row = image.threshold[1];
        (row[0], row[..3].to_vec(), image.freq_stale_ms)
    }

    #[test]
    fn cpufreq_is_used_until_ticks_see_something() {
        let (_dir, host) = machine();
        let mut frequencies = of(&host, &FreqSource::Auto);
        assert_eq!(frequencies.name(), "scaling_cur_freq");
        let khz = sampled(&mut frequencies, &[1024, 1024]);
        assert_eq!(khz, Some(vec![Some(1_000_000), Some(3_000_000)]));
        let rule = FreqRule::Khz(1_500_000);
        let row = vec![1_500_000, 1_500_000, 0];
        assert_eq!(filled(&frequencies, rule), (1_500_000, row, 3000));
        assert_eq!(sampled(&mut frequencies, &[1024, 700]), None);
        assert_eq!(frequencies.name(), "cpuperf");
        assert_eq!(filled(&frequencies, rule), (384, vec![384, 384, 0], 0));
    }

    #[test]
    fn what_is_asked_for_is_used() {
        let (dir, host) = machine();
        let of = |asked| of(&host, &asked);
        let mut cpufreq = of(FreqSource::Cpufreq);
        assert!(sampled(&mut cpufreq, &[1, 1]).is_some() && cpufreq.name() == "scaling_cur_freq");
        assert_eq!(of(FreqSource::Cpuperf).name(), "cpuperf");
        let mut off = of(FreqSource::Off);
        assert_eq!(sampled(&mut off, &[1, 1]), None);
        assert!(!off.known());
        assert_eq!(filled(&off, FreqRule::Khz(5)).1, [0, 0, 0]);
        fs::write(dir.path().join("cpu1"), "7000").unwrap();
        let mut folder = of(FreqSource::Folder(dir.path().into()));
        assert_eq!(sampled(&mut folder, &[1, 1]), Some(vec![None, Some(7000)]));
    }

    #[test]
    fn what_was_read_of_others_or_long_ago_says_nothing() {
        let (_dir, host) = machine();
        let of = || of(&host, &FreqSource::Cpufreq);
        let (before, mut now) = (of(), of());
        assert!(now.sample(&[1, 1], read(&before).as_ref()).is_none());
        assert!(now.sample(&[1, 1], read(&now).as_ref()).is_some());
        assert!(now.sample(&[1, 1], None).is_none());
        let mut slow = read(&now).unwrap();
        slow.begun -= 4 * PERIOD;
        assert!(now.sample(&[1, 1], Some(&slow)).is_none());
    }

    /// The scheduler learns after many samples, the simulator from the first on; then both at the
    /// same pace.
    #[test]
    fn what_is_low_is_learnt_now_and_then() {
        let (_dir, host) = machine();
        let learns = |mut frequencies: Frequencies| -> Vec<usize> {
            let learns = |_: &usize| frequencies.sample(&[1, 1], None).unwrap().learnt;
            (1..=101).filter(learns).collect()
        };
        let ticks = || of(&host, &FreqSource::Cpuperf);
        assert_eq!(learns(ticks()), [50, 100]);
        assert_eq!(learns(ticks().learning_at_once()), [1, 51, 101]);
    }

    #[test]
    fn a_machine_without_cpufreq_has_no_source() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        let mut none = of(&host, &FreqSource::Auto);
        assert_eq!(sampled(&mut none, &[1024, 1024]), None);
        assert!(!none.known() && none.name() == "none");
    }
}
