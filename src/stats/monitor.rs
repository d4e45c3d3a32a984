// SPDX-License-Identifier: GPL-2.0-only
//! The two printers of statistics: a thread beside the scheduler (--stats) and a client of its own (--monitor).

use super::source::{CounterSource, Deltas};
use super::{Metrics, view};
use crate::print;
use crate::stop::Stop;
use anyhow::{Context, Result, bail};
use log::info;
use scx_stats::StatsClient;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a client looks whether the server is back.
const RETRY: Duration = Duration::from_secs(1);
const TIMEOUT_MS: u64 = 5000;

/// Prints what `source` counts until it is stopped.
pub fn start(
    source: CounterSource,
    interval: Duration,
    json: bool,
    stop: Stop,
) -> Result<JoinHandle<()>> {
    let body = move || {
        let mut deltas = Deltas::new(source);
        if let Err(e) = print_each(interval, json, &stop, || Ok(deltas.take())) {
            log::warn!("statistics are no longer printed: {e:#}");
        }
    };
    std::thread::Builder::new()
        .name("stats-print".to_string())
        .spawn(body)
        .context("cannot start the thread that prints statistics")
}

/// Asks the scheduler behind `path` until it is stopped. Waits for one that is not there.
pub fn monitor(path: &Path, interval: Duration, json: bool, stop: &Stop) -> Result<()> {
    let mut waiting = false;
    while !stop.stopped() {
        match StatsClient::new().set_path(path).connect(Some(TIMEOUT_MS)) {
            Ok(mut client) => {
                waiting = false;
                // The server counts from the first request on.
                let first = request(&mut client);
                let result =
                    first.and_then(|_| print_each(interval, json, stop, || request(&mut client)));
                match result {
                    Ok(()) => return Ok(()),
                    Err(e) => info!("the scheduler at {} went away ({e:#})", path.display()),
                }
            }
            Err(e) if retryable(&e) => {
                // connect() refuses a file that is no socket as it refuses a socket that nobody serves.
                if std::fs::metadata(path).is_ok_and(|m| !m.file_type().is_socket()) {
                    bail!(
                        "{} exists and is no socket: give the --stats-path of the scheduler",
                        path.display()
                    );
                }
                if !waiting {
                    info!(
                        "no scheduler serves statistics at {}: waiting for one",
                        path.display()
                    );
                }
                waiting = true;
            }
            Err(e) => {
                return Err(e).with_context(|| {
                    format!(
                        "cannot read statistics from {}: run as a user who may write to it",
                        path.display()
                    )
                });
            }
        }
        stop.sleep(RETRY);
    }
    Ok(())
}

fn retryable(e: &anyhow::Error) -> bool {
    let kind = e.downcast_ref::<Error>().map(Error::kind);
    matches!(
        kind,
        Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused)
    )
}

fn request(client: &mut StatsClient) -> Result<Metrics> {
    client.request("stats", vec![("target".to_string(), "top".to_string())])
}

/// Ends without error when it is stopped or nobody reads any more.
fn print_each(
    interval: Duration,
    json: bool,
    stop: &Stop,
    mut next: impl FnMut() -> Result<Metrics>,
) -> Result<()> {
    while stop.sleep(interval) {
        let metrics = next()?;
        // Before the first load there is nothing to tell.
        if !metrics.was_loaded() {
            continue;
        }
        let read = if json {
            print::json_line(&metrics)?
        } else {
            print::text(&view::block(&metrics))?
        };
        if !read {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::stopper;

    #[test]
    fn a_file_that_is_no_socket_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (_stopper, stop) = stopper();
        let error = monitor(file.path(), Duration::from_secs(1), false, &stop).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("exists and is no socket: give the --stats-path of the scheduler"),
            "{error}"
        );
    }
}
