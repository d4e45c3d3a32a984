// SPDX-License-Identifier: GPL-2.0-only
//! The workloads of Roy v7 (prefer the previous CPU, v7; source 003) with their commands, if they
//! are installed. Where Roy v7 uses a part of its 64 CPUs or 32 cores, this uses the same part of
//! this machine's. All other numbers are unchanged.
//!
//! Nothing is downloaded or built. For what is missing, messages say how to get it and give the
//! addresses from Roy v7.

use super::cpus::cores;
use super::programs::program;
use super::suite::{Item, part_31};
use super::variant::PINNED;
use crate::machine::Machine;
use crate::util::text::quoted;
use crate::util::user::User;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The arguments of scx_cosmos in Roy v7.
const COSMOS: &str = "-m all -s 1250 -l 50000 -c 0 -p 0 -d";
/// The patch of Roy v7, as a preset.
const PATCH: &str = "roy-v7";

/// The workloads, in the order of Roy v7.
const ROWS: &str = include_str!("threadripper.json");

/// What must be present.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Need {
    /// In PATH.
    Program(String),
    /// In the current folder.
    File(String),
    /// In the folder for temporary files.
    Temporary(String),
    /// A Perl module.
    Module(String),
}

#[derive(Deserialize)]
struct Needed {
    #[serde(flatten)]
    need: Need,
    /// How to get it.
    from: String,
}

/// In words and lines, `{cores}`, `{half}`, `{part}` and `{temp}` are replaced.
#[derive(Deserialize)]
struct Row {
    name: String,
    /// Words. Empty: there is a script.
    #[serde(default)]
    command: String,
    /// Lines for bash.
    #[serde(default)]
    script: Vec<String>,
    metric: String,
    needs: Vec<Needed>,
}

fn rows() -> Vec<Row> {
    serde_json::from_str(ROWS).expect("tests read it too")
}

/// The properties of the machine that the workloads depend on.
#[derive(Clone, Debug)]
pub struct Place {
    pub path: OsString,
    /// Where commands are run.
    pub folder: PathBuf,
    pub temp: PathBuf,
    pub cpus: usize,
    pub cores: usize,
    /// The needed Perl modules that are installed.
    pub modules: Vec<String>,
}

impl Place {
    pub fn here() -> Result<Place> {
        let machine = Machine::read(Path::new("/sys"))?;
        Ok(Place {
            path: std::env::var_os("PATH").unwrap_or_default(),
            folder: std::env::current_dir().context("cannot find the current folder")?,
            temp: std::env::temp_dir(),
            cpus: machine.cpus.len(),
            cores: cores(&machine).len(),
            modules: Vec::new(),
        })
    }

    /// Adds the Perl modules that this user can load; None: ours.
    pub fn with_modules(self, user: Option<&User>) -> Place {
        let perl = self.program("perl");
        Place {
            modules: perl.map_or_else(Vec::new, |perl| modules(&perl, user)),
            ..self
        }
    }

    /// Looks in PATH.
    fn program(&self, name: &str) -> Option<PathBuf> {
        program(Path::new(name), &self.path)
    }

    fn has(&self, need: &Need) -> bool {
        match need {
            Need::Program(name) => self.program(name).is_some(),
            Need::File(name) => self.folder.join(name).is_file(),
            Need::Temporary(name) => self.temp.join(name).is_file(),
            Need::Module(name) => self.modules.iter().any(|m| m == name),
        }
    }

    fn named(&self, need: &Need) -> String {
        match need {
            Need::Program(name) => format!("program {name}"),
            Need::File(name) => format!("file {name} in this folder"),
            Need::Temporary(name) => format!("file {}", self.temp.join(name).display()),
            Need::Module(name) => format!("perl's {name}"),
        }
    }
}

/// Prints the names among its arguments that can be loaded, one per line.
const LOADED: &str = r#"for my $name (@ARGV) { print "\n$name\n" if eval "require $name; 1" }"#;

fn modules(perl: &Path, user: Option<&User>) -> Vec<String> {
    let mut command = Command::new(perl);
    command.args(["-e", LOADED]);
    let needs = rows().into_iter().flat_map(|row| row.needs);
    command.args(needs.filter_map(|needed| match needed.need {
        Need::Module(name) => Some(name),
        _ => None,
    }));
    user.iter().for_each(|user| user.takes(&mut command));
    let output = command.stdin(Stdio::null()).output();
    let printed = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let printed = String::from_utf8_lossy(&printed);
    printed.lines().map(str::to_string).collect()
}

impl Row {
    fn missing(&self, place: &Place) -> Vec<String> {
        let missing = self.needs.iter().filter(|needed| !place.has(&needed.need));
        let named = missing.map(|n| format!("{} ({})", place.named(&n.need), n.from));
        named.collect()
    }

    fn item(&self, place: &Place) -> Item {
        let part = |whole: &str| match whole {
            "cores" => place.cores,
            "half" => place.cpus.div_ceil(2),
            _ => part_31(place.cpus),
        };
        let filled = |text: &str| {
            let temp = quoted(&place.temp.to_string_lossy());
            let fill = |text: String, name: &str| {
                text.replace(&format!("{{{name}}}"), &part(name).to_string())
            };
            let text = text.replace("{temp}", &temp);
            ["cores", "half", "part"].into_iter().fold(text, fill)
        };
        let script = filled(&self.script.join("\n"));
        let command = filled(&self.command);
        let words: Vec<&str> = match command.as_str() {
            "" => vec!["bash", "-c", &script],
            command => command.split(' ').collect(),
        };
        Item {
            name: self.name.clone(),
            command: words.into_iter().map(OsString::from).collect(),
            metric: Some(self.metric.clone()),
            set: Vec::new(),
        }
    }
}

/// The workloads that can be run. Fails if there are none.
pub fn items(place: &Place) -> Result<Vec<Item>> {
    let rows = rows();
    let there = rows.iter().filter(|row| row.missing(place).is_empty());
    let items: Vec<Item> = there.map(|row| row.item(place)).collect();
    ensure!(
        !items.is_empty(),
        "none of the {} workloads of threadripper-003 can run in {}: install what is named above, or run this in the folder that has it",
        rows.len(),
        place.folder.display()
    );
    Ok(items)
}

/// The variants of Roy v7 that are available here, eevdf first.
pub fn variants(place: &Place) -> Vec<String> {
    let mut variants = vec!["eevdf".to_string(), PATCH.to_string()];
    if place.cores < place.cpus {
        variants.push(PINNED.to_string());
    }
    if let Some(cosmos) = place.program("scx_cosmos") {
        let cosmos = quoted(&cosmos.to_string_lossy());
        variants.push(format!("scx:{cosmos} {COSMOS}"));
    }
    variants
}

/// A sentence for each workload of Roy v7 that lacks something, with how to get it.
pub fn missing(place: &Place) -> Vec<String> {
    let sentence = |row: Row| {
        let (name, missing) = (&row.name, row.missing(place).join(", "));
        (!missing.is_empty()).then(|| format!("{name} is left out: missing {missing}"))
    };
    rows().into_iter().filter_map(sentence).collect()
}

/// Variants of Roy v7 that are left out, if no variants were typed.
pub fn variants_left_out(place: &Place) -> Vec<String> {
    let mut reported = Vec::new();
    if place.program("scx_cosmos").is_none() {
        reported.push(
            "scx_cosmos is left out: it is not in PATH (project sched-ext/scx, crate scx_cosmos, https://github.com/sched-ext/scx)"
                .to_string(),
        );
    }
    if place.cores == place.cpus {
        reported.push(format!(
            "{PINNED} is left out: no core has two threads here, so it would equal eevdf"
        ));
    }
    reported.push("bmq is left out: it needs another kernel".to_string());
    reported
}
