// SPDX-License-Identifier: GPL-2.0-only
//! Redacts a result file so that it can be published. Commands keep only the program's name, typed
//! texts keep only words of scx_roost, and nothing identifies the machine.

use super::boots;
use super::cpus::SUFFIX;
use super::metric::{Metric, Source};
use super::result::{Header, Recorded};
use super::stats::verdict::Direction;
use super::suite;
use super::variant::{Kind, Variant};
use crate::wire::stats::ROWS;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// Facts about the host that are kept.
const KEPT: [&str; 4] = ["kernel", "cpu", "cpus", "cores"];

/// Replacements for typed names.
struct Names {
    variants: BTreeMap<String, String>,
    metrics: BTreeMap<String, String>,
}

/// Keeps all numbers. Removes typed text that may hold names or paths, but keeps different things
/// distinguishable. Fails if a metric is invalid.
pub fn redacted(recorded: &Recorded) -> Result<Recorded> {
    let names = Names::new(&recorded.header)?;
    let mut shared = recorded.clone();
    let header = &mut shared.header;
    header.command = command(&header.command);
    header.workload = header.workload.take().filter(|name| suite::has(name));
    header.user = None;
    header.hooks = header.hooks.map(|_| "[a command]".to_string());
    header.host.retain(|name, _| KEPT.contains(&name.as_str()));
    if let Some(kernel) = header.host.get_mut("kernel") {
        *kernel = release(kernel);
    }
    header.variants = header.variants.iter().map(|v| names.variant(v)).collect();
    for asked in &mut header.metrics {
        asked.metric = names.metrics[&asked.metric].clone();
    }
    shared.asked = None;
    for run in &mut shared.runs {
        if let Some(boot) = &mut run.boot {
            boot.id = "a boot".to_string();
            boot.facts.clear();
        }
        run.variant = names.variant(&run.variant);
        let values = std::mem::take(&mut run.values).into_iter();
        let known = |(name, value): (String, f64)| Some((names.metric(&name)?, value));
        run.values = values.filter_map(known).collect();
        run.counters
            .retain(|name, _| ROWS.iter().any(|row| row.name == name));
    }
    for run in &mut shared.failed {
        run.variants = run.variants.iter().map(|v| names.variant(v)).collect();
    }
    Ok(shared)
}

impl Names {
    fn new(header: &Header) -> Result<Names> {
        let mut names = Names {
            variants: BTreeMap::new(),
            metrics: BTreeMap::new(),
        };
        for variant in &header.variants {
            let number = names.variants.len();
            let name = scheduler(variant, number)?;
            names.variants.insert(variant.clone(), name);
        }
        for asked in &header.metrics {
            let metric = Metric::parse(&asked.metric, Direction::Lower)?;
            let number = names.metrics.len() + 1;
            let name = match metric.source {
                Source::Measured(_) => metric.name,
                Source::Regex(_) => format!("regex:number-{number}"),
                Source::Pointer(_) => format!("json:/number-{number}"),
            };
            names.metrics.insert(asked.metric.clone(), name);
        }
        Ok(names)
    }

    fn variant(&self, name: &str) -> String {
        self.variants.get(name).cloned().unwrap_or_default()
    }

    /// None: it was not asked for, and is no metric of ours.
    fn metric(&self, name: &str) -> Option<String> {
        let measured = || Metric::parse(name, Direction::Lower).ok();
        let ours = || measured().filter(|m| matches!(m.source, Source::Measured(_)));
        let asked = self.metrics.get(name).cloned();
        asked.or_else(|| ours().map(|m| m.name))
    }
}

/// Another scheduler without its folder and arguments. Its place among the variants makes it
/// unique.
fn scheduler(variant: &str, place: usize) -> Result<String> {
    if let Some((rest, kernel)) = variant.rsplit_once(boots::SUFFIX) {
        let version = release(kernel);
        let unlike = if version == kernel {
            String::new()
        } else {
            format!("-{place}")
        };
        let rest = scheduler(rest, place)?;
        return Ok(format!("{rest}{}{version}{unlike}", boots::SUFFIX));
    }
    let Kind::Scx(words) = Variant::parse(variant)?.kind else {
        return Ok(variant.to_string());
    };
    let of_name = |c: &char| c.is_ascii_alphanumeric() || "_-.".contains(*c);
    let program: String = file_name(&words[0]).chars().filter(of_name).collect();
    let cpus = variant.rsplit_once(SUFFIX);
    let cpus = cpus.map_or(String::new(), |(_, list)| format!("{SUFFIX}{list}"));
    Ok(format!("scx:{program} variant-{place}{cpus}"))
}

fn command(words: &[String]) -> Vec<String> {
    let program = words.first().map(|word| file_name(word));
    let arguments = words.len().saturating_sub(1);
    let left = (arguments > 0).then(|| format!("[{arguments} arguments]"));
    program.into_iter().chain(left).collect()
}

/// Cuts '7.2.13-rc1-of-my-desk' after the version and -rc: the rest may identify the builder.
fn release(kernel: &str) -> String {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let (version, rest) = kernel.split_at(kernel.find(|c| !digits(c)).unwrap_or(kernel.len()));
    let candidate = rest.strip_prefix("-rc").map_or("", |n| {
        let end = n.find(|c: char| !c.is_ascii_digit()).unwrap_or(n.len());
        &rest[..3 + end]
    });
    format!("{version}{candidate}")
}

fn file_name(word: &str) -> String {
    word.rsplit('/').next().unwrap_or(word).to_string()
}

/// The lines of a file. Fails if they could not be read again.
pub fn lines(recorded: &Recorded) -> Result<String> {
    let mut text = serde_json::to_string(&recorded.header)? + "\n";
    let failed = |number: usize| recorded.failed.iter().filter(move |f| f.failed == number);
    for number in 0..=recorded.runs.len() {
        for run in failed(number) {
            text += &(serde_json::to_string(run)? + "\n");
        }
        if let Some(run) = recorded.runs.get(number) {
            text += &(serde_json::to_string(run)? + "\n");
        }
    }
    Recorded::of_lines(&text).context("the file that would be written cannot be read back")?;
    Ok(text)
}
