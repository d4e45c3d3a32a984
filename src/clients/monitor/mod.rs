// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost monitor`: a live view of the running scheduler in a terminal. Without a terminal it
//! prints lines, as --monitor does.
//!
//! - `sample`: what came over the socket, made safe.
//! - `state`: turns samples into what is shown, and keys into actions. `choose` moves the
//!   selection.
//! - `draw`: makes a picture of a state.
//! - `feed` has the sockets, `screen` the terminal, `live` the loop and the clock, in threads that
//!   wait at channels. The other modules know none of these.
//!
//! The BPF half and the daemon do not know the monitor: it is a client like any other. A build may
//! leave it out (cargo feature `monitor`).

#[cfg(feature = "monitor")]
pub mod choose;
#[cfg(feature = "monitor")]
pub mod draw;
#[cfg(feature = "monitor")]
pub mod feed;
#[cfg(feature = "monitor")]
pub mod history;
#[cfg(feature = "monitor")]
pub mod keys;
#[cfg(feature = "monitor")]
pub mod live;
#[cfg(feature = "monitor")]
pub mod rates;
#[cfg(feature = "monitor")]
pub mod sample;
#[cfg(feature = "monitor")]
mod screen;
#[cfg(feature = "monitor")]
pub mod state;
#[cfg(feature = "monitor")]
pub mod topology;

use crate::util::stop::Stop;
use crate::wire::stats::monitor as lines;
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// The options of `monitor`.
#[derive(Clone, Debug)]
pub struct Options {
    pub stats_path: PathBuf,
    pub interval: Duration,
    pub json: bool,
}

impl Options {
    /// True if there is a terminal to draw on and JSON was not requested.
    pub fn live(&self) -> bool {
        cfg!(feature = "monitor") && !self.json && terminal()
    }
}

/// Shows the running scheduler until it is stopped, or until the user quits.
pub fn run(options: &Options, stop: &Stop) -> Result<()> {
    #[cfg(feature = "monitor")]
    if options.live() {
        return live::run(options, stop);
    }
    lines::monitor(&options.stats_path, options.interval, options.json, stop)
}

fn terminal() -> bool {
    use std::io::IsTerminal;
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    std::io::stdout().is_terminal() && !dumb
}

/// Printed below the options of `monitor`.
pub const EXAMPLES: &str = "Examples:
  scx_roost monitor                          watch the running scheduler, updated every second
  scx_roost monitor --interval 0.2           five updates a second ('+', '-': change it, 'p': pause)
  scx_roost monitor --stats-path /run/x/stats
                                             watch a scheduler that was started with this path
  scx_roost monitor | head -50               without a terminal: lines, as of --monitor
  scx_roost monitor --json | jq .placed_prev one object per interval

'?' shows the keys. NO_COLOR=1 turns colours off.";
