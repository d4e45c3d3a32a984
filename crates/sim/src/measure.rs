// SPDX-License-Identifier: GPL-2.0-only
//! What is counted and timed in a run, from the end of the warm-up on.

use super::cost::Move;
use super::load::{Load, Measure};

/// Bits of a time that its bucket keeps. The error is 0.1 %, while verdicts are about 2 points.
const FINE: u32 = 10;

/// A histogram of times. Buckets are narrow for short times.
#[derive(Clone, Debug, Default)]
pub struct Times {
    buckets: Vec<u64>,
    count: u64,
}

impl Times {
    fn add(&mut self, ns: u64) {
        let at = Times::bucket(ns);
        if self.buckets.len() <= at {
            self.buckets.resize(at + 1, 0);
        }
        self.buckets[at] += 1;
        self.count += 1;
    }

    fn bucket(ns: u64) -> usize {
        let big = (63 - (ns | 1).leading_zeros()).saturating_sub(FINE);
        (u64::from(big) << FINE) as usize + (ns >> big) as usize
    }

    /// The least time of a bucket.
    fn least(at: usize) -> u64 {
        let big = (at >> FINE).saturating_sub(1);
        let fine = at - (big << FINE);
        (fine as u64) << big
    }

    /// ns that `permille` of a thousand times do not exceed, within the width of a bucket. None:
    /// there are no times.
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        let mut left = (self.count * permille).div_ceil(1000).max(1);
        for (at, &n) in self.buckets.iter().enumerate() {
            if n >= left {
                return Some(Times::least(at));
            }
            left -= n;
        }
        None
    }
}

#[derive(Clone, Debug)]
pub struct Measured {
    measure: Measure,
    since: Option<u64>,
    until: u64,
    pub marks: Vec<u64>,
    pub latency: Vec<Times>,
    /// Times from a wakeup to running, ns.
    pub wakeups: Times,
    pub busy_ns: u64,
    /// The part of `busy_ns` in which another thread of the core was busy.
    pub shared_ns: u64,
    /// What all cores together slept in idle states that empty their L2. None: it is not known.
    pub slept_ns: Option<u64>,
    pub switches: u64,
    /// Moves to another CPU.
    pub migrations: u64,
    /// Indexed by `Move`.
    pub moves: [u64; 4],
    pub events: u64,
    /// The policy's counters, by the rows of stats.tbl.h. Empty if the scheduler is not ours.
    pub counters: Vec<u64>,
}

impl Measured {
    pub fn new(load: &Load) -> Measured {
        Measured {
            measure: load.measure.clone(),
            since: None,
            until: 0,
            marks: vec![0; load.marks.len()],
            latency: vec![Times::default(); load.marks.len()],
            wakeups: Times::default(),
            busy_ns: 0,
            shared_ns: 0,
            slept_ns: None,
            switches: 0,
            migrations: 0,
            moves: [0; 4],
            events: 0,
            counters: Vec::new(),
        }
    }

    /// The warm-up is over. The counters and the sleep are those since the start of the run.
    pub fn warm(&mut self, now: u64, counters: Vec<u64>, slept_ns: Option<u64>) {
        self.since = Some(now);
        (self.counters, self.slept_ns) = (counters, slept_ns);
    }

    pub fn end(&mut self, now: u64, counters: Vec<u64>, slept_ns: Option<u64>) {
        self.until = now;
        self.slept_ns = slept_ns.zip(self.slept_ns).map(|(end, began)| end - began);
        let began = std::mem::replace(&mut self.counters, counters);
        self.counters
            .iter_mut()
            .zip(began)
            .for_each(|(counter, began)| *counter -= began);
    }

    fn counts(&self) -> bool {
        self.since.is_some()
    }

    pub fn mark(&mut self, mark: usize, by: u64) {
        if self.counts() {
            self.marks[mark] += by;
        }
    }

    pub fn latency(&mut self, mark: usize, ns: u64) {
        if self.counts() {
            self.latency[mark].add(ns);
        }
    }

    pub fn ran(&mut self, ns: u64, shared: bool) {
        if self.counts() {
            self.busy_ns += ns;
            self.shared_ns += if shared { ns } else { 0 };
        }
    }

    /// A task begins to run, `ns` after its wakeup if it was woken since it last ran.
    pub fn runs(&mut self, ns: u64, woken_at: &mut u64) {
        if std::mem::take(woken_at) > 0 {
            self.waits(ns);
        }
    }

    /// A task begins to run, `ns` after its wakeup.
    pub fn waits(&mut self, ns: u64) {
        if self.counts() {
            self.wakeups.add(ns);
        }
    }

    /// A CPU switches to a task. `moved`: how far from where it last ran; `migrates`: from another
    /// CPU.
    pub fn switches(&mut self, moved: Option<Move>, migrates: bool) {
        if self.counts() {
            self.switches += 1;
            self.migrations += u64::from(migrates);
            if let Some(moved) = moved {
                self.moves[moved as usize] += 1;
            }
        }
    }

    /// The measured time, ns.
    pub fn ns(&self) -> u64 {
        self.until - self.since.unwrap_or(self.until)
    }

    pub fn more_is_better(&self) -> bool {
        matches!(self.measure, Measure::Rate(_))
    }

    /// The unit of `result`.
    pub fn unit(&self, load: &Load) -> String {
        match self.measure {
            Measure::Time => "ns until the last task has ended".to_string(),
            Measure::Rate(mark) => format!("{} a second", load.marks[mark]),
            Measure::Latency(mark) => format!("median of {}, ns", load.marks[mark]),
        }
    }

    /// What the load asks for: a time in ns, a rate per second, or the median of a latency in ns.
    pub fn result(&self) -> f64 {
        match self.measure {
            Measure::Time => self.ns() as f64,
            Measure::Rate(mark) => self.marks[mark] as f64 * 1e9 / self.ns() as f64,
            Measure::Latency(mark) => self.latency[mark].quantile(500).unwrap_or(0) as f64,
        }
    }

    /// ns per item that the load counts, or until the last task has ended.
    pub fn time_of_one(&self) -> f64 {
        match self.measure {
            Measure::Rate(_) => 1e9 / self.result(),
            _ => self.ns() as f64 / self.counted() as f64,
        }
    }

    /// The number of items or latencies that the load counted. 1 if it counts none.
    pub fn counted(&self) -> u64 {
        match self.measure {
            Measure::Rate(mark) => self.marks[mark],
            Measure::Latency(mark) => self.latency[mark].count.max(1),
            Measure::Time => 1,
        }
    }

    /// ns that `permille` of a thousand of the load's latencies do not exceed. None: it measures
    /// none.
    pub fn quantile(&self, permille: u64) -> Option<u64> {
        match self.measure {
            Measure::Latency(mark) => self.latency[mark].quantile(permille),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verdicts about quantiles are about 2 points.
    #[test]
    fn a_quantile_is_off_by_a_thousandth_at_most() {
        for ns in [1, 999, 5_231, 96_700, 1_234_567, 87_654_321_000] {
            let mut times = Times::default();
            times.add(ns);
            let (off, most) = (ns - times.quantile(500).unwrap(), ns / 1000);
            assert!(off <= most, "{ns}: {off}");
        }
    }
}
