// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost ab`: runs a comparison, or looks at the file of one.

use super::args::{AbArgs, Look, Pages, Task, TuneArgs, write};
use super::child::Workload;
use super::real::{Means, Real, facts, service};
use super::report::Report;
use super::report::compare::compare;
use super::report::html::html;
use super::report::markdown::markdown;
use super::report::text::text;
use super::result::{Recorded, ResultFile};
use super::run::{End, Progress, run};
use super::share::{lines, redacted};
use super::tune;
use crate::host::Host;
use crate::print;
use crate::stop::Stop;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::time::Instant;

const POWERCAP: &str = "/sys/class/powercap";

pub fn perform(mut args: AbArgs, json: bool, stop: &Stop) -> Result<()> {
    match args.look.take() {
        None => {
            let program = std::env::current_exe().context("cannot find this program")?;
            let tasks = args.tasks(program, facts(&Host::new(Path::new("/sys"))))?;
            tasks
                .into_iter()
                .try_for_each(|task| compare_variants(task, json, stop))
        }
        Some(Look::Show {
            file,
            markdown,
            html,
        }) => show(&Recorded::read(&file)?, &Pages { markdown, html }, json),
        Some(Look::Compare { files }) => side_by_side(&files),
        Some(Look::Share { file, to }) => {
            let shared = lines(&redacted(&Recorded::read(&file)?)?)?;
            write_new(&to, &shared)
        }
    }
}

/// Tries changes of a base, and prints what came of it.
pub fn tune(args: TuneArgs, json: bool, stop: &Stop) -> Result<()> {
    let facts = facts(&Host::new(Path::new("/sys")));
    let task = args.task(facts)?;
    let cpus = std::thread::available_parallelism()?.get() as u32;
    let candidates = tune::candidates(&task.header.variants[0], cpus, task.header.scope)?;
    // It may be there, with what is gone on with.
    let _ = std::fs::create_dir(&task.result);
    let tuned = tune::tune(&task.header, candidates, &mut |header, name| {
        let result = task.result.join(name).with_extension("jsonl");
        if stderr().is_terminal() {
            eprintln!("{name}: {} variants", header.variants.len());
        }
        let one = Task {
            header: header.clone(),
            resume: task.resume && result.exists(),
            result,
            ..task.clone()
        };
        match record(&one, stop)? {
            (recorded, End::Done) => Ok(recorded),
            (_, End::Stopped) => bail!(
                "stopped; go on with --resume --seed {} and all else as it was",
                header.seed
            ),
        }
    })?;
    let printed = match json {
        true => print::json(&tuned),
        false => print::text(&tuned.text()?),
    };
    printed.map(|_| ())
}

fn compare_variants(task: Task, json: bool, stop: &Stop) -> Result<()> {
    let (recorded, end) = record(&task, stop)?;
    show(&recorded, &task.pages, json)?;
    if end == End::Stopped {
        bail!(
            "stopped; go on with --resume --seed {} --result {} and all else as it was",
            recorded.header.seed,
            task.result.display()
        );
    }
    Ok(())
}

/// Makes its runs, or goes on with them.
fn record(task: &Task, stop: &Stop) -> Result<(Recorded, End)> {
    let (mut file, mut runs) = match task.resume {
        true => ResultFile::resume(&task.result, &task.header)?,
        false => (ResultFile::create(&task.result, &task.header)?, Vec::new()),
    };
    let made = !task.resume;
    let stopped = || stop.stopped();
    let workload = Workload {
        command: task.command.clone(),
        timeout: task.timeout,
        powercap: POWERCAP.into(),
    };
    let means = Means {
        host: Host::new(Path::new("/sys")),
        program: std::env::current_exe().context("cannot find this program")?,
        call: &service::call,
        stopped: &stopped,
        warn: &|text| eprintln!("warning: {text}"),
    };
    let mut machine = Real::new(means, task.header.scope, workload);
    let mut progress = progress(runs.len());
    let ended = run(
        &task.header,
        &mut runs,
        &mut machine,
        &mut file,
        &stopped,
        &mut progress,
    );
    if stderr().is_terminal() {
        eprintln!();
    }
    if made && ended.is_err() && runs.is_empty() {
        // Nothing was run: what there is says nothing, and would be in the way of the next try.
        let _ = std::fs::remove_file(&task.result);
    }
    let recorded = Recorded {
        header: task.header.clone(),
        runs,
    };
    Ok((recorded, ended?))
}

/// On a terminal, with the time that is left if runs go on as they did.
fn progress(done: usize) -> impl FnMut(&Progress) {
    let begin = Instant::now();
    move |p| {
        if !stderr().is_terminal() {
            return;
        }
        let left = match (p.number - done) as u32 {
            0 => String::new(),
            made => {
                let each = begin.elapsed() / made;
                let left = each * (p.all - p.number) as u32;
                format!(", at most {} s left", left.as_secs())
            }
        };
        let warm = if p.warmup { " (warm-up)" } else { "" };
        // Who does not see it misses nothing.
        let _ = write!(
            stderr(),
            "\r\x1b[Krun {} of at most {}: {}{warm}{left}",
            p.number + 1,
            p.all,
            p.variant
        );
    }
}

/// Errors: there is a file of that name already, which might be the one that was read.
fn write_new(path: &Path, text: &str) -> Result<()> {
    let file = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    file.with_context(|| format!("cannot write {}", path.display()))
}

fn show(recorded: &Recorded, pages: &Pages, json: bool) -> Result<()> {
    let report = Report::new(recorded)?;
    write(&pages.markdown, || markdown(&report))?;
    write(&pages.html, || html(&report))?;
    let printed = match json {
        true => print::json(&report),
        false => print::text(&text(&report)),
    };
    printed.map(|_| ())
}

fn side_by_side(files: &[PathBuf]) -> Result<()> {
    let recorded = files
        .iter()
        .map(|f| Recorded::read(f))
        .collect::<Result<Vec<_>>>()?;
    let reports = recorded
        .iter()
        .map(Report::new)
        .collect::<Result<Vec<_>>>()?;
    let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    print::text(&compare(&names, &reports)?).map(|_| ())
}
