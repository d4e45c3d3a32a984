// SPDX-License-Identifier: GPL-2.0-only
//! A client of the statistics socket. It waits until a scheduler runs, and reconnects when one
//! ends.

use crate::bpf::intf::MAX_CPUS;
use crate::util::stop::Stop;
use crate::wire::socket::{self, ANSWER_MAX, LineLimits, read_line};
use anyhow::{Context, Result, anyhow, bail, ensure};
use scx_stats::{StatsRequest, StatsResponse};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::{BufReader, Error, ErrorKind, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How often a client tries to connect again.
const RETRY: Duration = Duration::from_secs(1);
/// How long `follow` waits for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// Most entries of a list in an answer, of which the CPUs have the most. An entry of a few bytes
/// may take thousands in memory: all fields have defaults.
const LIST_MAX: usize = 2 * MAX_CPUS as usize;

const OTHER_VERSION: &str =
    "the answer is of another version of scx_roost: use the scheduler's version";

pub struct Client {
    stream: BufReader<UnixStream>,
    /// How long an answer may take.
    patience: Duration,
}

impl Client {
    pub fn connect(path: &Path, patience: Duration) -> Result<Client> {
        let stream = socket::connect(path, patience)?;
        Ok(Client {
            stream: BufReader::new(stream),
            patience,
        })
    }

    /// Requests the statistics called `target` (`top`, `totals`, `cpus`, `cpu_gauges`). Fails when
    /// no answer comes in time, on a refusal, and when the answer is from another version.
    pub fn ask<T: DeserializeOwned>(&mut self, target: &str) -> Result<T> {
        let args = vec![("target".to_string(), target.to_string())];
        let request = serde_json::to_string(&StatsRequest::new("stats", args))? + "\n";
        self.stream.get_mut().write_all(request.as_bytes())?;
        let limits = LineLimits {
            bytes: ANSWER_MAX,
            begin: self.patience,
            whole: self.patience,
        };
        let line = read_line(&mut self.stream, &limits).map_err(|e| self.in_time(e))?;
        let closed = || Error::new(ErrorKind::UnexpectedEof, "the connection was closed");
        let line = line.ok_or_else(closed)?;
        parse(&line)
    }

    /// The kernel's error text for a socket timeout does not mention time.
    fn in_time(&self, e: anyhow::Error) -> anyhow::Error {
        match kind(&e) {
            Some(ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let text = format!("no answer within {} s", self.patience.as_secs_f64());
                Error::new(ErrorKind::TimedOut, text).into()
            }
            _ => e,
        }
    }
}

/// Parses an answer.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    let mut response: StatsResponse =
        serde_json::from_slice(line).context("the answer is not in the format of scx_stats")?;
    let resp = response.args.remove("resp").unwrap_or(Value::Null);
    if response.errno != 0 {
        bail!(
            resp.as_str()
                .unwrap_or("refused without a reason")
                .to_string()
        );
    }
    let list = |value: &Value| value.as_object().map_or(0, Map::len);
    let longest = resp.as_object().into_iter().flat_map(Map::values).map(list);
    ensure!(
        longest.max().max(Some(list(&resp))) <= Some(LIST_MAX),
        "the answer has a list of more than {LIST_MAX} entries"
    );
    // An empty list would deserialize like an answer of an older scheduler: every field has a
    // default.
    if !resp.is_object() {
        bail!(OTHER_VERSION);
    }
    serde_json::from_value(resp).context(OTHER_VERSION)
}

/// Calls `session` with a connection to the scheduler behind `path`. Calls it again each time it
/// fails, until it succeeds or `stop` is set. Waits while no scheduler is there. `report` gets a
/// sentence when a scheduler goes away and when waiting begins.
pub fn follow(
    path: &Path,
    stop: &Stop,
    mut report: impl FnMut(String),
    mut session: impl FnMut(Client) -> Result<()>,
) -> Result<()> {
    let mut waiting = false;
    while !stop.stopped() {
        match Client::connect(path, ANSWER_TIME) {
            Ok(client) => {
                waiting = false;
                match session(client) {
                    Ok(()) => return Ok(()),
                    Err(e) => report(format!(
                        "the scheduler at {} went away ({e:#})",
                        path.display()
                    )),
                }
            }
            Err(e) => {
                check_retryable(path, &e)?;
                if !waiting {
                    report(no_connection(path, &e) + ": waiting for one");
                }
                waiting = true;
            }
        }
        stop.sleep(RETRY);
    }
    Ok(())
}

/// Fails if no later try can succeed after `e`.
fn check_retryable(path: &Path, e: &anyhow::Error) -> Result<()> {
    if !retryable(e) {
        return Err(anyhow!(no_connection(path, e)));
    }
    // connect() fails the same way for a regular file and for a socket without a listener.
    if std::fs::metadata(path).is_ok_and(|m| !m.file_type().is_socket()) {
        bail!(
            "{} exists and is not a socket: give the scheduler's --stats-path",
            path.display()
        );
    }
    Ok(())
}

/// Why connecting to `path` failed, and what to do.
pub fn no_connection(path: &Path, e: &anyhow::Error) -> String {
    let path = path.display();
    match kind(e) {
        Some(ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            format!("no scheduler serves statistics at {path}")
        }
        Some(ErrorKind::WouldBlock) => format!("no scheduler answers at {path}"),
        Some(ErrorKind::PermissionDenied) => format!(
            "no permission to read the statistics at {path}: run as a user of the group given by the scheduler's --stats-group"
        ),
        _ => format!(
            "cannot read the statistics at {path}: {e:#}: give the scheduler's --stats-path"
        ),
    }
}

/// WouldBlock: the backlog of the socket is full, because the scheduler is stopped or hangs.
fn retryable(e: &anyhow::Error) -> bool {
    use ErrorKind::{ConnectionRefused, NotFound, WouldBlock};
    matches!(kind(e), Some(NotFound | ConnectionRefused | WouldBlock))
}

/// True when no scheduler runs or it does not answer. After other errors that is unknown.
pub fn is_gone(e: &anyhow::Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof};
    retryable(e)
        || matches!(
            kind(e),
            Some(BrokenPipe | ConnectionReset | TimedOut | UnexpectedEof)
        )
}

fn kind(e: &anyhow::Error) -> Option<ErrorKind> {
    e.downcast_ref::<Error>().map(Error::kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stats::Metrics;

    #[test]
    fn a_list_of_an_answer_is_no_longer_than_a_machine_needs() {
        let answer = |arms: usize| {
            let arms: Vec<String> = (0..arms).map(|arm| format!("\"{arm}\":{{}}")).collect();
            let resp = format!("{{\"arms\":{{{}}}}}", arms.join(","));
            parse::<Metrics>(format!("{{\"errno\":0,\"args\":{{\"resp\":{resp}}}}}").as_bytes())
        };
        assert_eq!(answer(LIST_MAX).unwrap().arms.len(), LIST_MAX);
        let error = answer(LIST_MAX + 1).unwrap_err().to_string();
        assert!(error.contains("a list of more than"), "{error}");
    }
}
