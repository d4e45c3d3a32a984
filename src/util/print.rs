// SPDX-License-Identifier: GPL-2.0-only
//! Prints to stdout, where the reader may close the pipe (`| head`). That ends the output and is no
//! error. Nothing that is printed steers a terminal, whatever text it has.

use super::escape;
use anyhow::{Context, Result};
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write};

/// Prints `text` to stdout. False: the reader has closed the pipe.
pub fn text(text: &str) -> Result<bool> {
    styled(&escape::text(text))
}

/// As `text`, with colors of ours. Everything else in it is escaped already.
pub fn styled(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(e).context("cannot write to stdout"),
    }
}

/// True if stdout is a terminal that shows colors, and nobody has asked for none
/// (<https://no-color.org>).
pub fn colors() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stdout().is_terminal() && !dumb && !set("NO_COLOR")
}

/// Prints a value as one line of JSON. False: see `text`.
pub fn json_line(value: &impl Serialize) -> Result<bool> {
    styled(&(escape::json(&serde_json::to_string(value)?) + "\n"))
}

/// One value as indented JSON.
pub fn json(value: &impl Serialize) -> Result<bool> {
    styled(&(escape::json(&serde_json::to_string_pretty(value)?) + "\n"))
}
