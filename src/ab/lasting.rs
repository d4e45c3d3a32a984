// SPDX-License-Identifier: GPL-2.0-only
//! How to keep what `tune` found: now, and after each start of the service. Arms live in the
//! scheduler's process and are not on disk, so a drop-in of the service makes them again.

use super::variant::{Kind, Scope, Variant};
use crate::policy::arms::{DEFAULT_ARM, NAME_MAX};
use crate::policy::settings::Change;
use crate::util::text::quoted;
use anyhow::{Result, bail};
use serde::Serialize;

/// How long `ctl` waits for a scheduler that is starting, in seconds. systemd allows 90 s for the
/// whole start.
const START_TIME: &str = "20";
/// The service unit that is shipped.
const UNIT: &str = include_str!("../../contrib/scx_roost.service");
const DROP_INS: &str = "/etc/systemd/system/scx_roost.service.d/";
/// The arm of a workload whose name cannot be one.
const NAMELESS: &str = "tuned";

/// How to keep a variant: commands to type, and the service's drop-in.
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
    /// Path of the drop-in file, and its lines.
    pub file: String,
    pub drop_in: Vec<String>,
}

impl Lasting {
    /// Fails if a variant is not one of scx_roost.
    pub fn new(base: &str, found: &str, scope: Scope, command: &[String]) -> Result<Lasting> {
        let (base, found) = (change(base)?, change(found)?);
        if scope == Scope::Machine {
            return Ok(Lasting {
                arm: None,
                now: vec![typed("scx_roost", &start(&found))],
                otherwise: typed("scx_roost ctl", &set(DEFAULT_ARM, &found)),
                each_time: None,
                file: format!("{DROP_INS}tune.conf"),
                drop_in: drop_in(&start(&found), &[]),
            });
        }
        let arm = arm_of(command);
        let calls = [words(&["arms", "add", &arm]), set(&arm, &found)];
        Ok(Lasting {
            now: calls.iter().map(|c| typed("scx_roost ctl", c)).collect(),
            otherwise: typed("scx_roost", &start(&base)),
            each_time: Some(typed(&format!("scx_roost exec --arm {arm} --"), command)),
            file: format!("{DROP_INS}tune-{arm}.conf"),
            drop_in: drop_in(&start(&base), &calls),
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
        format!(
            "{apply}To apply it after each start of the service contrib/scx_roost.service, create this file\n\
             {} (mkdir -p its folder), and then: systemctl daemon-reload && systemctl restart scx_roost\n\
             Its ExecStart= replaces the service's: add the other options that 'systemctl cat scx_roost' shows, such as --stats-group.\n{}",
            self.file,
            indented(&self.drop_in)
        )
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn change(variant: &str) -> Result<Change> {
    match Variant::parse(variant)?.kind {
        Kind::Roost(roost) => Ok(roost.0),
        _ => bail!("{variant} is not a variant of scx_roost"),
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

/// Lines of the service's drop-in. The first call waits, since there may be no scheduler yet. The
/// service keeps running if a call fails. A `%` means something in a unit.
fn drop_in(start: &[String], calls: &[Vec<String>]) -> Vec<String> {
    let program = UNIT.lines().find_map(|l| l.strip_prefix("ExecStart="));
    let program = program.unwrap_or("scx_roost");
    let run = |words: &[String]| words.join(" ").replace('%', "%%");
    let mut lines = words(&["[Service]", "ExecStart="]);
    lines.push(format!("ExecStart={program} {}", run(start)));
    for (at, call) in calls.iter().enumerate() {
        let wait = if at == 0 {
            format!("--wait {START_TIME} ")
        } else {
            String::new()
        };
        lines.push(format!("ExecStartPost=-{program} ctl {wait}{}", run(call)));
    }
    lines
}
