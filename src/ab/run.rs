// SPDX-License-Identifier: GPL-2.0-only
//! Makes all runs of a comparison one by one, and restores the machine afterwards.

use super::analysis;
use super::boot::Boot;
use super::boots;
use super::child::Failure;
use super::design::Turn;
use super::machine::{Machine, Taken};
use super::metric::{MEASURED, Metric};
use super::result::{FailedRun, Header, Recorded, Repetition, ResultFile};
use super::stats::plan::Plan;
use super::stats::verdict::settled;
use super::variant::Variant;
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;

/// Reported before each run.
pub struct Progress<'a> {
    pub number: usize,
    /// Number of runs, at most.
    pub all: usize,
    pub variant: &'a str,
    /// None: it does not count.
    pub turn: Option<usize>,
}

/// How it ended.
#[derive(Debug, PartialEq)]
pub enum End {
    Done,
    /// The user stopped it; the runs so far are kept.
    Stopped,
    /// The next run needs another boot, of this kernel.
    Boot(String),
}

/// Makes the runs that `recorded` lacks, and appends them to it and to the file. Restores the
/// machine however it ends. Does not touch the machine if there is nothing to run.
pub fn run(
    recorded: &mut Recorded,
    machine: &mut dyn Machine,
    file: &mut ResultFile,
    stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(&Progress),
) -> Result<End> {
    if !lacks(recorded)? {
        return Ok(End::Done);
    }
    let boot = machine.boot()?;
    boots::came_up(recorded, &boot)?;
    let order = recorded.header.order();
    if let Some(kernel) = boots::due(recorded, &order, &boot)? {
        return Ok(End::Boot(kernel));
    }
    let header = &recorded.header.clone();
    let (variants, metrics) = (header.variants()?, header.metrics()?);
    machine.begin(&variants)?;
    let mut session = Session {
        header,
        order,
        boot,
        variants,
        metrics,
        machine,
        file,
    };
    let ended = session.all(recorded, stopped, tell);
    let restored = session.machine.restore();
    match (ended, restored) {
        (Err(e), Err(r)) => Err(anyhow!("the machine was not restored: {r:#}: {e:#}")),
        (Err(e), Ok(())) => Err(e),
        (Ok(_), Err(r)) => Err(r.context("the machine was not restored")),
        (Ok(end), Ok(())) => Ok(end),
    }
}

/// A run, with its values by name.
type Valued = (BTreeMap<String, f64>, Taken);

struct Session<'a> {
    header: &'a Header,
    order: Vec<Turn>,
    boot: Boot,
    variants: Vec<Variant>,
    metrics: Vec<Metric>,
    machine: &'a mut dyn Machine,
    file: &'a mut ResultFile,
}

impl Session<'_> {
    fn all(
        &mut self,
        recorded: &mut Recorded,
        stopped: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<End> {
        if let Some(end) = self.take_up(recorded, stopped, tell)? {
            return Ok(end);
        }
        while lacks(recorded)? {
            if stopped() {
                return Ok(End::Stopped);
            }
            if let Some(kernel) = boots::due(recorded, &self.order, &self.boot)? {
                return Ok(End::Boot(kernel));
            }
            let number = recorded.runs.len();
            let turn = self.order[number];
            let variant = self.variants[turn.variant].clone();
            self.tell(number, &variant, turn.turn, tell);
            let (values, taken) = match self.taken(&variant) {
                Ok(taken) => taken,
                // The signal may have interrupted a question to the scheduler.
                Err(_) if stopped() => return Ok(End::Stopped),
                Err(Failure::Stopped) => return Ok(End::Stopped),
                Err(failure) => return Err(self.failed(recorded, &variant, failure)?),
            };
            let run = Repetition {
                number,
                turn: turn.turn,
                variant: variant.name,
                drawn: turn.drawn,
                values,
                counters: taken.counters,
                seen: taken.seen,
                boot: self.header.boots.map(|_| self.boot.now.clone()),
            };
            self.file.append(&run)?;
            recorded.runs.push(run);
            recorded.asked = None;
        }
        Ok(End::Done)
    }

    /// Makes the warm-ups of a boot that was interrupted again, without recording them.
    fn take_up(
        &mut self,
        recorded: &mut Recorded,
        stopped: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<Option<End>> {
        let number = recorded.runs.len();
        let again = boots::warmed_again(self.header, number).unwrap_or_default();
        for before in again {
            if stopped() {
                return Ok(Some(End::Stopped));
            }
            let variant = self.variants[self.order[before].variant].clone();
            self.tell(number, &variant, None, tell);
            match self.taken(&variant) {
                Ok(_) => (),
                Err(_) if stopped() => return Ok(Some(End::Stopped)),
                Err(Failure::Stopped) => return Ok(Some(End::Stopped)),
                Err(failure) => return Err(self.failed(recorded, &variant, failure)?),
            }
        }
        Ok(None)
    }

    fn tell(
        &self,
        number: usize,
        variant: &Variant,
        turn: Option<usize>,
        tell: &mut dyn FnMut(&Progress),
    ) {
        tell(&Progress {
            number,
            all: self.order.len(),
            variant: &variant.name,
            turn,
        });
    }

    fn taken(&mut self, variant: &Variant) -> Result<Valued, Failure> {
        self.machine.switch(variant).map_err(of_the_machine)?;
        let taken = self.machine.run()?;
        let values = self.values(variant, &taken).map_err(Failure::NoValue)?;
        Ok((values, taken))
    }

    /// All measured values, and the printed ones that were asked for.
    fn values(&self, variant: &Variant, taken: &Taken) -> Result<BTreeMap<String, f64>> {
        let measured = MEASURED.iter().filter_map(|row| {
            let value = taken.value(row.measured)?;
            Some((row.name.to_string(), kept(value)))
        });
        let mut values: BTreeMap<String, f64> = measured.collect();
        for metric in &self.metrics {
            if let Some(number) = metric.printed(&taken.sample.output, &taken.sample.errors) {
                values.insert(metric.name.clone(), kept(number?));
            }
            if !values.contains_key(&metric.name) {
                return Err(anyhow!(
                    "{} cannot be measured here under variant {}: leave it out",
                    metric.name,
                    variant.name
                ));
            }
        }
        Ok(values)
    }

    /// The error for a failed run. If the command ran and failed, writes that to the file. Fails if
    /// it cannot.
    fn failed(
        &mut self,
        recorded: &mut Recorded,
        variant: &Variant,
        failure: Failure,
    ) -> Result<anyhow::Error> {
        let (number, name) = (recorded.runs.len(), &variant.name);
        let file = self.file.path.display();
        let kept = match number {
            0 => String::new(),
            _ => format!("; the {number} runs before it are in {file}"),
        };
        let text = format!("run {} under variant {name} failed{kept}", number + 1);
        let error = match failure {
            Failure::Other(e) => return Ok(e.context(text)),
            Failure::NotStarted(..) => return Ok(anyhow!("{failure}").context(text)),
            Failure::NoValue(e) | Failure::Unwatched(e) => e,
            other => anyhow!("{other}"),
        };
        let text = match number {
            0 => format!("{text}; {file} notes that: repeat it with --resume"),
            _ => text,
        };
        let failed = FailedRun {
            failed: number,
            variants: [name.clone()],
        };
        self.file.append(&failed)?;
        recorded.failed.push(failed);
        Ok(error.context(text))
    }
}

/// Failing to switch to a variant is not the command's fault.
fn of_the_machine(failure: Failure) -> Failure {
    match failure {
        Failure::Stopped | Failure::Other(_) => failure,
        other => Failure::Other(anyhow!("{other}")),
    }
}

/// True if another run is to be made.
fn lacks(recorded: &Recorded) -> Result<bool> {
    let (header, made) = (&recorded.header, recorded.runs.len());
    let all = header.design().runs(header.rule.plan.max());
    Ok(made < all && !enough(recorded)?)
}

/// True at a declared look, and only there, if every comparison has a verdict.
fn enough(recorded: &Recorded) -> Result<bool> {
    let (header, made) = (&recorded.header, recorded.runs.len());
    let Plan::Auto(_) = header.rule.plan else {
        return Ok(false);
    };
    let at = |rounds: &usize| header.design().runs(*rounds) == made;
    let at_look = header.rule.plan.times().iter().any(at);
    Ok(at_look && settled(&analysis::judged(recorded)?))
}

/// Rounds to 12 digits. These survive JSON, so a report is the same before and after writing.
fn kept(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// The command as the result file holds it.
pub fn words(command: &[std::ffi::OsString]) -> Result<Vec<String>> {
    let word = |w: &std::ffi::OsString| w.to_str().map(str::to_string);
    let words: Option<Vec<String>> = command.iter().map(word).collect();
    words.context("the command is not UTF-8 and cannot be written to a result file")
}
