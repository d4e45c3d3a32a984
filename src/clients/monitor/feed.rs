// SPDX-License-Identifier: GPL-2.0-only
//! The thread that asks the scheduler for statistics. Drawing does not wait for it.

use super::sample::Sample;
use crate::util::stop::Stop;
use crate::wire::socket::spawn;
use crate::wire::stats::Metrics;
use crate::wire::stats::client::{Client, follow};
use crate::wire::stats::host::CpusMetrics;
use anyhow::Result;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bounded, so that samples are not made faster than they are taken.
const NEWS_MAX: usize = 4;

/// News about the scheduler.
#[derive(Debug)]
pub enum News {
    Connected,
    /// Not connected yet or no longer; the sentence says which.
    Disconnected(String),
    Sample(Box<Sample>),
    /// Asking fails, and waiting does not help.
    Over(anyhow::Error),
}

/// Asks the scheduler behind `path` each `interval`, in a thread. Sample times count from `begin`.
/// Another interval may be sent.
pub fn start(
    path: &Path,
    interval: Duration,
    begin: Instant,
    stop: Stop,
) -> Result<(Receiver<News>, Sender<Duration>)> {
    let (news, heard) = bounded(NEWS_MAX);
    // A person does not type enough to fill it.
    let (pace, steered) = unbounded();
    let mut feed = Feed {
        news,
        steered,
        interval,
        begin,
    };
    let path = path.to_path_buf();
    spawn("monitor-feed", move || feed.run(&path, &stop))?;
    Ok((heard, pace))
}

struct Feed {
    news: Sender<News>,
    steered: Receiver<Duration>,
    interval: Duration,
    begin: Instant,
}

impl Feed {
    fn run(&mut self, path: &Path, stop: &Stop) {
        let news = self.news.clone();
        let report = |text| drop(news.send(News::Disconnected(text)));
        if let Err(e) = follow(path, stop, report, |client| self.session(client)) {
            let _ = news.send(News::Over(e));
        }
    }

    /// Returns Ok when the monitor has ended.
    fn session(&mut self, mut client: Client) -> Result<()> {
        let mut connected = false;
        loop {
            let sample = self.sample(&mut client)?;
            // Report the connection only after an answer: what does not answer is no scheduler.
            if !connected && self.news.send(News::Connected).is_err() {
                return Ok(());
            }
            connected = true;
            if self.news.send(News::Sample(Box::new(sample))).is_err() || !self.wait() {
                return Ok(());
            }
        }
    }

    fn sample(&self, client: &mut Client) -> Result<Sample> {
        let totals: Metrics = client.ask("totals")?;
        let cpus: CpusMetrics = client.ask("cpus")?;
        Ok(Sample::new(self.begin.elapsed(), totals, cpus))
    }

    /// Waits until the next sample is due. False: the monitor has ended.
    fn wait(&mut self) -> bool {
        let from = Instant::now();
        loop {
            let left = self.interval.saturating_sub(from.elapsed());
            match self.steered.recv_timeout(left) {
                Ok(interval) => self.interval = interval,
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }
}
