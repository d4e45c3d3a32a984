// SPDX-License-Identifier: GPL-2.0-only
//! What is done around the runs and not measured: commands once before and after all of them and
//! before each.

use clap::Args;
use serde::{Deserialize, Serialize};

#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hooks {
    /// Shell command before all runs, under the kernel's own scheduler
    #[arg(long, value_name = "CMD")]
    #[serde(default)]
    pub setup: Option<String>,

    /// Shell command before each run, not measured, such as 'make clean'
    #[arg(long, value_name = "CMD")]
    #[serde(default)]
    pub prepare: Option<String>,

    /// Shell command after all runs, also after a failure
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
