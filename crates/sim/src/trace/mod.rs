// SPDX-License-Identifier: GPL-2.0-only
//! What a run looked like from the end of its warm-up on, as a picture (`svg`, `panel`, `legend`).

mod legend;
mod panel;
mod recorder;
mod svg;

use super::args::Plan;
use super::load::Load;
use super::{Measured, Scenario};
use anyhow::{Context, Result};
pub use recorder::Recorder;

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
}

/// A task ran on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub cpu: usize,
    pub task: usize,
    pub from: u64,
    pub to: u64,
}

/// Draws the picture that is asked for. The runs use the first seed, and are no longer than the
/// window. Errors: a scenario cannot be run; the file cannot be written.
pub fn write(plan: &Plan) -> Result<()> {
    let Some((path, window)) = &plan.picture else {
        return Ok(());
    };
    let machine = &plan.model.machine;
    let mut seen: Vec<(Trace, Measured)> = Vec::new();
    for variant in &plan.variants {
        let load = Load {
            duration: Some(plan.load.duration.unwrap_or(u64::MAX).min(*window)),
            ..plan.load.clone()
        };
        let recorder = Recorder::new(&variant.name, &load, machine.nr_cpu_ids.into());
        let scenario = Scenario {
            model: &plan.model,
            load,
            policy: &variant.policy,
            seed: plan.seeds.start,
        };
        let (measured, recorder) = scenario.watched(recorder)?;
        seen.push((recorder.trace(), measured));
    }
    let title = format!(
        "{} on {}, seed {}",
        plan.workload, plan.model.name, plan.seeds.start
    );
    let picture = panel::picture(&title, machine, &seen);
    std::fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))
}
