// SPDX-License-Identifier: GPL-2.0-only
//! What was typed. `parse` turns it into a `Command`, which holds only what is meant.

use crate::arms::{Change, Settings};
use crate::config::{Config, STATS_PATH, ctl_path_beside};
use crate::cpufreq::CpuPerf;
use crate::ctl;
use crate::exec::{self, ExecArgs};
use crate::export::{self, ExportArgs, Output};
use crate::features::{
    self, CLAIM_TTL, DEFAULT_PRESET, DELAY, FITS_MARGIN, FITS_RT, FREQ_THRESHOLD, MIGRATION_COST,
    MIN_SLICE, RESCUE, SLICE, Tunable,
};
use crate::machine::FreqSource;
use crate::monitor;
use anyhow::{Result, anyhow};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use std::ffi::{CString, OsString};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the binary is to do.
#[derive(Debug)]
pub enum Command {
    /// Print this text and be done.
    Print(String),
    Run {
        config: Box<Config>,
        verbose: bool,
    },
    Monitor {
        path: PathBuf,
        interval: Duration,
        json: bool,
    },
    HelpStats,
    Topology {
        sysfs: PathBuf,
        json: bool,
    },
    Doctor {
        sysfs: PathBuf,
        json: bool,
    },
    Ctl {
        path: PathBuf,
        verb: ctl::Verb,
        json: bool,
    },
    Exec {
        path: PathBuf,
        args: ExecArgs,
    },
    Export {
        /// Of the scheduler that is asked.
        stats: PathBuf,
        output: Output,
    },
    /// The live view.
    View(monitor::Options),
}

/// A sched_ext scheduler: the kernel's own wakeup placement rebuilt in BPF, with placement ideas as switches.
///
/// Without a subcommand the scheduler runs until it is stopped (Ctrl-C or SIGTERM); the kernel's own scheduler takes
/// over again as soon as it ends, whatever the reason.
#[derive(Debug, Parser)]
#[command(
    name = "scx_roost",
    disable_version_flag = true,
    disable_help_subcommand = true,
    after_help = after_help(),
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Sub>,

    #[command(flatten)]
    run: RunArgs,

    #[command(flatten)]
    common: CommonArgs,

    #[command(flatten, next_help_heading = "libbpf options")]
    libbpf: LibbpfOpts,
}

#[derive(Debug, Subcommand)]
enum Sub {
    /// Show the CPUs, cores, caches and nodes that were found
    Topology,
    /// Say whether this machine can run scx_roost, what is missing and what will not work
    Doctor,
    /// Show or change features, tunables, arms and rules of the running scheduler
    #[command(after_help = ctl::EXAMPLES)]
    Ctl {
        #[command(subcommand)]
        verb: ctl::Verb,

        #[command(flatten)]
        at: CtlPath,
    },
    /// Run a command, and all that it starts, on an arm
    #[command(after_help = exec::EXAMPLES)]
    Exec {
        #[command(flatten)]
        args: ExecArgs,

        #[command(flatten)]
        at: CtlPath,
    },
    /// Serve the statistics of the running scheduler to Prometheus
    #[command(after_help = export::EXAMPLES)]
    Export {
        #[command(flatten)]
        args: ExportArgs,

        #[command(flatten)]
        of: StatsPath,
    },
    /// Show the running scheduler live: the machine, rates, arms, latencies, features to switch
    #[command(after_help = monitor::EXAMPLES)]
    Monitor(MonitorArgs),
}

#[derive(Debug, Args)]
struct MonitorArgs {
    /// Seconds between two pictures, 0.1 to 3600
    #[arg(long, value_name = "SECS", default_value = "1", value_parser = seconds)]
    interval: Duration,

    #[command(flatten)]
    of: StatsPath,

    /// Socket on which features are switched; by default 'ctl' beside that of the statistics
    #[arg(id = "ctl", long = "ctl-path", value_name = "PATH")]
    ctl_path: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct StatsPath {
    /// Socket that serves the scheduler's statistics
    // Not "stats_path": that is the option of a run.
    #[arg(id = "stats-of", long = "stats-path", value_name = "PATH", default_value = STATS_PATH)]
    stats_path: PathBuf,
}

#[derive(Debug, Args)]
struct CtlPath {
    /// Socket on which the scheduler is controlled
    // Not "ctl_path": that is the option of a run.
    #[arg(id = "ctl", long = "ctl-path", global = true, value_name = "PATH", default_value_os_t = ctl_path_beside(Path::new(STATS_PATH)))]
    ctl_path: PathBuf,
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// Read the machine from this folder instead of /sys
    #[arg(long, global = true, value_name = "ROOT", default_value = "/sys")]
    sysfs: PathBuf,

    /// Print JSON: topology, doctor, ctl, and one line per interval with --stats, --monitor and monitor
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Set of features to start from (see the list below)
    #[arg(short, long, value_name = "NAME", default_value = DEFAULT_PRESET)]
    preset: String,

    /// Switch a feature on, on top of the preset; may be repeated (see the list below)
    #[arg(long, value_name = "FEATURE")]
    enable: Vec<String>,

    /// Switch a feature off; may be repeated
    #[arg(long, value_name = "FEATURE")]
    disable: Vec<String>,

    #[arg(long, value_name = "US", help = tunable_help(&SLICE), value_parser = |text: &str| tunable(&SLICE, text))]
    slice_us: Option<u32>,

    #[arg(long, value_name = "US", help = tunable_help(&MIN_SLICE), value_parser = |text: &str| tunable(&MIN_SLICE, text))]
    min_slice_us: Option<u32>,

    #[arg(long, value_name = "US", help = tunable_help(&CLAIM_TTL), value_parser = |text: &str| tunable(&CLAIM_TTL, text))]
    claim_ttl_us: Option<u32>,

    #[arg(long, value_name = "US", help = tunable_help(&RESCUE), value_parser = |text: &str| tunable(&RESCUE, text))]
    rescue_us: Option<u32>,

    #[arg(long, value_name = "US", help = tunable_help(&MIGRATION_COST), value_parser = |text: &str| tunable(&MIGRATION_COST, text))]
    migration_cost_us: Option<u32>,

    #[arg(long, value_name = "PERCENT", help = tunable_help(&FITS_MARGIN), value_parser = |text: &str| tunable(&FITS_MARGIN, text))]
    fits_margin: Option<u32>,

    #[arg(long, value_name = "0|1", help = tunable_help(&FITS_RT), value_parser = |text: &str| tunable(&FITS_RT, text))]
    fits_rt: Option<u32>,

    #[arg(long, value_name = "US", help = tunable_help(&DELAY), value_parser = |text: &str| tunable(&DELAY, text))]
    delay_us: Option<u32>,

    #[arg(long, value_name = "RULE", help = tunable_help(&FREQ_THRESHOLD), value_parser = |text: &str| tunable(&FREQ_THRESHOLD, text))]
    freq_threshold: Option<u32>,

    /// Where CPUs' frequencies are read: auto, cpuperf (what ticks see), cpufreq, off, or a folder with a file cpuN for each CPU,
    /// which holds kHz
    #[arg(long, value_name = "SOURCE", default_value = "auto")]
    freq_source: FreqSource,

    /// Milliseconds between two readings of them, and of idle periods for avg_idle_scan, 5 to 1000
    #[arg(long, value_name = "MS", default_value = "20", value_parser = freq_period)]
    freq_period_ms: Duration,

    /// Fix features and tunables at load: a little faster, because the features become constants of the programs, and nothing can
    /// be changed while it runs
    #[arg(long)]
    freeze: bool,

    /// Keep all memory of this process from being swapped out
    #[arg(long)]
    lock_memory: bool,

    /// Frequency requests to the governor
    #[arg(long, value_enum, value_name = "MODE", default_value = "auto")]
    cpuperf: CpuPerf,

    /// Run, and print statistics every SECS seconds (0.1 to 3600)
    #[arg(long, value_name = "SECS", value_parser = seconds, conflicts_with = "monitor")]
    stats: Option<Duration>,

    /// Do not run: print the statistics of the running scheduler every SECS seconds (0.1 to 3600)
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    monitor: Option<Duration>,

    /// Describe the statistics and exit
    #[arg(long)]
    help_stats: bool,

    /// Socket that serves the statistics
    #[arg(long, value_name = "PATH", default_value = STATS_PATH)]
    stats_path: PathBuf,

    /// Group that may read the statistics, besides the owner of the socket
    #[arg(long, value_name = "NAME", value_parser = group)]
    stats_group: Option<u32>,

    /// Socket on which the scheduler is controlled; by default 'ctl' beside that of the statistics
    #[arg(long, value_name = "PATH")]
    ctl_path: Option<PathBuf>,

    /// Group that may control the scheduler, besides its owner
    #[arg(long, value_name = "NAME", value_parser = group)]
    ctl_group: Option<u32>,

    /// Bytes of the debug dump after an error; 0 is the kernel's default
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    exit_dump_len: u32,

    /// Say more, also what libbpf says
    #[arg(short, long)]
    verbose: bool,

    /// Print the version and exit
    #[arg(short = 'V', long)]
    version: bool,
}

/// The command line, or one sentence on what is wrong with it.
pub fn parse<T: Into<OsString> + Clone>(args: impl IntoIterator<Item = T>) -> Result<Command> {
    let command = Cli::command();
    let matches = command.clone().try_get_matches_from(args);
    match matches.and_then(|m| Ok((Cli::from_arg_matches(&m)?, m))) {
        Ok((cli, matches)) => {
            no_run_option_with_subcommand(&command, &matches)?;
            cli.resolve()
        }
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp) => {
            Ok(Command::Print(e.render().to_string()))
        }
        Err(e)
            if matches!(
                e.kind(),
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            ) =>
        {
            Err(anyhow!(
                "a command is expected: show, set, reset, arms or rules; see scx_roost ctl --help"
            ))
        }
        Err(e) => Err(anyhow!(
            "{}; see scx_roost --help",
            sentence(&e.render().to_string())
        )),
    }
}

/// A subcommand takes the global options, before its name or after it, and none of those that say how to run. clap's
/// own `args_conflicts_with_subcommands` would refuse the global ones too.
fn no_run_option_with_subcommand(command: &clap::Command, matches: &ArgMatches) -> Result<()> {
    let Some(subcommand) = matches.subcommand_name() else {
        return Ok(());
    };
    let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let mut options = command.get_arguments().filter(|a| !a.is_global_set());
    match options.find(|a| typed(a.get_id().as_str())) {
        Some(option) => {
            let option = option.get_long().unwrap_or_default();
            let below = command.find_subcommand(subcommand);
            let too =
                below.is_some_and(|c| c.get_arguments().any(|a| a.get_long() == Some(option)));
            let what = if too {
                format!("stands behind '{subcommand}'")
            } else {
                format!("cannot be used with '{subcommand}'")
            };
            Err(anyhow!(
                "the option '--{option}' {what}; see scx_roost --help"
            ))
        }
        None => Ok(()),
    }
}

/// clap writes an error over several lines, the usage last: this keeps the lines that say what is wrong.
fn sentence(error: &str) -> String {
    let lines = error
        .lines()
        .map(str::trim)
        .take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more"));
    let joined = lines
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    joined
        .strip_prefix("error: ")
        .unwrap_or(&joined)
        .replace(" tip: ", "; tip: ")
}

impl Cli {
    fn resolve(self) -> Result<Command> {
        let (sysfs, json) = (self.common.sysfs.clone(), self.common.json);
        match self.command {
            Some(Sub::Topology) => return Ok(Command::Topology { sysfs, json }),
            Some(Sub::Doctor) => return Ok(Command::Doctor { sysfs, json }),
            Some(Sub::Ctl { verb, at }) => {
                let path = at.ctl_path;
                return Ok(Command::Ctl { path, verb, json });
            }
            Some(Sub::Exec { args, at }) => {
                let path = at.ctl_path;
                return Ok(Command::Exec { path, args });
            }
            Some(Sub::Export { args, of }) => {
                let stats = of.stats_path;
                let output = args.output()?;
                return Ok(Command::Export { stats, output });
            }
            Some(Sub::Monitor(args)) => return Ok(Command::View(args.options(json))),
            None => (),
        }
        let (print_version, help_stats) = (self.run.version, self.run.help_stats);
        let (monitor, path) = (self.run.monitor, self.run.stats_path.clone());
        // Before anything that does not need it: a wrong name is an error whatever else was asked for.
        let run = self.resolve_run()?;
        Ok(match monitor {
            _ if print_version => Command::Print(version() + "\n"),
            _ if help_stats => Command::HelpStats,
            Some(interval) => Command::Monitor {
                path,
                interval,
                json,
            },
            None => run,
        })
    }

    fn resolve_run(self) -> Result<Command> {
        let run = self.run;
        let mut change = Change {
            preset: Some(run.preset),
            enable: run.enable,
            disable: run.disable,
            ..Change::default()
        };
        for (row, value) in [
            (&SLICE, run.slice_us),
            (&MIN_SLICE, run.min_slice_us),
            (&CLAIM_TTL, run.claim_ttl_us),
            (&RESCUE, run.rescue_us),
            (&MIGRATION_COST, run.migration_cost_us),
            (&FITS_MARGIN, run.fits_margin),
            (&FITS_RT, run.fits_rt),
            (&DELAY, run.delay_us),
            (&FREQ_THRESHOLD, run.freq_threshold),
        ] {
            let value = value.map(|v| (row.name.to_string(), row.shown(v)));
            change.set.extend(value);
        }
        let beside = ctl_path_beside(&run.stats_path);
        let ctl_path = run.ctl_path.unwrap_or(beside);
        if ctl_path == run.stats_path {
            let path = ctl_path.display();
            return Err(anyhow!(
                "--stats-path and --ctl-path are both {path}: give them two paths"
            ));
        }
        let config = Config {
            settings: Settings::default().changed(&change)?,
            freeze: run.freeze,
            lock_memory: run.lock_memory,
            cpuperf: run.cpuperf,
            freq_source: run.freq_source,
            freq_period: run.freq_period_ms,
            sysfs: self.common.sysfs,
            stats_path: run.stats_path,
            stats_group: run.stats_group,
            ctl_path,
            ctl_group: run.ctl_group,
            stats_interval: run.stats,
            stats_json: self.common.json,
            exit_dump_len: run.exit_dump_len,
            libbpf: self.libbpf,
        };
        Ok(Command::Run {
            config: Box::new(config),
            verbose: run.verbose,
        })
    }
}

impl MonitorArgs {
    fn options(self, json: bool) -> monitor::Options {
        let beside = ctl_path_beside(&self.of.stats_path);
        monitor::Options {
            ctl_path: self.ctl_path.unwrap_or(beside),
            stats_path: self.of.stats_path,
            interval: self.interval,
            json,
        }
    }
}

pub fn version() -> String {
    format!(
        "scx_roost {}",
        scx_utils::build_id::full_version(env!("CARGO_PKG_VERSION"))
    )
}

fn tunable_help(t: &Tunable) -> String {
    let unit = t.unit_after(", in ");
    format!(
        "{}{unit} ({}; default: {})",
        t.help,
        t.possible(),
        t.default
    )
}

/// A value of this tunable. clap's own range would be told in Rust's notation and without the unit.
fn tunable(t: &Tunable, text: &str) -> Result<u32, String> {
    t.parse(text)
}

/// The number of a group that is given by name or by number.
pub fn group(text: &str) -> Result<u32, String> {
    let unknown = || format!("there is no group '{text}'");
    match text.parse() {
        // chown() would take it for "leave the group as it is".
        Ok(u32::MAX) => return Err(unknown()),
        Ok(number) => return Ok(number),
        Err(_) => (),
    }
    let name = CString::new(text).map_err(|_| unknown())?;
    // SAFETY: the name is alive; what is returned is read at once, and no other thread runs yet.
    unsafe { libc::getgrnam(name.as_ptr()).as_ref() }
        .map(|group| group.gr_gid)
        .ok_or_else(unknown)
}

fn freq_period(text: &str) -> Result<Duration, String> {
    let ms = text.parse().ok().filter(|ms| (5..=1000).contains(ms));
    ms.map(Duration::from_millis)
        .ok_or_else(|| "5 to 1000 ms are possible".to_string())
}

pub fn seconds(text: &str) -> Result<Duration, String> {
    let secs: f64 = text
        .parse()
        .map_err(|_| "a number of seconds is expected".to_string())?;
    if !(0.1..=3600.0).contains(&secs) {
        return Err("0.1 to 3600 seconds are possible".to_string());
    }
    Ok(Duration::from_secs_f64(secs))
}

/// The tables and examples below the options.
fn after_help() -> String {
    let mut text = String::from("Presets:\n");
    for p in features::PRESETS {
        let _ = writeln!(text, "  {:<22} {} [{}]", p.name, p.help, p.features);
    }
    text += "\nFeatures:\n";
    for f in features::FEATURES {
        let of = match f.parent {
            "" => String::new(),
            parent => format!("with {parent}: "),
        };
        let _ = writeln!(text, "  {:<22} {of}{} ({})", f.name, f.help, f.source);
    }
    text += "\nExamples:
  scx_roost                                 run with the default preset
  scx_roost --preset mainline --stats 1     as the kernel places, statistics every second
  scx_roost --disable wide_idle             the default without one feature
  scx_roost --monitor 2 --json              statistics of a running scx_roost as JSON
  scx_roost monitor                         see live what it does ('scx_roost monitor --help')
  scx_roost doctor                          can this machine run it?
  scx_roost ctl set --enable wide_idle      a feature more while it runs ('scx_roost ctl --help')
  scx_roost exec --arm x -- make            a command on another arm ('scx_roost exec --help')

Exit status: 0 when stopped by a signal or replaced on request; 1 after an error, a watchdog exit or SysRq-S.";
    text
}

#[cfg(test)]
mod tests;
