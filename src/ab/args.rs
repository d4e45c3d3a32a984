// SPDX-License-Identifier: GPL-2.0-only
//! The options of `scx_roost ab` and `scx_roost tune`, and what they mean.

use super::hooks::Hooks;
use super::metric::{Measured, Metric};
use super::result::{Asked, FORMAT, Header, RUNS_MAX, Recorded, distinct};
use super::run::words;
use super::stats::plan::{MAX_AUTO, Plan};
use super::stats::verdict::Rule;
use super::variant::{Kind, Scope, Variant};
use crate::policy::features::DEFAULT_PRESET;
use crate::util::user::{self, User};
use crate::util::version;
use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

pub const EXAMPLES: &str = "\
Examples:
  scx_roost ab --variant mainline --variant roost+claim=off -- make -j16
  scx_roost ab --variant eevdf --variant 'scx:scx_cosmos -m all' --metric wall -n auto -- ./bench.sh
  scx_roost ab --scope workload --variant mainline --variant mainline+prev_core -- ./game --demo
  scx_roost ab show --lkml ab.jsonl

Exit status: 0 if all runs were made; 1 after an error or before a whole round; 3 if another boot is
due. The machine is left as it was found. docs/explanation/ab.md tells of variants and verdicts.";

pub const TUNE_EXAMPLES: &str = "\
Examples:
  scx_roost tune -- make -j16
      change the default preset, and compare the time that make takes
  scx_roost tune --base mainline --metric 'higher:regex:([0-9.]+) ops/s' -n auto -- ./bench.sh
  scx_roost tune --scope workload -- ./game --demo

The search tries these changes, but none to what --base sets:
  each feature switched the other way
  half and twice the value of slice-us, min-slice-us and migration-cost-us
  half and twice the value of claim-ttl-us, if the base has claim
  half and twice the value of delay-us, if the base has delay_migration
  fits-margin 20 and fits-rt 1, if the base has util_fits

About 30 changes are compared with the base, by 7 runs of each.
Then the best three are combined, one after another, and the combinations compared.
At last the best of these is compared with the base, on new runs: about 300 runs in all.
So the chance of a false improvement is 2.5 %, however many changes were tried.

Exit status: 0 if all runs were made, whatever the result; 1 after an error.
Either way, the machine is left as it was found.";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct AbArgs {
    #[command(subcommand)]
    pub look: Option<Look>,

    /// Two or more: PRESET[+FEATURE=on|off][+TUNABLE=N], eevdf, scx:COMMAND
    #[arg(long, value_name = "VARIANT")]
    pub(super) variant: Vec<String>,

    /// Runs of each variant on average, or auto, or auto:MAX
    #[arg(short = 'n', value_name = "N", default_value = "15", value_parser = plan)]
    pub(super) plan: Plan,

    #[command(flatten)]
    pub(super) runs: Runs,

    /// Compare kernels, by N counted runs in each boot
    #[arg(long, value_name = "N")]
    pub(super) across_boots: Option<usize>,

    /// Shell command that boots the next kernel, {kernel}
    #[arg(long, value_name = "CMD", requires = "across_boots")]
    pub(super) next_boot: Option<String>,

    /// File of the runs [default: ab.jsonl, or ab-2.jsonl and so on]
    #[arg(long, value_name = "FILE")]
    pub(super) result: Option<PathBuf>,

    /// Continue an interrupted result file; give the same other options
    #[arg(long)]
    pub(super) resume: bool,

    /// Also show what else was measured, and counters
    #[arg(long)]
    pub(super) counters: bool,
}

/// How runs are made.
#[derive(Debug, Args)]
pub(super) struct Runs {
    /// [higher:]wall, user, migrations, regex:RE, json:/PTR...
    #[arg(long, value_name = "METRIC", default_value = "wall")]
    pub(super) metric: Vec<String>,

    /// Differences below this percentage do not matter
    #[arg(long, value_name = "PERCENT", default_value_t = 2.0)]
    pub(super) margin: f64,

    /// All tasks of the machine, or workload: the command
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "SCOPE",
        default_value = "machine"
    )]
    pub(super) scope: Scope,

    /// Uncounted runs of each variant at the start
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) warmups: usize,

    #[command(flatten)]
    pub(super) hooks: Hooks,

    /// Seed of the order [default: another one each time]
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,

    /// Seconds after which a run has failed
    #[arg(long, value_name = "SECS", default_value = "3600", value_parser = timeout)]
    pub(super) timeout: Duration,

    /// User of the command [default: who called sudo, doas or pkexec; else you]
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,

    /// Command to run, with its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct TuneArgs {
    /// Variant that is changed: PRESET[+FEATURE=on|off][+TUNABLE=VALUE]...
    #[arg(long, value_name = "VARIANT", default_value = DEFAULT_PRESET)]
    pub(super) base: String,

    /// Runs of each variant in the last comparison; auto or auto:MAX: until it is decided
    #[arg(short = 'n', value_name = "N", default_value = "15", value_parser = plan)]
    pub(super) plan: Plan,

    #[command(flatten)]
    pub(super) runs: Runs,

    /// Folder for the result files, one file per step
    #[arg(long, value_name = "FOLDER", default_value = "tune")]
    pub(super) result: PathBuf,

    /// Continue an interrupted search, with its seed; all other options except --timeout must be
    /// the same as before
    #[arg(long)]
    pub(super) resume: bool,
}

#[derive(Debug, Subcommand)]
pub enum Look {
    /// Show the report of a result file
    Show {
        /// Result file
        #[arg(value_name = "FILE")]
        file: PathBuf,

        /// Print for a mailing list: raw runs, machine and commands, in 72 columns
        #[arg(long)]
        lkml: bool,

        /// Also show what else was measured, and counters
        #[arg(long)]
        counters: bool,
    },
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

impl Runs {
    /// The command's user; None: ours.
    pub(super) fn whose(&self) -> Result<Option<User>> {
        User::of(self.user.as_deref())
    }

    /// Takes the seed from the file unless one was typed. If both differ, resuming fails later.
    pub(super) fn goes_on_with(&mut self, file: &Path) -> Result<()> {
        if let Some(header) = Recorded::begun(file)?.map(|begun| begun.header) {
            self.seed.get_or_insert(header.seed);
            // As root, whoever began: a unit continues what was begun by sudo.
            let known = User::of(header.user.as_deref()).is_ok();
            if user::is_root() && self.user.is_none() && known {
                self.user = header.user;
            }
        }
        Ok(())
    }

    pub(super) fn header(
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
        let metrics = self.metrics(variants)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        Ok(Header {
            format: FORMAT.to_string(),
            version: version::number(),
            began: now.as_secs(),
            command: words(&self.command)?,
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
            boots: None,
            even: false,
            hooks: self.hooks.clone(),
            scope: self.scope,
            host: facts,
        })
    }

    fn metrics(&self, variants: &[Variant]) -> Result<Vec<Asked>> {
        let typed = self.metric.iter().map(|text| Metric::parse(text));
        let metrics: Vec<Metric> = typed.collect::<Result<_>>()?;
        let strange = variants.iter().find(|v| !matches!(v.kind, Kind::Roost(_)));
        let of_roost = metrics
            .iter()
            .find(|m| m.source.measured().is_some_and(Measured::is_of_roost));
        if let (Some(metric), Some(variant)) = (of_roost, strange) {
            bail!(
                "{} is measured only where scx_roost decides in BPF, not under {}",
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
