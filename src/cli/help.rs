// SPDX-License-Identifier: GPL-2.0-only
//! How help is laid out: the commands in groups, and rare options only where all are wanted.

use clap::error::ErrorKind;
use clap::{Command, builder::StyledStr};
use std::ffi::OsString;
use std::fmt::Write;

const ALL: &str = "--help-all";

/// What a user of each group wants. A command that no group names would not be shown: a test.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "The running scheduler",
        &["status", "monitor", "ctl", "exec", "export", "stop"],
    ),
    ("This machine", &["doctor", "topology"]),
    ("Is it better? Measure", &["ab", "tune"]),
    (
        "What there is to switch",
        &["features", "presets", "profiles"],
    ),
    ("Set up", &["config", "completions", "man"]),
];

/// The command with its subcommands listed in groups.
pub fn grouped(command: Command) -> Command {
    let mut list = String::new();
    for (heading, names) in GROUPS {
        let subs = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        let _ = writeln!(list, "{heading}:");
        for sub in subs {
            let about = sub.get_about().map(StyledStr::to_string);
            let _ = writeln!(
                list,
                "  {:<11} {}",
                sub.get_name(),
                about.unwrap_or_default()
            );
        }
        list.push('\n');
    }
    // Hidden from clap's own list alone: they are found by name.
    command
        .mut_subcommands(|sub| sub.hide(true))
        .mut_args(|arg| match arg.get_help_heading() {
            Some(_) => arg.hide(true),
            None if arg.get_id() == "sysfs" => arg.hide(true),
            None => arg,
        })
        .override_usage("scx_roost [OPTIONS]\n       scx_roost COMMAND [OPTIONS]")
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}{{all-args}}{{after-help}}"
        ))
}

/// `help COMMAND` as `COMMAND --help`: clap suggests a name for a mistyped one there alone.
pub fn spelled_out(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        words.push("--help".into());
    }
    words
}

/// If the words ask for all options: the help of the command that they name, with all of them. None
/// also if the words before are wrong, which is an error as without this option.
pub fn all(command: &Command, words: &[OsString]) -> Option<String> {
    let ours = words.iter().take_while(|word| *word != "--");
    let (all, mut asked): (Vec<OsString>, Vec<OsString>) =
        ours.cloned().partition(|word| word == ALL);
    all.first()?;
    asked.push("--help".into());
    let help = shown(command.clone()).try_get_matches_from(asked).err()?;
    (help.kind() == ErrorKind::DisplayHelp).then(|| help.render().to_string())
}

/// The command with all its options for people, and those of its subcommands.
fn shown(command: Command) -> Command {
    command
        .mut_args(|arg| match arg.get_help() {
            Some(_) => arg.hide(false),
            None => arg,
        })
        .mut_subcommands(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn each_command_for_people_is_in_one_group() {
        let command = Cli::command();
        let mut named: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.to_vec())
            .collect();
        let mut there: Vec<&str> = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set())
            .map(Command::get_name)
            .collect();
        there.sort_unstable();
        named.sort_unstable();
        named.retain(|name| command.find_subcommand(name).is_some());
        assert_eq!(named, there);
    }
}
