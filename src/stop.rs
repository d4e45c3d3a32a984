// SPDX-License-Identifier: GPL-2.0-only
//! How the threads of one run are told to end: all of them wait at one channel on which nothing is ever sent, and which
//! closes when its other end is dropped. A wait thus ends at once, and needs no polling.

use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};
use std::convert::Infallible;
use std::time::Duration;

/// Dropping it stops whoever holds a `Stop` of it.
pub struct Stopper {
    _open: Sender<Infallible>,
}

#[derive(Clone)]
pub struct Stop(Receiver<Infallible>);

pub fn stopper() -> (Stopper, Stop) {
    let (sender, receiver) = bounded(0);
    (Stopper { _open: sender }, Stop(receiver))
}

impl Stop {
    /// Closes when it is stopped; for whoever waits for something else too.
    pub fn channel(&self) -> &Receiver<Infallible> {
        &self.0
    }

    pub fn stopped(&self) -> bool {
        self.0.try_recv() == Err(TryRecvError::Disconnected)
    }

    /// Waits so long, or until it is stopped: then false.
    pub fn sleep(&self, time: Duration) -> bool {
        self.0.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
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
}
