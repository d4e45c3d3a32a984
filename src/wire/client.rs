// SPDX-License-Identifier: GPL-2.0-only
//! One request to the control socket, and its answer.

use super::protocol::{Op, Request};
use crate::util::refusal::refuse;
use anyhow::{Context, Result, anyhow};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Longer than any grace period of the kernel.
const ANSWER_TIME: Duration = Duration::from_secs(60);

/// True if the error means that no process listens at the socket.
pub fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

/// Connects to the control socket. Errors: no scheduler serves it, or this user may not.
pub fn connect(path: &Path) -> Result<UnixStream> {
    UnixStream::connect(path).map_err(|e| unreachable(path, e.kind(), &e))
}

/// Sends a request and returns its answer. A refusal is an error with the errno of the answer.
pub fn ask(path: &Path, op: &Op) -> Result<Value> {
    let mut stream = connect(path)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    let request = Request {
        req: "ctl".to_string(),
        args: serde_json::to_value(op)?,
    };
    let line = serde_json::to_string(&request)? + "\n";
    // A scheduler with too many clients answers at once, and closes before it has read the request.
    let written = stream.write_all(line.as_bytes());
    let mut answer = String::new();
    let taken = BufReader::new(&stream).read_line(&mut answer);
    if answer.is_empty() {
        written.and(taken).with_context(|| {
            format!(
                "no answer from the scheduler at {}: check in its log that it runs",
                path.display()
            )
        })?;
    }
    let answer: Value = serde_json::from_str(&answer).with_context(|| {
        format!(
            "the scheduler at {} closed the connection: see its log, and try again",
            path.display()
        )
    })?;
    let resp = answer["args"]["resp"].clone();
    match answer["errno"].as_i64() {
        Some(0) => Ok(resp),
        errno => Err(refuse(
            errno.unwrap_or_default() as i32,
            resp.as_str().unwrap_or("refused without a reason"),
        )),
    }
}

fn unreachable(path: &Path, kind: ErrorKind, e: &std::io::Error) -> anyhow::Error {
    let path = path.display();
    match kind {
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
