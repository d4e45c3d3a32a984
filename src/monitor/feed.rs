// SPDX-License-Identifier: GPL-2.0-only
//! The threads that talk with the scheduler: one asks for statistics, one for changes. Whoever draws waits for neither.

use super::sample::Sample;
use crate::control::Op;
use crate::ctl;
use crate::socket::spawn;
use crate::stats::Metrics;
use crate::stats::client::{Client, follow};
use crate::stats::host::CpusMetrics;
use crate::stop::Stop;
use anyhow::Result;
use crossbeam::channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// So many changes may wait for the scheduler.
const CHANGES_MAX: usize = 4;
/// Samples are made no faster than they are taken.
const NEWS_MAX: usize = 4;

/// What is heard of the scheduler.
#[derive(Debug)]
pub enum News {
    Connected,
    /// Not there, or gone; the sentence says which.
    Disconnected(String),
    Sample(Box<Sample>),
    /// It cannot be asked, and waiting does not help.
    Over(anyhow::Error),
}

/// How the thread that asks is steered.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    Interval(Duration),
    /// Something was changed: ask at once.
    Now,
}

/// Asks the scheduler behind `path`, again each `interval`. Times are counted from `begin`.
pub fn start(
    path: &Path,
    interval: Duration,
    begin: Instant,
    stop: Stop,
) -> Result<(Receiver<News>, Sender<Pace>)> {
    let (news, heard) = bounded(NEWS_MAX);
    // As many as a person types.
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
        let told = |text| drop(news.send(News::Disconnected(text)));
        if let Err(e) = follow(path, stop, told, |client| self.session(client)) {
            let _ = news.send(News::Over(e));
        }
    }

    /// Ends well when nobody listens any more.
    fn session(&mut self, mut client: Client) -> Result<()> {
        let mut connected = false;
        loop {
            let sample = self.sample(&mut client)?;
            // Not before it has answered: what does not is no scheduler.
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

    /// Until the next sample is due; false: nobody listens any more.
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

/// A change that was asked for, and the generation that it is in force with, or why it is not.
pub type Answer = (Op, Result<u64, String>);

/// Carries out changes by the control socket at `path`, one after the other.
pub fn changes(path: &Path) -> Result<(Sender<Op>, Receiver<Answer>)> {
    let (ask, asked) = bounded::<Op>(CHANGES_MAX);
    let (answer, answers) = bounded(CHANGES_MAX);
    let path: PathBuf = path.to_path_buf();
    spawn("monitor-change", move || {
        for op in asked {
            let result = ctl::ask(&path, &op).map_err(|e| format!("{e:#}"));
            let generation = result.map(|resp| resp["generation"].as_u64().unwrap_or(0));
            if answer.send((op, generation)).is_err() {
                break;
            }
        }
    })?;
    Ok((ask, answers))
}
