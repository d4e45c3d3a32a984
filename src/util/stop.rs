// SPDX-License-Identifier: GPL-2.0-only
//! How the threads of a run are stopped. All of them wait on one channel on which nothing is ever
//! sent. It closes when its other end is dropped, so every wait ends at once, without polling. A
//! `Bell` also ends a wait, and does nothing else.

use crossbeam_channel::select;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use std::convert::Infallible;
use std::time::Duration;

/// Dropping it stops every thread that waits on a `Stop` made with it.
pub struct Stopper {
    _open: Sender<Infallible>,
}

/// Tells a run and its threads to stop, once its [`Stopper`] is dropped. Clones stop together.
#[derive(Clone)]
pub struct Stop(Receiver<Infallible>);

/// A `Stop` and what triggers it. The `Stopper` may be dropped in any thread, for example in one
/// that waits for a signal.
pub fn stopper() -> (Stopper, Stop) {
    let (sender, receiver) = bounded(0);
    (Stopper { _open: sender }, Stop(receiver))
}

/// Wakes one waiting thread. A ring without a waiter is kept; several of them count as one.
#[derive(Clone)]
pub struct Bell {
    ring: Sender<()>,
    rung: Receiver<()>,
}

impl Default for Bell {
    fn default() -> Bell {
        let (ring, rung) = bounded(1);
        Bell { ring, rung }
    }
}

impl Bell {
    pub fn ring(&self) {
        // A full channel means that it was rung already.
        let _ = self.ring.try_send(());
    }
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    InTime,
    Rung,
    Stopped,
}

impl Stop {
    /// Closes on stop; for a thread that waits for something else as well.
    pub(crate) fn channel(&self) -> &Receiver<Infallible> {
        &self.0
    }

    /// Whether the `Stopper` was dropped.
    pub fn stopped(&self) -> bool {
        self.0.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Sleeps for `time`; false if it was stopped meanwhile.
    pub fn sleep(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
    }

    /// Waits for a ring or a stop.
    pub(crate) fn wait_for(&self, bell: &Bell) -> Woken {
        if self.stopped() {
            return Woken::Stopped;
        }
        select! {
            recv(self.0) -> _ => Woken::Stopped,
            recv(bell.rung) -> _ => Woken::Rung,
        }
    }

    /// Waits for a ring or a stop, at most for `time`.
    #[doc(hidden)]
    pub fn sleep_or(&self, bell: &Bell, time: Duration) -> Woken {
        if self.stopped() {
            return Woken::Stopped;
        }
        select! {
            recv(self.0) -> _ => Woken::Stopped,
            recv(bell.rung) -> _ => Woken::Rung,
            default(time) => Woken::InTime,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_wait_lasts_until_the_time_is_over_or_it_is_stopped() {
        let (stopper, stop) = stopper();
        let begin = Instant::now();
        assert!(stop.sleep(Duration::from_millis(20)));
        assert!(begin.elapsed() >= Duration::from_millis(20) && !stop.stopped());
        let waiting = [stop.clone(), stop.clone()]
            .map(|s| std::thread::spawn(move || s.sleep(Duration::from_secs(600))));
        drop(stopper);
        assert!(waiting.into_iter().all(|w| !w.join().unwrap()));
        assert!(stop.stopped() && !stop.sleep(Duration::from_secs(600)));
    }

    #[test]
    fn a_bell_ends_a_wait_once() {
        let (stopper, stop) = stopper();
        let bell = Bell::default();
        assert_eq!(
            stop.sleep_or(&bell, Duration::from_millis(5)),
            Woken::InTime
        );
        let ringer = bell.clone();
        let ring = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            ringer.ring();
        });
        assert_eq!(stop.sleep_or(&bell, Duration::from_secs(600)), Woken::Rung);
        ring.join().unwrap();
        bell.ring();
        assert_eq!(stop.wait_for(&bell), Woken::Rung);
        bell.ring();
        bell.ring();
        assert_eq!(stop.sleep_or(&bell, Duration::from_secs(600)), Woken::Rung);
        assert_eq!(stop.sleep_or(&bell, Duration::ZERO), Woken::InTime);
        bell.ring();
        drop(stopper);
        assert_eq!(
            stop.sleep_or(&bell, Duration::from_secs(600)),
            Woken::Stopped
        );
        assert_eq!(stop.wait_for(&bell), Woken::Stopped);
    }
}
