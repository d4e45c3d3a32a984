// SPDX-License-Identifier: GPL-2.0-only
//! What is done around the runs and not measured: commands once before and after all of them and
//! before each, and a pause before each.

use clap::Args;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest pause before a run: an hour.
const PAUSE_MAX_S: f64 = 3600.0;

#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hooks {
    /// Shell command to run once before the first run of this start, under the kernel's own
    /// scheduler
    #[arg(long, value_name = "CMD")]
    #[serde(default)]
    pub setup: Option<String>,

    /// Shell command to run before each run, after the switch to its variant, and not measured. It
    /// runs on all CPUs, and with --scope workload under the first variant
    #[arg(long, value_name = "CMD")]
    #[serde(default)]
    pub prepare: Option<String>,

    /// Shell command to run once after the last run of this start, when the machine is as it was;
    /// also after a failure or Ctrl-C
    #[arg(long, value_name = "CMD")]
    #[serde(default)]
    pub cleanup: Option<String>,

    /// Seconds to wait before each run, for example to let the machine cool
    #[arg(long = "pause", value_name = "SECS", default_value_t = 0.0, value_parser = pause)]
    #[serde(default)]
    pub pause_s: f64,
}

fn pause(text: &str) -> Result<f64, String> {
    let secs = text.parse().ok();
    secs.filter(|secs| (0.0..=PAUSE_MAX_S).contains(secs))
        .ok_or_else(|| format!("0 to {PAUSE_MAX_S} seconds are possible"))
}

impl Hooks {
    pub fn pause(&self) -> Duration {
        Duration::from_secs_f64(self.pause_s)
    }

    /// The commands with their options, for reports.
    pub fn text(&self) -> String {
        let commands = [
            ("setup", &self.setup),
            ("prepare", &self.prepare),
            ("cleanup", &self.cleanup),
        ];
        let given = commands
            .into_iter()
            .filter_map(|(name, command)| Some(format!(", {name} '{}'", command.as_ref()?)));
        let pause = match self.pause_s {
            0.0 => String::new(),
            secs => format!(", a pause of {secs} s before each run"),
        };
        given.collect::<String>() + &pause
    }

    /// With each command changed.
    pub fn map(&self, change: impl Fn(&str) -> String) -> Hooks {
        let changed = |command: &Option<String>| command.as_deref().map(&change);
        Hooks {
            setup: changed(&self.setup),
            prepare: changed(&self.prepare),
            cleanup: changed(&self.cleanup),
            pause_s: self.pause_s,
        }
    }
}
