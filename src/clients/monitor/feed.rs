// SPDX-License-Identifier: GPL-2.0-only
//! The threads that talk to the scheduler: one asks for statistics, one for changes. Drawing waits
//! for neither.

use super::sample::Sample;
use crate::util::stop::Stop;
use crate::wire::client;
use crate::wire::protocol::Op;
use crate::wire::socket::spawn;
use crate::wire::stats::Metrics;
use crate::wire::stats::client::{Client, follow};
use crate::wire::stats::host::CpusMetrics;
use anyhow::Result;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of changes that may wait for the scheduler.
const CHANGES_MAX: usize = 4;
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

/// Controls when the feed asks.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    Interval(Duration),
    /// Something was changed: ask at once.
    Now,
}

/// Asks the scheduler behind `path` each `interval`, in a thread. Sample times count from `begin`.
pub fn start(
    path: &Path,
    interval: Duration,
    begin: Instant,
    stop: Stop,
) -> Result<(Receiver<News>, Sender<Pace>)> {
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
    steered: Receiver<Pace>,
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
                Ok(Pace::Interval(interval)) => self.interval = interval,
                Ok(Pace::Now) | Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }
}

/// A requested change, and the generation from which it is in force, or why it was refused.
pub type Answer = (Op, Result<u64, String>);

/// Sends changes to the control socket at `path` one by one, in a thread.
pub fn changes(path: &Path) -> Result<(Sender<Op>, Receiver<Answer>)> {
    let (ask, asked) = bounded::<Op>(CHANGES_MAX);
    let (answer, answers) = bounded(CHANGES_MAX);
    let path: PathBuf = path.to_path_buf();
    spawn("monitor-change", move || {
        for op in asked {
            let result = client::ask(&path, &op).map_err(|e| format!("{e:#}"));
            let generation = result.map(|resp| resp["generation"].as_u64().unwrap_or(0));
            if answer.send((op, generation)).is_err() {
                break;
            }
        }
    })?;
    Ok((ask, answers))
}
