// SPDX-License-Identifier: GPL-2.0-only
//! What is done around the runs and not measured: commands once before and after all of them and
//! before each.

use clap::Args;
use serde::{Deserialize, Serialize};

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
}

impl Hooks {
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
        given.collect()
    }
}
