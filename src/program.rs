// SPDX-License-Identifier: GPL-2.0-only
//! The program: arguments, log, signals. No other code installs a logger or a signal handler.

#[cfg(feature = "ab")]
use crate::ab;
use crate::bpf::ToLog;
use crate::bpf::exit::Rescued;
use crate::cli::{self, Command, Socket, pages};
#[cfg(feature = "export")]
use crate::clients::export;
use crate::clients::{ctl, exec, monitor as live, status, stop};
use crate::daemon::control::Origin;
use crate::daemon::load;
use crate::daemon::process;
use crate::daemon::scheduler::{Error, Scheduler};
use crate::doctor;
use crate::doctor::outlook::Outlook;
use crate::machine::host::Host;
use crate::machine::picture;
use crate::machine::{self, Machine};
use crate::policy::config::Config;
#[cfg(feature = "rustland")]
use crate::rustland;
use crate::util::escape;
use crate::util::journal;
use crate::util::print;
use crate::util::privileges;
use crate::util::refusal::{BadConfig, BadUsage};
use crate::util::stderr::{self, Stderr};
use crate::util::stop::{Bell, Stop, stopper};
use crate::wire::note::{self, Cause, Note};
use crate::wire::stats::{self, monitor};
use anyhow::{Context, Result};
use log::{Level, Log, Metadata, Record, info};
use nix::sys::signal::{SigSet, Signal};
use rustix::thread::CapabilitySet;
use serde::Serialize;
use simplelog::{ConfigBuilder, LevelFilter, WriteLogger};
use std::ffi::OsString;
use std::io::LineWriter;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::thread::Builder;

// After each of these contrib/scx_roost.service does not start again.
/// The exit status of a wrong command line: clap's, and getopt's.
const BAD_USAGE: u8 = 2;
/// The exit status after SysRq-S: EX_SOFTWARE of sysexits.h.
const RESCUED: u8 = 70;
/// The exit status if configuration files say what cannot be started: EX_CONFIG of sysexits.h.
const BAD_CONFIG: u8 = 78;

/// The command `scx_roost`: parses `args`, of which the first is the name of the program, and does
/// what they request. Prints an error to stderr; the status then is 1, 2 if `args` are wrong, 70
/// after SysRq-S, or 78 for configuration files with which the scheduler cannot be started.
///
/// For a `main` that does nothing else. It installs a logger and a handler of SIGINT, SIGTERM and
/// SIGHUP, and a run of the scheduler gives up privileges for good.
/// [`Scheduler`] does none of this.
pub fn program(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match cli::parse(&args)
        .inspect_err(|e| note_bad_files(&args, e))
        .and_then(perform)
    {
        Ok(code) => code,
        Err(e) => {
            complain(Level::Error, &told(&e));
            ExitCode::from(status(&e))
        }
    }
}

/// The error in one line.
fn told(error: &anyhow::Error) -> String {
    format!("{error:#}{}", remedy(error))
}

/// What to do about a limit, of which the error alone says little.
fn remedy(error: &anyhow::Error) -> &'static str {
    let io = error
        .chain()
        .find_map(|e| e.downcast_ref::<std::io::Error>());
    match io.and_then(std::io::Error::raw_os_error) {
        Some(libc::EMFILE | libc::ENFILE) => "; raise the limit of open files (ulimit -n)",
        Some(libc::EAGAIN) if error.to_string().contains("thread") => {
            "; a limit of tasks is reached: of the group (pids.max, TasksMax= of a unit), the user \
             (ulimit -u) or the machine (kernel.threads-max)"
        }
        Some(libc::ENOMEM) => "; memory is short, or limited (memory.max, MemoryMax= of a unit)",
        _ => "",
    }
}

fn status(e: &anyhow::Error) -> u8 {
    match e.downcast_ref() {
        Some(Error::Ended(why)) if why.is::<Rescued>() => RESCUED,
        Some(Error::NotStarted(why)) if why.is::<BadConfig>() => BAD_CONFIG,
        _ if e.is::<BadConfig>() => BAD_CONFIG,
        _ if e.is::<BadUsage>() => BAD_USAGE,
        _ => 1,
    }
}

/// The command line of a start was good, and its files were not.
fn note_bad_files(args: &[OsString], e: &anyhow::Error) {
    if e.is::<BadConfig>()
        && let Some(stats) = cli::stats_of_start(args)
    {
        note::not_started(&stats, &told(e));
    }
}

fn complain(level: Level, what: &str) {
    stderr::line(level, &format!("scx_roost: {what}"));
}

fn perform(command: Command) -> Result<ExitCode> {
    if let Some(warning) = command.socket().and_then(Socket::warning) {
        complain(Level::Warn, &warning);
    }
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
        Command::AbGuardian => ab::real::guardian::watch(),
        Command::Status { at, json } => return status::run(&at.path, json),
        Command::Stop { at } => stop::run(&at.path),
        Command::Man { folder } => pages::man(&folder),
        Command::Ctl {
            at,
            verb,
            place,
            wait,
            json,
        } => ctl::run(&at.path, verb, wait, json, &|file, text| {
            place.checked(file, text)
        }),
        Command::Exec { at, args } => return exec::run(&at.path, args),
        #[cfg(feature = "export")]
        Command::Export { at, series, output } => {
            logged(|stop| export::run(&at.path, series, &output, stop))
        }
        Command::Monitor { at, interval, json } => {
            logged(|stop| monitor::monitor(&at.path, interval, json, stop))
        }
        // Log lines would be drawn over the live view.
        Command::View { options, .. } if options.live() => live::run(&options, &on_signal()?),
        Command::View { options, .. } => logged(|stop| live::run(&options, stop)),
        Command::Run {
            config,
            origin,
            level,
            run_id,
        } => {
            let stats = config.stats_path.clone();
            let scheduled =
                prepare(level, run_id).and_then(|hangup| build(*config, origin, hangup));
            let ready = scheduled.inspect_err(|e| note::not_started(&stats, &told(e)))?;
            schedule(ready, &stats)
        }
    }
    .map(|()| ExitCode::SUCCESS)
}

/// Runs a command that logs, until a signal comes.
fn logged(run: impl FnOnce(&Stop) -> Result<()>) -> Result<()> {
    init_log(LevelFilter::Info)?;
    run(&on_signal()?)
}

/// What a run needs of the process before all else: a SIGHUP during the start waits, and there is a
/// log. True: SIGHUP means to read the configuration again.
fn prepare(level: LevelFilter, run_id: Option<u64>) -> Result<bool> {
    let hangup = block_hangup()?;
    init_log(level)?;
    run_id.inspect(|id| info!("scx_roost run_id: {id}"));
    Ok(hangup)
}

/// A scheduler that can run.
struct Ready {
    scheduler: Scheduler,
    /// What it keeps beside what a load needs.
    needed: CapabilitySet,
    /// SIGHUP rings it.
    reload: Option<Bell>,
}

/// Makes the settings of the process, and the scheduler with its checks and sockets.
fn build(config: Config, origin: Origin, hangup: bool) -> Result<Ready> {
    process::one_heap();
    process::open_files()?;
    process::may_be_urgent();
    process::without_huge_pages();
    let needed = CapabilitySet::empty();
    #[cfg(feature = "rustland")]
    let needed = match config.rust {
        true => rustland::NEEDED,
        false => needed,
    };
    let reload = Bell::default();
    let builder = Scheduler::builder().config(config);
    let builder = builder.origin(origin, reload.clone());
    Ok(Ready {
        scheduler: builder.build()?,
        needed,
        reload: hangup.then_some(reload),
    })
}

/// Runs the scheduler, and notes beside its statistics how that ends.
fn schedule(ready: Ready, stats: &Path) -> Result<()> {
    let note = Note::begin(stats);
    let handle = ready.scheduler.handle();
    let signal = Arc::default();
    let ended = run(ready, &signal);
    match (&ended, signal.get()) {
        (Err(e), _) if handle.was_loaded() => note.end(Cause::Error, &told(e)),
        (Err(e), _) => note.end(Cause::NotStarted, &told(e)),
        (Ok(()), Some(signal)) => note.end(Cause::Signal, &format!("ended by {signal}")),
        (Ok(()), None) => note.end(
            Cause::Replaced,
            "another program replaced it or asked it to leave",
        ),
    }
    ended
}

/// Privileges are dropped while the process has one thread. Threads started later inherit what is
/// left. `signal` gets the signal that ends it.
fn run(ready: Ready, signal: &Arc<OnceLock<Signal>>) -> Result<()> {
    let kept = ready.scheduler.shed_privileges(ready.needed)?;
    let kept = privileges::names(kept);
    info!("it keeps the privileges {kept} and cannot gain others");
    let stop = on_signals(ready.reload, signal.clone())?;
    Ok(ready.scheduler.run(stop)?)
}

fn topology(sysfs: &Path, json: bool) -> Result<()> {
    let machine = machine::read_advised(sysfs)?;
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

fn doctor(sysfs: &Path, json: bool) -> Result<ExitCode> {
    // Beside the checks only what is wrong: a load has words about the kernel.
    init_log(LevelFilter::Warn)?;
    let host = Host::new(sysfs);
    let mut report = doctor::examine(&host);
    // It has been loaded where a scheduler is attached, and this machine is not another one.
    if report.runnable && host.own_machine() && host.attached_ops().is_none() {
        report.add(doctor::loads(load::try_load(&host)));
    }
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

/// The log of a process whose stderr systemd's journal reads.
struct Journal(LevelFilter);

impl Log for Journal {
    fn enabled(&self, about: &Metadata) -> bool {
        about.level() <= self.0
    }

    fn log(&self, record: &Record) {
        if self.enabled(record.metadata()) {
            stderr::line(record.level(), &record.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// The log of a terminal: each record is one line, whatever names are in it.
struct Lines(Box<dyn Log>);

impl Log for Lines {
    fn enabled(&self, about: &Metadata) -> bool {
        self.0.enabled(about)
    }

    fn log(&self, record: &Record) {
        let text = record.args().to_string();
        let line = escape::line(&text);
        let about = record.metadata().clone();
        let mut as_line = Record::builder();
        self.0
            .log(&as_line.metadata(about).args(format_args!("{line}")).build());
    }

    fn flush(&self) {
        self.0.flush();
    }
}

/// Longer lines of the log may be torn, bytes.
const LINE_MAX: usize = 1 << 16;

/// Logs to stderr, with local times unless the journal reads it. Must run before any thread starts:
/// the local time zone cannot be determined in a multi-threaded process.
fn init_log(level: LevelFilter) -> Result<()> {
    stderr::open();
    log::set_max_level(level);
    let log: Box<dyn Log> = match journal::reads_stderr() {
        true => Box::new(Journal(level)),
        false => Box::new(Lines(terminal_log(level))),
    };
    log::set_boxed_logger(log).context("cannot start logging")?;
    // Never dropped: libbpf's messages go to the log until the process ends.
    std::mem::forget(ToLog::begin());
    Ok(())
}

fn terminal_log(level: LevelFilter) -> Box<dyn Log> {
    let mut config = ConfigBuilder::new();
    // Fails where the time zone is unknown; times are UTC then.
    let _ = config.set_time_offset_to_local();
    config
        .set_target_level(LevelFilter::Off)
        .set_thread_level(LevelFilter::Off)
        .set_location_level(LevelFilter::Off);
    let lines = LineWriter::with_capacity(LINE_MAX, Stderr);
    WriteLogger::new(level, config.build(), lines)
}

/// Blocks SIGHUP, in all threads that start later too. False: there is a terminal, and SIGHUP means
/// that it is gone.
fn block_hangup() -> Result<bool> {
    if std::fs::File::open("/dev/tty").is_ok() {
        return Ok(false);
    }
    let mut hangup = SigSet::empty();
    hangup.add(Signal::SIGHUP);
    hangup.thread_block().context("cannot block SIGHUP")?;
    Ok(true)
}

/// A `Stop` that SIGINT, SIGTERM and SIGHUP trigger; `first` gets the first of them. With a bell,
/// SIGHUP rings it instead. They are blocked in all threads that start later: one waits for them,
/// because a handler would not know which signal came.
fn on_signals(reload: Option<Bell>, first: Arc<OnceLock<Signal>>) -> Result<Stop> {
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block().context("cannot block signals")?;
    let (stopper, stop) = stopper();
    let mut held = Some(stopper);
    let wait = move || {
        while let Ok(signal) = signals.wait() {
            match &reload {
                Some(bell) if signal == Signal::SIGHUP => bell.ring(),
                _ => {
                    first.get_or_init(|| signal);
                    drop(held.take());
                }
            }
        }
    };
    let thread = Builder::new().name("signals".to_string()).spawn(wait);
    thread.context("cannot start the thread that waits for signals")?;
    Ok(stop)
}

/// A `Stop` that SIGINT, SIGTERM and SIGHUP trigger.
fn on_signal() -> Result<Stop> {
    let (stopper, stop) = stopper();
    let mut held = Some(stopper);
    let set = ctrlc::set_handler(move || drop(held.take()));
    set.map_err(|e| match e {
        ctrlc::Error::System(e) => {
            anyhow::Error::new(e).context("cannot start the thread that waits for signals")
        }
        other => anyhow::Error::new(other).context("cannot catch signals"),
    })?;
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn the_unit_does_not_start_again_what_a_start_cannot_mend() {
        let why = || anyhow!("why");
        let rescued = Error::Ended(why().context(Rescued));
        for (error, expected) in [
            (why(), 1),
            (BadUsage(why()).into(), BAD_USAGE),
            (anyhow!(BadUsage(why())).context("more"), BAD_USAGE),
            (BadConfig(why()).into(), BAD_CONFIG),
            (
                Error::NotStarted(BadConfig(why()).into()).into(),
                BAD_CONFIG,
            ),
            (Error::Ended(why()).into(), 1),
            (rescued.into(), RESCUED),
        ] {
            assert_eq!(status(&error), expected, "{error:#}");
        }
        let unit = include_str!("../contrib/scx_roost.service");
        let line = format!("RestartPreventExitStatus={BAD_USAGE} {RESCUED} {BAD_CONFIG}\n");
        assert!(unit.contains(&line));
    }
}
