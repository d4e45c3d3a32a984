// SPDX-License-Identifier: GPL-2.0-only
//! The options of `scx_roost ab` and `scx_roost tune`, and what they mean.

use super::concurrent::{self, Sides};
use super::design::Settle;
use super::metric::{Measured, Metric, Source};
use super::pages::Pages;
use super::real::OF_ROOST;
use super::result::{Asked, FORMAT, Header, RUNS_MAX, Recorded, distinct, exists};
use super::run::words;
use super::stats::plan::{MAX_AUTO, MAX_BLOCKS, Plan};
use super::stats::verdict::{Direction, Rule};
use super::suite::{self, Item, Suite};
use super::threadripper::{self, Place};
use super::tune;
use super::variant::{Kind, Scope, Variant, parse_all};
use crate::machine::Machine;
use crate::policy::features::DEFAULT_PRESET;
use crate::util::user::{self, User};
use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub const EXAMPLES: &str = "\
Examples:
  scx_roost ab --variant mainline --variant roy-v7 --variant roost+claim=off -n 12 -- make -j16
  scx_roost ab --variant eevdf --variant 'scx:/usr/bin/scx_cosmos -m all' --variant roost \\
      --metric 'regex:([0-9.]+) ops/s' --higher-is-better -n auto -- ./bench.sh
  scx_roost ab --scope workload --variant mainline --variant mainline+prev_core -- ./game --demo
      only the game runs under these variants, on a machine in use
  scx_roost ab --variant eevdf --variant pinned --variant roost -- make -j16
      is one thread per core enough?
  scx_roost ab --concurrent --variant mainline --variant roost -- ./bench.sh
      both at once, each on half of the machine
  scx_roost ab --suite placement --variant mainline --variant roost
      on the workloads of scx_roost itself
  scx_roost ab --suite threadripper-003
      on the workloads of Roy v7 that are installed in this folder, with its variants
  scx_roost ab show ab.jsonl
      the report of a result file

Exit status: 0 if all runs were made; 1 after an error.
Either way, the machine is left as it was found.";

pub const TUNE_EXAMPLES: &str = "\
Examples:
  scx_roost tune -- make -j16
      change the default preset, and compare the time that make takes
  scx_roost tune --base mainline --metric 'regex:([0-9.]+) ops/s' --higher-is-better -n auto -- ./bench.sh
  scx_roost tune --scope workload -- ./game --demo

The search tries these changes, but none to what --base sets:
  each feature switched the other way
  half and twice the value of slice-us, min-slice-us and migration-cost-us
  half and twice the value of claim-ttl-us, if the base has claim
  half and twice the value of delay-us, if the base has delay_migration
  fits-margin 20 and fits-rt 1, if the base has util_fits

About 30 changes run 7 times each, then the better half runs again, and so on: about 450 runs.
New runs then compare the best change with the base.
So the chance of a false improvement is 2.5 %, however many changes were tried.
At the end, tune prints the commands that keep the result, now and after a restart:
for all tasks, and as an arm with a rule for the workload alone.

Exit status: 0 if all runs were made, whatever the result; 1 after an error.
Either way, the machine is left as it was found.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct AbArgs {
    #[command(subcommand)]
    pub look: Option<Look>,

    /// Variant to compare; give at least two. The first is the baseline of the others. A variant is
    /// PRESET[+FEATURE=on|off][+TUNABLE=VALUE]..., eevdf (the kernel's own scheduler) or
    /// 'scx:COMMAND' (another sched_ext scheduler). The suffix @cpus=LIST or @cpus=cores (one
    /// thread of each core) restricts the command to these CPUs; pinned means eevdf@cpus=cores
    #[arg(long, value_name = "VARIANT")]
    variant: Vec<String>,

    /// Number of blocks; a block is one run of each variant. With auto (up to 40 blocks) or
    /// auto:MAX, blocks are added until every comparison is decided, by a rule that keeps the error
    /// rate
    #[arg(short = 'n', long = "blocks", visible_alias = "n", value_name = "N", default_value = "12", value_parser = plan)]
    plan: Plan,

    #[command(flatten)]
    runs: Runs,

    /// Run two copies of the command at once, under two scx_roost variants, each on half of the
    /// last-level caches. The sides are swapped in each block. The scope is workload
    #[arg(long)]
    concurrent: bool,

    /// Compare on the workloads of a suite instead of a command; each workload has its own result
    /// file, such as 'ab-pairs.jsonl'
    #[arg(long, value_enum, value_name = "SUITE", conflicts_with = "command")]
    suite: Option<Suite>,

    /// Result file; each run is written there as soon as it ends
    #[arg(long, value_name = "FILE", default_value = "ab.jsonl")]
    result: PathBuf,

    /// Continue an interrupted result file, with its seed; all other options except --timeout must
    /// be the same as before
    #[arg(long)]
    resume: bool,

    /// Also write the report to FILE as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Also write the report to FILE as an HTML page with pictures
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// How runs are made.
#[derive(Debug, Args)]
struct Runs {
    /// What to measure: wall, user, system, max-rss, context-switches, migrations, energy,
    /// wakeup-p50, wakeup-p99, or a number that the command prints: 'regex:PATTERN' or
    /// 'json:/POINTER', read from stdout, or else from stderr. The prefix 'higher:' or 'lower:'
    /// says which is better. May be repeated [default: wall]
    #[arg(long, value_name = "METRIC")]
    metric: Vec<String>,

    /// For numbers that the command prints, higher is better
    #[arg(long)]
    higher_is_better: bool,

    /// Differences below this percentage do not matter
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    margin: f64,

    /// What a variant applies to
    #[arg(long, value_enum, value_name = "SCOPE", default_value = "machine")]
    scope: Scope,

    /// Uncounted runs of each variant before the first counted one
    #[arg(long, value_name = "N", default_value_t = 1)]
    warmups: usize,

    /// Before each counted run make an uncounted one of the first variant, unless that ran just
    /// before, so that what a run leaves behind (heat, caches) is the same for all. Without it two
    /// variants take turns so that this evens out, and more are only checked for it
    #[arg(long)]
    settle: bool,

    /// Seed of the random order of runs [default: a different one each time]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Seconds after which a run counts as hung; the command is then ended, and this is an error
    #[arg(long, value_name = "SECS", default_value = "3600", value_parser = timeout)]
    timeout: Duration,

    /// Run the command as this user, with the user's groups and home; only root can. PATH stays as
    /// sudo set it; sudo env PATH=$PATH scx_roost ab... keeps yours. Under run0, name the user if
    /// run0 does not report it as sudo does [default: the user who called sudo, doas or pkexec,
    /// otherwise the current user]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Command to run, with its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Variant that is changed: PRESET[+FEATURE=on|off][+TUNABLE=VALUE]...
    #[arg(long, value_name = "VARIANT", default_value = DEFAULT_PRESET)]
    base: String,

    /// Number of blocks of the last comparison; a block is one run of both variants. At least 6,
    /// because fewer cannot show a difference; or auto (up to 40 blocks), or auto:MAX
    #[arg(short = 'n', long = "blocks", visible_alias = "n", value_name = "N", default_value = "12", value_parser = plan)]
    plan: Plan,

    #[command(flatten)]
    runs: Runs,

    /// Folder for the result files, one file per round
    #[arg(long, value_name = "FOLDER", default_value = "tune")]
    result: PathBuf,

    /// Continue an interrupted search, with its seed; all other options except --timeout must be
    /// the same as before
    #[arg(long)]
    resume: bool,
}

#[derive(Debug, Subcommand)]
pub enum Look {
    /// Show the report of a result file
    Show {
        /// Result file
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// Also write the report to FILE as Markdown
        #[arg(long, value_name = "FILE")]
        markdown: Option<PathBuf>,

        /// Also write the report to FILE as an HTML page with pictures
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Show the results of several files for the same variants, side by side
    Compare {
        /// Result files, at least two
        #[arg(value_name = "FILE", num_args = 2.., required = true)]
        files: Vec<PathBuf>,
    },
    /// Write an anonymous copy of a result file: without command arguments, folders and the
    /// machine's name
    Share {
        /// Result file
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// New file for the copy
        #[arg(value_name = "TO")]
        to: PathBuf,
    },
}

/// One comparison to run.
#[derive(Clone, Debug)]
pub struct Task {
    pub header: Header,
    pub command: Vec<OsString>,
    pub timeout: Duration,
    /// The user that the command runs as. None: ours.
    pub user: Option<User>,
    pub result: PathBuf,
    pub resume: bool,
    pub pages: Pages,
    /// The workload of a suite that it runs; None: the command that was typed.
    pub item: Option<Item>,
}

/// Number of comparisons of all tasks: each other variant with the first, by metric.
fn comparisons(tasks: &[Task]) -> usize {
    let of = |h: &Header| (h.variants.len() - 1) * h.metrics.len();
    tasks.iter().map(|task| of(&task.header)).sum()
}

/// The least number of blocks with which one of `comparisons` comparisons can show a difference.
fn least_blocks(comparisons: usize, alpha: f64) -> Option<usize> {
    (1..=MAX_BLOCKS).find(|n| Plan::Fixed(*n).can_tell(comparisons, alpha))
}

/// A warning if no comparison can show a difference, whatever the runs are.
pub fn too_few(tasks: &[Task]) -> Option<String> {
    let (rule, all) = (tasks.first()?.header.rule, comparisons(tasks));
    let enough = least_blocks(all, rule.alpha)?;
    (!rule.plan.can_tell(all, rule.alpha)).then(|| {
        format!(
            "{} blocks are too few to find a difference in {all} comparisons, whatever is measured: give -n {} or more",
            rule.plan.max(),
            enough
        )
    })
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

/// 30 days. A longer timeout for one run is probably a mistake.
const TIMEOUT_MAX_S: f64 = 30.0 * 86_400.0;

fn timeout(text: &str) -> Result<Duration, String> {
    let secs = text.parse().ok();
    let secs = secs.filter(|secs| (0.1..=TIMEOUT_MAX_S).contains(secs));
    secs.map(Duration::from_secs_f64)
        .ok_or_else(|| format!("0.1 to {TIMEOUT_MAX_S} seconds, which are 30 days, are possible"))
}

impl AbArgs {
    /// `facts` about the machine go into the result.
    fn task(&self, facts: BTreeMap<String, String>) -> Result<Task> {
        let variants = parse_all(&self.variant)?;
        let names = self.variant.clone();
        let mut header = self.runs.header(names, &variants, self.plan, facts)?;
        if self.concurrent {
            concurrent::check(&variants)?;
            header.sides = Some(Sides::of(&Machine::read(Path::new("/sys"))?)?);
            header.scope = Scope::Workload;
        }
        header.scope.check(&variants)?;
        Ok(Task {
            header,
            user: self.runs.whose()?,
            command: self.runs.command.clone(),
            timeout: self.runs.timeout,
            result: self.result.clone(),
            resume: self.resume,
            pages: Pages {
                markdown: self.markdown.clone(),
                html: self.html.clone(),
            },
            item: None,
        })
    }

    /// Where a suite is run, with what it can use there. None: no suite was asked for.
    pub fn place(&self) -> Result<Option<Place>> {
        Ok(match self.suite {
            None => None,
            Some(Suite::Placement) => Some(Place::here()?),
            Some(Suite::Threadripper) => {
                let user = self.runs.whose()?;
                Some(Place::here()?.with_modules(user.as_ref()))
            }
        })
    }

    /// One task per workload of the suite, or one for the typed command. `program`: path of
    /// scx_roost.
    #[cfg(feature = "internals")]
    pub fn tasks(self, program: PathBuf, facts: BTreeMap<String, String>) -> Result<Vec<Task>> {
        let place = self.place()?;
        self.tasks_at(program, facts, place.as_ref())
    }

    /// As `tasks`, for a given place.
    pub fn tasks_at(
        mut self,
        program: PathBuf,
        facts: BTreeMap<String, String>,
        place: Option<&Place>,
    ) -> Result<Vec<Task>> {
        match (self.suite, place) {
            (Some(suite), Some(place)) => self.tasks_of(suite, program, facts, place),
            _ => {
                if self.resume {
                    self.runs.goes_on_with(&self.result)?;
                }
                Ok(vec![self.task(facts)?])
            }
        }
    }

    /// Tasks of a suite that is run at `place`.
    fn tasks_of(
        mut self,
        suite: Suite,
        program: PathBuf,
        facts: BTreeMap<String, String>,
        place: &Place,
    ) -> Result<Vec<Task>> {
        let mut items = suite.items(&program, place)?;
        let begun = self.begun(&items)?;
        let recorded = self.goes_on_with_all(&begun)?;
        if suite == Suite::Threadripper {
            ensure!(
                !self.concurrent,
                "workloads of threadripper-003 use a fixed file or port each, and cannot run twice at once"
            );
            if self.variant.is_empty() {
                self.variant = threadripper::variants(place);
            }
        }
        // Counted once, so that it is the same in all runs of all workloads.
        let steps = recorded.unwrap_or_else(|| suite::steps_of_ms().to_string());
        for item in &mut items {
            suite.set_steps(item, &steps);
        }
        let mut tasks = self.tasks_of_items(items, &begun, program, facts)?;
        let all = comparisons(&tasks);
        for task in &mut tasks {
            task.header.rule.suite = all;
        }
        Ok(tasks)
    }

    /// The result files of a suite that exist. Without --resume that is an error now, and not after
    /// the other workloads have run.
    fn begun(&self, items: &[Item]) -> Result<Vec<PathBuf>> {
        let files = items.iter().map(|item| item.result(&self.result));
        let begun: Vec<PathBuf> = files.filter(|file| file.exists()).collect();
        match begun.first() {
            Some(file) if !self.resume => Err(exists(file)),
            _ => Ok(begun),
        }
    }

    /// Returns the steps that the first of the files was recorded with.
    fn goes_on_with_all(&mut self, begun: &[PathBuf]) -> Result<Option<String>> {
        let mut steps = None;
        for file in begun {
            let header = self.runs.goes_on_with(file)?;
            steps = steps.or(header.and_then(|mut header| header.command.pop()));
        }
        Ok(steps)
    }

    /// One task per workload. They differ in what is run, measured and written.
    fn tasks_of_items(
        &mut self,
        items: Vec<Item>,
        begun: &[PathBuf],
        program: PathBuf,
        facts: BTreeMap<String, String>,
    ) -> Result<Vec<Task>> {
        let typed = std::mem::take(&mut self.runs.metric);
        // A placeholder, so that `task` checks the other options.
        self.runs.command = vec![program.into()];
        let whole = self.task(facts)?;
        let variants = parse_all(&self.variant)?;
        let task = |item: Item| {
            let mut header = whole.header.clone();
            let metrics = item.metric.iter().chain(&typed);
            header.metrics = self.runs.metrics(metrics, &variants)?;
            header.workload = Some(item.name.clone());
            header.command = words(&item.command)?;
            let result = item.result(&self.result);
            Ok(Task {
                header,
                command: item.command.clone(),
                resume: begun.contains(&result),
                result,
                item: Some(item),
                ..whole.clone()
            })
        };
        items.into_iter().map(task).collect()
    }

    /// Sentences about what of the suite cannot be run at `place`.
    pub fn left_out(&self, place: Option<&Place>) -> Vec<String> {
        match (self.suite, place) {
            (Some(Suite::Threadripper), Some(place)) => {
                let mut missing = threadripper::missing(place);
                if self.variant.is_empty() {
                    missing.extend(threadripper::variants_left_out(place));
                }
                missing
            }
            _ => Vec::new(),
        }
    }
}

impl TuneArgs {
    /// The task of the last comparison. Its only variant yet is the base, and its result is the
    /// folder.
    pub fn task(mut self, facts: BTreeMap<String, String>) -> Result<Task> {
        let first = tune::file(&self.result, &tune::round(1));
        if self.resume && first.exists() {
            self.runs.goes_on_with(&first)?;
        }
        let base = [Variant::parse(&self.base)?];
        let header = self.runs.header(vec![self.base], &base, self.plan, facts)?;
        let alpha = header.rule.alpha;
        // The last comparison compares one variant with the base.
        if let Some(least) = least_blocks(1, alpha).filter(|_| !self.plan.can_tell(1, alpha)) {
            bail!(
                "-n {}: too few blocks to find anything, whatever is measured: give -n {least} or more",
                self.plan.max()
            );
        }
        Ok(Task {
            header,
            user: self.runs.whose()?,
            command: self.runs.command,
            timeout: self.runs.timeout,
            result: self.result,
            resume: self.resume,
            pages: Pages::default(),
            item: None,
        })
    }
}

impl Runs {
    /// The command's user; None: ours.
    fn whose(&self) -> Result<Option<User>> {
        User::of(self.user.as_deref())
    }

    /// Takes the seed from the file unless one was typed. If both differ, resuming fails later.
    /// Returns the header of the file, if it has one.
    fn goes_on_with(&mut self, file: &Path) -> Result<Option<Header>> {
        let header = Recorded::begun(file)?.map(|begun| begun.header);
        if let Some(header) = &header {
            self.seed.get_or_insert(header.seed);
        }
        Ok(header)
    }

    fn header(
        &self,
        names: Vec<String>,
        variants: &[Variant],
        plan: Plan,
        facts: BTreeMap<String, String>,
    ) -> Result<Header> {
        ensure!(
            !self.command.is_empty(),
            "give the command to run after --, as in: -- make -j16"
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
        let metrics = self.metrics(self.metric.iter(), variants)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(Header {
            format: FORMAT.to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            began: now.as_secs(),
            command: words(&self.command)?,
            workload: None,
            user: Some(user::name_of(self.whose()?.as_ref())),
            timeout_s: self.timeout.as_secs_f64(),
            variants: names,
            metrics,
            rule: Rule {
                margin: self.margin / 100.0,
                ..Rule::new(plan)
            },
            seed: self.seed.unwrap_or(now.subsec_nanos().into()),
            warmups: self.warmups,
            settle: match self.settle {
                true => Settle::Runs,
                false => Settle::Blocks.among(variants.len()),
            },
            scope: self.scope,
            sides: None,
            host: facts,
        })
    }

    /// `texts`: the metrics as they are typed; none: the time of the run.
    fn metrics<'a>(
        &self,
        texts: impl Iterator<Item = &'a String>,
        variants: &[Variant],
    ) -> Result<Vec<Asked>> {
        let printed = match self.higher_is_better {
            true => Direction::Higher,
            false => Direction::Lower,
        };
        let mut metrics: Vec<Metric> = texts
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
            "--higher-is-better applies to numbers that the command prints: give --metric 'regex:PATTERN' or 'json:/POINTER'"
        );
        let strange = variants.iter().find(|v| !matches!(v.kind, Kind::Roost(_)));
        let of_roost = metrics
            .iter()
            .find(|m| matches!(m.source, Source::Measured(w) if OF_ROOST.contains(&w)));
        if let (Some(metric), Some(variant)) = (of_roost, strange) {
            bail!(
                "{} is measured only under scx_roost, not under {}",
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
