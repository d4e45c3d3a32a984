// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost ab` and `scx_roost tune`: runs a comparison or a search, or reads a result file.

use super::args::{AbArgs, Look, TuneArgs};
use super::boots::boot_next;
use super::child::Workload;
use super::metric::Measured;
use super::progress::Shown;
use super::real::needs::{program, versions};
use super::real::{Means, Real, facts};
use super::report::Report;
use super::report::lkml::as_mail;
use super::report::text::{Shown as Parts, text};
use super::result::{Recorded, ResultFile};
use super::run::{End, Progress, run};
use super::tasks::Task;
use super::tune;
use crate::machine::Machine;
use crate::machine::host::Host;
use crate::util::folder;
use crate::util::print;
use crate::util::stderr::{replace_line, say};
use crate::util::stop::Stop;
use crate::util::user::give_back;
use crate::util::whole_file;
use anyhow::{Context, Result, bail, ensure};
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::process::ExitCode;

const STOPPED: &str = "stopped; continue with --resume and the same other arguments";

/// Status if another boot is due. Not 1, an error, nor 2, a wrong command line.
const BOOT_DUE: u8 = 3;

pub fn perform(mut args: AbArgs, json: bool, stop: &Stop) -> Result<ExitCode> {
    if let Some(Look::Show {
        file,
        lkml,
        counters,
    }) = args.look.take()
    {
        ensure!(
            !(json && lkml),
            "--json cannot be combined with --lkml: that is no JSON"
        );
        let recorded = Recorded::read(&file)?;
        match lkml {
            true => print::text(&as_mail(&recorded)?).map(|_| ())?,
            false => show(&recorded, json, counters)?,
        }
        return has_rounds(&recorded);
    }
    let counters = args.counters;
    let mut task = args.task(facts(&Host::new(Path::new("/sys"))))?;
    let versions = versions(&task.header.variants()?);
    task.header.host.extend(versions);
    task.header.host.extend(program(&task.command));
    compare_variants(&task, json, counters, stop)
}

/// Tries changes of a base, and prints the result.
pub fn tune(args: TuneArgs, json: bool, stop: &Stop) -> Result<()> {
    let mut task = args.task(facts(&Host::new(Path::new("/sys"))))?;
    task.header.host.extend(program(&task.command));
    // The CPUs of the machine: our own affinity may allow only some of them.
    let cpus = Machine::read(Path::new("/sys"))?.cpus.len() as u32;
    let candidates = tune::candidates(&task.header.variants[0], cpus, task.header.scope)?;
    // The folder may exist, with results to resume.
    if let Some(made) = folder::create(&task.result) {
        give_back(&made?, &task.result);
    }
    say!("{} changes", candidates.len());
    let tuned = tune::tune(&task.header, &candidates, &mut |header, step| {
        let result = task.result.join(step).with_extension("jsonl");
        let one = Task {
            header: header.clone(),
            resume: task.resume && result.exists(),
            result,
            ..task.clone()
        };
        match record(&one, stop, step)? {
            (recorded, End::Done) => Ok(recorded),
            (_, End::Stopped | End::Boot(_)) => bail!(STOPPED),
        }
    })?;
    let printed = match json {
        true => print::json(&tuned),
        false => print::text(&tuned.text()?),
    };
    printed.map(|_| ())
}

fn compare_variants(task: &Task, json: bool, counters: bool, stop: &Stop) -> Result<ExitCode> {
    let (recorded, end) = record(task, stop, "")?;
    if let End::Boot(kernel) = end {
        boot_next(&recorded, &task.result, &kernel, task.next_boot.as_deref())?;
        return Ok(ExitCode::from(BOOT_DUE));
    }
    show(&recorded, json, counters)?;
    match end {
        End::Stopped => bail!(STOPPED),
        _ => has_rounds(&recorded),
    }
}

/// Makes the runs of a task, or resumes them. `step`: of a search.
fn record(task: &Task, stop: &Stop, step: &'static str) -> Result<(Recorded, End)> {
    let (mut file, mut recorded) = match task.resume {
        true => ResultFile::resume(&task.result, &task.header)?,
        false => {
            let file = ResultFile::create(&task.result, &task.header)?;
            (file, Recorded::new(task.header.clone()))
        }
    };
    let made = !task.resume;
    let stopped = || stop.stopped();
    let metrics = task.header.metrics()?.into_iter();
    let asked: Vec<Measured> = metrics.filter_map(|m| m.source.measured()).collect();
    let workload = Workload {
        command: task.command.clone(),
        timeout: task.timeout,
        cpus: Vec::new(),
        user: task.user.clone(),
    };
    let means = Means {
        host: Host::new(Path::new("/sys")),
        program: std::env::current_exe().context("cannot find this program")?,
        stopped: &stopped,
        warn: &|text| say!("warning: {text}"),
    };
    let mut machine = Real::new(means, task.header.scope, workload)
        .measuring(asked)
        .hooked(task.header.hooks.clone());
    let mut shown = Shown::new(recorded.runs.len(), step);
    let ended = run(
        &mut recorded,
        &mut machine,
        &mut file,
        &stopped,
        &mut |now| tell(&mut shown, now),
    );
    if stderr().is_terminal() {
        say!("");
    }
    if made && ended.is_err() && recorded.runs.is_empty() && recorded.failed.is_empty() {
        // No run was made: the file says nothing, and would block the next attempt.
        let _ = whole_file::remove(&task.result);
    }
    Ok((recorded, ended?))
}

/// On a terminal one line that changes with each run, elsewhere a line for each turn.
fn tell(progress: &mut Shown, now: &Progress) {
    match stderr().is_terminal() {
        true => replace_line(&progress.run(now)),
        false => progress.turn(now).map_or((), |line| say!("{line}")),
    }
}

fn show(recorded: &Recorded, json: bool, counters: bool) -> Result<()> {
    let report = Report::new(recorded)?;
    let colors = print::colors();
    let parts = Parts { colors, counters };
    match json {
        true => print::json(&report)?,
        false if colors => print::styled(&text(&report, parts))?,
        false => print::text(&text(&report, parts))?,
    };
    Ok(())
}

/// Fails if there cannot be a verdict.
fn has_rounds(recorded: &Recorded) -> Result<ExitCode> {
    ensure!(
        recorded.rounds() > 0,
        "there is no verdict: not one round of runs is complete"
    );
    Ok(ExitCode::SUCCESS)
}
