// SPDX-License-Identifier: GPL-2.0-only
//! All runs of a comparison, one after the other, and the machine as it was behind them.

use super::analysis;
use super::child::Failure;
use super::machine::{Machine, Taken};
use super::metric::{MEASURED, Metric};
use super::result::{Header, Repetition, ResultFile};
use super::stats::plan::Plan;
use super::stats::verdict::settled;
use super::variant::Variant;
use anyhow::{Context, Result, anyhow};
use std::collections::BTreeMap;

/// What is told before each run.
pub struct Progress<'a> {
    pub number: usize,
    /// Runs that there will be at most.
    pub all: usize,
    pub variant: &'a str,
    pub warmup: bool,
}

/// How it ended.
#[derive(Debug, PartialEq)]
pub enum End {
    Done,
    /// Somebody wanted it to end; what was run is kept.
    Stopped,
}

/// Runs what is not yet in `runs`, and puts it there and into the file. The machine is restored however it ends.
pub fn run(
    header: &Header,
    runs: &mut Vec<Repetition>,
    machine: &mut dyn Machine,
    file: &mut ResultFile,
    stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(&Progress),
) -> Result<End> {
    let (variants, metrics) = (header.variants()?, header.metrics()?);
    machine.begin(&variants)?;
    let mut session = Session {
        header,
        variants,
        metrics,
        machine,
        file,
    };
    let ended = session.all(runs, stopped, tell);
    let restored = session.machine.restore();
    match (ended, restored) {
        (Err(e), Err(r)) => Err(e.context(format!("the machine is not as it was: {r:#}"))),
        (Err(e), Ok(())) => Err(e),
        (Ok(_), Err(r)) => Err(r.context("the machine is not as it was")),
        (Ok(end), Ok(())) => Ok(end),
    }
}

struct Session<'a> {
    header: &'a Header,
    variants: Vec<Variant>,
    metrics: Vec<Metric>,
    machine: &'a mut dyn Machine,
    file: &'a mut ResultFile,
}

impl Session<'_> {
    fn all(
        &mut self,
        runs: &mut Vec<Repetition>,
        stopped: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&Progress),
    ) -> Result<End> {
        let design = self.header.design();
        let all = design.runs(self.header.rule.plan.max());
        while runs.len() < all && !self.enough(runs)? {
            if stopped() {
                return Ok(End::Stopped);
            }
            let number = runs.len();
            let turn = design.turn(number);
            let variant = self.variants[turn.variant].clone();
            let warmup = turn.block.is_none();
            tell(&Progress {
                number,
                all,
                variant: &variant.name,
                warmup,
            });
            let one = self.one(&variant);
            let (values, taken) = match one {
                Ok(one) => one,
                Err(Failure::Stopped) => return Ok(End::Stopped),
                Err(failure) => return Err(self.failed(number, &variant, failure)),
            };
            let run = Repetition {
                number,
                block: turn.block,
                variant: variant.name,
                values,
                counters: taken.counters,
                seen: taken.seen,
            };
            self.file.append(&run)?;
            runs.push(run);
        }
        Ok(End::Done)
    }

    /// At a look that was declared, and nowhere else: has every comparison its verdict?
    fn enough(&self, runs: &[Repetition]) -> Result<bool> {
        let Plan::Auto(_) = self.header.rule.plan else {
            return Ok(false);
        };
        let looks = self.header.rule.plan.looks();
        let at_look = looks
            .iter()
            .any(|l| self.header.design().runs(l.blocks) == runs.len());
        Ok(at_look && settled(&analysis::judged(self.header, runs)?))
    }

    fn one(&mut self, variant: &Variant) -> Result<(BTreeMap<String, f64>, Taken), Failure> {
        self.machine.switch(variant)?;
        let taken = self.machine.run()?;
        Ok((self.values(variant, &taken)?, taken))
    }

    /// All that was measured, and what was asked for besides.
    fn values(&self, variant: &Variant, taken: &Taken) -> Result<BTreeMap<String, f64>> {
        let measured = MEASURED.iter().filter_map(|row| {
            let value = taken.value(row.measured)?;
            Some((row.name.to_string(), kept(value)))
        });
        let mut values: BTreeMap<String, f64> = measured.collect();
        for metric in &self.metrics {
            if let Some(number) = metric.printed(&taken.sample.output) {
                values.insert(metric.name.clone(), kept(number?));
            }
            if !values.contains_key(&metric.name) {
                return Err(anyhow!(
                    "{} cannot be measured under variant {} here: leave it out",
                    metric.name,
                    variant.name
                ));
            }
        }
        Ok(values)
    }

    fn failed(&self, number: usize, variant: &Variant, failure: Failure) -> anyhow::Error {
        let error = match failure {
            Failure::Other(e) => e,
            other => anyhow!("{other}"),
        };
        error.context(format!(
            "run {} under variant {} failed; the {number} runs before it are in {}",
            number + 1,
            variant.name,
            self.file.path.display()
        ))
    }
}

/// Of twelve digits: so many come back from JSON as they were, and a result says the same before and after it was written.
fn kept(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// The command as it is kept.
pub fn words(command: &[std::ffi::OsString]) -> Result<Vec<String>> {
    let word = |w: &std::ffi::OsString| w.to_str().map(str::to_string);
    let words: Option<Vec<String>> = command.iter().map(word).collect();
    words.context("the command is not UTF-8, and so cannot be written to a result file")
}
