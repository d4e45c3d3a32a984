// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler says, for all who want to know. One thread asks: whoever else wants to know meanwhile gets the same
//! answer, and a scheduler that is stopped keeps nobody waiting but this thread.

use super::encode::Sample;
use crate::socket::spawn;
use crate::stats::client::Client;
use anyhow::{Context, Result, anyhow};
use crossbeam::channel::{Receiver, Sender, bounded};
use log::info;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the scheduler may take for each part of its answer.
const PART: Duration = Duration::from_secs(2);
/// How long somebody who wants to know is kept waiting, less than Prometheus' 10 s.
const PATIENCE: Duration = Duration::from_millis(4500);
/// So many may wait for the next answer.
const WAITING_MAX: usize = 64;

/// None: there is no scheduler, or it says nothing.
pub type Answer = Option<Arc<Sample>>;

#[derive(Clone)]
pub struct Source(Sender<Sender<Answer>>);

impl Source {
    /// Of the scheduler that serves its statistics at `path`, now or later. The thread ends with the last clone.
    pub fn start(path: &Path) -> Result<Source> {
        let (sender, receiver) = bounded(WAITING_MAX);
        let mut daemon = Daemon::new(path);
        spawn("export-source", move || daemon.answer(&receiver))?;
        Ok(Source(sender))
    }

    pub fn ask(&self) -> Answer {
        let (sender, receiver) = bounded(1);
        self.0.try_send(sender).ok()?;
        receiver.recv_timeout(PATIENCE).ok()?
    }
}

struct Daemon {
    path: PathBuf,
    client: Option<Client>,
    /// What was last told of it, so that each change is told once.
    told: Option<String>,
}

impl Daemon {
    fn new(path: &Path) -> Daemon {
        Daemon {
            path: path.to_path_buf(),
            client: None,
            told: None,
        }
    }

    fn answer(&mut self, questions: &Receiver<Sender<Answer>>) {
        while let Ok(first) = questions.recv() {
            let sample = self.sample();
            self.tell(sample.as_ref().err());
            let answer = sample.ok().map(Arc::new);
            for question in std::iter::once(first).chain(questions.try_iter()) {
                // Who asked may have gone.
                let _ = question.try_send(answer.clone());
            }
        }
    }

    fn tell(&mut self, trouble: Option<&anyhow::Error>) {
        let text = match trouble {
            Some(e) => format!("{e:#}"),
            None => format!("reading the statistics at {}", self.path.display()),
        };
        if self.told.as_ref() != Some(&text) {
            info!("{text}");
            self.told = Some(text);
        }
    }

    /// By the connection of the last time. That one may be to a scheduler that is gone, and another one there.
    fn sample(&mut self) -> Result<Sample> {
        if let Some(mut client) = self.client.take()
            && let Ok(sample) = read(&mut client)
        {
            self.client = Some(client);
            return Ok(sample);
        }
        let mut client = self.connect()?;
        let sample = read(&mut client)
            .with_context(|| format!("the scheduler at {} does not answer", self.path.display()))?;
        self.client = Some(client);
        Ok(sample)
    }

    fn connect(&self) -> Result<Client> {
        Client::connect(&self.path, PART).map_err(|e| {
            let path = self.path.display();
            match e.downcast_ref::<std::io::Error>().map(|e| e.kind()) {
                Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                    anyhow!("no scheduler serves statistics at {path}")
                }
                Some(ErrorKind::PermissionDenied) => anyhow!(
                    "no permission to read the statistics at {path}: run as a user of the group that the scheduler \
                     was given with --stats-group"
                ),
                _ => anyhow!("cannot read the statistics at {path}: {e:#}"),
            }
        })
    }
}

fn read(client: &mut Client) -> Result<Sample> {
    Ok(Sample {
        metrics: client.ask("totals")?,
        cpus: client.ask("cpus")?,
    })
}
