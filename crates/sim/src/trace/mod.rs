// SPDX-License-Identifier: GPL-2.0-only
//! What a run looked like from the end of its warm-up on: as a file for Perfetto (`perfetto`), or
//! as a picture (`svg`, `panel`, `legend`).

mod legend;
mod panel;
mod perfetto;
mod recorder;
mod svg;

use super::args::Plan;
use super::load::Load;
use super::{Measured, Model, Scenario};
use anyhow::{Context, Result};
pub use recorder::Recorder;
use scx_roost::machine::Machine;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The files to write, and how much time they show.
#[derive(Clone, Debug, Default)]
pub struct Pictures {
    pub trace: Option<PathBuf>,
    pub svg: Option<PathBuf>,
    /// ns from the end of the warm-up on.
    pub window: u64,
}

/// What was seen of one variant. Times are ns since the start of the run.
pub struct Trace {
    pub variant: String,
    pub since: u64,
    pub until: u64,
    /// Names of tasks. A task number that is used again is another task.
    pub tasks: Vec<String>,
    /// Groups of the workload, each with its tasks.
    pub groups: Vec<(String, Vec<usize>)>,
    /// In the order of their ends.
    pub spans: Vec<Span>,
    pub speeds: Vec<Speed>,
    pub wakeups: Vec<Wakeup>,
    /// The number of waiting tasks, from each of these times on.
    pub waiting: Vec<(u64, usize)>,
}

/// A task ran on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub cpu: usize,
    pub task: usize,
    pub from: u64,
    pub to: u64,
    /// Why it ended. Empty: it went on after the window.
    pub why: &'static str,
}

/// The CPU's speed from then on, of `speed::FULL`.
#[derive(Clone, Copy, Debug)]
pub struct Speed {
    pub at: u64,
    pub cpu: usize,
    pub rate: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Wakeup {
    pub task: usize,
    pub at: u64,
    /// The CPU of the wakeup, and the waker. None: a timer.
    pub here: usize,
    pub waker: Option<usize>,
    pub kind: &'static str,
    /// The chosen CPU.
    pub to: usize,
    /// Where and when the task ran.
    pub ran: Option<(usize, u64)>,
}

/// Writes the files that are asked for. The runs use the first seed, and are no longer than the
/// window. Errors: a scenario cannot be run; a file cannot be written.
pub fn write(plan: &Plan) -> Result<()> {
    let Pictures { trace, svg, window } = &plan.pictures;
    if trace.is_none() && svg.is_none() {
        return Ok(());
    }
    let machine = &plan.model.machine;
    let mut seen = Vec::new();
    for variant in &plan.variants {
        let load = Load {
            duration: Some(plan.load.duration.unwrap_or(u64::MAX).min(*window)),
            ..plan.load.clone()
        };
        let scenario = Scenario {
            model: &plan.model,
            load,
            policy: &variant.policy,
            seed: plan.seeds.start,
        };
        let recorder = Recorder::new(&variant.name, &scenario.whole(), machine.nr_cpu_ids.into());
        let (measured, recorder) = scenario.watched(recorder)?;
        seen.push((recorder.trace(), measured));
    }
    let title = format!(
        "{} on {}, seed {}",
        plan.workload, plan.model.name, plan.seeds.start
    );
    draw(&plan.pictures, &plan.model, &title, &seen)
}

/// Writes the files that are asked for, of what was seen.
pub fn draw(
    Pictures { trace, svg, .. }: &Pictures,
    model: &Model,
    title: &str,
    seen: &[(Trace, Measured)],
) -> Result<()> {
    let machine = &model.machine;
    if let Some(path) = trace {
        file(path, |out| perfetto::write(out, machine, seen))?;
    }
    if let Some(path) = svg {
        file(path, |out| {
            Ok(out.write_all(picture(title, machine, seen).as_bytes())?)
        })?;
    }
    Ok(())
}

fn picture(title: &str, machine: &Machine, seen: &[(Trace, Measured)]) -> String {
    panel::picture(title, machine, seen)
}

fn file(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let what = || format!("cannot write {}", path.display());
    let mut out = BufWriter::new(File::create(path).with_context(what)?);
    write(&mut out).with_context(what)?;
    out.flush().with_context(what)
}
