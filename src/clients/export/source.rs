// SPDX-License-Identifier: GPL-2.0-only
//! Asks the scheduler for all scrapers. One thread asks, and all requests that arrive meanwhile get
//! the same answer. A scheduler that is stopped blocks only that thread.

use crate::wire::note;
use crate::wire::socket::spawn;
use crate::wire::stats::Metrics;
use crate::wire::stats::client::{self, Client};
use crate::wire::stats::host::CpuGauges;
use anyhow::{Result, anyhow, bail};
use crossbeam_channel::{Receiver, Sender, bounded};
use log::{info, warn};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time limit for each part of the scheduler's answer.
const PART: Duration = Duration::from_secs(2);
/// Longest time that a scraper waits. Below Prometheus' scrape timeout of 10 s.
const PATIENCE: Duration = Duration::from_millis(4500);
/// Number of requests that may wait for the next answer.
const WAITING_MAX: usize = 64;

/// Requests within this time of an answer get the same one: many scrapers cost the scheduler no
/// more than one.
const AGE_MAX: Duration = Duration::from_millis(500);

/// The scheduler's statistics at one time.
#[derive(Debug, Default)]
pub struct Sample {
    /// The answer to target `totals`.
    pub metrics: Metrics,
    /// The answer to target `cpu_gauges`. Counters by CPU would be a hundred times as many series.
    pub cpus: BTreeMap<u64, CpuGauges>,
}

#[derive(Clone, Debug)]
pub enum Answer {
    Up(Arc<Sample>),
    /// No scheduler runs, or it does not answer.
    Down {
        /// It did not end on request: it failed, was killed or hangs.
        failed: bool,
    },
}

/// Which series there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Series {
    All,
    /// A large machine has ten thousands of single CPUs.
    NoCpus,
}

/// An answer, or why it is unknown whether a scheduler runs.
type PolledAnswer = Result<Answer, String>;

#[derive(Clone)]
pub struct Source(Sender<Sender<PolledAnswer>>);

impl Source {
    /// For the scheduler that serves its statistics at `path`, now or later. The thread ends with
    /// the last clone.
    pub fn start(path: &Path, series: Series) -> Result<Source> {
        let (sender, receiver) = bounded(WAITING_MAX);
        let mut daemon = Daemon::new(path, series);
        spawn("export-source", move || daemon.answer(&receiver))?;
        Ok(Source(sender))
    }

    /// Fails when the exporter cannot find out; that says nothing about the scheduler.
    pub fn ask(&self) -> Result<Answer> {
        let (sender, receiver) = bounded(1);
        if self.0.try_send(sender).is_err() {
            bail!(
                "{WAITING_MAX} clients already wait for the scheduler's answer: ask again later, or less often"
            );
        }
        let answer = receiver.recv_timeout(PATIENCE);
        let late = |_| {
            anyhow!(
                "the scheduler has not answered within {PATIENCE:?}: see what keeps its process or this one from running"
            )
        };
        answer.map_err(late)?.map_err(|text| anyhow!(text))
    }
}

/// Why there is no sample.
struct Trouble {
    text: String,
    /// No scheduler runs, or it does not answer.
    is_gone: bool,
    /// Its socket is there: it did not come to an orderly end.
    left_socket: bool,
}

impl Trouble {
    fn new(text: String, e: &anyhow::Error) -> Trouble {
        let kind = e.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        Trouble {
            text,
            is_gone: client::is_gone(e),
            left_socket: kind != Some(ErrorKind::NotFound),
        }
    }
}

struct Daemon {
    path: PathBuf,
    series: Series,
    client: Option<Client>,
    last: Option<(Instant, Arc<Sample>)>,
    /// Last message logged, so that each change is logged once.
    logged: Option<String>,
}

impl Daemon {
    fn new(path: &Path, series: Series) -> Daemon {
        Daemon {
            path: path.to_path_buf(),
            series,
            client: None,
            last: None,
            logged: None,
        }
    }

    fn answer(&mut self, questions: &Receiver<Sender<PolledAnswer>>) {
        while let Ok(first) = questions.recv() {
            let answer = self.latest();
            for question in std::iter::once(first).chain(questions.try_iter()) {
                // The client may have gone.
                let _ = question.try_send(answer.clone());
            }
        }
    }

    fn latest(&mut self) -> PolledAnswer {
        if let Some((at, sample)) = &self.last
            && at.elapsed() < AGE_MAX
        {
            return Ok(Answer::Up(sample.clone()));
        }
        let sample = self.sample().map(Arc::new);
        self.tell(sample.as_ref().err());
        self.last = sample.as_ref().ok().map(|s| (Instant::now(), s.clone()));
        match sample {
            Ok(sample) => Ok(Answer::Up(sample)),
            Err(trouble) if trouble.is_gone => Ok(Answer::Down {
                failed: trouble.left_socket || note::last(&self.path).is_some_and(|l| l.failed),
            }),
            Err(trouble) => Err(trouble.text),
        }
    }

    fn tell(&mut self, trouble: Option<&Trouble>) {
        let text = match trouble {
            Some(trouble) => trouble.text.clone(),
            None => format!("reading the statistics at {}", self.path.display()),
        };
        if self.logged.as_ref() == Some(&text) {
            return;
        }
        match trouble {
            // Needs an administrator.
            Some(trouble) if !trouble.is_gone => warn!("{text}"),
            _ => info!("{text}"),
        }
        self.logged = Some(text);
    }

    /// Tries the previous connection first. Its scheduler may be gone and another one may serve the
    /// path, so a failure leads to a new connection.
    fn sample(&mut self) -> Result<Sample, Trouble> {
        if let Some(mut client) = self.client.take()
            && let Ok(sample) = read(&mut client, self.series)
        {
            self.client = Some(client);
            return Ok(sample);
        }
        let mut client = self.connect()?;
        let sample = read(&mut client, self.series).map_err(|e| {
            let path = self.path.display();
            Trouble::new(
                format!("the scheduler at {path} does not answer: {e:#}"),
                &e,
            )
        })?;
        self.client = Some(client);
        Ok(sample)
    }

    fn connect(&self) -> Result<Client, Trouble> {
        Client::connect(&self.path, PART)
            .map_err(|e| Trouble::new(client::no_connection(&self.path, &e), &e))
    }
}

fn read(client: &mut Client, series: Series) -> Result<Sample> {
    Ok(Sample {
        metrics: client.ask("totals")?,
        cpus: match series {
            Series::All => client.ask("cpu_gauges")?,
            Series::NoCpus => BTreeMap::new(),
        },
    })
}
