// SPDX-License-Identifier: GPL-2.0-only
//! The cycle counters of a CPU, their readers, and what intel_pstate without HWP makes of them
//! (kernel: drivers/cpufreq/intel_pstate.c: intel_pstate_update_util(), get_target_pstate(), as of
//! 4.11 to today). Frequencies are parts of the highest, in 1/FULL.

use super::speed::FULL;

/// kHz of a P-state of Core processors (kernel: core_get_scaling()).
const PSTATE_KHZ: u32 = 100_000;

/// What has been counted (APERF, MPERF).
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycles {
    /// ns that the CPU was busy.
    busy: u64,
    /// The same, times the frequency.
    done: u64,
}

impl Cycles {
    pub fn ran(&mut self, ns: u64, frequency: u64) {
        self.busy += ns;
        self.done += ns * frequency;
    }

    fn since(self, before: Cycles) -> Cycles {
        Cycles {
            busy: self.busy - before.busy,
            done: self.done - before.done,
        }
    }

    /// The mean frequency while the CPU was busy. None: it was idle.
    fn mean(self) -> Option<u64> {
        self.done.checked_div(self.busy)
    }
}

/// A reader of the counters.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reader(Cycles);

impl Reader {
    /// The mean frequency since the last read. None: the CPU was idle.
    pub fn read(&mut self, counted: Cycles) -> Option<u64> {
        counted
            .since(std::mem::replace(&mut self.0, counted))
            .mean()
    }
}

/// The driver's loop on one CPU. It is called when the CPU begins to run something and at its
/// ticks, so an idle CPU keeps its last request.
#[derive(Clone, Copy, Debug)]
pub struct Pstate {
    read: Cycles,
    /// When the CPU was last sampled, ns.
    at: u64,
    /// P-states of 100 MHz each: the lowest, the highest, and the requested one.
    lowest: u64,
    highest: u64,
    state: u64,
}

impl Pstate {
    /// `lowest` and `highest`: kHz.
    pub fn new(lowest: u32, highest: u32) -> Pstate {
        let state = |khz: u32| (khz / PSTATE_KHZ).into();
        Pstate {
            read: Cycles::default(),
            at: 0,
            lowest: state(lowest),
            highest: state(highest),
            state: state(lowest),
        }
    }

    /// The requested frequency.
    pub fn asks(&self) -> u64 {
        self.state * FULL / self.highest
    }

    /// Samples the CPU, if the last sample is at least `period` ns old and something has been
    /// counted since.
    pub fn called(&mut self, counted: Cycles, now: u64, period: u64) {
        let ns = now - self.at;
        if ns < period {
            return;
        }
        let sample = counted.since(self.read);
        let Some(mean) = sample.mean() else {
            return;
        };
        (self.read, self.at) = (counted, now);
        // A quarter more than was used. If the CPU was faster than that, half of the difference is
        // kept. The mean is rounded to whole states, so that it comes down to the lowest.
        let most = u128::from(self.highest + self.highest / 4);
        let target = (most * u128::from(sample.busy) / u128::from(ns)) as u64;
        let target = target.max(self.lowest);
        let mean = (mean * self.highest + FULL / 2) / FULL;
        self.state = (target + mean.saturating_sub(target) / 2).min(self.highest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 10_000_000;
    const LOWEST: u64 = FULL * 2 / 5;

    const HIGHEST: u64 = 30;

    fn driver() -> Pstate {
        Pstate::new(1_200_000, 3_000_000)
    }

    /// P-states after samples of 10 ms, for each the us that the CPU was busy in it.
    fn states(busy_us: &[u64]) -> Vec<u64> {
        let (mut driver, mut counted) = (driver(), Cycles::default());
        let mut now = 0;
        let mut sample = |us: &u64| {
            counted.ran(us * 1_000, driver.asks());
            now += PERIOD;
            driver.called(counted, now, PERIOD);
            driver.state
        };
        busy_us.iter().map(&mut sample).collect()
    }

    #[test]
    fn a_busy_cpu_asks_for_all_at_its_next_sample() {
        assert_eq!(states(&[10_000, 10_000]), [HIGHEST, HIGHEST]);
        // 37 x 0.4; x 0.6.
        assert_eq!(states(&[4_000, 6_000]), [14, 22]);
    }

    /// By halves, to the lowest.
    #[test]
    fn an_idle_cpu_falls_by_halves() {
        assert_eq!(states(&[10_000, 1, 1, 1, 1, 1]), [30, 21, 16, 14, 13, 12]);
    }

    #[test]
    fn a_cpu_without_counts_is_not_sampled() {
        assert_eq!(states(&[10_000, 0, 0, 10_000]), [30, 30, 30, 21]);
    }

    #[test]
    fn no_cpu_is_sampled_early() {
        let (mut driver, mut counted) = (driver(), Cycles::default());
        counted.ran(PERIOD - 1, LOWEST);
        driver.called(counted, PERIOD - 1, PERIOD);
        assert_eq!(driver.asks(), LOWEST);
        driver.called(counted, PERIOD, PERIOD);
        assert_eq!(driver.asks(), FULL);
    }

    #[test]
    fn a_reader_sees_the_mean_of_what_was_busy() {
        let (mut reader, mut counted) = (Reader::default(), Cycles::default());
        counted.ran(3_000_000, FULL);
        counted.ran(1_000_000, LOWEST);
        assert_eq!(reader.read(counted), Some((3 * FULL + LOWEST) / 4));
        assert_eq!(reader.read(counted), None);
    }
}
