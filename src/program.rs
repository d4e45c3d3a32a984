// SPDX-License-Identifier: GPL-2.0-only
//! The program: arguments, log, signals. No other code installs a logger or a signal handler.

#[cfg(feature = "ab")]
use crate::ab;
use crate::bpf::ToLog;
use crate::cli::{self, Command, pages};
#[cfg(feature = "export")]
use crate::clients::export;
use crate::clients::{ctl, exec, monitor as live, status, stop};
use crate::daemon::control::Origin;
use crate::daemon::process;
use crate::daemon::scheduler::Prepared;
use crate::doctor;
use crate::doctor::outlook::Outlook;
use crate::machine::host::Host;
use crate::machine::picture;
use crate::machine::{self, Machine};
use crate::policy::config::Config;
#[cfg(feature = "sim")]
use crate::sim::{self, table};
use crate::util::print;
use crate::util::privileges::Capabilities;
use crate::util::stop::{Bell, Stop, stopper};
use crate::wire::stats::{self, monitor};
use anyhow::{Context, Result, anyhow};
use log::info;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use simplelog::{ColorChoice, ConfigBuilder, LevelFilter, TermLogger, TerminalMode};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;
use std::thread::Builder;

/// The command `scx_roost`: parses `args`, of which the first is the name of the program, and does
/// what they request. Prints an error to stderr; the status then is 1.
///
/// For a `main` that does nothing else. It installs a logger and a handler of SIGINT, SIGTERM and
/// SIGHUP, and a run of the scheduler gives up privileges for good. [`run`](crate::run) does none
/// of this.
pub fn program(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match cli::parse(args).and_then(perform) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("scx_roost: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(command: Command) -> Result<ExitCode> {
    match command {
        Command::Print(text) => print::text(&text).map(|_| ()),
        Command::HelpStats => print::text(&stats::describe()?).map(|_| ()),
        Command::Topology { sysfs, json } => topology(&sysfs, json),
        Command::Doctor { sysfs, json } => return doctor(&sysfs, json),
        #[cfg(feature = "ab")]
        Command::Ab { args, json } => return ab::command::perform(*args, json, &on_signal()?),
        #[cfg(feature = "ab")]
        Command::Tune { args, json } => ab::command::tune(*args, json, &on_signal()?),
        #[cfg(feature = "ab")]
        Command::AbWorkload { pattern, steps } => {
            let cpus = std::thread::available_parallelism()?.get();
            pattern.perform(cpus, 1.0, steps)
        }
        #[cfg(feature = "ab")]
        Command::AbGuardian => ab::real::guardian::watch(),
        Command::Status { path, json } => return status::run(&path, json),
        Command::Stop { path } => stop::run(&path),
        Command::Man { folder } => pages::man(&folder),
        Command::Ctl {
            path,
            verb,
            wait,
            json,
        } => ctl::run(&path, verb, wait, json),
        #[cfg(feature = "sim")]
        Command::Sim { wanted, json } => simulate(&wanted, json),
        #[cfg(feature = "sim")]
        Command::Record { args, json } => return record(&args, json),
        Command::Exec { path, args } => return exec::run(&path, args),
        #[cfg(feature = "export")]
        Command::Export { stats, output } => {
            init_log(false)?;
            export::run(&stats, &output, &on_signal()?)
        }
        Command::Monitor {
            path,
            interval,
            json,
        } => {
            init_log(false)?;
            monitor::monitor(&path, interval, json, &on_signal()?)
        }
        Command::View(options) => {
            // Log lines would be drawn over the live view.
            if !options.live() {
                init_log(false)?;
            }
            live::run(&options, &on_signal()?)
        }
        Command::Run {
            config,
            origin,
            lock_memory,
            verbose,
        } => {
            init_log(verbose)?;
            schedule(&config, origin, lock_memory)
        }
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Privileges are dropped while the process has one thread. Threads started later inherit what is
/// left.
fn schedule(config: &Config, origin: Origin, lock_memory: bool) -> Result<()> {
    process::one_heap();
    process::may_be_urgent();
    process::without_huge_pages();
    let locked = match lock_memory {
        true => process::lock_memory()?,
        false => Capabilities::default(),
    };
    let prepared = Prepared::new(config)?;
    let kept = prepared.shed_privileges(locked)?;
    info!("it keeps the privileges {kept} and cannot gain others");
    let reload = Bell::default();
    // With a terminal, SIGHUP means that it is gone.
    let reloads = std::fs::File::open("/dev/tty").is_err();
    let stop = on_signals(reloads.then(|| reload.clone()))?;
    prepared.run(stop, origin, &reload).map(|_| ())
}

fn topology(sysfs: &Path, json: bool) -> Result<()> {
    let machine = Machine::read(sysfs).map_err(|e| anyhow!("{e:#}: {}", machine::advice(&e)))?;
    let model = Outlook::read(&Host::new(sysfs), &machine);
    if json {
        print::json(&Shown { machine, model })?
    } else {
        print::text(&(picture::picture(&machine) + &model.text()))?
    };
    Ok(())
}

/// Printed as JSON.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    machine: Machine,
    model: Outlook,
}

#[cfg(feature = "sim")]
fn simulate(wanted: &sim::Wanted, json: bool) -> Result<()> {
    let printed = match wanted {
        sim::Wanted::List => print::text(&sim::list()),
        sim::Wanted::Compare(plan) => {
            let report = sim::run(plan)?;
            let counters = || plan.counters.then(|| report.counters());
            shown(json, &report, || {
                report.text() + &counters().unwrap_or_default()
            })
        }
        sim::Wanted::Table(plan) => {
            let tables = table::tables(plan)?;
            let text = || tables.iter().map(|t| t.text() + "\n").collect();
            shown(json, &tables, text)
        }
        sim::Wanted::Markdown(plan) => {
            let tables = table::tables(plan)?;
            let text = || table::document(plan, &tables);
            shown(json, &tables, text)
        }
        sim::Wanted::Sensitivity(plan) => {
            let all = table::sensitivity(plan)?;
            shown(json, &all, || all.text())
        }
        sim::Wanted::SensitivityMarkdown(plan) => {
            let all = table::sensitivity(plan)?;
            shown(json, &all, || all.markdown(plan))
        }
        sim::Wanted::Matrix(plan) => {
            let matrix = table::matrix(plan)?;
            shown(json, &matrix, || matrix.text())
        }
        sim::Wanted::MatrixMarkdown(plan) => {
            let matrix = table::matrix(plan)?;
            shown(json, &matrix, || matrix.document(plan))
        }
        sim::Wanted::Swarm(seeds) => {
            let done = sim::swarm(seeds)?;
            shown(json, &done, || done.text())
        }
        sim::Wanted::Calibrate(output) => {
            let done = sim::calibrate()?;
            if let Some(path) = output {
                done.write(path)?;
            }
            shown(json, &done, || done.text())
        }
        sim::Wanted::Hash => print::text(&(table::Frozen::read()?.hash + "\n")),
    };
    printed.map(|_| ())
}

#[cfg(feature = "sim")]
fn record(args: &sim::RecordArgs, json: bool) -> Result<ExitCode> {
    let record = sim::record(args, &on_signal()?)?;
    shown(json, &record, || record.text())?;
    Ok(record.exit_code())
}

/// Prints `report` as JSON or as text.
#[cfg(feature = "sim")]
fn shown(json: bool, report: &impl Serialize, text: impl Fn() -> String) -> Result<bool> {
    match json {
        true => print::json(report),
        false => print::text(&text()),
    }
}

fn doctor(sysfs: &Path, json: bool) -> Result<ExitCode> {
    init_log(false)?;
    let report = doctor::examine(&Host::new(sysfs));
    if json {
        print::json(&report)?
    } else {
        print::text(&report.text())?
    };
    Ok(if report.runnable {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Logs to stderr, with local times. Must run before any thread starts: the local time zone cannot
/// be determined in a multi-threaded process.
fn init_log(verbose: bool) -> Result<()> {
    let level = if verbose {
        LevelFilter::Debug
    } else {
        LevelFilter::Info
    };
    let mut config = ConfigBuilder::new();
    // Fails where the time zone is unknown; times are UTC then.
    let _ = config.set_time_offset_to_local();
    config
        .set_target_level(LevelFilter::Off)
        .set_thread_level(LevelFilter::Off)
        .set_location_level(LevelFilter::Off);
    let color = if std::io::stderr().is_terminal() {
        ColorChoice::Auto
    } else {
        ColorChoice::Never
    };
    TermLogger::init(level, config.build(), TerminalMode::Stderr, color)
        .context("cannot start logging")?;
    // Never dropped: libbpf's messages go to the log until the process ends.
    std::mem::forget(ToLog::begin());
    Ok(())
}

/// A `Stop` that SIGINT, SIGTERM and SIGHUP trigger.
fn on_signal() -> Result<Stop> {
    on_signals(None)
}

/// As `on_signal`; SIGHUP rings `reload` instead, if there is one.
fn on_signals(reload: Option<Bell>) -> Result<Stop> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot catch signals")?;
    let (stopper, stop) = stopper();
    let wait = move || {
        for signal in signals.forever() {
            match &reload {
                Some(reload) if signal == SIGHUP => reload.ring(),
                _ => break,
            }
        }
        drop(stopper);
    };
    let thread = Builder::new().name("signals".to_string()).spawn(wait);
    thread.context("cannot start the thread that waits for signals")?;
    Ok(stop)
}
