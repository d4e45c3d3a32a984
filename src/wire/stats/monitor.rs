// SPDX-License-Identifier: GPL-2.0-only
//! The two printers of statistics: a thread of the scheduler (--stats) and a separate client
//! (--monitor).

use super::client::follow;
use super::deltas::Deltas;
use super::source::CounterSource;
use super::{Metrics, view};
use crate::util::print;
use crate::util::stop::Stop;
use anyhow::{Context, Result};
use log::info;
use serde::Serialize;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Starts a thread that prints the growth of the counters of `source` until it is stopped.
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

/// Prints statistics of the scheduler behind `path` until it is stopped. Waits while none runs.
pub fn monitor(path: &Path, interval: Duration, json: bool, stop: &Stop) -> Result<()> {
    let report = |text: String| info!("{text}");
    follow(path, stop, report, |mut client| {
        // The server counts growth from the first request on.
        client.ask::<Metrics>("top")?;
        print_each(interval, json, stop, || client.ask("top"))
    })
}

/// Returns Ok when it is stopped or the reader of stdout is gone.
fn print_each(
    interval: Duration,
    json: bool,
    stop: &Stop,
    mut next: impl FnMut() -> Result<Metrics>,
) -> Result<()> {
    while stop.sleep(interval) {
        let metrics = next()?;
        // Before the first load there is nothing to print.
        if !metrics.was_loaded() {
            continue;
        }
        let read = if json {
            print::json_line(&Line::of(metrics))?
        } else {
            print::text(&view::block(&metrics))?
        };
        if !read {
            break;
        }
    }
    Ok(())
}

/// Statistics as a line of JSON, which may be read far from this machine.
#[derive(Serialize)]
struct Line {
    /// When they were read, in seconds since 1970.
    time_s: f64,
    host: String,
    #[serde(flatten)]
    metrics: Metrics,
}

impl Line {
    fn of(metrics: Metrics) -> Line {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let host = nix::unistd::gethostname().unwrap_or_default();
        Line {
            time_s: now.unwrap_or_default().as_millis() as f64 / 1e3,
            host: host.to_string_lossy().into_owned(),
            metrics,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::stop::stopper;

    #[test]
    fn a_file_that_is_no_socket_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (_stopper, stop) = stopper();
        let error = monitor(file.path(), Duration::from_secs(1), false, &stop).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("exists and is not a socket: give the scheduler's --stats-path"),
            "{error}"
        );
    }

    #[test]
    fn a_line_says_when_and_where() {
        let json = serde_json::to_value(Line::of(Metrics::default())).unwrap();
        assert!(json["time_s"].as_f64().unwrap() > 1.7e9, "{json}");
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(json["host"], host.trim_end());
        assert_eq!(json["cpus_online"], 0, "fields are not nested");
    }
}
