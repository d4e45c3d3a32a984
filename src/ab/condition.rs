// SPDX-License-Identifier: GPL-2.0-only
//! What spoils a comparison. It is read before and after each run, stored with it, and reported at
//! the end.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Smallest step of the clock that is reported, in s. Slow corrections stay below it.
const STEP_S: f64 = 0.05;

/// Other tasks are reported when they use more than this many CPUs plus this part of all busy CPUs.
/// The part is because the kernel accounts CPU time by its tick.
const OTHER_CPUS: f64 = 0.05;
const OTHER_PART: f64 = 0.02;

/// Separates the modes before a run from those after it.
pub const THEN: &str = ", then ";

/// What was observed around one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Governor, EPP, boost, and the frequency limits of CPUs below their highest, as one text.
    pub modes: String,
    /// True if some CPU was throttled because of heat. None: the machine does not count that.
    pub throttled: Option<bool>,
    pub battery: bool,
    /// Mean number of busy CPUs while the command ran: with steal time, without interrupts.
    pub busy_cpus: f64,
    /// The part of `busy_cpus` that the command did not use.
    pub other_cpus: f64,
    /// Steps of CLOCK_REALTIME against CLOCK_BOOTTIME, s.
    pub clock_step_s: f64,
    /// Time the machine was suspended, s.
    pub suspended_s: f64,
}

/// A sentence for each thing that spoiled runs. It names the variants, since what affects only one
/// of them is in its numbers.
pub fn warnings<'a>(runs: impl Iterator<Item = (&'a str, &'a Seen)>) -> Vec<String> {
    let runs: Vec<(&str, &Seen)> = runs.collect();
    let mut reported = modes(&runs);
    let mut tell = |bad: fn(&Seen) -> bool, text: &str, most: &str| {
        reported.extend(count(&runs, bad).map(|count| format!("{text} ({count}{most})")));
    };
    tell(
        |s| s.throttled == Some(true),
        "hot CPUs were throttled: let the machine cool, as by --prepare 'sleep 30'",
        "",
    );
    tell(|s| s.battery, "the machine ran on battery: plug it in", "");
    let most = runs.iter().map(|(_, s)| s.other_cpus).fold(0.0, f64::max);
    tell(
        |s| s.other_cpus > OTHER_CPUS + OTHER_PART * s.busy_cpus,
        "other tasks used CPUs while the command ran: end those tasks",
        &format!("; {} CPUs at most", (most * 100.0).round() / 100.0),
    );
    tell(
        |s| s.clock_step_s.abs() > STEP_S,
        "the clock was set while the command ran; times that the command prints may be wrong",
        "",
    );
    tell(
        |s| s.suspended_s > 0.0,
        "the machine was suspended while the command ran; wall excludes the suspend, times that the command prints may include it",
        "",
    );
    if !runs.is_empty() && runs.iter().all(|(_, s)| s.throttled.is_none()) {
        reported.push("throttling of hot CPUs cannot be observed here".to_string());
    }
    reported
}

/// In how many runs `which` holds, also by variant if these differ. None: in none.
fn count(runs: &[(&str, &Seen)], which: impl Fn(&Seen) -> bool) -> Option<String> {
    let mut variants: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for (variant, seen) in runs {
        let [some, all] = variants.entry(variant).or_default();
        *some += usize::from(which(seen));
        *all += 1;
    }
    let [some, all] = [0, 1].map(|at| variants.values().map(|of| of[at]).sum::<usize>());
    let begin = format!("{some} of {all} runs");
    let reported: Vec<String> = variants
        .iter()
        .filter(|(_, [some, _])| *some > 0)
        .map(|(variant, [some, all])| format!("{some} of {all} of {variant}"))
        .collect();
    match reported.len() {
        0 => None,
        n if n < variants.len() => Some(format!(
            "{begin}: {}, none of the others",
            reported.join(", ")
        )),
        1 => Some(begin),
        _ if some == all => Some(begin),
        _ => Some(format!("{begin}: {}", reported.join(", "))),
    }
}

fn modes(runs: &[(&str, &Seen)]) -> Vec<String> {
    let modes: BTreeSet<&str> = runs.iter().map(|(_, s)| s.modes.as_str()).collect();
    let with = |mode: &&str| {
        let count = count(runs, |s| s.modes == *mode);
        format!("{mode} ({})", count.unwrap_or_default())
    };
    let modes: Vec<&str> = modes.into_iter().collect();
    match modes.as_slice() {
        [] => Vec::new(),
        [one] if fixed(one) => held(one).into_iter().collect(),
        [one] if !one.contains(THEN) => vec![format!(
            "frequencies were not fixed ({one}): set the governor 'performance' to compare the schedulers rather than the governor"
        )],
        several => vec![format!(
            "governor, EPP, boost or the highest frequency changed between runs or during them: {}; the comparison is not reliable",
            several.iter().map(with).collect::<Vec<_>>().join("; ")
        )],
    }
}

/// A sentence if CPUs were kept below their highest frequency all the time.
fn held(modes: &str) -> Option<String> {
    let held = modes.split(", ").find(|m| m.starts_with("held to "))?;
    Some(format!(
        "CPUs were {held} all the time: the results hold for a machine in this state"
    ))
}

/// True if all CPUs have governor performance, or there is no cpufreq.
fn fixed(modes: &str) -> bool {
    let mut governors = modes
        .split(", ")
        .filter_map(|m| m.strip_prefix("governor "));
    !modes.contains(THEN) && governors.all(|names| names == "performance")
}
