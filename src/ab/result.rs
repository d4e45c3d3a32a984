// SPDX-License-Identifier: GPL-2.0-only
//! The result file: a line of JSON about the comparison, and a line for each run as soon as it
//! ends. So an interruption loses nothing, and the comparison can be resumed.

use super::boot::{Asked as AskedBoot, Booted, OF_BOOT};
use super::condition::Seen;
use super::design::{Design, Turn};
use super::hooks::Hooks;
use super::metric::{Metric, usable};
use super::stats::plan::Plan;
use super::stats::verdict::{Direction, Rule};
use super::variant::{KERNEL_SUFFIX, Scope, Variant, parse_all};
use crate::util::lock::{self, Lock};
use crate::util::plain_file::{PlainFile, at_most};
use crate::util::user::give_back;
use crate::util::whole_file;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// In the first line; another number means another format.
pub const FORMAT: &str = "scx_roost ab 2";
/// Runs in blocks: one of each variant, in random order, with uncounted runs between blocks.
const IN_BLOCKS: &str = "scx_roost ab 1";
/// The longest result file that is read.
const BYTES_MAX: u64 = 1 << 30;
/// Bytes of a run in the file, at most: it has a few hundred, with all counters a few thousand.
const RUN_BYTES: u64 = 1 << 13;
/// Most runs of a comparison, counted or not: their file can be read.
const ALL_RUNS_MAX: usize = (BYTES_MAX / RUN_BYTES) as usize;
/// How long a result file may be locked, and how often that is tried again.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_NAP: Duration = Duration::from_millis(20);
/// Fewest ticks in a second.
const LEAST_HZ: f64 = 100.0;
/// Most runs of one variant.
pub const RUNS_MAX: usize = 10_000;

/// What is compared, and by which rule. Written before the first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub format: String,
    pub version: String,
    /// Seconds since 1970.
    pub began: u64,
    pub command: Vec<String>,
    /// The user that the command ran as. None: unknown, or removed.
    #[serde(default)]
    pub user: Option<String>,
    /// A run that takes longer fails.
    pub timeout_s: f64,
    /// The others are compared with the first.
    pub variants: Vec<String>,
    pub metrics: Vec<Asked>,
    pub rule: Rule,
    pub seed: u64,
    pub warmups: usize,
    /// Counted runs of each boot, if a turn is a boot.
    #[serde(default)]
    pub boots: Option<usize>,
    /// Each round has each variant once.
    #[serde(default)]
    pub even: bool,
    #[serde(default)]
    pub hooks: Hooks,
    pub scope: Scope,
    pub host: BTreeMap<String, String>,
}

/// A metric that gets a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub metric: String,
    pub better: Direction,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    pub number: usize,
    /// None: a warm-up. Runs of one boot have the same.
    #[serde(alias = "block")]
    pub turn: Option<usize>,
    pub variant: String,
    /// A die decided the variant.
    #[serde(default)]
    pub drawn: bool,
    /// By name of the metric.
    pub values: BTreeMap<String, f64>,
    /// Growth of the scheduler's counters.
    pub counters: BTreeMap<String, u64>,
    pub seen: Seen,
    /// The boot that it was made in, if a turn is a boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Booted>,
}

/// A run in which the command failed. It was repeated or is still to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedRun {
    /// Number of the run.
    pub failed: usize,
    /// Its variant. A list, as version 0.1.0 writes and reads it.
    pub variants: [String; 1],
}

impl Header {
    pub fn design(&self) -> Design {
        Design {
            seed: self.seed,
            variants: self.variants.len(),
            warmups: self.warmups,
            boots: self.boots,
            even: self.even,
        }
    }

    /// All runs that this comparison may have.
    pub fn order(&self) -> Vec<Turn> {
        self.design().order(self.rule.plan.max())
    }

    /// The kernel's tick. The longest one that kernels have, if it is unknown or another one in
    /// each boot.
    pub fn tick_s(&self) -> f64 {
        let hz = self.host.get("hz").filter(|_| self.boots.is_none());
        let hz = hz.and_then(|hz| hz.parse().ok()).unwrap_or(LEAST_HZ);
        1.0 / hz.max(LEAST_HZ)
    }

    /// At least two.
    pub fn variants(&self) -> Result<Vec<Variant>> {
        parse_all(&self.variants)
    }

    pub fn metrics(&self) -> Result<Vec<Metric>> {
        let metric = |asked: &Asked| {
            let metric = Metric::parse(&asked.metric)?;
            Ok(Metric {
                better: asked.better,
                ..metric
            })
        };
        self.metrics.iter().map(metric).collect()
    }

    /// Fails if a comparison with this header cannot be resumed as `other`; the error says how they
    /// differ.
    fn same_plan(&self, other: &Header) -> Result<()> {
        ensure!(
            self.version == other.version,
            "it was begun by version {}, and this is {}: use one version for one comparison",
            self.version,
            other.version
        );
        // --setup may build the program anew.
        let may_change =
            |name: &str| name == "program" || self.boots.is_some() && OF_BOOT.contains(&name);
        for (name, value) in other.host.iter().filter(|(name, _)| !may_change(name)) {
            let then = self.host.get(name).map_or("unknown", String::as_str);
            if self.variants.contains(name) {
                // A scheduler that answered too late has no version.
                ensure!(
                    then == value || then == "unknown",
                    "{name} was '{then}' and is '{value}': use one version for one comparison"
                );
                continue;
            }
            ensure!(
                then == value,
                "it was begun on another machine or kernel: {name} was '{then}' and is '{value}'"
            );
        }
        if let (Some(then), Some(now)) = (&self.user, &other.user) {
            ensure!(
                then == now,
                "its command was run as {then}, and now would be as {now}: continue as {then}, or with --user {then}"
            );
        }
        let (there, here) = (self.plan()?, other.plan()?);
        let differ = here.iter().filter_map(|(field, value)| {
            let then = there.get(field).unwrap_or(&Value::Null);
            (then != value).then(|| format!("{field} is {then} there and {value} here"))
        });
        let differ: Vec<String> = differ.collect();
        ensure!(
            differ.is_empty(),
            "it is of another comparison: {}",
            differ.join("; ")
        );
        Ok(())
    }

    /// The fields that runs depend on, by name. Without version, time, host, user and timeout.
    fn plan(&self) -> Result<Map<String, Value>> {
        let Value::Object(mut plan) = serde_json::to_value(self)? else {
            bail!("a header has names");
        };
        // Runs in blocks cannot be continued: `format` stays.
        for of_this_time in ["version", "began", "host", "timeout_s", "user"] {
            plan.remove(of_this_time);
        }
        if let Some(Value::Object(rule)) = plan.remove("rule") {
            plan.extend(rule);
        }
        Ok(plan)
    }

    /// Fails unless each variant names its kernel if this is a comparison across boots, and none
    /// otherwise.
    pub fn check_kernels(&self, variants: &[Variant]) -> Result<()> {
        let Some(runs) = self.boots else {
            let named = variants.iter().find(|v| v.kernel.is_some());
            ensure!(
                named.is_none(),
                "{}: another kernel is another boot, which needs --across-boots",
                named.map_or("", |v| &v.name)
            );
            return Ok(());
        };
        let unnamed = variants.iter().find(|v| v.kernel.is_none());
        ensure!(
            unnamed.is_none(),
            "{} names no kernel: with --across-boots each variant does, as in eevdf{KERNEL_SUFFIX}7.2.13",
            unnamed.map_or("", |v| &v.name)
        );
        ensure!(
            (1..=RUNS_MAX).contains(&runs),
            "--across-boots {runs}: each boot has 1 to {RUNS_MAX} runs"
        );
        ensure!(
            self.scope == Scope::Machine,
            "--across-boots is for the whole machine: it cannot be combined with --scope workload"
        );
        Ok(())
    }

    /// Fails for a header that `scx_roost ab` never writes.
    fn checked(self) -> Result<Header> {
        self.variants()?;
        let metrics = self.metrics()?;
        ensure!(!metrics.is_empty(), "it has no metric");
        distinct(&metrics)?;
        ensure!(self.warmups <= RUNS_MAX, "warmups are {}", self.warmups);
        self.scope.check(&self.variants()?)?;
        self.check_kernels(&self.variants()?)?;
        let runs = self.design().runs(self.rule.plan.max());
        ensure!(
            runs <= ALL_RUNS_MAX,
            "it would have {runs} runs: at most {ALL_RUNS_MAX} runs are possible"
        );
        self.rule.checked()?;
        Ok(self)
    }
}

impl Repetition {
    /// Fails unless this is run `at`, whose turn is `due`, with a usable value of each metric.
    /// `due` is None for a run in blocks.
    fn checked(
        self,
        at: usize,
        due: Option<Turn>,
        metrics: &[Metric],
        header: &Header,
    ) -> Result<Repetition> {
        ensure!(
            self.number == at,
            "it is run {}, expected {at}",
            self.number
        );
        let as_due = due.is_none_or(|due| {
            (self.turn, self.drawn) == (due.turn, due.drawn)
                && self.variant == header.variants[due.variant]
        });
        ensure!(
            as_due && header.variants.contains(&self.variant),
            "run {at} is of {}, which is not its turn",
            self.variant
        );
        let missing = metrics
            .iter()
            .find(|m| !self.values.get(&m.name).is_some_and(|v| usable(*v)));
        match missing {
            Some(metric) => bail!("run {at} has no {}", metric.name),
            None => Ok(self),
        }
    }
}

impl FailedRun {
    /// Fails unless run `due` is the one that failed.
    fn checked(self, due: usize, header: &Header) -> Result<FailedRun> {
        let known = |v: &String| header.variants.contains(v);
        ensure!(
            self.failed == due && self.variants.iter().all(known),
            "it says that run {} failed, expected run {due}",
            self.failed
        );
        Ok(self)
    }
}

/// Fails if a metric is given twice: it would be compared with itself.
pub fn distinct(metrics: &[Metric]) -> Result<()> {
    let twice = metrics
        .iter()
        .enumerate()
        .find(|(i, m)| metrics[..*i].iter().any(|o| o.name == m.name));
    match twice {
        Some((_, metric)) => bail!("metric {} is given twice", metric.name),
        None => Ok(()),
    }
}

/// The content of a result file.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub header: Header,
    pub runs: Vec<Repetition>,
    /// In the order of their lines.
    pub failed: Vec<FailedRun>,
    /// The kernel that was asked for after the last run.
    pub asked: Option<AskedBoot>,
}

impl Recorded {
    /// Without runs.
    pub fn new(header: Header) -> Recorded {
        Recorded {
            header,
            runs: Vec::new(),
            failed: Vec::new(),
            asked: None,
        }
    }

    pub fn read(path: &Path) -> Result<Recorded> {
        let bytes = bytes(path)?;
        read(&bytes, path).map(|(recorded, _)| recorded)
    }

    /// As `read`. None: writing was interrupted before the first line was complete.
    pub fn begun(path: &Path) -> Result<Option<Recorded>> {
        let bytes = bytes(path)?;
        match broken_off(&bytes) {
            true => Ok(None),
            false => read(&bytes, path).map(|(recorded, _)| Some(recorded)),
        }
    }

    /// Parses the lines of a file. Fails if they are not those of a comparison.
    pub fn of_lines(text: &str) -> Result<Recorded> {
        let mut lines = text.lines();
        let header = header(lines.next().context("it is empty")?)?;
        let metrics = header.metrics()?;
        let in_blocks = header.format == IN_BLOCKS;
        let order = header.order();
        let (mut runs, mut failed, mut asked) = (Vec::new(), Vec::new(), None);
        for (at, line) in lines.enumerate() {
            let mut read = || -> Result<()> {
                if let Ok(boot) = serde_json::from_str::<AskedBoot>(line) {
                    asked = Some(boot);
                    return Ok(());
                }
                if let Ok(run) = serde_json::from_str::<FailedRun>(line) {
                    failed.push(run.checked(runs.len(), &header)?);
                    return Ok(());
                }
                // Of a block up to one run more does not count.
                let all = order.len() + if in_blocks { header.rule.plan.max() } else { 0 };
                let at = runs.len();
                ensure!(at < all, "there are only {all} runs, and it is one more");
                let due = order.get(at).copied().filter(|_| !in_blocks);
                let run: Repetition = serde_json::from_str(line).context("it is not a run")?;
                runs.push(run.checked(at, due, &metrics, &header)?);
                asked = None;
                Ok(())
            };
            read().with_context(|| format!("line {}", at + 2))?;
        }
        let mut recorded = Recorded {
            header,
            runs,
            failed,
            asked,
        };
        if in_blocks {
            recorded.mark_drawn_runs();
        }
        Ok(recorded)
    }

    /// For runs in blocks of two variants: of the first run after a block a coin decided the
    /// variant, whether that run counted then or not. It told the variants of the others.
    fn mark_drawn_runs(&mut self) {
        let mut counted = 0;
        let mut ends_block = true;
        for (at, run) in self
            .runs
            .iter_mut()
            .skip(2 * self.header.warmups)
            .enumerate()
        {
            counted += usize::from(run.turn.is_some());
            run.drawn = ends_block;
            ends_block = run.turn.is_some() && counted.is_multiple_of(2);
            run.turn = Some(at);
        }
        // A plan that is not complete has no look, and neither has one that stopped by a verdict.
        let plan = self.header.rule.plan;
        let complete = plan == Plan::Fixed(counted / 2);
        let most = if complete {
            self.rounds()
        } else {
            plan.max().max(self.rounds() + 1)
        };
        self.header.rule.plan = Plan::Fixed(most.max(1));
    }

    /// The number of whole rounds.
    pub fn rounds(&self) -> usize {
        self.header.design().rounds(self.runs.len())
    }

    /// How many runs of a turn failed and were repeated.
    pub fn failed_in(&self, turn: usize) -> usize {
        let of_turn = |f: &&FailedRun| {
            self.runs
                .get(f.failed)
                .is_some_and(|r| r.turn == Some(turn))
        };
        self.failed.iter().filter(of_turn).count()
    }
}

/// True if there is no whole line, and what there is begins like a header of ours.
fn broken_off(bytes: &[u8]) -> bool {
    let begin = format!("{{\"format\":\"{FORMAT}\"");
    let common = begin.len().min(bytes.len());
    !bytes.contains(&b'\n') && bytes[..common] == begin.as_bytes()[..common]
}

fn header(line: &str) -> Result<Header> {
    let json: Value =
        serde_json::from_str(line).context("it is not a result file of scx_roost ab")?;
    let format = json.get("format").and_then(Value::as_str);
    let format = format.context("it is not a result file of scx_roost ab")?;
    ensure!(
        [FORMAT, IN_BLOCKS].contains(&format),
        "it has the format '{format}', but this version reads '{FORMAT}'"
    );
    // Of a workload of a suite, whose comparisons shared the error.
    let of_suite = json["rule"]["suite"].as_u64().unwrap_or(0) > 0;
    ensure!(
        json["mirrored"] != true && json["sides"].is_null() && !of_suite,
        "it was made with --mirror, --concurrent, --suite or --parameter, which this version does not have: show it with the version that made it"
    );
    let in_blocks = format == IN_BLOCKS;
    let header = serde_json::from_value::<Header>(json).map_err(anyhow::Error::from);
    let header = header.and_then(Header::checked).context("line 1")?;
    ensure!(
        !in_blocks || header.variants.len() == 2 && header.boots.is_none(),
        "its runs are in blocks of more than two variants or of boots, which this version does \
             not judge: show it with the version that made it"
    );
    Ok(header)
}

fn bytes(path: &Path) -> Result<Vec<u8>> {
    let bytes = PlainFile::open(path).and_then(|file| file.bytes(BYTES_MAX));
    bytes.with_context(|| format!("cannot read {}", path.display()))
}

/// Also returns the number of bytes in whole lines. The last line may be cut off by a crash.
fn read(bytes: &[u8], path: &Path) -> Result<(Recorded, usize)> {
    let recorded = || {
        let whole = bytes
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |end| end + 1);
        let text = str::from_utf8(&bytes[..whole]).context("it is not a text in UTF-8")?;
        anyhow::Ok((Recorded::of_lines(text)?, whole))
    };
    recorded().with_context(|| format!("cannot read {}", path.display()))
}

/// A result file open for writing.
pub struct ResultFile {
    file: File,
    pub path: PathBuf,
    _lock: Lock,
}

impl ResultFile {
    /// Creates a file with its first line. Fails if the file exists, or could not be read again.
    pub fn create(path: &Path, header: &Header) -> Result<ResultFile> {
        header.clone().checked()?;
        let file = whole_file::create_new(path).map_err(|e| match e.kind() {
            // Results are never overwritten.
            ErrorKind::AlreadyExists => anyhow::anyhow!(
                "{} exists: continue it with --resume, or give another --result",
                path.display()
            ),
            _ => anyhow::anyhow!("cannot write {}: {e}", path.display()),
        })?;
        give_back(&file, path);
        let written = ResultFile::locked(file, path).and_then(|mut written| {
            written.append(header)?;
            Ok(written)
        });
        // An empty file would block the next attempt.
        written.inspect_err(|_| drop(whole_file::remove(path)))
    }

    /// Opens a file to append after its last whole line. If there is none, writes the header. Fails
    /// if the plan, version, machine, kernel or user differs, or another process writes the file.
    pub fn resume(path: &Path, header: &Header) -> Result<(ResultFile, Recorded)> {
        let file = whole_file::reopen(path);
        let file = file.with_context(|| format!("cannot continue {}", path.display()))?;
        let mut written = ResultFile::locked(file, path)?;
        let bytes = at_most(&written.file, BYTES_MAX);
        let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
        if broken_off(&bytes) {
            header.clone().checked()?;
            written.file.set_len(0)?;
            written.append(header)?;
            return Ok((written, Recorded::new(header.clone())));
        }
        let (recorded, whole) = read(&bytes, path)?;
        recorded
            .header
            .same_plan(header)
            .with_context(|| format!("cannot continue {}", path.display()))?;
        written.file.set_len(whole as u64)?;
        Ok((written, recorded))
    }

    /// Locks the file: two writers would mix their lines. A child of this process that has not
    /// executed its program yet holds the locks of the files that are closed here, for a moment.
    fn locked(file: File, path: &Path) -> Result<ResultFile> {
        let begin = Instant::now();
        let take = || lock::take(&file).with_context(|| format!("cannot lock {}", path.display()));
        let mut locked = take()?;
        while locked.is_none() && begin.elapsed() < LOCK_PATIENCE {
            sleep(LOCK_NAP);
            locked = take()?;
        }
        let Some(lock) = locked else {
            bail!("another process is writing {}", path.display());
        };
        Ok(ResultFile {
            file,
            path: path.to_path_buf(),
            _lock: lock,
        })
    }

    /// Appends a run, a failed run or the kernel that was asked for, as a line.
    pub fn append(&mut self, value: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(value)? + "\n";
        let written = self.file.write_all(line.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        // Some sandboxes refuse fdatasync; the line is written nevertheless.
        let _ = self.file.sync_data();
        Ok(())
    }
}
