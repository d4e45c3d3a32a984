// SPDX-License-Identifier: GPL-2.0-only
//! `--parameter NAME=A,B,C`: the same command with each value of a parameter, as a suite of
//! workloads. `{NAME}` in the command and in the commands around it is the value.

use super::hooks::Hooks;
use super::suite::Item;
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::str::FromStr;

/// More would be a mistake: each is a comparison of its own.
const COMBINATIONS_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    name: String,
    values: Vec<String>,
}

/// A parameter and one of its values.
pub type Set = (String, String);

impl FromStr for Parameter {
    type Err = String;

    fn from_str(text: &str) -> Result<Parameter, String> {
        let expected = || {
            format!("'{text}': expected NAME=VALUE,VALUE,... with at least two different values")
        };
        let (name, values) = text.split_once('=').ok_or_else(expected)?;
        let values: Vec<String> = values.split(',').map(str::to_string).collect();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let twice = |(at, value): (usize, &String)| values[..at].contains(value);
        let known = !name.is_empty() && name.chars().all(plain);
        let empty = values.iter().any(String::is_empty);
        if !known || empty || values.len() < 2 || values.iter().enumerate().any(twice) {
            return Err(expected());
        }
        Ok(Parameter {
            name: name.to_string(),
            values,
        })
    }
}

/// One workload for each combination of values. Fails if a parameter is given twice, if the command
/// and the hooks do not have it, or if two workloads had one result file.
pub fn items(parameters: &[Parameter], command: &[OsString], hooks: &Hooks) -> Result<Vec<Item>> {
    let words: Vec<&str> = command
        .iter()
        .map(|word| word.to_str().context("the command is not UTF-8"))
        .collect::<Result<_>>()?;
    let around = [&hooks.setup, &hooks.prepare, &hooks.cleanup];
    let texts: Vec<&str> = around
        .iter()
        .filter_map(|hook| hook.as_deref())
        .chain(words.iter().copied())
        .collect();
    let mut sets: Vec<Vec<Set>> = vec![Vec::new()];
    for (at, parameter) in parameters.iter().enumerate() {
        let name = &parameter.name;
        let before = &parameters[..at];
        ensure!(
            before.iter().all(|p| p.name != *name),
            "--parameter {name} is given twice"
        );
        ensure!(
            texts.iter().any(|text| text.contains(&place(name))),
            "--parameter {name}: the command has no {}, where its values would be",
            place(name)
        );
        let with = |set: &Vec<Set>| {
            let one = |value: &String| [&set[..], &[(name.clone(), value.clone())]].concat();
            parameter.values.iter().map(one).collect::<Vec<_>>()
        };
        sets = sets.iter().flat_map(with).collect();
        ensure!(
            sets.len() <= COMBINATIONS_MAX,
            "more than {COMBINATIONS_MAX} combinations of parameters: give fewer values"
        );
    }
    let item = |(number, set): (usize, Vec<Set>)| Item {
        name: name(&set, number),
        command: words.iter().map(|w| filled(w, &set).into()).collect(),
        metric: None,
        set,
    };
    let items: Vec<Item> = sets.into_iter().enumerate().map(item).collect();
    for (at, one) in items.iter().enumerate() {
        let twin = items[..at].iter().find(|other| other.name == one.name);
        ensure!(
            twin.is_none(),
            "two combinations of parameters have one name for their result file, {}: give other values",
            one.name
        );
    }
    Ok(items)
}

fn place(name: &str) -> String {
    format!("{{{name}}}")
}

/// The text with the values in place of `{NAME}`.
pub fn filled(text: &str, set: &[Set]) -> String {
    let fill = |text: String, (name, value): &Set| text.replace(&place(name), value);
    set.iter().fold(text.to_string(), fill)
}

/// Such as 'threads=4,size=2'. It becomes a part of a file's name, so other signs are left out,
/// and a number is added.
fn name(set: &[Set], number: usize) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=._-".contains(c);
    let each = set.iter().map(|(name, value)| format!("{name}={value}"));
    let whole = each.collect::<Vec<_>>().join(",");
    let kept: String = whole.chars().filter(|c| plain(*c) || *c == ',').collect();
    match kept == whole && kept.len() <= 100 {
        true => kept,
        false => format!("{:.60}-{}", kept, number + 1),
    }
}
