// SPDX-License-Identifier: GPL-2.0-only
//! The command line of `roost-sim`, and what it means.

use super::load::{self, Load};
use super::matrix::Effort;
use super::workloads::{setting, text};
use super::{MACHINES, Model, Policy, model};
use anyhow::{Context, Result, anyhow};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use scx_roost::cli::{sentence, with_negative};
use scx_roost::util::names::instead;
use scx_roost::util::refusal::BadUsage;
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  roost-sim --list                                         list machines, workloads, variants...
  roost-sim algorithm3                                     compare mainline with roost
  roost-sim algorithm3 --set workers=20 --variant mainline --variant roy-v7 --variant roost+claim=off
  roost-sim algorithm3 --variant eevdf --variant eevdf:roy-v7
  roost-sim hackbench --variant mainline --seeds 5 --json
  roost-sim ./my.load --machine ryzen-3400g
  roost-sim ./my.load --counters                           show counters
  roost-sim --matrix --short                               roost beside eevdf, on many machines
  roost-sim algorithm3 --param smt_speed=0.6 --param refill_other_llc=540
  roost-sim tbench --sysfs ./their-sys                     a machine given by its /sys files
  roost-sim algorithm3 --seeds 1 --svg why.svg             a picture that shows why

Your own workload file has the format of those in crates/sim/src/workloads.
docs/simulator.md describes the format, and how far to trust the results.";

/// Options that only runs of one workload take.
const OF_RUNS: [&str; 9] = [
    "workload", "machine", "sysfs", "variant", "set", "counters", "svg", "window", "check",
];

/// What a command line asks for.
#[derive(Debug)]
pub enum Asked {
    /// Text to print: help, the version.
    Text(String),
    Run {
        wanted: Box<Wanted>,
        json: bool,
    },
}

/// Parses the command line. An error is one sentence; that of a wrong command line is a `BadUsage`.
pub fn parse<T: Into<OsString> + Clone>(args: impl IntoIterator<Item = T>) -> Result<Asked> {
    let command = with_negative(Cli::command());
    let read = command.try_get_matches_from(args);
    match read.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(Asked::Run {
            wanted: Box::new(cli.wanted()?),
            json: cli.json,
        }),
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Ok(Asked::Text(e.render().to_string()))
        }
        Err(e) => {
            let what = sentence(&e.render().to_string());
            Err(BadUsage(anyhow!("{what}; see roost-sim --help")).into())
        }
    }
}

/// Run a workload on a modelled machine under the policy's own code
#[derive(Debug, Parser)]
#[command(name = "roost-sim", version, after_help = EXAMPLES)]
struct Cli {
    /// Name of a workload, or path of a file that describes one
    #[arg(value_name = "WORKLOAD", required_unless_present_any = ["list", "matrix", "swarm"])]
    workload: Option<String>,

    /// Machine to model [default: tr-3970x]
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,

    /// Model the machine whose /sys files are in DIR; its parameters are those of machine any
    #[arg(long, value_name = "DIR", conflicts_with = "machine")]
    sysfs: Option<PathBuf>,

    /// Set a parameter of the machine, such as smt_speed=0.6; --list shows units and ranges. May be
    /// repeated
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,

    /// Variant to compare: PRESET[+FEATURE=on|off][+TUNABLE=VALUE]... or eevdf[:PRESET...] (see
    /// --list). May be repeated; the first is the baseline of the others [default: mainline and
    /// roost]
    #[arg(long, value_name = "VARIANT")]
    variant: Vec<String>,

    /// Set a param of the workload, such as workers=20 or chunk=2ms; each has warmup and duration.
    /// May be repeated
    #[arg(long, value_name = "PARAM=VALUE")]
    set: Vec<String>,

    /// Runs of each variant, each with a different seed [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,

    /// Seed of the first run [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Also show how many CPUs are busy and cores sleep deeply, and the counters of the policy by
    /// the names that they have in the statistics of scx_roost
    #[arg(long)]
    counters: bool,

    /// Write the run of the first seed to FILE as a picture: CPUs over time, one variant above the
    /// other
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Length of the picture, from the end of the warm-up on, such as 500us
    #[arg(long, value_name = "TIME", default_value = "20ms", requires = "svg", value_parser = time)]
    window: u64,

    /// Check the state of tasks, queues and times at every event; slower. An error ends the run and
    /// prints the command that repeats it
    #[arg(long)]
    check: bool,

    /// Run the random case of this seed: a machine, a workload, features, tunables and faults, with
    /// checks at every event
    #[arg(long, value_name = "SEED", conflicts_with_all = OF_RUNS, conflicts_with_all = ["param", "seeds", "seed"])]
    swarm: Option<u64>,

    /// With --swarm: run N cases, from this seed on
    #[arg(long, value_name = "N", default_value_t = 1, requires = "swarm", conflicts_with = "workload", value_parser = clap::value_parser!(u64).range(1..))]
    swarm_count: u64,

    /// List the machines, workloads, variants and parameters
    #[arg(long, conflicts_with_all = OF_RUNS, conflicts_with_all = ["param", "seeds", "seed", "swarm"])]
    list: bool,

    /// Compare roost with eevdf on many machines and workloads; the worst comes first
    #[arg(long, conflicts_with_all = OF_RUNS, conflicts_with_all = ["list", "swarm"])]
    matrix: bool,

    /// With --matrix: runs of a tenth of the time, to see what changes
    #[arg(long, requires = "matrix", conflicts_with = "workload")]
    short: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct Variant {
    pub name: String,
    pub policy: Policy,
}

/// What to do.
#[derive(Debug)]
pub enum Wanted {
    /// Show the machines, workloads, variants and parameters.
    List,
    Compare(Box<Plan>),
    Matrix(Effort),
    /// Random cases, by their seeds.
    Swarm(Range<u64>),
}

/// What to run.
#[derive(Debug)]
pub struct Plan {
    pub workload: String,
    pub load: Load,
    pub model: Model,
    pub variants: Vec<Variant>,
    pub seeds: Range<u64>,
    /// Show the counters too.
    pub counters: bool,
    /// The file of the picture, and how much time it shows, ns.
    pub picture: Option<(PathBuf, u64)>,
    pub check: bool,
    /// The command line without variants and seeds.
    pub again: String,
}

impl Cli {
    fn wanted(&self) -> Result<Wanted> {
        if self.matrix {
            return Ok(Wanted::Matrix(self.effort()?));
        }
        if let Some(first) = self.swarm {
            let end = first.checked_add(self.swarm_count);
            return Ok(Wanted::Swarm(first..end.context("the seed is too large")?));
        }
        match &self.workload {
            Some(workload) => Ok(Wanted::Compare(Box::new(self.plan(workload)?))),
            None => Ok(Wanted::List),
        }
    }

    fn effort(&self) -> Result<Effort> {
        Ok(Effort {
            seeds: self.seeds()?,
            short: self.short,
            params: self.param.clone(),
        })
    }

    fn seeds(&self) -> Result<Range<u64>> {
        let first = self.seed.unwrap_or(1);
        let end = first.checked_add(self.seeds.unwrap_or(3));
        Ok(first..end.context("the seed is too large")?)
    }

    fn plan(&self, workload: &str) -> Result<Plan> {
        let model = self.model()?;
        let settings = self.settings()?;
        let text = text(workload)?;
        let load = match workload.ends_with(".json") {
            true if settings.is_empty() => Load::rtapp(&text),
            true => Err(anyhow!(
                "an rt-app file has no params: --set is for .load files"
            )),
            false => self.own(&text, &settings),
        };
        let load = load.with_context(|| format!("workload {workload}"))?;
        Ok(Plan {
            workload: workload.to_string(),
            load,
            model,
            variants: self.variants()?,
            seeds: self.seeds()?,
            counters: self.counters,
            picture: self.svg.clone().map(|svg| (svg, self.window)),
            check: self.check,
            again: self.again(workload),
        })
    }

    fn settings(&self) -> Result<load::Settings> {
        self.set.iter().map(|set| setting(set)).collect()
    }

    fn variants(&self) -> Result<Vec<Variant>> {
        let names: Vec<&str> = match self.variant.is_empty() {
            true => vec!["mainline", "roost"],
            false => self.variant.iter().map(String::as_str).collect(),
        };
        let variants: Result<_> = names.into_iter().map(variant).collect();
        Ok(variants.map_err(BadUsage)?)
    }

    /// Reads a workload in our own format.
    fn own(&self, text: &str, settings: &load::Settings) -> Result<Load> {
        for set in &self.set {
            let (name, value) = set.split_once('=').unwrap_or_default();
            load::check_unit(text, name, value).with_context(|| format!("--set {set}"))?;
        }
        Load::parse(text, settings)
    }

    fn again(&self, workload: &str) -> String {
        let machine = match &self.sysfs {
            Some(sysfs) => format!(" --sysfs {}", sysfs.display()),
            None => format!(" --machine {}", self.machine_name()),
        };
        let more = |option: &str, words: &[String]| -> String {
            words.iter().map(|w| format!(" {option} {w}")).collect()
        };
        let (set, param) = (more("--set", &self.set), more("--param", &self.param));
        format!("roost-sim {workload}{machine}{set}{param}")
    }

    fn machine_name(&self) -> &str {
        self.machine.as_deref().unwrap_or("tr-3970x")
    }

    fn model(&self) -> Result<Model> {
        let named = || {
            let known = MACHINES.map(|(name, _)| name);
            let name = self.machine_name();
            let unknown = || anyhow!("there is no machine {name}: {}", instead(name, &known));
            model(name).ok_or_else(|| BadUsage(unknown()))
        };
        let mut model = match &self.sysfs {
            Some(sysfs) => {
                Model::read(sysfs).with_context(|| format!("--sysfs {}", sysfs.display()))?
            }
            None => named()?,
        };
        let mut change = self.param.iter();
        let changed = change.try_for_each(|text| model.params.change(text));
        changed.map_err(BadUsage)?;
        Ok(model)
    }
}

fn time(text: &str) -> Result<u64> {
    let (ns, unit) = load::number(text)?;
    let ns = u64::try_from(ns).ok().filter(|&ns| ns > 0);
    ns.filter(|_| unit == load::Unit::Time)
        .context("a time above 0 was expected, such as 500us")
}

fn variant(name: &str) -> Result<Variant> {
    let policy = Policy::parse(name).with_context(|| format!("variant {name}"))?;
    Ok(Variant {
        name: name.to_string(),
        policy,
    })
}
