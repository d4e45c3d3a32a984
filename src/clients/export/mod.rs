// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost export`: the statistics in Prometheus' formats. It is a separate process that needs
//! no rights except to read the statistics socket. The scheduler never waits for it. Either may
//! start or stop first.

mod args;
mod classic;
mod encode;
mod http;
mod listener;
mod source;
mod textfile;

pub use args::{EXAMPLES, ExportArgs, Output};
pub use listener::Listener;
#[cfg(feature = "internals")]
pub use source::Answer;
pub use source::{Series, Source};

use crate::util::print;
use crate::util::stop::Stop;
use anyhow::{Context, Result};
use log::{info, warn};
use std::path::Path;
use std::time::{Duration, SystemTime};
use textfile::TextFile;

/// Only in files. An alert watches its age.
const WRITTEN: &str = "roost_textfile_timestamp_seconds";

/// The listener's threads do the work; the main thread only waits to be stopped.
const LONG: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    /// Prometheus' text format before OpenMetrics.
    Classic,
    OpenMetrics,
}

impl Format {
    fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Encodes the metrics in the format a client wants.
#[derive(Clone)]
pub struct Pages(Source);

impl Pages {
    pub fn new(source: Source) -> Pages {
        Pages(source)
    }

    /// Fails if it is unknown whether a scheduler runs.
    pub fn page(&self, format: Format) -> Result<String> {
        let open = encode::open_metrics(self.0.ask()?);
        Ok(match format {
            Format::OpenMetrics => open,
            Format::Classic => classic::from_open_metrics(&open),
        })
    }

    /// The page for a file, with a timestamp: the file may outlive the exporter.
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
pub fn run(stats: &Path, series: Series, output: &Output, stop: &Stop) -> Result<()> {
    let pages = Pages::new(Source::start(stats, series)?);
    match output {
        Output::Printed => print::text(&pages.page(Format::Classic)?).map(|_| ()),
        Output::Written(path) => TextFile::new(path, true)?.write(&pages.file_page()?),
        Output::Served { tcp, textfile } => {
            let served = tcp.map(|address| Listener::new(address, pages.clone()));
            let served = served.transpose()?;
            if let Some((_, at)) = &served {
                info!("metrics are at http://{at}/metrics");
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

/// Writes the file at each interval until it is stopped. A path that cannot be written is an error
/// at the start. Later errors are only logged, since a full disk may pass. While the metrics are
/// unknown the file stays as it is, and its age shows that.
fn keep_written(path: &Path, interval: Duration, pages: &Pages, stop: &Stop) -> Result<()> {
    let mut file = TextFile::new(path, false)?;
    file.probe()?;
    // Whether the last write succeeded.
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
    file.write(&page.with_context(|| format!("cannot write {}", path.display()))?)
}
