// SPDX-License-Identifier: GPL-2.0-only
//! The boot in which a run is made.

use crate::machine::host::Host;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kernel that runs, and which of its boots this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// As `uname -r`.
    pub kernel: String,
    pub now: Booted,
}

/// A boot as it is kept with its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Booted {
    /// Another one after each boot (/proc/sys/kernel/random/boot_id).
    pub id: String,
    /// What depends on the kernel that was booted: its command line, its mitigations.
    #[serde(flatten)]
    pub facts: BTreeMap<String, String>,
}

/// Facts of the machine that depend on the kernel that was booted.
pub const OF_BOOT: [&str; 4] = ["kernel", "cmdline", "hz", "mitigations"];

/// A line of the result file: this kernel was asked for, in this boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub asked_kernel: String,
    pub in_boot: String,
}

impl Boot {
    /// `facts`: about the machine as it is now.
    pub fn now(host: &Host, mut facts: BTreeMap<String, String>) -> Result<Boot> {
        let text = |file: &str| {
            let text = host.proc_text(file);
            text.with_context(|| format!("cannot read /proc/{file}"))
        };
        facts.retain(|name, _| OF_BOOT.contains(&name.as_str()));
        Ok(Boot {
            kernel: text("sys/kernel/osrelease")?,
            now: Booted {
                id: text("sys/kernel/random/boot_id")?,
                facts,
            },
        })
    }
}
