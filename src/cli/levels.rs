// SPDX-License-Identifier: GPL-2.0-only
//! What files and the command line say together. A later level takes precedence: what is built in,
//! config.toml, the drop-ins in the order of their names, the command line. Each level changes the
//! settings as `ctl set` would.

use super::args::{RunArgs, SettingArgs};
use super::{sentence, typed};
use crate::policy::change::Change;
use crate::policy::features::{FEATURES, TUNABLES};
use crate::policy::file::Said;
use crate::policy::plan::Plan;
use crate::policy::settings::Settings;
use anyhow::{Context, Result, anyhow, ensure};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Options that are paths, for clients too.
pub const SOCKETS: [&str; 2] = ["stats-path", "ctl-path"];
const BUILT_IN: &str = "built in";
const COMMAND_LINE: &str = "the command line";

/// One place, and what it says.
struct Level {
    from: String,
    said: Said,
}

impl Level {
    /// The place of a key of this level.
    fn place(&self, key: &str) -> String {
        match self.said.lines.get(key) {
            Some(line) => format!("{}, line {line}", self.from),
            None => self.from.clone(),
        }
    }

    /// An error about a key of a file begins with its place, one of the command line with nothing.
    fn blamed<T>(&self, key: &str, result: Result<T>) -> Result<T> {
        match self.from == COMMAND_LINE {
            true => result,
            false => result.with_context(|| self.place(key)),
        }
    }

    /// Applies the change whose keys have this prefix.
    fn apply(&self, prefix: &str, settings: &mut Settings, change: &Change) -> Result<()> {
        let Err(e) = apply(settings, change) else {
            return Ok(());
        };
        let mut keys = change.keys();
        let line = |key: &String| self.said.lines.get(&format!("{prefix}{key}"));
        keys.sort_by_key(line);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let fails = |n: &usize| apply(&mut settings.clone(), &change.only(&keys[..*n])).is_err();
        let first = (1..=keys.len()).find(fails).map_or("", |n| keys[n - 1]);
        self.blamed(&format!("{prefix}{first}"), Err(e))
    }
}

/// All of them, the lowest precedence first.
pub struct Levels(Vec<Level>);

/// A value, and the place that gives it.
#[derive(Debug, Serialize)]
pub struct Row {
    key: String,
    value: String,
    from: String,
}

type Options = BTreeMap<String, (Option<Vec<String>>, String)>;

impl Levels {
    /// Fails if a file has an option with an impossible value.
    pub fn new(files: Vec<(PathBuf, Said)>, matches: Option<&ArgMatches>) -> Result<Levels> {
        let mut levels = Vec::new();
        for (path, said) in files {
            let from = path.display().to_string();
            for (key, words) in &said.options {
                let parsed = run_args(words_of(key, words.as_ref()));
                let place = || format!("{from}, line {}", said.lines[key]);
                parsed.with_context(place)?;
                // Its readers have different working folders.
                let relative = words.iter().flatten().any(|word| !word.starts_with('/'));
                ensure!(
                    !(relative && SOCKETS.contains(&key.as_str())),
                    "{}: {key}: expected a path from / on",
                    place()
                );
            }
            levels.push(Level { from, said });
        }
        if let Some(matches) = matches {
            let (from, said) = (COMMAND_LINE.to_string(), of_command_line(matches)?);
            levels.push(Level { from, said });
        }
        Ok(Levels(levels))
    }

    /// The files that were read.
    pub fn files(&self) -> Vec<&str> {
        let files = self.0.iter().map(|level| level.from.as_str());
        files.filter(|from| *from != COMMAND_LINE).collect()
    }

    /// Fails if a level's changes contradict each other, or if an arm or a rule is not possible.
    pub fn plan(&self) -> Result<Plan> {
        let mut plan = Plan::default();
        for level in &self.0 {
            level.apply("", &mut plan.everybody, &level.said.change)?;
        }
        for level in &self.0 {
            for (name, changes) in &level.said.arms {
                let everybody = || plan.everybody.clone();
                let mut arm = plan.arms.get(name).cloned().unwrap_or_else(everybody);
                level.apply(&format!("arms.{name}."), &mut arm, changes)?;
                plan.arms.insert(name.clone(), arm);
            }
            for rule in &level.said.rules {
                plan.put_rule(rule);
            }
        }
        match plan.check() {
            Ok(()) => Ok(plan),
            Err(_) => Err(self.culprit(&plan)),
        }
    }

    /// Why the plan is not possible, with the place of the first arm or rule that makes it so.
    fn culprit(&self, plan: &Plan) -> anyhow::Error {
        let mut part = Plan {
            everybody: plan.everybody.clone(),
            ..Plan::default()
        };
        for level in &self.0 {
            for name in level.said.arms.keys() {
                part.arms.insert(name.clone(), plan.arms[name].clone());
                if let Err(e) = level.blamed(&format!("arms.{name}"), part.check()) {
                    return e;
                }
            }
        }
        for level in &self.0 {
            for rule in &level.said.rules {
                part.put_rule(rule);
                if let Err(e) = level.blamed(&rule.subject.to_string(), part.check()) {
                    return e;
                }
            }
        }
        anyhow!("the configuration is not possible")
    }

    /// The place that has this key last.
    pub fn place(&self, key: &str) -> String {
        let has = |level: &&Level| level.said.options.contains_key(key);
        let last = self.0.iter().rev().find(has);
        last.map_or(BUILT_IN.to_string(), |level| level.place(key))
    }

    /// The place of an arm or a rule.
    pub fn place_of_arms(&self) -> Option<String> {
        self.0.iter().find_map(|level| {
            let arm = level.said.arms.keys().next();
            let arm = arm.map(|name| format!("arms.{name}"));
            let key = arm.or(level
                .said
                .rules
                .first()
                .map(|rule| rule.subject.to_string()))?;
            Some(level.place(&key))
        })
    }

    /// What the file of this name says.
    pub fn said(&self, file: &Path) -> Option<&Said> {
        let level = self.0.iter().find(|l| Path::new(&l.from) == file);
        level.map(|level| &level.said)
    }

    /// The options that are no settings, with the level of each.
    fn options(&self) -> Options {
        let mut all = BTreeMap::new();
        for level in &self.0 {
            for (key, words) in &level.said.options {
                all.insert(key.clone(), (words.clone(), level.from.clone()));
            }
        }
        all
    }

    pub fn run_args(&self) -> Result<RunArgs> {
        let options = self.options();
        let words = options.iter();
        run_args(words.flat_map(|(key, (words, _))| words_of(key, words.as_ref())))
    }

    /// Options that differ, which only a start takes over.
    pub fn differs(&self, other: &Levels) -> Vec<String> {
        let (ours, theirs) = (self.options(), other.options());
        let words = |all: &Options, key: &String| all.get(key).and_then(|(words, _)| words.clone());
        let mut keys: Vec<String> = ours.keys().chain(theirs.keys()).cloned().collect();
        keys.sort();
        keys.dedup();
        keys.retain(|key| words(&ours, key) != words(&theirs, key));
        keys
    }

    /// Each value, and where it comes from.
    pub fn rows(&self) -> Result<Vec<Row>> {
        let plan = self.plan()?;
        let levels = || self.0.iter().map(|l| (l.from.as_str(), &l.said.change));
        let mut rows = settings("", &plan.everybody, levels(), BUILT_IN);
        let given = self.options();
        for arg in RunArgs::augment_args(Command::new("")).get_arguments() {
            let key = arg.get_long().unwrap_or_default();
            let default = arg.get_default_values().join(" ".as_ref());
            let default = default.to_string_lossy().into_owned();
            let (value, from) = match given.get(key) {
                Some((None, from)) => ("off".to_string(), from.as_str()),
                Some((Some(words), from)) if words.is_empty() => ("on".to_string(), from.as_str()),
                Some((Some(words), from)) => (words.join(" "), from.as_str()),
                None if !arg.get_action().takes_values() => ("off".to_string(), BUILT_IN),
                None if default.is_empty() => ("none".to_string(), BUILT_IN),
                None => (default, BUILT_IN),
            };
            rows.push(Row::new(key, value, from));
        }
        for (name, arm) in &plan.arms {
            let of_arm = |l: &'_ Level| l.said.arms.contains_key(name);
            let first = self.0.iter().find(|l| of_arm(l)).map_or("", |l| &l.from);
            let changes = self.0.iter().filter(|l| of_arm(l));
            let changes = changes.map(|l| (l.from.as_str(), &l.said.arms[name]));
            let as_default = format!("as arm default, {first}");
            rows.extend(settings(
                &format!("arms.{name}."),
                arm,
                changes,
                &as_default,
            ));
        }
        for rule in &plan.rules {
            let has = |l: &&Level| l.said.rules.contains(rule);
            let from = self.0.iter().rev().find(has).map_or("", |l| &l.from);
            rows.push(Row::new(
                "rules",
                format!("{} --arm {}", rule.subject, rule.arm),
                from,
            ));
        }
        Ok(rows)
    }
}

/// The rows as text.
pub fn text(rows: &[Row]) -> String {
    let width = |of: fn(&Row) -> &String| rows.iter().map(|r| of(r).len()).max().unwrap_or(0);
    let (keys, values) = (width(|r| &r.key), width(|r| &r.value).min(40));
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(
            text,
            "{:keys$}  {:values$}  {}",
            row.key, row.value, row.from
        );
    }
    text
}

impl Row {
    fn new(key: &str, value: impl Into<String>, from: &str) -> Row {
        Row {
            key: key.to_string(),
            value: value.into(),
            from: from.to_string(),
        }
    }
}

/// The rows of an arm. `changes`: of each level; `base`: where what none of them says comes from.
fn settings<'a>(
    prefix: &str,
    now: &Settings,
    changes: impl Iterator<Item = (&'a str, &'a Change)>,
    base: &'a str,
) -> Vec<Row> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    for (level, change) in changes {
        if change.profile.is_some() || change.preset.is_some() {
            let chosen = ["profile", "preset"].into_iter();
            from.extend(
                chosen
                    .chain(FEATURES.iter().map(|f| f.name))
                    .map(|key| (key, level)),
            );
        }
        if change.profile.is_some() {
            from.retain(|key, _| !TUNABLES.iter().any(|t| t.name == *key));
        }
        let switched = change.enable.iter().chain(&change.disable);
        from.extend(
            switched
                .chain(change.set.keys())
                .map(|key| (key.as_str(), level)),
        );
    }
    let of_profile = from.get("profile").copied();
    let profile = match now.profile() {
        none if none.is_empty() => "none".to_string(),
        some => some,
    };
    let features = FEATURES.iter().map(|f| {
        let on = if now.features.has(f.bit) { "on" } else { "off" };
        (f.name, on.to_string())
    });
    let tunables = TUNABLES.iter().map(|t| (t.name, now.shown(t)));
    let choices = [("profile", profile), ("preset", now.preset.clone())];
    let all = choices.into_iter().chain(features).chain(tunables);
    let row = |(key, value): (&str, String)| {
        let from = from.get(key).copied();
        let from = from
            .or(of_profile.filter(|_| now.has_of_profile(key)))
            .unwrap_or(base);
        Row::new(&format!("{prefix}{key}"), value, from)
    };
    all.map(row).collect()
}

fn apply(settings: &mut Settings, change: &Change) -> Result<()> {
    if *change != Change::default() {
        *settings = settings.changed(change)?;
    }
    Ok(())
}

/// The command line in the form of a file.
fn of_command_line(matches: &ArgMatches) -> Result<Said> {
    let command = RunArgs::augment_args(SettingArgs::augment_args(Command::new("")));
    let mut said = Said::default();
    for arg in command.get_arguments() {
        let (id, key) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
        if !typed(matches, id) {
            continue;
        }
        let raw = matches.get_raw(id).into_iter().flatten();
        let raw = raw.filter(|_| arg.get_action().takes_values());
        let mut words = Vec::new();
        for word in raw {
            let word = word.to_str();
            words.push(
                word.with_context(|| format!("--{key}: expected UTF-8"))?
                    .to_string(),
            );
        }
        if !said.change.put(key, &words)? {
            said.options.insert(key.to_string(), Some(words));
        }
    }
    Ok(said)
}

fn words_of(key: &str, words: Option<&Vec<String>>) -> Vec<String> {
    match words {
        None => Vec::new(),
        Some(none) if none.is_empty() => vec![format!("--{key}")],
        Some(words) => words.iter().map(|word| format!("--{key}={word}")).collect(),
    }
}

/// Parses options as the command line does.
fn run_args(words: impl IntoIterator<Item = String>) -> Result<RunArgs> {
    let command = RunArgs::augment_args(Command::new("").no_binary_name(true));
    let matches = command.try_get_matches_from(words);
    let parsed = matches.and_then(|matches| RunArgs::from_arg_matches(&matches));
    parsed.map_err(|e| anyhow!("{}", sentence(&e.render().to_string())))
}
