// SPDX-License-Identifier: GPL-2.0-only
//! The result file: a line of JSON on what is compared, and one for each run as soon as it is over. So nothing is lost when it is broken off,
//! and it can go on.

use super::condition::Seen;
use super::design::Design;
use super::metric::Metric;
use super::stats::verdict::{Direction, Rule};
use super::variant::{Variant, parse_all};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Of the first line; another number is another format.
pub const FORMAT: &str = "scx_roost ab 1";

/// What is compared, and by which rule. Written before the first run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    pub format: String,
    pub version: String,
    /// Seconds since 1970.
    pub began: u64,
    pub command: Vec<String>,
    pub timeout_s: Option<f64>,
    /// The first is what the others are compared with.
    pub variants: Vec<String>,
    pub metrics: Vec<Asked>,
    pub rule: Rule,
    pub seed: u64,
    pub warmups: usize,
    /// What a variant is switched for: the machine.
    pub scope: String,
    pub host: BTreeMap<String, String>,
}

/// A metric that gets a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub metric: String,
    pub better: Direction,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    pub number: usize,
    /// None: a warm-up.
    pub block: Option<usize>,
    pub variant: String,
    /// By the names of metrics.
    pub values: BTreeMap<String, f64>,
    /// By how much the scheduler's counters grew.
    pub counters: BTreeMap<String, u64>,
    pub seen: Seen,
}

impl Header {
    pub fn design(&self) -> Design {
        Design {
            seed: self.seed,
            variants: self.variants.len(),
            warmups: self.warmups,
        }
    }

    pub fn variants(&self) -> Result<Vec<Variant>> {
        parse_all(&self.variants)
    }

    pub fn metrics(&self) -> Result<Vec<Metric>> {
        let metric = |asked: &Asked| {
            let metric = Metric::parse(&asked.metric, asked.better)?;
            Ok(Metric {
                better: asked.better,
                ..metric
            })
        };
        self.metrics.iter().map(metric).collect()
    }

    /// Nothing that decides about a run is different: what was broken off may go on.
    pub fn same_plan(&self, other: &Header) -> bool {
        let plan = |h: &Header| Header {
            version: String::new(),
            began: 0,
            host: BTreeMap::new(),
            ..h.clone()
        };
        plan(self) == plan(other)
    }
}

/// What was read of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub header: Header,
    pub runs: Vec<Repetition>,
}

impl Recorded {
    pub fn read(path: &Path) -> Result<Recorded> {
        read(path).map(|(recorded, _)| recorded)
    }
}

/// And how many bytes of it are whole lines.
fn read(path: &Path) -> Result<(Recorded, usize)> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    // A line that was cut off when the machine went down.
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].lines();
    let first = lines.next().with_context(|| format!("{shown} is empty"))?;
    let header: Header = serde_json::from_str(first)
        .with_context(|| format!("{shown} is no result file of scx_roost ab"))?;
    let format = &header.format;
    ensure!(
        format == FORMAT,
        "{shown} is of the format '{format}', and this version reads '{FORMAT}'"
    );
    let run = |(at, line): (usize, &str)| {
        let run: Repetition = serde_json::from_str(line)
            .with_context(|| format!("line {} of {shown} is no run", at + 2))?;
        ensure!(
            run.number == at,
            "line {} of {shown} is run {}, and {at} was expected",
            at + 2,
            run.number
        );
        Ok(run)
    };
    let runs = lines.enumerate().map(run).collect::<Result<_>>()?;
    Ok((Recorded { header, runs }, whole))
}

/// One that is written.
pub struct ResultFile {
    file: File,
    pub path: PathBuf,
}

impl ResultFile {
    /// A new one, with its first line. Errors: there is one already.
    pub fn create(path: &Path, header: &Header) -> Result<ResultFile> {
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        let file = file.map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => anyhow::anyhow!(
                "{} exists: go on with it by --resume, or give another --result",
                path.display()
            ),
            _ => anyhow::anyhow!("cannot write {}: {e}", path.display()),
        })?;
        let mut written = ResultFile {
            file,
            path: path.to_path_buf(),
        };
        written.line(header)?;
        Ok(written)
    }

    /// Goes on behind the last whole line. Errors: it is of another plan.
    pub fn resume(path: &Path, header: &Header) -> Result<(ResultFile, Vec<Repetition>)> {
        let (recorded, whole) = read(path)?;
        ensure!(
            recorded.header.same_plan(header),
            "{} is of another comparison: give the same command, variants, metrics, seed and rule, or another --result",
            path.display()
        );
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(whole as u64)?;
        let path = path.to_path_buf();
        Ok((ResultFile { file, path }, recorded.runs))
    }

    pub fn append(&mut self, run: &Repetition) -> Result<()> {
        self.line(run)
    }

    fn line(&mut self, value: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(value)? + "\n";
        let written = self.file.write_all(line.as_bytes());
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        // Refused in some sandboxes; the line is written all the same.
        let _ = self.file.sync_data();
        Ok(())
    }
}
