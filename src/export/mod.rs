// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost export`: the statistics as Prometheus wants them. A process of its own that needs no rights but to read the
//! statistics socket, and that scheduling never waits for: it comes and goes beside the scheduler in any order.

mod args;
mod classic;
mod encode;
mod http;
mod listener;
mod source;
mod textfile;

pub use args::{EXAMPLES, ExportArgs, Output};
pub use listener::Listener;
pub use source::Source;

use crate::print;
use crate::stop::Stop;
use anyhow::{Context, Result};
use log::{info, warn};
use std::path::Path;
use std::time::{Duration, SystemTime};
use textfile::TextFile;

/// Only files have it; an alert watches its age.
const WRITTEN: &str = "roost_textfile_timestamp_seconds";

/// Nobody has to do anything but wait.
const LONG: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    OpenMetrics,
    /// Prometheus' text format before that.
    Classic,
}

impl Format {
    fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// What is asked for, written as it is wanted.
#[derive(Clone)]
pub struct Pages(Source);

impl Pages {
    pub fn new(source: Source) -> Pages {
        Pages(source)
    }

    /// An error: whether there is a scheduler is not known.
    pub fn page(&self, format: Format) -> Result<String> {
        let open = encode::open_metrics(self.0.ask()?);
        Ok(match format {
            Format::OpenMetrics => open,
            Format::Classic => classic::from_open_metrics(&open),
        })
    }

    /// For a file, which may outlive who wrote it: it says of when it is.
    fn file_page(&self) -> Result<String> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seconds = now.unwrap_or_default().as_millis() as f64 / 1e3;
        let page = self.page(Format::Classic)?;
        Ok(format!(
            "{page}# HELP {WRITTEN} when the exporter wrote this file, in seconds since 1970\n\
             # TYPE {WRITTEN} gauge\n{WRITTEN} {seconds}\n"
        ))
    }
}

/// Serves the statistics of the scheduler at `stats` until it is stopped.
pub fn run(stats: &Path, output: &Output, stop: &Stop) -> Result<()> {
    let pages = Pages::new(Source::start(stats)?);
    match output {
        Output::Once(None) => print::text(&pages.page(Format::OpenMetrics)?).map(|_| ()),
        Output::Once(Some(path)) => TextFile::new(path, true)?.write(&pages.file_page()?),
        Output::Served {
            tcp,
            unix,
            textfile,
        } => {
            let mut listeners = Vec::new();
            if let Some(address) = tcp {
                let (listener, at) = Listener::tcp(*address, pages.clone())?;
                listeners.push(listener);
                info!("metrics are at http://{at}/metrics");
            }
            if let Some((path, group)) = unix {
                listeners.push(Listener::unix(path, *group, pages.clone())?);
                info!("metrics are at /metrics of the socket {}", path.display());
            }
            match textfile {
                Some((path, interval)) => keep_written(path, *interval, &pages, stop),
                None => {
                    while stop.sleep(LONG) {}
                    Ok(())
                }
            }
        }
    }
}

/// A path that cannot be written to is an error at once, whatever is known; later it may be a full disk, which passes. While nothing
/// is known the file stays as it is, and its age tells.
fn keep_written(path: &Path, interval: Duration, pages: &Pages, stop: &Stop) -> Result<()> {
    let mut file = TextFile::new(path, false)?;
    file.probe()?;
    // How it went the last time.
    let mut good = None;
    loop {
        match (write_page(&mut file, path, pages), good) {
            (Ok(()), Some(true)) | (Err(_), Some(false)) => (),
            (Ok(()), _) => {
                info!("metrics are in {}", path.display());
                good = Some(true);
            }
            (Err(e), _) => {
                warn!("{e:#}");
                good = Some(false);
            }
        }
        if !stop.sleep(interval) {
            return Ok(());
        }
    }
}

fn write_page(file: &mut TextFile, path: &Path, pages: &Pages) -> Result<()> {
    let page = pages.file_page();
    file.write(&page.with_context(|| format!("{} is not written", path.display()))?)
}
