// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost ab` and `scx_roost tune`: runs a comparison or a search, or reads result files.

use super::args::{AbArgs, Look, TuneArgs};
use super::boots::{self, Asked, Boot};
use super::child::Workload;
use super::metric::Measured;
use super::page::Page;
use super::progress::{Among, Shown, outlook};
use super::real::needs::versions;
use super::real::{Means, Real, facts, service};
use super::report::Report;
use super::report::compare::compare;
use super::report::csv::as_csv;
use super::report::html::{html, html_of_suite};
use super::report::lkml::as_mail;
use super::report::text::{colored, text};
use super::result::{Recorded, ResultFile};
use super::run::{End, Progress, run};
use super::suite_runs::{self, Whole};
use super::tasks::{Task, no_equivalence, too_few};
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
use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

const POWERCAP: &str = "/sys/class/powercap";
const STOPPED: &str = "stopped; continue with --resume and the same other arguments";

/// Status if another boot is due. Not 1, an error, nor 2, a wrong command line.
const BOOT_DUE: u8 = 3;

pub fn perform(mut args: AbArgs, json: bool, stop: &Stop) -> Result<ExitCode> {
    match args.look.take() {
        None => {
            let program = std::env::current_exe().context("cannot find this program")?;
            let place = args.place()?;
            let left_out = args.left_out(place.as_ref());
            left_out.iter().for_each(|text| say!("{text}"));
            let facts = facts(&Host::new(Path::new("/sys")));
            let mut tasks = args.tasks_at(program, facts, place.as_ref())?;
            let versions = versions(&tasks[0].header.variants()?);
            for task in &mut tasks {
                task.header.host.extend(versions.clone());
            }
            match too_few(&tasks) {
                Some(text) => say!("warning: {text}"),
                None => no_equivalence(&tasks)
                    .iter()
                    .for_each(|text| say!("{text}")),
            }
            match tasks.as_slice() {
                [alone] if alone.item.is_none() => return compare_variants(alone, json, stop),
                several => compare_suite(several, json, stop),
            }
        }
        Some(Look::Show {
            files, lkml, csv, ..
        }) if lkml || csv => {
            ensure!(
                !json,
                "--json cannot be combined with --lkml or --csv: they are no JSON"
            );
            let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
            let read = files.iter().map(|file| Recorded::read(file));
            let read = read.collect::<Result<Vec<_>>>()?;
            let shown = if csv {
                as_csv(&names, &read)?
            } else {
                as_mail(&read)?
            };
            print::text(&shown).map(|_| ())
        }
        Some(Look::Show { files, html, .. }) => {
            let [file] = files.as_slice() else {
                bail!("several files are shown with --lkml or --csv, or by 'scx_roost ab compare'");
            };
            let page = Page(html);
            let recorded = Recorded::read(file)?;
            page.check(file)?;
            show(&recorded, &page, json)
        }
        Some(Look::Compare { files }) => side_by_side(&files, json),
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Tries changes of a base, and prints the result.
pub fn tune(args: TuneArgs, json: bool, stop: &Stop) -> Result<()> {
    let facts = facts(&Host::new(Path::new("/sys")));
    let task = args.task(facts)?;
    // The CPUs of the machine: our own affinity may allow only some of them.
    let cpus = Machine::read(Path::new("/sys"))?.cpus.len() as u32;
    let candidates = tune::candidates(&task.header.variants[0], cpus, task.header.scope)?;
    // The folder may exist, with results to resume.
    if let Some(made) = folder::create(&task.result) {
        give_back(&made?, &task.result);
    }
    let rounds = tune::rounds(&task.header, candidates.len());
    let done = made(&task, &rounds)?;
    say!("{}", outlook(candidates.len(), &rounds, done));
    let begin = Instant::now();
    let tuned = tune::tune(&task.header, candidates, &mut |header, name| {
        let result = tune::file(&task.result, name);
        if stderr().is_terminal() {
            say!("{name}: {} variants", header.variants.len());
        }
        let one = Task {
            header: header.clone(),
            resume: task.resume && result.exists(),
            result,
            ..task.clone()
        };
        match record(&one, stop, Among::round(&rounds, name, begin))? {
            (recorded, End::Done) => Ok(recorded),
            (_, End::Stopped | End::Boot(_)) => bail!(STOPPED),
        }
    })?;
    let printed = match json {
        true => print::json(&tuned.whole()?),
        false => print::text(&tuned.text()?),
    };
    printed.map(|_| ())
}

/// Number of runs that a resumed search already has.
fn made(task: &Task, rounds: &[(String, usize)]) -> Result<usize> {
    let files = rounds
        .iter()
        .map(|(name, _)| tune::file(&task.result, name));
    let files = files.filter(|file| task.resume && file.exists());
    let runs = |file: PathBuf| {
        let begun = Recorded::begun(&file)?;
        Ok(begun.map_or(0, |recorded| recorded.runs.len()))
    };
    files.map(runs).sum()
}

fn compare_variants(task: &Task, json: bool, stop: &Stop) -> Result<ExitCode> {
    task.page.check(&task.result)?;
    let (recorded, end) = record(task, stop, None)?;
    if let End::Boot(kernel) = end {
        boot_next(task, &recorded, &kernel)?;
        return Ok(ExitCode::from(BOOT_DUE));
    }
    show(&recorded, &task.page, json)?;
    match end {
        End::Stopped => bail!(STOPPED),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Says which kernel is due, and boots it if there is a command for that.
fn boot_next(task: &Task, recorded: &Recorded, kernel: &str) -> Result<()> {
    let (made, all) = boots::made(recorded).unwrap_or_default();
    let done = format!("{made} of at most {all} boots are made");
    let Some(command) = &task.next_boot else {
        say!("{done}: boot {kernel}, then give the same command with --resume");
        return Ok(());
    };
    say!("{done}: booting {kernel}");
    let now = Boot::now(&Host::new(Path::new("/sys")), BTreeMap::new())?;
    let (mut file, _) = ResultFile::resume(&task.result, &task.header)?;
    file.append(&Asked {
        asked_kernel: kernel.to_string(),
        in_boot: now.now.id,
    })?;
    drop(file);
    let command = command.replace("{kernel}", kernel);
    let status = std::process::Command::new("sh")
        .args(["-c", &command])
        .status();
    let status = status.context("cannot run sh")?;
    ensure!(
        status.success(),
        "--next-boot '{command}' failed ({status}): boot {kernel} by hand, then give the same command with --resume"
    );
    Ok(())
}

/// Prints each report after its workload, and the table, JSON and the page at the end.
fn compare_suite(tasks: &[Task], json: bool, stop: &Stop) -> Result<()> {
    tasks
        .iter()
        .try_for_each(|task| task.page.check(&task.result))?;
    let begin = Instant::now();
    let left = tasks.iter().map(suite_runs::left);
    let left = left.collect::<Result<Vec<usize>>>()?;
    let mut compare = |at: usize, task: &Task| {
        let among = Among::new(tasks, at, &left, begin);
        let (recorded, end) = record(task, stop, Some(among))?;
        if !json {
            show(&recorded, &Page::default(), json)?;
        }
        Ok((recorded, end))
    };
    let outcome = suite_runs::run_all(tasks, &mut compare, &|text| say!("{text}"));
    let reports = match outcome.reports() {
        Ok(reports) => reports,
        Err(e) => return outcome.end(STOPPED).and(Err(e)),
    };
    let closing = outcome.closing(&reports);
    let printed = match (json, &closing) {
        (true, suite) => print::json(&Whole {
            workloads: &reports,
            suite,
        }),
        (false, Some(closing)) => print::text(&closing.text()),
        (false, None) => Ok(true),
    };
    let page = || html_of_suite(&reports, closing.as_ref());
    let written = printed.and_then(|_| tasks[0].page.write(page));
    // What went wrong with the runs comes first.
    outcome.end(STOPPED).and(written)
}

/// Makes the runs of a task, or resumes them.
fn record(task: &Task, stop: &Stop, among: Option<Among>) -> Result<(Recorded, End)> {
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
        powercap: POWERCAP.into(),
        events: asked.clone(),
        user: task.user.clone(),
    };
    let means = Means {
        host: Host::new(Path::new("/sys")),
        program: std::env::current_exe().context("cannot find this program")?,
        call: &service::call,
        stopped: &stopped,
        warn: &|text| say!("warning: {text}"),
    };
    let mut machine = Real::new(means, task.header.scope, workload)
        .measuring(asked)
        .hooked(task.header.hooks.clone());
    let mut shown = Shown::new(recorded.runs.len(), among);
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

/// On a terminal one line that changes with each run, elsewhere a line for each block.
fn tell(progress: &mut Shown, now: &Progress) {
    match stderr().is_terminal() {
        true => replace_line(&progress.run(now)),
        false => progress.block(now).map_or((), |line| say!("{line}")),
    }
}

fn show(recorded: &Recorded, page: &Page, json: bool) -> Result<()> {
    let report = Report::new(recorded)?;
    match json {
        true => print::json(&report)?,
        false if print::colors() => print::styled(&colored(&report))?,
        false => print::text(&text(&report))?,
    };
    page.write(|| html(&report))
}

fn side_by_side(files: &[PathBuf], json: bool) -> Result<()> {
    let recorded = files
        .iter()
        .map(|f| Recorded::read(f))
        .collect::<Result<Vec<_>>>()?;
    let reports = recorded
        .iter()
        .map(Report::new)
        .collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let beside = compare(&names, &reports)?;
    let printed = match json {
        true => print::json(&beside),
        false => print::text(&beside.text()),
    };
    printed.map(|_| ())
}
