// SPDX-License-Identifier: GPL-2.0-only
//! How to keep what `tune` found: now, and after each start of the scheduler. Arms and rules live
//! in the scheduler's process and are not on disk, so a drop-in of the service creates them again.

use super::programs;
use super::variant::{Kind, Scope, Variant};
use crate::policy::arms::{Change, DEFAULT_ARM, NAME_MAX};
use crate::util::hash::fnv1a;
use crate::util::text::quoted;
use anyhow::{Result, bail};
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest name of a task (comm), in bytes.
const COMM_MAX: usize = 15;
/// How long `ctl` waits for a scheduler that is starting, in seconds. Several drop-ins may wait one
/// after the other, and systemd allows 90 s for the whole start.
const START_TIME: &str = "20";
/// The service unit that is shipped.
const UNIT: &str = include_str!("../../contrib/scx_roost.service");
const DROP_INS: &str = "/etc/systemd/system/scx_roost.service.d/";
/// The drop-in for all tasks. It sorts after those of workloads (tune-*.conf), so its ExecStart=
/// wins.
const FOR_ALL: &str = "tune.conf";
/// Root of systemd's slices.
const CGROUPS: &str = "/sys/fs/cgroup";

const SHELL: &str = "a shell";
/// Programs that start others or run what they are given. Many unrelated tasks have their names,
/// and the wanted task has another name.
const STARTERS: [(&str, &str); 4] = [
    (SHELL, "ash bash busybox csh dash fish ksh mksh sh tcsh zsh"),
    (
        "a program that runs others",
        "bwrap chroot chrt dbus-run-session distrobox doas docker env firejail flatpak gamemoderun gamescope gdb ionice mangohud nice nohup nsenter numactl podman \
         parallel perf pkexec prlimit run0 runuser setarch setpriv setsid stdbuf steam strace su screen sudo systemd-run taskset time timeout tmux \
         unshare valgrind watch wine xargs xvfb-run",
    ),
    (
        "an interpreter",
        "Rscript awk bun deno dotnet elixir erl gawk guile java julia lua luajit mono node nodejs octave perl php pypy python ruby tclsh",
    ),
    (
        "a program that builds or tests",
        "ant bazel c++ cargo cc ccache clang clang++ cmake ctest g++ gcc gmake go gradle just make meson mvn ninja npm npx pytest rustc samu scons tox yarn",
    ),
];

/// How to keep a variant: commands to type, the service's drop-in, and why there is no rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lasting {
    scope: Scope,
    /// Commands. With scope `machine` the last one, the scheduler, keeps running.
    pub now: Vec<String>,
    /// With scope `machine`: a command to type instead of `now` if a scx_roost already runs. With
    /// scope `workload`: a command to type first if none runs.
    pub otherwise: String,
    /// The workload's arm, named after it; None: arm default has the variant.
    pub arm: Option<String>,
    /// Commands that remove its rule and arm.
    pub away: Vec<String>,
    /// How to start the command each time; None: nothing to do.
    pub each_time: Option<String>,
    /// Why there is no rule for the command's name.
    pub no_rule: Option<String>,
    /// In that case: the systemd slice that the rule is for, and how to start the command in it.
    pub slice: Option<String>,
    pub in_slice: Option<String>,
    /// Path of the drop-in file, and its lines.
    pub file: String,
    pub drop_in: Vec<String>,
    /// For the command alone, if it was measured for all tasks.
    pub alone: Option<Box<Lasting>>,
    /// Why it cannot be for the command alone.
    pub not_alone: Option<String>,
}

impl Lasting {
    /// `script`: whether an interpreter runs this file. Fails if a variant is not one of scx_roost.
    pub fn new(
        base: &str,
        found: &str,
        scope: Scope,
        command: &[String],
        script: &dyn Fn(&Path) -> bool,
    ) -> Result<Lasting> {
        let variants = [Variant::parse(base)?, Variant::parse(found)?];
        let changes = [change(&variants[0])?, change(&variants[1])?];
        if scope == Scope::Workload {
            return Ok(Lasting::of_workload(&changes, command, script));
        }
        let not_alone = Scope::Workload.check(&variants).err();
        let alone = || Box::new(Lasting::of_workload(&changes, command, script));
        let start = start(&changes[1]);
        Ok(Lasting {
            scope,
            now: vec![typed("scx_roost", &start)],
            otherwise: typed("scx_roost ctl", &set(&changes[1])),
            arm: None,
            away: Vec::new(),
            each_time: None,
            no_rule: None,
            slice: None,
            in_slice: None,
            file: format!("{DROP_INS}{FOR_ALL}"),
            drop_in: drop_in(None, &start, &[]),
            alone: not_alone.is_none().then(alone),
            not_alone: not_alone.map(|e| e.to_string()),
        })
    }

    fn of_workload(
        [base, found]: &[Change; 2],
        command: &[String],
        script: &dyn Fn(&Path) -> bool,
    ) -> Lasting {
        let no_rule = no_rule(command, script);
        // A rule applies to all calls of a program, so the arm is named after the program alone.
        let comm = no_rule.is_none().then(|| comm(program(command)));
        let arm = match &comm {
            Some(comm) => slug(&words(&[comm])),
            None => slug(command),
        };
        let slice = comm.is_none().then(|| format!("tune-{arm}.slice"));
        let whom = match (&comm, &slice) {
            (Some(comm), _) => words(&["--comm", comm]),
            (None, slice) => words(&["--cgroup", &folder(slice.as_deref().unwrap_or_default())]),
        };
        let rule = |verb: &str| [words(&["rules", verb]), whom.clone()].concat();
        let mut calls = making(&arm, found);
        calls.push([rule("add"), words(&["--arm", &arm])].concat());
        let away = [rule("del"), words(&["arms", "del", &arm])];
        let ctl = |calls: &[Vec<String>]| -> Vec<String> {
            let typed = calls.iter().map(|call| typed("scx_roost ctl", call));
            typed.collect()
        };
        // A rule for a cgroup that does not exist is refused, so the slice is started first.
        let made = slice.iter().map(|slice| format!("systemctl start {slice}"));
        let in_slice = slice.as_ref();
        let in_slice = in_slice.map(|s| format!("systemd-run --scope --slice={s} --"));
        Lasting {
            scope: Scope::Workload,
            now: made.chain(ctl(&calls)).collect(),
            away: ctl(&away),
            otherwise: typed("scx_roost", &start(base)),
            each_time: Some(typed(&format!("scx_roost exec --arm {arm} --"), command)),
            no_rule,
            in_slice: in_slice.map(|begin| typed(&begin, command)),
            file: format!("{DROP_INS}tune-{arm}.conf"),
            arm: Some(arm),
            drop_in: drop_in(slice.as_deref(), &start(base), &calls),
            slice,
            alone: None,
            not_alone: None,
        }
    }

    pub fn text(&self) -> String {
        let own = self.own_text(self.scope == Scope::Workload);
        let rest = match (&self.alone, &self.not_alone) {
            (Some(alone), _) => format!(
                "\nIt was measured for all tasks. These commands, not measured, apply it to this workload alone:\n{}",
                alone.own_text(false)
            ),
            (None, Some(why)) => format!("\nIt cannot apply to this workload alone: {why}.\n"),
            (None, None) => String::new(),
        };
        own + &rest
    }

    /// `measured`: it was measured in this scope.
    fn own_text(&self, measured: bool) -> String {
        self.text_now() + &self.text_reach() + &self.text_each_time(measured) + &self.text_service()
    }

    /// How to apply it now.
    fn text_now(&self) -> String {
        let when = match self.scope {
            Scope::Machine => "now for all tasks, as it was measured",
            Scope::Workload => "now, until the scheduler ends",
        };
        let now = format!("To apply it {when}, run as root:\n{}", indented(&self.now));
        let otherwise = match &self.arm {
            None => format!("If scx_roost runs already:\n  {}\n", self.otherwise),
            Some(_) => format!(
                "If no scx_roost runs, start the base first; if an arm of that name exists, delete it first, with its rules:\n  {}\n{}",
                self.otherwise,
                indented(&self.away)
            ),
        };
        now + &otherwise
    }

    /// Which tasks the rule is for.
    fn text_reach(&self) -> String {
        match &self.no_rule {
            Some(why) => format!(
                "There is no rule for the command's name: {why}. The rule applies to everything started in {}, as root or with --uid=NAME:\n  {}\n",
                self.slice.as_deref().unwrap_or_default(),
                self.in_slice.as_deref().unwrap_or_default()
            ),
            None if self.scope == Scope::Workload => {
                "The rule applies to threads of that name: not to threads that the program renames, nor to programs of other names that it starts.\n".to_string()
            }
            None => String::new(),
        }
    }

    fn text_each_time(&self, measured: bool) -> String {
        let measured = if measured { ", as it was measured" } else { "" };
        let text = self.each_time.as_ref().map(|exec| {
            format!(
                "To cover everything that the command starts{measured}, start it each time by\n  {exec}\n"
            )
        });
        text.unwrap_or_default()
    }

    /// How to apply it after each start of the service.
    fn text_service(&self) -> String {
        let several = match &self.arm {
            None => "",
            Some(_) => {
                "Another workload's file may be beside it: the ExecStart= of the last file counts, and the arms and rules of all files.\n"
            }
        };
        format!(
            "To apply it after each start of the service contrib/scx_roost.service, create this file\n\
             {} (mkdir -p its folder), and then: systemctl daemon-reload && systemctl restart scx_roost\n\
             Its ExecStart= replaces the service's: add the other options that 'systemctl cat scx_roost' shows, such as --stats-group.\n\
             {several}{}",
            self.file,
            indented(&self.drop_in)
        )
    }
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

fn change(variant: &Variant) -> Result<Change> {
    match &variant.kind {
        Kind::Roost(roost) => Ok(roost.0.clone()),
        _ => bail!("{} is not a variant of scx_roost", variant.name),
    }
}

/// Folder of a slice. A dash in its name means that it is nested.
fn folder(slice: &str) -> String {
    let dashes = slice.match_indices('-').map(|(at, _)| at);
    let above = dashes.map(|at| format!("/{}.slice", &slice[..at]));
    format!("{CGROUPS}{}/{slice}", above.collect::<String>())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn typed(begin: &str, words: &[String]) -> String {
    let words = words.iter().map(|w| format!(" {}", quoted(w)));
    begin.to_string() + &words.collect::<String>()
}

/// --enable and --disable options, as a start and `ctl set` take them.
fn switches(change: &Change) -> Vec<String> {
    let options = [("--enable", &change.enable), ("--disable", &change.disable)];
    let each = options
        .iter()
        .flat_map(|(option, names)| names.iter().flat_map(move |n| words(&[option, n])));
    each.collect()
}

fn tunables(change: &Change) -> impl Iterator<Item = (&str, &str)> {
    let all = change.set.iter();
    all.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or_default()))
}

/// Arguments of a start whose arm default has this configuration.
fn start(change: &Change) -> Vec<String> {
    let mut start = words(&["--preset", change.preset.as_deref().unwrap_or_default()]);
    start.extend(switches(change));
    start.extend(tunables(change).flat_map(|(name, value)| words(&[&format!("--{name}"), value])));
    start
}

/// The `ctl` call that gives arm default this configuration.
fn set(change: &Change) -> Vec<String> {
    let mut set = words(&[
        "set",
        "--preset",
        change.preset.as_deref().unwrap_or_default(),
    ]);
    set.extend(switches(change));
    set.extend(settings(change));
    set
}

fn settings(change: &Change) -> impl Iterator<Item = String> {
    tunables(change).flat_map(|(name, value)| words(&["--set", &format!("{name}={value}")]))
}

/// `ctl` calls that create an arm with this configuration.
fn making(arm: &str, change: &Change) -> Vec<Vec<String>> {
    let preset = change.preset.as_deref().unwrap_or_default();
    let mut set = words(&["set", "--arm", arm]);
    let plain = set.len();
    set.extend(switches(change));
    set.extend(settings(change));
    let add = words(&["arms", "add", arm, "--preset", preset]);
    let changes = set.len() > plain;
    [Some(add), changes.then_some(set)]
        .into_iter()
        .flatten()
        .collect()
}

/// Lines of the service's drop-in. The slice starts before a rule names it. The first call waits,
/// since there may be no scheduler yet. The service keeps running if a call fails.
fn drop_in(slice: Option<&str>, start: &[String], calls: &[Vec<String>]) -> Vec<String> {
    let run = |words: &[String]| -> String {
        let words = words.iter().map(|w| format!(" {}", in_unit(w)));
        words.collect()
    };
    let program = UNIT.lines().find_map(|l| l.strip_prefix("ExecStart="));
    let program = program.unwrap_or("scx_roost");
    let mut lines = Vec::new();
    if let Some(slice) = slice {
        lines.push("[Unit]".to_string());
        lines.extend(["Wants", "After"].map(|name| format!("{name}={slice}")));
    }
    lines.extend(words(&["[Service]", "ExecStart="]));
    lines.push(format!("ExecStart={program}{}", run(start)));
    for (at, call) in calls.iter().enumerate() {
        let wait = match at {
            0 => format!(" --wait {START_TIME}"),
            _ => String::new(),
        };
        lines.push(format!("ExecStartPost=-{program} ctl{wait}{}", run(call)));
    }
    lines
}

/// Quotes a word for a systemd unit.
fn in_unit(word: &str) -> String {
    let doubled = word.replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%$".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => doubled,
        false => format!("\"{}\"", doubled.replace('\\', r"\\").replace('"', "\\\"")),
    }
}

/// Name of an arm, made of the base names of `words`. If it cannot show them unchanged, it ends
/// with a hash of them.
fn slug(words: &[String]) -> String {
    let mut slug = String::new();
    for c in words
        .iter()
        .flat_map(|w| ["-", plain(w)].concat().into_bytes())
    {
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() || c == b'_' => slug.push(c.into()),
            _ if slug.is_empty() || slug.ends_with('-') => (),
            _ => slug.push('-'),
        }
    }
    let possible = |slug: &str| !slug.is_empty() && slug != DEFAULT_ARM && slug.len() <= NAME_MAX;
    let bare: Vec<&str> = words.iter().map(|w| w.trim_start_matches('-')).collect();
    let trimmed = slug.trim_end_matches('-');
    match possible(trimmed) && trimmed == bare.join("-") {
        true => trimmed.to_string(),
        false => {
            slug.truncate(NAME_MAX - 5);
            let number = fnv1a(words.iter().flat_map(|w| w.bytes().chain([0]))) as u16;
            format!("{}-{number:04x}", slug.trim_end_matches('-'))
                .trim_start_matches('-')
                .to_string()
        }
    }
}

fn plain(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

fn program(command: &[String]) -> &str {
    command.first().map_or("", |first| plain(first))
}

/// Why a rule for the command's name would match other tasks, or not what was measured.
fn no_rule(command: &[String], script: &dyn Fn(&Path) -> bool) -> Option<String> {
    let name = program(command);
    // The name without a version: python3.12, gcc-14. Names of shells have none.
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
    if name.is_empty() {
        return Some("it has none".to_string());
    }
    let is_of = |kind: &str, names: &str| {
        let mut names = names.split(' ');
        names.any(|n| n == name || n == plain && kind != SHELL)
    };
    let kind = STARTERS.iter().find(|(kind, names)| is_of(kind, names));
    let kind = kind.map(|(kind, _)| *kind);
    let kind = kind.or_else(|| script(Path::new(&command[0])).then_some("a script"));
    kind.map(|kind| {
        format!("{name} is {kind}: unrelated tasks share that name, and the programs it starts have other names")
    })
}

/// The name as the kernel cuts it. If the cut is within a character, a pattern.
fn comm(name: &str) -> String {
    let cut = name.floor_char_boundary(COMM_MAX);
    match cut == name.len() || cut == COMM_MAX {
        true => name[..cut].to_string(),
        false => format!("{}*", &name[..cut]),
    }
}

/// True if the file begins with "#!".
pub fn is_script(program: &Path) -> bool {
    let found = match program.to_string_lossy().contains('/') {
        true => Some(program.to_path_buf()),
        false => programs::program(program, &std::env::var_os("PATH").unwrap_or_default()),
    };
    let mut begin = [0; 2];
    // Only regular files: opening a FIFO would block.
    let read = found.filter(|file| file.is_file()).map(|file| {
        let mut file = File::open(file)?;
        file.read_exact(&mut begin)
    });
    matches!(read, Some(Ok(()))) && begin == *b"#!"
}
