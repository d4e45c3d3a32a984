// SPDX-License-Identifier: GPL-2.0-only
//! Threads that sample the CPUs' frequencies and idle periods, more often than the watch loop runs.

use crate::daemon::control::Control;
use crate::machine::{Clocks, FreqFiles};
use crate::model::{LogLimiter, suppressed_suffix};
use crate::util::stop::{Bell, Stop, Woken};
use anyhow::{Context, Result};
use log::warn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// A sampling thread, until dropped. The drop does not wait for it, because a file that it reads
/// may hang. When such a read ends, its result is too old, or concerns files that are no longer
/// used.
pub struct Sampler {
    rest: Rest,
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.rest.end();
    }
}

/// The running samplers. They are separate threads, so that idle periods wait for no file.
pub struct Samplers {
    frequencies: Option<Sampler>,
    idle: Option<Sampler>,
    stop: Stop,
    failed_log: LogLimiter,
}

impl Samplers {
    /// Starts none yet. `stop` ends them too: the thread that holds this may hang.
    pub fn new(stop: Stop) -> Samplers {
        Samplers {
            frequencies: None,
            idle: None,
            stop,
            failed_log: LogLimiter::default(),
        }
    }

    /// Runs a thread for each kind of sample that an arm wants, and none while the machine is idle
    /// (`resting`), because sampling wakes CPUs often.
    ///
    /// Samples from files, and idle periods, are then soon too old to count: no move is delayed and
    /// no scan is bounded by them. What ticks see counts at any age. Where ticks are the source,
    /// the last tick of a CPU still delays moves to it.
    pub fn follow(&mut self, control: &Control, period: Duration, resting: bool) {
        self.frequencies = match self.frequencies.take() {
            _ if !control.wants_frequencies() => None,
            None => {
                let sampler = Sampler::of_frequencies(control.clone(), period, self.stop.clone());
                self.started(sampler)
            }
            running => running,
        };
        self.idle = match self.idle.take() {
            _ if !control.wants_scans() => None,
            None => {
                let sampler = Sampler::of_idle_periods(control.clone(), period, self.stop.clone());
                self.started(sampler)
            }
            running => running,
        };
        for sampler in [&self.frequencies, &self.idle].into_iter().flatten() {
            sampler.rest(resting);
        }
    }

    /// After a failure the next look tries again.
    fn started(&mut self, sampler: Result<Sampler>) -> Option<Sampler> {
        let tell = |e: &anyhow::Error| {
            if let Some(left_out) = self.failed_log.admit(Clocks::now().monotonic) {
                warn!("{e:#}{}", suppressed_suffix(left_out));
            }
        };
        sampler.inspect_err(tell).ok()
    }
}

impl Sampler {
    /// Runs until dropped or stopped.
    pub fn of_frequencies(control: Control, period: Duration, stop: Stop) -> Result<Sampler> {
        every(
            control,
            period,
            stop,
            "freq",
            |c| c.sample(FreqFiles::read),
            Control::forget_frequencies,
        )
    }

    /// Runs until dropped or stopped.
    pub fn of_idle_periods(control: Control, period: Duration, stop: Stop) -> Result<Sampler> {
        let sample = |c: &Control| {
            c.sample_idle();
            Ok(())
        };
        every(control, period, stop, "idle", sample, Control::forget_idle)
    }

    /// Takes no samples while `resting`, and one at once afterwards.
    pub fn rest(&self, resting: bool) {
        self.rest.set(resting);
    }
}

/// Whether a thread rests or must end, and the bell that wakes it for either.
#[derive(Clone, Default)]
struct Rest {
    resting: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    over: Bell,
}

impl Rest {
    fn set(&self, resting: bool) {
        if self.resting.swap(resting, Ordering::AcqRel) && !resting {
            self.over.ring();
        }
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.over.ring();
    }

    /// Waits until the next sample; false: the thread must end. `begun` is called if a rest begins.
    fn wait(&self, stop: &Stop, period: Duration, begun: impl FnOnce()) -> bool {
        if self.should_end(stop.sleep_or(&self.over, period)) {
            return false;
        }
        if self.resting.load(Ordering::Acquire) {
            begun();
        }
        while self.resting.load(Ordering::Acquire) {
            if self.should_end(stop.wait_for(&self.over)) {
                return false;
            }
        }
        true
    }

    fn should_end(&self, woken: Woken) -> bool {
        woken == Woken::Stopped || self.ended.load(Ordering::Acquire)
    }
}

/// Reports only the first failure of `sample`. `forget` is called before a pause of sampling.
fn every(
    control: Control,
    period: Duration,
    stop: Stop,
    name: &str,
    sample: impl Fn(&Control) -> Result<()> + Send + 'static,
    forget: impl Fn(&Control) + Send + 'static,
) -> Result<Sampler> {
    let rest = Rest::default();
    let resting = rest.clone();
    let run = move || {
        let mut reported = false;
        while resting.wait(&stop, period, || forget(&control)) {
            let Err(e) = sample(&control) else { continue };
            if !reported {
                warn!("cannot follow the CPUs' frequencies: {e:#}");
            }
            reported = true;
        }
    };
    let thread = Builder::new().name(name.to_string()).spawn(run);
    thread.context("cannot start the threads that sample frequencies and idle periods")?;
    Ok(Sampler { rest })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::stop::stopper;
    use crossbeam_channel::unbounded;

    const PERIOD: Duration = Duration::from_millis(5);
    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_resting_thread_is_idle_and_resumes_at_once() {
        let ((stopper, stop), rest) = (stopper(), Rest::default());
        let (tell, told) = unbounded();
        let of_thread = rest.clone();
        let thread = std::thread::spawn(move || {
            let begun = || tell.send("rests").unwrap();
            while of_thread.wait(&stop, PERIOD, begun) {
                tell.send("samples").unwrap();
            }
        });
        assert_eq!(told.recv_timeout(PATIENCE), Ok("samples"));
        for _ in 0..3 {
            rest.set(true);
            while told.recv_timeout(PATIENCE).unwrap() != "rests" {}
            assert!(
                told.recv_timeout(40 * PERIOD).is_err(),
                "the thread is asleep"
            );
            rest.set(false);
            assert_eq!(told.recv_timeout(PATIENCE), Ok("samples"));
        }
        rest.set(true);
        drop(stopper);
        thread.join().unwrap();
    }

    #[test]
    fn a_thread_ends_whatever_it_waits_for() {
        for resting in [true, false] {
            let ((_stopper, stop), rest) = (stopper(), Rest::default());
            rest.set(resting);
            let of_thread = rest.clone();
            let (tell, told) = unbounded();
            let wait = move || tell.send(of_thread.wait(&stop, 2 * PATIENCE, || ()));
            let thread = std::thread::spawn(wait);
            rest.end();
            assert_eq!(told.recv_timeout(PATIENCE), Ok(false));
            thread.join().unwrap().unwrap();
        }
    }
}
