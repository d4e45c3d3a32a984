// SPDX-License-Identifier: GPL-2.0-only
//! contrib/config.toml, which packages install as /etc/scx_roost/config.toml: every key, commented
//! out. It is generated from the options and the tables; reference.rs says how to rewrite it.

use crate::reference::compare_file;
use crate::top;
use clap::{Arg, Args, Command};
use scx_roost::cli::args::{RunArgs, SettingArgs};
use scx_roost::policy::config::{STATS_PATH, ctl_path_beside};
use scx_roost::policy::features::{self, DEFAULT_PRESET, Default, FEATURES};
use scx_roost::policy::profiles;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
# SPDX-License-Identifier: GPL-2.0-only
# Configuration of scx_roost. It sets nothing: a line that begins with '#' and a key shows the key's
# default, or an example if the default is to have none. To set one, take away its '#'. Then:
#   scx_roost config check             whether the files are good
#   scx_roost config show              what a start would use, and where each value comes from
#   systemctl reload scx_roost         the running scheduler reads them again
# docs/guides/configuration.md describes it. Generated; see tests/crate/config_file.rs.
";

const TABLES: &str = r##"
# ---- Arms and rules ----

# Settings of its own for some tasks. An arm takes the keys down to the tunables, except those for
# the whole machine. What it does not say is as above.
#[arms.games]
#profile = "gaming"

# Which tasks are on it: by name, or by control group.
#[[rules]]
#comm = "Game*"
#arm = "games"

#[[rules]]
#cgroup = "/sys/fs/cgroup/system.slice/buildbot.service"
#arm = "games"
"##;

fn file() -> PathBuf {
    top().join("contrib/config.toml")
}

/// A value as TOML: the default, or an example. Only the latter are chosen here.
fn value(arg: &Arg) -> String {
    let key = arg.get_long().unwrap();
    let feature = |on: bool| {
        let preset = features::preset(DEFAULT_PRESET).unwrap();
        let mut rows = FEATURES.iter().filter(|f| f.parent.is_empty());
        rows.find(|f| preset.features.has(f.bit) == on)
            .unwrap()
            .name
    };
    let default = arg.get_default_values().first();
    let text = match (key, default.and_then(|d| d.to_str())) {
        (_, Some(default)) => default.to_string(),
        ("profile", _) => profiles::AUTO.to_string(),
        ("preset", _) => DEFAULT_PRESET.to_string(),
        ("enable" | "disable", _) => return format!("[\"{}\"]", feature(key == "disable")),
        ("log-level", _) => "info".to_string(),
        ("ctl-path", _) => ctl_path_beside(Path::new(STATS_PATH)).display().to_string(),
        ("stats-group" | "ctl-group", _) => "root".to_string(),
        _ if !arg.get_action().takes_values() => "false".to_string(),
        _ => match &features::known_tunable(key).expect(key).default {
            of_cpus @ Default::BaseSlice => of_cpus.value(8).to_string(),
            fixed => fixed.to_string(),
        },
    };
    match text.parse::<u32>().is_ok() || text == "false" {
        true => text,
        false => format!("\"{text}\""),
    }
}

/// Lines of a comment.
fn comment(text: &str) -> String {
    let mut lines = vec![String::from("#")];
    for word in text.split_whitespace() {
        if lines.last().unwrap().len() + 1 + word.len() > 100 {
            lines.push(String::from("#"));
        }
        let line = lines.last_mut().unwrap();
        *line += " ";
        *line += word;
    }
    lines.join("\n") + "\n"
}

fn generated() -> String {
    let mut text = HEAD.to_string();
    let command = RunArgs::augment_args(SettingArgs::augment_args(Command::new("")));
    let args: Vec<&Arg> = command.get_arguments().collect();
    let mut headings = Vec::new();
    for heading in args.iter().map(|arg| arg.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings.sort_by_key(|heading| *heading == Some("Special cases"));
    for heading in headings {
        let title = heading.map_or("Features", |h| h.split(',').next().unwrap());
        write!(text, "\n# ---- {title} ----\n").unwrap();
        for arg in args.iter().filter(|arg| arg.get_help_heading() == heading) {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let key = arg.get_long().unwrap();
            write!(text, "\n{}#{key} = {}\n", comment(&help), value(arg)).unwrap();
        }
    }
    text + TABLES
}

#[test]
fn the_file_of_packages_has_all_keys() {
    compare_file(&file(), &generated());
}

/// What `scx_roost WORDS` prints, which succeeds.
fn printed(words: &[&str]) -> String {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(words)
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn as_it_is_it_changes_nothing() {
    // Files that others may write are refused, and a clone may be.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::copy(file(), &path).unwrap();
    let path = path.display().to_string();
    assert_eq!(
        printed(&["config", "check", &path]),
        format!("{path}: good\n")
    );
    let shown = |place: &str| printed(&["--config", place, "config", "show"]);
    assert_eq!(shown(&path), shown("none"));
}

#[test]
fn each_line_may_be_used() {
    let text = std::fs::read_to_string(file()).unwrap();
    let used: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix('#'))
        .filter(|line| line.starts_with(|c: char| !c.is_whitespace()))
        .collect();
    let tables = used.iter().position(|line| line.starts_with('[')).unwrap();
    let (keys, tables) = used.split_at(tables);
    assert!(keys.len() > 20 && tables.len() > 5, "{used:?}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    let shown = |text: &str| {
        std::fs::write(&path, text).unwrap();
        printed(&["--config", path.to_str().unwrap(), "config", "show"])
    };
    for key in keys {
        let rows = shown(key);
        assert!(rows.contains(path.to_str().unwrap()), "{key}: {rows}");
    }
    // A profile has a preset.
    let together = keys.iter().filter(|key| !key.starts_with("preset"));
    let lines: Vec<&str> = together.chain(tables).copied().collect();
    let rows = shown(&lines.join("\n"));
    assert!(
        rows.contains("arms.games.profile") && rows.contains("--comm Game*"),
        "{rows}"
    );
}
