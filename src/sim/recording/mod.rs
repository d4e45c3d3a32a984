// SPDX-License-Identifier: GPL-2.0-only
//! Recordings of real machines: `capture` makes one by an `instance` of ftrace. `lines` finds the
//! events of its text, `parse` reads them, `story` finds what each task did, `workload` makes a
//! workload of that. docs/simulator.md describes the method.

mod capture;
mod instance;
mod lines;
#[cfg(test)]
mod odd_names;
mod parse;
mod story;
#[cfg(test)]
mod tests;
mod workload;

pub use capture::{EXAMPLES as RECORD_EXAMPLES, RecordArgs, record};

use super::load::Load;
use super::machines::{Hardware, Model};
use super::measure::Measured;
use super::trace::{Recorder, Trace};
use crate::util::plain_file::PlainFile;
use anyhow::{Context, Result, ensure};
use parse::Text;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The files of a recording's folder: the text of ftrace, and the machine's /sys files.
const TEXT: &str = "sched.txt";
const SYS: &str = "sys";
/// The longest recording, ns. The arithmetic of work holds up to here, and a replay ends.
const LONGEST_S: u64 = 3600;
/// The most tasks. A replay takes about 1 kB for each, in each run.
const MOST_TASKS: usize = 100_000;

/// A recording, and what it says.
#[derive(Debug)]
pub struct Recording {
    text: Text,
    /// Its length, ns.
    pub ns: u64,
    pub load: Load,
    pub measured: Measured,
}

/// The file with the text of a recording, and the tree of its machine if it brings one.
pub fn files(path: &Path) -> (PathBuf, Option<PathBuf>) {
    match path.is_dir() {
        true => (path.join(TEXT), Some(path.join(SYS)).filter(|p| p.is_dir())),
        false => (path.to_path_buf(), None),
    }
}

impl Recording {
    /// Reads a recording of a machine. `set`: bytes that each task uses again and again.
    pub fn read(path: &Path, model: &Model, set: u64) -> Result<Recording> {
        let told = || format!("recording {}", path.display());
        let file = PlainFile::open(path).with_context(|| format!("cannot read the {}", told()))?;
        Recording::parse(BufReader::new(file), model, set).with_context(told)
    }

    pub fn parse(from: impl Read, model: &Model, set: u64) -> Result<Recording> {
        let text = parse::parse(BufReader::new(from))?;
        let hardware = model.hardware()?;
        let ns = checked(&text, &hardware)?;
        let told = story::tell(&text, &hardware, smt(model), u64::MAX, ());
        let tasks = told.lives.len();
        ensure!(
            tasks <= MOST_TASKS,
            "it has {tasks} tasks, and at most {MOST_TASKS} are possible: record for a shorter time"
        );
        Ok(Recording {
            load: workload::load(&told.lives, &text, set),
            measured: told.measured,
            ns,
            text,
        })
    }

    /// The scheduler that ran, if the recording says so.
    pub fn scheduler(&self) -> Option<&str> {
        self.text.scheduler.as_deref()
    }

    /// What it looks like from its start, for `window` ns.
    pub fn trace(&self, model: &Model, window: u64) -> Result<(Trace, Measured)> {
        let hardware = model.hardware()?;
        let recorder = Recorder::new("recorded", &self.load, model.machine.nr_cpu_ids.into());
        let told = story::tell(&self.text, &hardware, smt(model), window, recorder);
        Ok((told.watch.trace(), told.measured))
    }
}

fn smt(model: &Model) -> f64 {
    model.params.part("smt_speed")
}

/// The recording's length, ns. Errors: it has no switches; it is too long; the machine lacks a CPU.
fn checked(text: &Text, hardware: &Hardware) -> Result<u64> {
    let cpus = &hardware.facts.cpus;
    let online = |cpu: usize| cpus.get(cpu).is_some_and(|c| c.online != 0);
    let strange = text.events.iter().find(|e| !online(e.cpu.into()));
    if let Some(event) = strange {
        anyhow::bail!(
            "an event happened on CPU {}, and the machine has {} CPUs, without that one online: \
             give the recorded machine with --sysfs",
            event.cpu,
            cpus.len()
        );
    }
    let mut switches = text.events.iter().map(|e| e.what);
    ensure!(
        switches.any(|what| matches!(what, parse::What::Switch { .. })),
        "there is no sched_switch in it: record the events sched_switch, sched_waking, \
         sched_wakeup_new and sched_process_fork"
    );
    let ends = text.events.first().zip(text.events.last());
    let ns = ends.map_or(0, |(first, last)| last.at - first.at);
    ensure!(
        ns <= LONGEST_S * 1_000_000_000,
        "it is {} s long, and at most {LONGEST_S} are possible: cut it",
        ns / 1_000_000_000
    );
    Ok(ns)
}
