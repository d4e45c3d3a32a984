// SPDX-License-Identifier: GPL-2.0-only
//! What spoils a comparison: it is looked at before and behind each run, kept with it, and told in the end.

use serde::{Deserialize, Serialize};

/// A step of the clock, as against a slow correction.
const STEP_S: f64 = 0.05;

/// Other tasks are told of when they use more than so much of a CPU, and than this part of all that is busy: the kernel counts it by its tick.
const OTHER_CPUS: f64 = 0.05;
const OTHER_PART: f64 = 0.02;

/// What was seen around one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Governor, EPP and boost, as one text.
    pub modes: String,
    /// Some CPU was slowed down because it was hot. None: this machine does not count that.
    pub throttled: Option<bool>,
    pub battery: bool,
    /// CPUs that were busy while the command ran, on average; of tasks and of hypervisors, not of interrupts.
    pub busy_cpus: f64,
    /// Of these, what the command did not use.
    pub other_cpus: f64,
    /// By how much the clock of the wall went another way than the monotonic one, s.
    pub clock_step_s: f64,
}

/// A sentence for each thing that spoiled some of the runs.
pub fn warnings<'a>(runs: impl Iterator<Item = &'a Seen> + Clone) -> Vec<String> {
    let all = runs.clone().count();
    let count = |bad: fn(&Seen) -> bool| runs.clone().filter(|s| bad(s)).count();
    let mut told = modes(runs.clone());
    let mut tell = |bad: fn(&Seen) -> bool, text: &str| match count(bad) {
        0 => (),
        n => told.push(format!("{text} ({n} of {all} runs)")),
    };
    tell(
        |s| s.throttled == Some(true),
        "CPUs were slowed down because they were hot: let the machine cool, or give it longer pauses",
    );
    tell(|s| s.battery, "the machine ran on battery: plug it in");
    tell(
        |s| s.other_cpus > OTHER_CPUS + OTHER_PART * s.busy_cpus,
        "other tasks used CPUs while the command ran: end them",
    );
    tell(
        |s| s.clock_step_s.abs() > STEP_S,
        "the clock was set while the command ran; times that the command prints may be wrong",
    );
    if all > 0 && runs.clone().all(|s| s.throttled.is_none()) {
        told.push(
            "whether CPUs were slowed down because they were hot is not observable here"
                .to_string(),
        );
    }
    told
}

fn modes<'a>(runs: impl Iterator<Item = &'a Seen>) -> Vec<String> {
    let mut modes: Vec<&str> = runs.map(|s| s.modes.as_str()).collect();
    modes.sort_unstable();
    modes.dedup();
    match modes.as_slice() {
        [] => Vec::new(),
        [one] if !one.contains("governor ") || one.contains("governor performance") => Vec::new(),
        [one] => vec![format!(
            "frequencies were not fixed ({one}): set the governor 'performance' to compare schedulers and not governors"
        )],
        several => vec![format!(
            "governor, EPP or boost changed between runs ({}): the comparison says little",
            several.join("; ")
        )],
    }
}
