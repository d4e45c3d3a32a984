// SPDX-License-Identifier: GPL-2.0-only
//! How to keep what `tune` found: now, and at each start, by a file of the configuration.

use super::variant::{Kind, Scope, Variant};
use crate::policy::arms::{DEFAULT_ARM, NAME_MAX};
use crate::policy::change::Change;
use crate::policy::config::FOLDER;
use crate::policy::file::Said;
use crate::util::text::quoted;
use anyhow::{Result, bail};
use serde::Serialize;

/// After the files of packages, before the one of `ctl save`.
const FILE: &str = "config.d/50-tune";
/// The arm of a workload whose name cannot be one.
const NAMELESS: &str = "tuned";

/// How to keep a variant: commands to type, and a file of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lasting {
    /// The workload's arm. None: all tasks have the variant.
    pub arm: Option<String>,
    /// Commands. Without an arm it is the scheduler, which keeps running.
    pub now: Vec<String>,
    /// A command. Without an arm: instead of `now`, if a scx_roost already runs. With one: before
    /// `now`, if none runs.
    pub otherwise: String,
    /// How to start the command on its arm.
    pub each_time: Option<String>,
    /// The path of the file, and its text.
    pub file: String,
    pub config: String,
}

impl Lasting {
    /// Fails if a variant has no settings, as one of another scheduler or of decisions in Rust.
    pub fn new(base: &str, found: &str, scope: Scope, command: &[String]) -> Result<Lasting> {
        let (base, found) = (change(base)?, change(found)?);
        if scope == Scope::Machine {
            return Ok(Lasting {
                arm: None,
                now: vec![typed("scx_roost", &start(&found))],
                otherwise: typed("scx_roost ctl", &set(DEFAULT_ARM, &found)),
                each_time: None,
                file: format!("{FOLDER}/{FILE}.toml"),
                config: config(found, None)?,
            });
        }
        let arm = arm_of(command);
        let calls = [words(&["arms", "add", &arm]), set(&arm, &found)];
        Ok(Lasting {
            now: calls.iter().map(|c| typed("scx_roost ctl", c)).collect(),
            otherwise: typed("scx_roost", &start(&base)),
            each_time: Some(typed(&format!("scx_roost exec --arm {arm} --"), command)),
            file: format!("{FOLDER}/{FILE}-{arm}.toml"),
            config: config(base, Some((&arm, found)))?,
            arm: Some(arm),
        })
    }

    pub fn text(&self) -> String {
        let now = indented(&self.now);
        let otherwise = &self.otherwise;
        let apply = match &self.each_time {
            None => format!(
                "To apply it now for all tasks, run as root:\n{now}If scx_roost runs already:\n  {otherwise}\n"
            ),
            Some(exec) => format!(
                "To apply it now, make its arm, as root, and start the command on it each time:\n{now}  {exec}\n\
                 If no scx_roost runs, start the base first:\n  {otherwise}\n\
                 Rules put tasks on an arm by their name or cgroup, however they are started: scx_roost ctl rules add --help\n"
            ),
        };
        let config: Vec<String> = self.config.lines().map(str::to_string).collect();
        format!(
            "{apply}To apply it at each start, put this into {} (mkdir -p its folder), and see what a start then uses: scx_roost config show\n{}",
            self.file,
            indented(&config)
        )
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn change(variant: &str) -> Result<Change> {
    match Variant::parse(variant)?.kind {
        Kind::Roost(roost) => Ok(roost.0),
        _ => bail!("{variant} has no settings of scx_roost to keep"),
    }
}

/// Named after the program, in the letters that an arm's name may have.
fn arm_of(command: &[String]) -> String {
    let program = command
        .first()
        .map_or("", |path| path.rsplit('/').next().unwrap_or(path));
    let letter = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || c == '_' => c,
        _ => '-',
    };
    let name: String = program.chars().map(letter).take(NAME_MAX).collect();
    match name.trim_matches('-') {
        "" | DEFAULT_ARM => NAMELESS.to_string(),
        name => name.to_string(),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn typed(begin: &str, words: &[String]) -> String {
    let words = words.iter().map(|w| format!(" {}", quoted(w)));
    begin.to_string() + &words.collect::<String>()
}

/// --preset or --profile, --enable and --disable, as a start and `ctl set` take them.
fn switches(change: &Change) -> Vec<String> {
    let mut all = match &change.profile {
        Some(profile) => words(&["--profile", profile]),
        None => words(&["--preset", change.preset.as_deref().unwrap_or_default()]),
    };
    for (option, names) in [("--enable", &change.enable), ("--disable", &change.disable)] {
        all.extend(names.iter().flat_map(|name| words(&[option, name])));
    }
    all
}

fn tunables(change: &Change) -> impl Iterator<Item = (&str, &str)> {
    let all = change.set.iter();
    all.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()))
}

/// Arguments of a start whose arm default has this configuration.
fn start(change: &Change) -> Vec<String> {
    let set = tunables(change).flat_map(|(name, value)| words(&[&format!("--{name}"), value]));
    [switches(change), set.collect()].concat()
}

/// The `ctl` call that gives an arm this configuration.
fn set(arm: &str, change: &Change) -> Vec<String> {
    let set =
        tunables(change).flat_map(|(name, value)| words(&["--set", &format!("{name}={value}")]));
    let arm = words(&["set", "--arm", arm]);
    [arm, switches(change), set.collect()].concat()
}

/// The text of a file: what arm default has, and another arm.
fn config(everybody: Change, arm: Option<(&str, Change)>) -> Result<String> {
    let arms = arm.map(|(name, change)| (name.to_string(), change));
    let said = Said {
        change: everybody,
        arms: arms.into_iter().collect(),
        ..Said::default()
    };
    said.text()
}
