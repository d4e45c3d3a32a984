// SPDX-License-Identifier: GPL-2.0-only
//! Requests to the control socket, and their answers.

use super::protocol::{Op, Request};
use super::socket::{self, ANSWER_MAX, LineLimits, peer_pidfd, read_line};
use crate::util::refusal::{Refused, refuse};
use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use std::io::{BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than any grace period of the kernel.
const ANSWER_TIME: Duration = Duration::from_secs(60);
const ANSWER: LineLimits = LineLimits {
    bytes: ANSWER_MAX,
    begin: ANSWER_TIME,
    whole: ANSWER_TIME,
};

/// True if the error means that no process listens at the socket.
pub fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// A connection to the control socket.
pub struct Connection {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Errors: no scheduler serves it, or this user may not; another user's process serves it.
    pub fn new(path: &Path) -> Result<Connection> {
        let stream = socket::connect(path, ANSWER_TIME);
        Ok(Connection {
            path: path.to_path_buf(),
            stream: BufReader::new(stream.map_err(|e| unreachable(path, &e))?),
        })
    }

    /// Sends a request and returns its answer. A refusal is an error with the errno of the answer.
    pub fn ask(&mut self, op: &Op) -> Result<Value> {
        let request = Request {
            req: "ctl".to_string(),
            args: serde_json::to_value(op)?,
        };
        let line = serde_json::to_string(&request)? + "\n";
        // A scheduler with too many clients answers at once, and closes before it has read the
        // request.
        let written = self.stream.get_mut().write_all(line.as_bytes());
        let path = self.path.display();
        let silent =
            || format!("no answer from the scheduler at {path}: check in its log that it runs");
        let answer = read_line(&mut self.stream, &ANSWER).with_context(silent)?;
        let Some(answer) = answer else {
            written.with_context(silent)?;
            bail!("the scheduler at {path} closed the connection: see its log, and try again");
        };
        parse(&answer).map_err(|e| match e.is::<Refused>() {
            true => e,
            false => e.context(format!("what answers at {path} is no scheduler")),
        })
    }

    /// A pidfd of the process that has answered.
    pub fn process(&self) -> Result<OwnedFd> {
        peer_pidfd(self.stream.get_ref())
    }
}

/// Sends one request, as `Connection::ask`.
pub fn ask(path: &Path, op: &Op) -> Result<Value> {
    Connection::new(path)?.ask(op)
}

/// Parses an answer. A refusal is an error with the errno of the answer.
pub fn parse(line: &[u8]) -> Result<Value> {
    let mut answer: Value =
        serde_json::from_slice(line).context("expected an answer, a line of JSON")?;
    let errno = answer["errno"].as_i64();
    let errno = errno.context("expected an answer with an errno")?;
    let resp = answer.pointer_mut("/args/resp");
    let resp = resp.map(Value::take).unwrap_or_default();
    match errno {
        0 => Ok(resp),
        errno => Err(refuse(
            i32::try_from(errno).unwrap_or(libc::EINVAL),
            resp.as_str().unwrap_or("refused without a reason"),
        )),
    }
}

fn unreachable(path: &Path, e: &std::io::Error) -> anyhow::Error {
    let path = path.display();
    match e.kind() {
        kind if is_absent(kind) => {
            anyhow!(
                "no scheduler has its control socket at {path}: start scx_roost, or give its --ctl-path"
            )
        }
        ErrorKind::PermissionDenied => anyhow!(
            "no permission to write to {path}: run as root, or as a user of the group given by the scheduler's --ctl-group"
        ),
        _ => anyhow!("cannot reach the scheduler at {path}: {e}: give its --ctl-path"),
    }
}
