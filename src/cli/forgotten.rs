// SPDX-License-Identifier: GPL-2.0-only
//! Suggests the missing `--` before a command. The word may also be a mistyped subcommand.

use crate::util::text::quoted;
use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use std::ffi::OsString;

/// What to type instead. None: the error is a different one.
pub fn dashes(command: &Command, words: &[OsString], error: &Error) -> Option<String> {
    let wrong = match error.kind() {
        ErrorKind::UnknownArgument => error.get(ContextKind::InvalidArg),
        ErrorKind::InvalidSubcommand => error.get(ContextKind::InvalidSubcommand),
        _ => None,
    };
    let Some(ContextValue::String(wrong)) = wrong else {
        return None;
    };
    let mut subcommands = words.iter().enumerate().skip(1);
    let takes = |word: &OsString| {
        let found = command.find_subcommand(word);
        found.filter(|sub| sub.get_arguments().any(clap::Arg::is_last_set))
    };
    let (begin, sub) = subcommands.find_map(|(at, word)| Some((at, takes(word)?)))?;
    if wrong.starts_with('-') || words.iter().any(|word| word == "--") {
        return None;
    }
    // The same word may be an option's value.
    let places = (begin + 1..words.len()).filter(|at| words[*at] == **wrong);
    let right = places
        .map(|at| [&words[..at], &["--".into()], &words[at..]].concat())
        .find(|words| accepted(command, words))?;
    let right: Vec<String> = right[1..]
        .iter()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    let expected = match names(sub) {
        Some(names) => format!("expected {names}, or a command after --"),
        None => "a command follows --".to_string(),
    };
    Some(format!(
        "'{wrong}' is neither an option nor a subcommand of {}: {expected}, as in: {} {}",
        sub.get_name(),
        command.get_name(),
        right.join(" ")
    ))
}

/// 'show or compare'; None: it has no subcommands.
fn names(command: &Command) -> Option<String> {
    let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let (last, before) = names.split_last()?;
    Some(format!("{} or {last}", before.join(", ")))
}

/// Whether clap accepts the words; required arguments may still be missing.
fn accepted(command: &Command, words: &[OsString]) -> bool {
    let lacks = |e: Error| e.kind() == ErrorKind::MissingRequiredArgument;
    let parsed = command.clone().try_get_matches_from(words);
    parsed.map_or_else(lacks, |_| true)
}
