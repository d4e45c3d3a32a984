// SPDX-License-Identifier: GPL-2.0-only
//! The options in clap's form, with their help, and the parsers of their values.

#[cfg(feature = "ab")]
use crate::ab;
use crate::clients::ctl;
use crate::clients::exec::{self, ExecArgs};
#[cfg(feature = "export")]
use crate::clients::export::{self, ExportArgs};
use crate::clients::{monitor, status, stop};
use crate::machine::FreqSource;
use crate::machine::cpufreq::CpuPerf;
use crate::policy::config::STATS_PATH;
use crate::policy::features::{DEFAULT_PRESET, FAIR_RULES, SLICE, TUNABLES, Tunable};
use crate::util::names::instead;
use crate::util::parse::{group, seconds};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, Parser, Subcommand};
use log::LevelFilter;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use std::path::PathBuf;
use std::time::Duration;

/// A sched_ext scheduler: the kernel's wakeup placement rebuilt in BPF, with placement ideas as
/// features to switch on and off.
///
/// Without a subcommand, the scheduler runs until Ctrl-C or SIGTERM stops it. When it ends, for
/// whatever reason, the kernel's own scheduler takes over.
#[derive(Debug, Parser)]
#[command(
    name = "scx_roost",
    disable_version_flag = true,
    after_help = AFTER_HELP,
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Sub>,

    #[command(flatten)]
    pub settings: SettingArgs,

    #[command(flatten)]
    pub once: OnceArgs,

    #[command(flatten)]
    pub run: RunArgs,

    #[command(flatten)]
    pub json: JsonArg,

    #[command(flatten, next_help_heading = SPECIAL)]
    pub sysfs: SysfsArg,

    #[command(flatten, next_help_heading = "libbpf options")]
    pub libbpf: LibbpfOpts,
}

#[derive(Debug, Subcommand)]
pub enum Sub {
    #[command(flatten)]
    Client(Client),
    #[command(flatten)]
    Text(Text),
    #[command(flatten)]
    Alone(Alone),
    /// Check or show the configuration files
    #[command(after_help = CONFIG_EXAMPLES)]
    Config {
        #[command(subcommand)]
        verb: ConfigVerb,
    },
}

/// Commands that ask the running scheduler.
#[derive(Debug, Subcommand)]
pub enum Client {
    /// Say whether scx_roost runs, since when, how well, and what it has done
    #[command(after_help = status::EXAMPLES)]
    Status {
        #[command(flatten)]
        of: StatsPath,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop the running scheduler; the kernel's own takes over
    #[command(after_help = stop::EXAMPLES)]
    Stop {
        #[command(flatten)]
        at: CtlPath,
    },
    /// Show or change features, tunables, arms and rules of the running scheduler
    #[command(after_help = ctl::EXAMPLES)]
    Ctl {
        #[command(subcommand)]
        verb: ctl::Verb,

        #[command(flatten)]
        at: CtlPath,

        /// Seconds to wait for a scheduler that is starting (0.1 to 3600)
        #[arg(long, global = true, value_name = "SECS", value_parser = seconds)]
        wait: Option<Duration>,

        /// Print JSON
        #[arg(long, global = true)]
        json: bool,
    },
    /// Run a command, and everything it starts, on an arm
    #[command(after_help = exec::EXAMPLES)]
    Exec {
        #[command(flatten)]
        args: ExecArgs,

        #[command(flatten)]
        at: CtlPath,
    },
    /// Serve the statistics of the running scheduler to Prometheus
    #[cfg(feature = "export")]
    #[command(after_help = export::EXAMPLES)]
    Export {
        #[command(flatten)]
        args: ExportArgs,

        #[command(flatten)]
        of: StatsPath,
    },
    /// Show the running scheduler live: overview, machine, rates, arms
    #[command(after_help = monitor::EXAMPLES)]
    Monitor(MonitorArgs),
}

/// Commands that ask no scheduler's socket.
#[derive(Debug, Subcommand)]
pub enum Alone {
    /// Show the CPUs, cores, caches and nodes of this machine
    Topology(MachineArgs),
    /// Check whether this machine can run scx_roost, what is missing and what will not work
    Doctor(MachineArgs),
    /// Run a command under several variants, and report which one is better
    #[cfg(feature = "ab")]
    #[command(after_help = ab::args::EXAMPLES)]
    Ab {
        #[command(flatten)]
        args: Box<ab::args::AbArgs>,

        /// Print JSON
        #[arg(long, global = true)]
        json: bool,
    },
    /// Find the features and tunables that suit a command, with the statistics of ab
    #[cfg(feature = "ab")]
    #[command(after_help = ab::args::TUNE_EXAMPLES)]
    Tune {
        #[command(flatten)]
        args: Box<ab::args::TuneArgs>,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Helper process of `ab`
    #[cfg(feature = "ab")]
    #[command(name = ab::real::guardian::COMMAND, hide = true)]
    AbGuardian,
}

/// Commands that print or write what the program knows of itself.
#[derive(Debug, Subcommand)]
pub enum Text {
    /// List the features
    Features {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the presets and their features
    Presets {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the profiles: what each is for, and what it costs
    Profiles {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print completions of commands and options for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    Man {
        /// The folder; it is made
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Check a file, or all that a start would read; nothing is changed
    Check {
        /// File, or folder as /etc/scx_roost [default: /etc/scx_roost]
        path: Option<PathBuf>,
    },
    /// Show each value that a start would use, and where it comes from
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// Seconds between two updates (0.1 to 3600)
    #[arg(long, value_name = "SECS", default_value = "1", value_parser = seconds)]
    pub interval: Duration,

    #[command(flatten)]
    pub of: StatsPath,

    #[command(flatten)]
    pub json: JsonArg,
}

#[derive(Debug, Args)]
pub struct MachineArgs {
    #[command(flatten)]
    pub sysfs: SysfsArg,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct StatsPath {
    /// Statistics socket of the running scheduler [default: the configured one]
    // Not "stats_path": that is the option of a run.
    #[arg(id = "stats-of", long = "stats-path", value_name = "PATH")]
    pub stats_path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct CtlPath {
    /// Control socket of the running scheduler [default: the configured one]
    // Not "ctl_path": that is the option of a run.
    #[arg(id = "ctl", long = "ctl-path", global = true, value_name = "PATH")]
    pub ctl_path: Option<PathBuf>,
}

// These two may be given before a subcommand that has them as well, so their ids are the same
// everywhere.
#[derive(Debug, Args)]
pub struct SysfsArg {
    /// Read the machine from this folder instead of /sys
    #[arg(long, value_name = "ROOT")]
    pub sysfs: Option<PathBuf>,
}

impl OnceArgs {
    /// `usual`: that of the configuration.
    pub fn level(&self, usual: Option<LevelFilter>) -> LevelFilter {
        match self.verbose {
            0 => usual.unwrap_or(LevelFilter::Info),
            1 => LevelFilter::Debug,
            _ => LevelFilter::Trace,
        }
    }
}

impl SysfsArg {
    pub fn root(self) -> PathBuf {
        self.sysfs.unwrap_or_else(|| "/sys".into())
    }
}

#[derive(Debug, Args)]
pub struct JsonArg {
    /// Print JSON; for statistics, one line per interval
    #[arg(long)]
    pub json: bool,
}

/// Headings of rare options. --help-all alone shows options with one (help.rs).
const TUNABLE: &str = "Tunables, at start (while it runs: scx_roost ctl set)";
const FREQUENCIES: &str = "Frequencies";
const SOCKETS: &str = "Sockets";
const SPECIAL: &str = "Special cases";

#[cfg(feature = "rustland")]
#[derive(Clone, Copy, Debug, Default, PartialEq, clap::ValueEnum)]
pub enum Backend {
    /// In the kernel, by BPF programs
    #[default]
    Bpf,
    /// In userspace, in Rust, by scx_rustland_core
    Rust,
}

/// Options of a run that a configuration file may have too, with the same names.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Log this level and more severe ones: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", value_parser = log_level, help_heading = SPECIAL)]
    pub log_level: Option<LevelFilter>,

    /// Where decisions are made
    #[cfg(feature = "rustland")]
    #[arg(long, value_name = "NAME", value_enum, default_value_t)]
    pub backend: Backend,

    /// Source of the CPUs' frequencies: auto, cpuperf (what ticks see), cpufreq, off, or a folder
    /// in which the file cpuN holds the frequency of CPU N in kHz
    #[arg(long, value_name = "SOURCE", default_value = "auto", help_heading = FREQUENCIES)]
    pub freq_source: FreqSource,

    /// Milliseconds between two readings of the frequencies, and of the idle periods for
    /// avg_idle_scan (5 to 1000)
    #[arg(long, value_name = "MS", default_value = "20", value_parser = freq_period, help_heading = FREQUENCIES)]
    pub freq_period_ms: Duration,

    /// Frequency requests to the cpufreq governor
    #[arg(long, value_enum, value_name = "MODE", default_value = "auto", help_heading = FREQUENCIES)]
    pub cpuperf: CpuPerf,

    /// Socket that serves the statistics
    #[arg(long, value_name = "PATH", default_value = STATS_PATH, help_heading = SOCKETS)]
    pub stats_path: PathBuf,

    /// Group that may read the statistics, besides the socket's owner
    #[arg(long, value_name = "NAME", value_parser = group, help_heading = SOCKETS)]
    pub stats_group: Option<u32>,

    /// Socket that controls the scheduler; default: 'ctl' beside the statistics socket
    #[arg(long, value_name = "PATH", help_heading = SOCKETS)]
    pub ctl_path: Option<PathBuf>,

    /// Group that may control the scheduler, besides the socket's owner
    #[arg(long, value_name = "NAME", value_parser = group, help_heading = SOCKETS)]
    pub ctl_group: Option<u32>,

    /// Fix features and tunables for the whole run. The features become constants of the BPF
    /// programs, which is a little faster. Nothing can be changed, and there are no arms
    #[arg(long, help_heading = SPECIAL)]
    pub freeze: bool,

    /// Do not enforce CPU limits of control groups (cpu.max). On a kernel that does not report
    /// these limits, start nevertheless
    #[arg(long, help_heading = SPECIAL)]
    pub ignore_cpu_max: bool,

    /// Size of the debug dump after an error, in bytes; 0: the kernel's default
    #[arg(long, value_name = "BYTES", default_value_t = 0, help_heading = SPECIAL)]
    pub exit_dump_len: u32,
}

/// Options of the command line alone.
#[derive(Debug, Args)]
pub struct OnceArgs {
    /// Run, and print statistics every SECS seconds (0.1 to 3600)
    #[arg(long, value_name = "SECS", value_parser = seconds, conflicts_with = "monitor")]
    pub stats: Option<Duration>,

    /// Log more, including libbpf's messages: the same as --log-level debug, or trace if repeated
    #[arg(short, long, action = ArgAction::Count, conflicts_with = "log_level")]
    pub verbose: u8,

    /// Print the version and exit
    #[arg(short = 'V', long)]
    pub version: bool,

    /// Print all options, also the rare ones
    #[arg(long)]
    pub help_all: bool,

    /// Do not run; print the running scheduler's statistics every SECS seconds (0.1 to 3600)
    #[arg(long, value_name = "SECS", value_parser = seconds, help_heading = SPECIAL)]
    pub monitor: Option<Duration>,

    /// A number that the log names, to tell runs apart
    #[arg(long, value_name = "N", help_heading = SPECIAL)]
    pub run_id: Option<u64>,

    /// Configuration: a file, a folder as /etc/scx_roost, or 'none' [default: /etc/scx_roost]
    #[arg(long, value_name = "PATH", help_heading = SPECIAL)]
    pub config: Option<PathBuf>,

    /// Describe the statistics and exit
    #[arg(long, help_heading = SPECIAL)]
    pub help_stats: bool,
}

impl OnceArgs {
    /// They ask for something to be printed, and for no run.
    pub fn only_print(&self) -> bool {
        self.version || self.help_stats || self.monitor.is_some()
    }
}

/// Options that are settings of arm default: one for each key of a `Change`. Their values are read
/// where files and the command line are joined (levels.rs).
#[derive(Debug)]
pub struct SettingArgs;

impl SettingArgs {
    fn options() -> Vec<Arg> {
        let repeated = |name: &'static str, help: &'static str| {
            let arg = Arg::new(name).long(name).value_name("FEATURE").help(help);
            arg.action(ArgAction::Append).value_delimiter(',')
        };
        let mut options = vec![
            Arg::new("preset")
                .short('p')
                .long("preset")
                .value_name("NAME")
                .help(format!(
                    "Set of features to start from ('scx_roost presets' lists them) [default: {DEFAULT_PRESET}]"
                )),
            Arg::new("profile")
                .long("profile")
                .value_name("NAME")
                .conflicts_with("preset")
                .help("Purpose, in place of a preset ('scx_roost profiles' lists them)"),
            repeated(
                "enable",
                "Switch features on, with commas or repeated ('scx_roost features' lists them)",
            ),
            repeated("disable", "Switch features off, with commas or repeated"),
        ];
        options.extend(TUNABLES.iter().map(|row| {
            // As other schedulers of sched_ext have it.
            let short = (row.name == SLICE.name).then_some('s');
            // `rules` alone are which task is on which arm.
            let alias = (row.name == FAIR_RULES.name).then_some("rules");
            Arg::new(row.name)
                .short(short)
                .visible_alias(alias)
                .long(row.name)
                .value_name(row.value_name())
                .help(tunable_help(row))
                .value_parser(|text: &str| row.parse(text).map(|_| text.to_string()))
                .help_heading(TUNABLE)
        }));
        options
    }
}

impl Args for SettingArgs {
    fn augment_args(command: Command) -> Command {
        command.args(SettingArgs::options())
    }

    fn augment_args_for_update(command: Command) -> Command {
        SettingArgs::augment_args(command)
    }
}

impl FromArgMatches for SettingArgs {
    fn from_arg_matches(_: &ArgMatches) -> Result<SettingArgs, Error> {
        Ok(SettingArgs)
    }

    fn update_from_arg_matches(&mut self, _: &ArgMatches) -> Result<(), Error> {
        Ok(())
    }
}

fn tunable_help(t: &Tunable) -> String {
    let unit = t.unit_after("in ");
    let unit = if unit.is_empty() { unit } else { unit + "; " };
    format!(
        "{} ({unit}{}; default: {})",
        t.helped(),
        t.possible(),
        t.default
    )
}

fn log_level(text: &str) -> Result<LevelFilter, String> {
    let names = ["error", "warn", "info", "debug", "trace"];
    text.parse().map_err(|_| instead(text, &names))
}

fn freq_period(text: &str) -> Result<Duration, String> {
    let ms = text.parse().ok().filter(|ms| (5..=1000).contains(ms));
    ms.map(Duration::from_millis)
        .ok_or_else(|| "5 to 1000 ms are possible".to_string())
}

const CONFIG_EXAMPLES: &str = "Examples:
  scx_roost config check                          the files below /etc/scx_roost
  scx_roost config check ./config.toml            one file, before it is installed
  scx_roost config show                           what a start would use
  scx_roost --preset mainline config show         what a start with this option would use
  sudo systemctl reload scx_roost                 the running scheduler reads them again

Exit status: 0 if all is well; 1 after an error, which names the file and the line.";

const AFTER_HELP: &str = "\
Examples:
  scx_roost                                 run with the default preset until Ctrl-C
  scx_roost --preset mainline --stats 1     the kernel's placement, statistics every second
  scx_roost status                          is it running, and what has it done?
  scx_roost ctl set --enable wide_idle      switch a feature on at run time
  scx_roost exec --arm x -- make            run a command on another arm
  scx_roost help COMMAND                    what a command does; --help-all has the rare options

Exit status: 0 when stopped by a signal or replaced on request; 1 after an error or a watchdog exit; \
2 if the command line is wrong; 70 after SysRq-S; 78 if configuration files are wrong.";
