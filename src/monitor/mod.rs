// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost monitor`: a live view of the running scheduler in a terminal; lines, as --monitor prints them, where there is none.
//!
//! `sample` is what came over the socket, made safe; `state` makes of one sample after the other what is to be seen, and of keys
//! what is to be done, `choose` of arrows what is chosen; `draw` makes a picture of the state. None of these knows of a terminal,
//! a clock or a socket: `live` has those, in threads that wait for each other at channels.
//!
//! The BPF half and the daemon know nothing of all this: it is a client like others, and may be left out of a build (cargo
//! feature `monitor`).

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

use crate::stats::monitor as lines;
use crate::stop::Stop;
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    pub stats_path: PathBuf,
    pub ctl_path: PathBuf,
    pub interval: Duration,
    pub json: bool,
}

impl Options {
    /// There is a terminal to draw on, and nobody asked for lines.
    pub fn live(&self) -> bool {
        cfg!(feature = "monitor") && !self.json && terminal()
    }
}

/// Shows the running scheduler until it is stopped, or until somebody has seen enough.
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

/// Below the options of `monitor`.
pub const EXAMPLES: &str = "Examples:
  scx_roost monitor                          of the scheduler that runs, a picture every second
  scx_roost monitor --interval 0.2           five each second ('+' and '-' change that, 'p' holds the picture)
  scx_roost monitor --stats-path /run/x/stats
                                             of a scheduler that was started with this path; features are switched at 'ctl' beside it
  scx_roost monitor | head -50               where stdout is no terminal: lines, as --monitor prints them
  scx_roost monitor --json | jq .placed_prev one object each interval

'?' shows the keys. Whoever may not write to the control socket sees everything and switches nothing. NO_COLOR=1 leaves colours out.";
