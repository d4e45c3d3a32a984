// SPDX-License-Identifier: GPL-2.0-only
//! The command line. `parse` turns it into a `Command`, in which defaults and presets are resolved.

pub mod args;
mod catalog;
mod files;
mod help;
mod levels;
pub mod pages;
mod sockets;

#[cfg(feature = "ab")]
use crate::ab::args::{AbArgs, TuneArgs};
use crate::clients::ctl;
use crate::clients::exec::ExecArgs;
#[cfg(feature = "export")]
use crate::clients::export::{Output, Series};
use crate::clients::monitor;
use crate::daemon::control::{Origin, Reading};
use crate::policy::config::{Config, FOLDER, ctl_path_beside};
use crate::util::refusal::{BadConfig, BadUsage};
use crate::util::version;
use anyhow::{Result, anyhow, bail, ensure};
use args::{Alone, Cli, Client, ConfigVerb, MachineArgs, RunArgs, Sub, SysfsArg, Text};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
pub use files::ConfigSource;
use levels::Levels;
use log::LevelFilter;
use sockets::Sockets;
pub use sockets::{Socket, stats_of_start};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The task of the program.
#[derive(Debug)]
pub enum Command {
    /// Prints this text and ends.
    Print(String),
    Run {
        config: Box<Config>,
        /// How the running scheduler reads its configuration again.
        origin: Origin,
        /// No memory of this process is swapped out.
        level: LevelFilter,
        run_id: Option<u64>,
    },
    Monitor {
        at: Socket,
        interval: Duration,
        json: bool,
    },
    HelpStats,
    Topology {
        sysfs: PathBuf,
        json: bool,
    },
    /// Compares variants on a command.
    #[cfg(feature = "ab")]
    Ab {
        args: Box<AbArgs>,
        json: bool,
    },
    /// Searches the settings that suit a command.
    #[cfg(feature = "ab")]
    Tune {
        args: Box<TuneArgs>,
        json: bool,
    },
    #[cfg(feature = "ab")]
    AbGuardian,
    Doctor {
        sysfs: PathBuf,
        json: bool,
    },
    /// Says whether a scheduler runs.
    Status {
        at: Socket,
        json: bool,
    },
    /// Writes the manual pages.
    Man {
        folder: PathBuf,
    },
    /// Stops the running scheduler.
    Stop {
        at: Socket,
    },
    Ctl {
        at: Socket,
        verb: ctl::Verb,
        /// Where `ctl save` writes.
        place: ConfigSource,
        /// How long to wait for a scheduler that is not there yet.
        wait: Duration,
        json: bool,
    },
    Exec {
        at: Socket,
        args: ExecArgs,
    },
    #[cfg(feature = "export")]
    Export {
        at: Socket,
        series: Series,
        output: Output,
    },
    /// The live view.
    View {
        /// The statistics.
        at: Socket,
        options: monitor::Options,
    },
}

impl Command {
    /// Where a client asks the scheduler first.
    pub fn socket(&self) -> Option<&Socket> {
        match self {
            Command::Status { at, .. }
            | Command::Stop { at }
            | Command::Ctl { at, .. }
            | Command::Exec { at, .. }
            | Command::Monitor { at, .. }
            | Command::View { at, .. } => Some(at),
            #[cfg(feature = "export")]
            Command::Export { at, .. } => Some(at),
            _ => None,
        }
    }
}

/// Parses the command line, and reads the configuration of a run. An error is one sentence; that
/// of a wrong command line is a `BadUsage`.
pub fn parse<T: Into<OsString> + Clone>(args: impl IntoIterator<Item = T>) -> Result<Command> {
    parse_with(args, Path::new(FOLDER))
}

/// `folder`: where the configuration is, unless the command line says otherwise.
fn parse_with<T: Into<OsString> + Clone>(
    args: impl IntoIterator<Item = T>,
    folder: &Path,
) -> Result<Command> {
    let command = with_negative(help::grouped(Cli::command()));
    let words = help::spelled_out(args.into_iter().map(Into::into).collect());
    if let Some(text) = help::all(&command, &words) {
        return Ok(Command::Print(text));
    }
    let matches = command.clone().try_get_matches_from(&words);
    match matches.and_then(|m| Ok((Cli::from_arg_matches(&m)?, m))) {
        Ok((cli, matches)) => {
            no_run_option_with_subcommand(&command, &matches).map_err(BadUsage)?;
            cli.resolve(matches, folder)
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
            Err(BadUsage(without_command(&command, &words)).into())
        }
        Err(e) => {
            let what = sentence(&e.render().to_string());
            let see = asked(&command, &words).1;
            Err(BadUsage(anyhow!("{what}; see {see} --help")).into())
        }
    }
}

/// Options take a value such as -5, so that the error says what is possible.
pub fn with_negative(command: clap::Command) -> clap::Command {
    let option = |arg: &clap::Arg| !arg.is_positional() && arg.get_action().takes_values();
    command
        .mut_args(|arg| match option(&arg) {
            true => arg.allow_negative_numbers(true),
            false => arg,
        })
        .mut_subcommands(with_negative)
}

/// The command whose words are wrong, and what to type for it.
fn asked(command: &clap::Command, words: &[OsString]) -> (clap::Command, String) {
    // clap reads as far as the first error.
    let until = command.clone().ignore_errors(true);
    let matches = until.try_get_matches_from(words).unwrap_or_default();
    let (mut at, mut matches) = (command, &matches);
    let mut path = command.get_name().to_string();
    while let Some((name, below)) = matches.subcommand()
        && let Some(sub) = at.find_subcommand(name)
    {
        (at, matches) = (sub, below);
        path = format!("{path} {name}");
    }
    (at.clone(), path)
}

/// What is wrong with words that end before the command of a subcommand.
fn without_command(command: &clap::Command, words: &[OsString]) -> anyhow::Error {
    let (at, path) = asked(command, words);
    let names: Vec<&str> = at.get_subcommands().map(clap::Command::get_name).collect();
    anyhow!(
        "expected a command: one of {}; see {path} --help",
        names.join(", ")
    )
}

/// Whether `word` is the name of a subcommand.
#[cfg(feature = "internals")]
pub fn is_subcommand(word: &str) -> bool {
    Cli::command().find_subcommand(word).is_some()
}

/// Only options that both the subcommand and a run have, with the same id, may be given before the
/// subcommand.
fn no_run_option_with_subcommand(command: &clap::Command, matches: &ArgMatches) -> Result<()> {
    // `config show` shows what a start with these options would use.
    let Some(name) = matches.subcommand_name().filter(|name| *name != "config") else {
        return Ok(());
    };
    let Some(subcommand) = command.find_subcommand(name) else {
        return Ok(());
    };
    let mut options = command
        .get_arguments()
        .filter(|a| typed(matches, a.get_id().as_str()));
    let of_both = |a: &clap::Arg| subcommand.get_arguments().any(|b| b.get_id() == a.get_id());
    match options.find(|a| !of_both(a)) {
        Some(option) => {
            let option = option.get_long().unwrap_or_default();
            let too = subcommand
                .get_arguments()
                .any(|a| a.get_long() == Some(option));
            let what = if too {
                format!("follows '{name}'")
            } else {
                format!("cannot be used with '{name}'")
            };
            Err(anyhow!(
                "the option '--{option}' {what}; see scx_roost {name} --help"
            ))
        }
        None => Ok(()),
    }
}

fn typed(matches: &ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// clap writes an error over several lines, with the usage last. This keeps the lines about the
/// error.
pub fn sentence(error: &str) -> String {
    let lines = error
        .lines()
        .map(str::trim)
        .take_while(|l| !l.starts_with("Usage:") && !l.starts_with("For more"))
        // About a dash at the start of a name, which nobody means.
        .filter(|l| !l.starts_with("tip: to pass "));
    let joined = lines
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    joined
        .strip_prefix("error: ")
        .unwrap_or(&joined)
        .replace(" tip: ", "; tip: ")
        .replace(
            "invalid digit found in string",
            "expected a whole number from 0 on",
        )
        .replace(
            "number too large to fit in target type",
            "expected a smaller number",
        )
}

impl Cli {
    fn resolve(mut self, matches: ArgMatches, folder: &Path) -> Result<Command> {
        // The subcommand's --json may be given before or after it.
        let json = self.json.json;
        match self.command.take() {
            Some(Sub::Client(client)) => client.resolve(json, folder),
            Some(Sub::Text(text)) => text.resolve(json),
            Some(Sub::Alone(alone)) => alone.resolve(json, self.sysfs),
            Some(Sub::Config { verb }) => self.resolve_config(verb, &matches, folder),
            None => self.resolve_start(matches, folder),
        }
    }

    fn resolve_config(
        self,
        verb: ConfigVerb,
        matches: &ArgMatches,
        folder: &Path,
    ) -> Result<Command> {
        let place = match &verb {
            ConfigVerb::Check { path: Some(path) } => ConfigSource::around(path.clone()),
            _ => ConfigSource::of(self.once.config, folder),
        };
        Levels::new(Vec::new(), Some(matches)).map_err(BadUsage)?;
        let levels = Levels::new(place.read()?, Some(matches))?;
        let rows = levels.rows()?;
        config_of(&levels)?;
        Ok(Command::Print(match verb {
            ConfigVerb::Show { json } if json || self.json.json => {
                serde_json::to_string_pretty(&rows)? + "\n"
            }
            ConfigVerb::Show { .. } => levels::text(&rows),
            ConfigVerb::Check { .. } => match levels.files()[..] {
                [] => "no file: what is built in is used\n".to_string(),
                ref files => files.iter().map(|file| format!("{file}: good\n")).collect(),
            },
        }))
    }

    /// Without a subcommand: a run, or something to print.
    fn resolve_start(self, matches: ArgMatches, folder: &Path) -> Result<Command> {
        let json = self.json.json;
        if json && self.once.stats.or(self.once.monitor).is_none() {
            let what =
                "--json sets the format of printed statistics: give --stats or --monitor as well";
            return Err(BadUsage(anyhow!(what)).into());
        }
        let place = match &self.once.config {
            None if self.once.only_print() => ConfigSource::Nowhere,
            given => ConfigSource::of(given.clone(), folder),
        };
        // Resolved first, so that an invalid name is an error whatever else was requested. One of
        // the command line is no bad configuration.
        Levels::new(Vec::new(), Some(&matches)).map_err(BadUsage)?;
        let levels = place
            .read()
            .and_then(|files| Levels::new(files, Some(&matches)));
        let levels = levels.map_err(BadConfig)?;
        let run = levels.run_args()?;
        Ok(match self.once.monitor {
            _ if self.once.version => Command::Print(version() + "\n"),
            _ if self.once.help_stats => Command::HelpStats,
            Some(interval) => {
                levels.plan()?;
                let here = self.once.config.is_some() || typed(&matches, "stats_path");
                Command::Monitor {
                    at: match here {
                        true => run.stats_path.into(),
                        false => Sockets::configured(folder).stats(),
                    },
                    interval,
                    json,
                }
            }
            None => self.resolve_run(run, levels, matches, place)?,
        })
    }

    fn resolve_run(
        self,
        run: RunArgs,
        levels: Levels,
        matches: ArgMatches,
        place: ConfigSource,
    ) -> Result<Command> {
        let level = self.once.level(run.log_level);
        let config = Config {
            sysfs: self.sysfs.root(),
            stats_interval: self.once.stats,
            stats_json: self.json.json,
            libbpf: self.libbpf,
            ..config_of(&levels).map_err(|e| blamed(&matches, e))?
        };
        let saved = place.saved();
        let file = saved.clone();
        let read = move |text: Option<&str>| {
            let now = Levels::new(place.read_with(text)?, Some(&matches))?;
            let plan = now.plan()?;
            config_of(&now)?;
            let saved = file.as_deref().and_then(|file| now.said(file));
            Ok(Reading {
                plan,
                restart: now.differs(&levels),
                saved: saved.cloned().unwrap_or_default(),
            })
        };
        Ok(Command::Run {
            config: Box::new(config),
            origin: Origin {
                read: Some(Arc::new(read)),
                saved,
            },
            level,
            run_id: self.once.run_id,
        })
    }
}

/// An error of the command line alone is no bad configuration.
fn blamed(matches: &ArgMatches, e: anyhow::Error) -> anyhow::Error {
    let alone = Levels::new(Vec::new(), Some(matches)).and_then(|levels| config_of(&levels));
    match alone {
        Err(own) if format!("{own:#}") == format!("{e:#}") => BadUsage(e).into(),
        _ => BadConfig(e).into(),
    }
}

/// The configuration that files and options give. Fails if they contradict each other.
fn config_of(levels: &Levels) -> Result<Config> {
    let (run, plan) = (levels.run_args()?, levels.plan()?);
    let beside = ctl_path_beside(&run.stats_path);
    let ctl_path = run.ctl_path.unwrap_or(beside);
    ensure!(
        ctl_path != run.stats_path,
        "{}: --stats-path and --ctl-path are both {}: give two different paths",
        levels.place("stats-path"),
        ctl_path.display()
    );
    if run.freeze
        && let Some(arms) = levels.place_of_arms()
    {
        bail!(
            "{}: with --freeze there are no arms and no rules, but {arms} has one: leave one of \
             them out",
            levels.place("freeze")
        );
    }
    Ok(Config {
        settings: plan.everybody,
        arms: plan.arms,
        rules: plan.rules,
        freeze: run.freeze,
        #[cfg(feature = "rustland")]
        rust: run.backend == args::Backend::Rust,
        ignore_cpu_max: run.ignore_cpu_max,
        cpuperf: run.cpuperf,
        freq_source: run.freq_source,
        freq_period: run.freq_period_ms,
        stats_path: run.stats_path,
        stats_group: run.stats_group,
        ctl_path,
        ctl_group: run.ctl_group,
        exit_dump_len: run.exit_dump_len,
        ..Config::default()
    })
}

impl Client {
    /// `json`: as given before the subcommand. `folder`: where the configuration is.
    fn resolve(self, json: bool, folder: &Path) -> Result<Command> {
        Ok(match self {
            Client::Status { of, json: too } => Command::Status {
                at: of.at(folder),
                json: json || too,
            },
            Client::Stop { at } => Command::Stop { at: at.at(folder) },
            Client::Ctl {
                verb,
                at,
                wait,
                json: too,
            } => Command::Ctl {
                at: at.at(folder),
                place: ConfigSource::of(verb.config(), folder),
                verb,
                wait: wait.unwrap_or_default(),
                json: json || too,
            },
            Client::Exec { args, at } => Command::Exec {
                at: at.at(folder),
                args,
            },
            #[cfg(feature = "export")]
            Client::Export { args, of } => Command::Export {
                at: of.at(folder),
                series: args.series(),
                output: args.output().map_err(BadUsage)?,
            },
            Client::Monitor(args) => {
                let stats = args.of.at(folder);
                let options = monitor::Options {
                    stats_path: stats.path.clone(),
                    interval: args.interval,
                    json: json || args.json.json,
                };
                Command::View { at: stats, options }
            }
        })
    }
}

impl Alone {
    /// `json`, `sysfs`: as given before the subcommand.
    fn resolve(self, json: bool, sysfs: SysfsArg) -> Result<Command> {
        Ok(match self {
            Alone::Topology(args) => {
                args.with(sysfs, json, |sysfs, json| Command::Topology { sysfs, json })
            }
            Alone::Doctor(args) => {
                args.with(sysfs, json, |sysfs, json| Command::Doctor { sysfs, json })
            }
            #[cfg(feature = "ab")]
            Alone::Ab { args, json: too } => Command::Ab {
                args,
                json: json || too,
            },
            #[cfg(feature = "ab")]
            Alone::Tune { args, json: too } => Command::Tune {
                args,
                json: json || too,
            },
            #[cfg(feature = "ab")]
            #[cfg(feature = "ab")]
            Alone::AbGuardian => Command::AbGuardian,
        })
    }
}

impl Text {
    /// `json`: as given before the subcommand.
    fn resolve(self, json: bool) -> Result<Command> {
        let text = match self {
            Text::Features { json: too } => catalog::features(json || too)?,
            Text::Presets { json: too } => catalog::presets(json || too)?,
            Text::Profiles { json: too } => catalog::profiles(json || too)?,
            Text::Completions { shell } => pages::completions(shell)?,
            Text::Man { folder } => return Ok(Command::Man { folder }),
        };
        Ok(Command::Print(text))
    }
}

impl MachineArgs {
    /// Merged with the options before the subcommand; those after it take precedence.
    fn with(self, before: SysfsArg, json: bool, of: fn(PathBuf, bool) -> Command) -> Command {
        let sysfs = self.sysfs.sysfs.or(before.sysfs);
        of(SysfsArg { sysfs }.root(), json || self.json)
    }
}

/// With the commit, if that is known, as schedulers of scx have it.
pub fn version() -> String {
    let version = scx_utils::build_id::full_version(&version::number());
    format!("scx_roost {version}")
}

#[cfg(test)]
mod tests;
