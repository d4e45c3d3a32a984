// SPDX-License-Identifier: GPL-2.0-only
//! What was typed behind `scx_roost ab`, and what is meant.

use super::metric::{Measured, Metric, Source};
use super::real::OF_ROOST;
use super::result::{Asked, FORMAT, Header, RUNS_MAX, distinct};
use super::run::words;
use super::stats::plan::{MAX_AUTO, Plan};
use super::stats::verdict::{Direction, Rule};
use super::suite::{self, Pattern, Suite};
use super::variant::{Kind, Scope, Variant, parse_all};
use crate::features::DEFAULT_PRESET;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

pub const EXAMPLES: &str = "\
Examples:
  scx_roost ab --variant mainline --variant roy-v7 --variant roost+claim=off -n 12 -- make -j16
  scx_roost ab --variant eevdf --variant 'scx:/usr/bin/scx_cosmos -m all' --variant roost \\
      --metric 'regex:([0-9.]+) ops/s' --higher-is-better -n auto -- ./bench.sh
  scx_roost ab --scope workload --variant mainline --variant mainline+prev_core -- ./game --demo
      only the game is on these, on a machine in use
  scx_roost ab --suite placement --variant mainline --variant roost    on workloads that come along
  scx_roost ab show ab.jsonl                    what a result file says

Exit status: 0 when all runs were made; 1 after an error, with the machine as it was found.";

pub const TUNE_EXAMPLES: &str = "\
Examples:
  scx_roost tune -- make -j16                   changes of the default preset, by the time that make takes
  scx_roost tune --base mainline --metric 'regex:([0-9.]+) ops/s' --higher-is-better -n auto -- ./bench.sh
  scx_roost tune --scope workload -- ./game --demo

Some 25 changes are run 7 times each, the better half again, and so on: about 350 runs. Then the best is compared with the base anew.
Exit status: 0 when all runs were made, whatever was found; 1 after an error, with the machine as it was found.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AbArgs {
    #[command(subcommand)]
    pub look: Option<Look>,

    /// What is compared; the first is what the others are compared with: PRESET[+FEATURE=on|off][+TUNABLE=VALUE]..., eevdf (the kernel's
    /// own scheduler) or 'scx:COMMAND' (another one). Give it twice or more
    #[arg(long, value_name = "VARIANT")]
    variant: Vec<String>,

    /// Blocks, each of one run of each variant; or auto, up to 40, or auto:MAX: until all is told, by a rule that keeps its error
    #[arg(short = 'n', long = "blocks", value_name = "N", default_value = "12", value_parser = plan)]
    plan: Plan,

    #[command(flatten)]
    runs: Runs,

    /// Compare on workloads that come along, in place of a command; each has a result file of its own, 'ab-pairs.jsonl' for instance
    #[arg(long, value_enum, value_name = "SUITE", conflicts_with_all = ["command", "resume", "markdown", "html"])]
    suite: Option<Suite>,

    /// Where each run is written as soon as it is over
    #[arg(long, value_name = "FILE", default_value = "ab.jsonl")]
    result: PathBuf,

    /// Go on with a result file that was broken off: all other options as they were
    #[arg(long, requires = "seed")]
    resume: bool,

    /// Write the report there as Markdown, too
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Write it there as a page with pictures, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// How runs are made.
#[derive(Debug, Args)]
struct Runs {
    /// wall, user, system, max-rss, context-switches, migrations, energy, wakeup-p50, wakeup-p99, 'regex:PATTERN' or 'json:/POINTER' of
    /// what the command prints; with 'higher:' or 'lower:' before it. May be repeated [default: wall]
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,

    /// More is better of numbers that the command prints
    #[arg(long)]
    higher_is_better: bool,

    /// Percent of a difference that do not matter
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    margin: f64,

    /// For whom a variant is switched
    #[arg(long, value_enum, value_name = "SCOPE", default_value = "machine")]
    scope: Scope,

    /// Runs of each variant before the first that counts
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmups: usize,

    /// Run each block forwards and then backwards (ABBA), so that a drift within it cancels; a block takes twice the runs
    #[arg(long)]
    mirror: bool,

    /// Of the order of runs; another one each time unless it is given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Seconds after which a run is taken to hang: the command is ended, and that is an error
    #[arg(long, value_name = "SECS", default_value = "3600", value_parser = crate::cli::seconds)]
    timeout: Duration,

    /// What is run, by who runs this: under sudo as root, unless it drops that itself
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct TuneArgs {
    /// What changes are made of: PRESET[+FEATURE=on|off][+TUNABLE=VALUE]...
    #[arg(long, value_name = "VARIANT", default_value = DEFAULT_PRESET)]
    base: String,

    /// Blocks, each of one run of both, of the last comparison; or auto, up to 40, or auto:MAX
    #[arg(short = 'n', long = "blocks", value_name = "N", default_value = "12", value_parser = plan)]
    plan: Plan,

    #[command(flatten)]
    runs: Runs,

    /// Folder of the result files, one for each round
    #[arg(long, value_name = "FOLDER", default_value = "tune")]
    result: PathBuf,

    /// Go on where it was broken off: all other options as they were
    #[arg(long, requires = "seed")]
    resume: bool,
}

#[derive(Debug, Subcommand)]
pub enum Look {
    /// Show what a result file says
    Show {
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// Write it there as Markdown, too
        #[arg(long, value_name = "FILE")]
        markdown: Option<PathBuf>,

        /// Write it there as a page with pictures, too
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Show what several result files say of the same variants, side by side
    Compare {
        #[arg(value_name = "FILE", num_args = 2.., required = true)]
        files: Vec<PathBuf>,
    },
    /// Write a result file that names nobody: no arguments of commands, no folders, no name of the machine
    Share {
        #[arg(value_name = "FILE")]
        file: PathBuf,

        #[arg(value_name = "TO")]
        to: PathBuf,
    },
}

/// Where reports go besides.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    pub markdown: Option<PathBuf>,
    pub html: Option<PathBuf>,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Task {
    pub header: Header,
    pub command: Vec<OsString>,
    pub timeout: Duration,
    pub result: PathBuf,
    pub resume: bool,
    pub pages: Pages,
}

fn plan(text: &str) -> Result<Plan, String> {
    let number = |text: &str| text.parse().unwrap_or(0);
    let plan = match text.strip_prefix("auto") {
        Some("") => Plan::Auto(MAX_AUTO),
        Some(most) => Plan::Auto(most.strip_prefix(':').map_or(0, number)),
        None => Plan::Fixed(number(text)),
    };
    plan.checked().map_err(|e| e.to_string())?;
    Ok(plan)
}

impl AbArgs {
    /// `facts` of the machine go into the result.
    pub fn task(self, facts: BTreeMap<String, String>) -> Result<Task> {
        let variants = parse_all(&self.variant)?;
        self.runs.scope.takes(&variants)?;
        Ok(Task {
            header: self
                .runs
                .header(self.variant, &variants, self.plan, facts)?,
            command: self.runs.command,
            timeout: self.runs.timeout,
            result: self.result,
            resume: self.resume,
            pages: Pages {
                markdown: self.markdown,
                html: self.html,
            },
        })
    }

    /// One for each workload of the suite, or the one that was typed. `program`: scx_roost.
    pub fn tasks(mut self, program: PathBuf, facts: BTreeMap<String, String>) -> Result<Vec<Task>> {
        let Some(suite) = self.suite else {
            return Ok(vec![self.task(facts)?]);
        };
        // So that the rest is looked at.
        self.runs.command = vec![program.into()];
        let whole = self.task(facts)?;
        // The same for all runs of all workloads.
        let steps = suite::steps_of_ms().to_string();
        let task = |pattern: &Pattern| {
            let mut task = whole.clone();
            let words = [suite::COMMAND.to_string(), pattern.name(), steps.clone()];
            task.header.command.extend(words.clone());
            task.command.extend(words.map(OsString::from));
            let stem = whole.result.file_stem().unwrap_or_default();
            let name = format!("{}-{}.jsonl", stem.display(), pattern.name());
            task.result = whole.result.with_file_name(name);
            task
        };
        Ok(suite.patterns().iter().map(task).collect())
    }
}

impl TuneArgs {
    /// The task of its last comparison, of which the base is the only variant yet, and its result the folder.
    pub fn task(self, facts: BTreeMap<String, String>) -> Result<Task> {
        let base = [Variant::parse(&self.base)?];
        Ok(Task {
            header: self.runs.header(vec![self.base], &base, self.plan, facts)?,
            command: self.runs.command,
            timeout: self.runs.timeout,
            result: self.result,
            resume: self.resume,
            pages: Pages::default(),
        })
    }
}

impl Runs {
    fn header(
        &self,
        names: Vec<String>,
        variants: &[Variant],
        plan: Plan,
        facts: BTreeMap<String, String>,
    ) -> Result<Header> {
        ensure!(
            !self.command.is_empty(),
            "give the command that is run, behind --"
        );
        ensure!(
            self.margin > 0.0 && self.margin <= 100.0,
            "--margin {}: above 0 and at most 100 percent are possible",
            self.margin
        );
        ensure!(
            self.warmups <= RUNS_MAX,
            "--warmups {}: at most {RUNS_MAX} are possible",
            self.warmups
        );
        let metrics = self.metrics(variants)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(Header {
            format: FORMAT.to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            began: now.as_secs(),
            command: words(&self.command)?,
            timeout_s: self.timeout.as_secs_f64(),
            variants: names,
            metrics,
            rule: Rule {
                margin: self.margin / 100.0,
                ..Rule::new(plan)
            },
            seed: self.seed.unwrap_or(now.subsec_nanos().into()),
            warmups: self.warmups,
            mirrored: self.mirror,
            scope: self.scope,
            host: facts,
        })
    }

    fn metrics(&self, variants: &[Variant]) -> Result<Vec<Asked>> {
        let printed = match self.higher_is_better {
            true => Direction::Higher,
            false => Direction::Lower,
        };
        let mut metrics: Vec<Metric> = self
            .metric
            .iter()
            .map(|text| Metric::parse(text, printed))
            .collect::<Result<_>>()?;
        if metrics.is_empty() {
            metrics.push(Metric::measured(Measured::Wall));
        }
        let prints = metrics
            .iter()
            .any(|m| !matches!(m.source, Source::Measured(_)));
        ensure!(
            prints || !self.higher_is_better,
            "--higher-is-better is said of numbers that the command prints: give --metric 'regex:PATTERN' or 'json:/POINTER'"
        );
        let strange = variants.iter().find(|v| !matches!(v.kind, Kind::Roost(_)));
        let of_roost = metrics
            .iter()
            .find(|m| matches!(m.source, Source::Measured(w) if OF_ROOST.contains(&w)));
        if let Some(metric) = of_roost.filter(|_| self.mirror) {
            bail!(
                "{} is a quantile of a run, and --mirror takes means of two runs: the mean of quantiles is the quantile of nothing",
                metric.name
            );
        }
        if let (Some(metric), Some(variant)) = (of_roost, strange) {
            bail!(
                "{} is measured under scx_roost alone, and not under {}",
                metric.name,
                variant.name
            );
        }
        distinct(&metrics)?;
        let asked = |m: Metric| Asked {
            metric: m.name,
            better: m.better,
        };
        Ok(metrics.into_iter().map(asked).collect())
    }
}

/// A written page, or none.
pub fn write(path: &Option<PathBuf>, text: impl FnOnce() -> String) -> Result<()> {
    match path {
        Some(path) => {
            std::fs::write(path, text()).with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(()),
    }
}
