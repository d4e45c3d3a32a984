// SPDX-License-Identifier: GPL-2.0-only
//! The metrics of a run: numbers that were measured or that the command printed, and which
//! direction is better.

use super::stats::verdict::{Direction, Step};
use crate::util::names::meant;
use anyhow::{Context, Result, anyhow, ensure};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Measured in every run, whether it was asked for or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measured {
    Wall,
    User,
    System,
    MaxRss,
    ContextSwitches,
    Migrations,
    WakeupP50,
    WakeupP99,
}

pub struct MeasuredRow {
    pub measured: Measured,
    pub name: &'static str,
    pub unit: &'static str,
}

const fn row(measured: Measured, name: &'static str, unit: &'static str) -> MeasuredRow {
    MeasuredRow {
        measured,
        name,
        unit,
    }
}

/// Lower is better for all of them.
pub const MEASURED: [MeasuredRow; 8] = [
    // From the start of the command to its end.
    row(Measured::Wall, "wall", "s"),
    // CPU time outside the kernel, of the command and what it waited for.
    row(Measured::User, "user", "s"),
    // CPU time in the kernel, of the same.
    row(Measured::System, "system", "s"),
    // Most memory that one of its processes had.
    row(Measured::MaxRss, "max-rss", "kB"),
    // Of the same, both kinds.
    row(Measured::ContextSwitches, "context-switches", ""),
    // To another CPU, of the command and all that it started.
    row(Measured::Migrations, "migrations", ""),
    // Half of the wakeups ran within this time; under scx_roost alone.
    row(Measured::WakeupP50, "wakeup-p50", "us"),
    // 99 % of the wakeups ran within this time; under scx_roost alone.
    row(Measured::WakeupP99, "wakeup-p99", "us"),
];

#[derive(Clone, Debug)]
pub enum Source {
    Measured(Measured),
    /// The last match: its group, or the whole match if the pattern has no group.
    Regex(Regex),
    /// A JSON pointer (RFC 6901) into JSON that the command printed.
    Pointer(String),
}

impl Measured {
    /// Only scx_roost provides it.
    pub fn is_of_roost(self) -> bool {
        matches!(self, Measured::WakeupP50 | Measured::WakeupP99)
    }
}

impl Source {
    pub fn measured(&self) -> Option<Measured> {
        match self {
            Source::Measured(which) => Some(*which),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Metric {
    /// As typed, without the direction.
    pub name: String,
    pub source: Source,
    pub better: Direction,
}

impl Metric {
    /// Reads `[higher:|lower:]NAME`, `regex:PATTERN` or `json:/POINTER`. Lower is better, unless
    /// the text says otherwise. Fails for an unknown name, an invalid pattern, or a pointer without
    /// a slash.
    pub fn parse(text: &str) -> Result<Metric> {
        let (better, name) = match text.strip_prefix("higher:") {
            Some(rest) => (Direction::Higher, rest),
            None => (
                Direction::Lower,
                text.strip_prefix("lower:").unwrap_or(text),
            ),
        };
        let source = if let Some(pattern) = name.strip_prefix("regex:") {
            Source::Regex(regex(pattern)?)
        } else if let Some(pointer) = name.strip_prefix("json:") {
            ensure!(
                pointer.starts_with('/'),
                "metric {name}: a JSON pointer begins with a slash, as in json:/result/seconds"
            );
            Source::Pointer(pointer.to_string())
        } else {
            Source::Measured(measured(name)?)
        };
        Ok(Metric {
            name: name.to_string(),
            source,
            better,
        })
    }

    /// `tick_s`: the kernel's tick.
    pub fn step(&self, tick_s: f64) -> Step {
        let Some(measured) = self.source.measured() else {
            return Step::Seen;
        };
        match measured {
            Measured::WakeupP50 | Measured::WakeupP99 => Step::Part(1.0),
            // Their sum is exact. The kernel divides it by where ticks found the command
            // (cputime_adjust()), and without a tick in the kernel all of it is `user`.
            Measured::User | Measured::System => Step::Unit(tick_s),
            // The clock is much finer than the noise of runs, and counts are exact.
            Measured::Wall
            | Measured::MaxRss
            | Measured::ContextSwitches
            | Measured::Migrations => Step::Part(0.0),
        }
    }

    pub fn unit(&self) -> &'static str {
        match self.source {
            Source::Measured(which) => row_of(which).unit,
            _ => "",
        }
    }

    /// The number that the command printed, on stdout or else on stderr. None: the metric is
    /// measured, not printed. Fails if there is no such number.
    pub fn printed(&self, output: &str, errors: &str) -> Option<Result<f64>> {
        let mut both = [output, errors].into_iter();
        match &self.source {
            Source::Measured(_) => None,
            Source::Regex(regex) => {
                let found = both.find_map(|text| matched(regex, text));
                Some(found.unwrap_or_else(|| Err(no_match(regex, [output, errors]))))
            }
            Source::Pointer(pointer) => {
                let found = both.find_map(|text| pointed(pointer, text));
                Some(found.unwrap_or_else(|| Err(no_pointer(pointer, [output, errors]))))
            }
        }
    }
}

fn row_of(which: Measured) -> &'static MeasuredRow {
    let found = MEASURED.iter().find(|row| row.measured == which);
    found.expect("each has its row")
}

fn measured_row(name: &str) -> Option<&'static MeasuredRow> {
    MEASURED.iter().find(|row| row.name == name)
}

/// The unit of a measured metric. Empty: a count, or not measured.
pub fn unit_of(name: &str) -> &'static str {
    measured_row(name).map_or("", |row| row.unit)
}

fn measured(name: &str) -> Result<Measured> {
    measured_row(name).map(|row| row.measured).with_context(|| {
        let names: Vec<&str> = MEASURED.iter().map(|row| row.name).collect();
        let all = || {
            let names = names.join(", ");
            format!("expected one of {names}, regex:PATTERN or json:/POINTER")
        };
        let instead = meant(name, &names).unwrap_or_else(all);
        format!("unknown metric '{name}': {instead}")
    })
}

fn regex(pattern: &str) -> Result<Regex> {
    let regex = Regex::new(pattern).map_err(|e| anyhow!("metric regex:{pattern}: {}", why(&e)))?;
    ensure!(
        regex.captures_len() <= 2,
        "metric regex:{pattern}: it has {} groups, but one must be the number: write the others as (?:...)",
        regex.captures_len() - 1
    );
    Ok(regex)
}

/// The last line of the error; those before it mark the position.
fn why(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_string()
}

/// None: no match.
fn matched(regex: &Regex, text: &str) -> Option<Result<f64>> {
    let found = regex.captures_iter(text).last()?;
    let text = found.get(1).or(found.get(0)).map_or("", |m| m.as_str());
    let comma = match text.contains(',') {
        true => ": a comma is ambiguous (thousands or decimals), so the number must have none",
        false => "",
    };
    let number = finite(text);
    Some(number.with_context(|| {
        format!("'{regex}' matched '{text}', which is not a number up to {LARGEST:e}{comma}")
    }))
}

fn no_match(regex: &Regex, printed: [&str; 2]) -> anyhow::Error {
    let by_line = RegexBuilder::new(regex.as_str()).multi_line(true).build();
    let would = by_line.is_ok_and(|r| printed.iter().any(|text| r.is_match(text)));
    let hint = match would {
        true => ": ^ and $ match at lines if the pattern begins with (?m)",
        false => "",
    };
    anyhow!("the command's output has no match for '{regex}'{hint}")
}

/// None: no JSON, or no such element.
fn pointed(pointer: &str, text: &str) -> Option<Result<f64>> {
    let json = json(text).ok()?;
    let found = json.pointer(pointer)?;
    let number = found.as_f64().filter(|n| usable(*n));
    let number = number.or_else(|| finite(found.as_str()?));
    Some(number.with_context(|| {
        format!(
            "{pointer} in the command's JSON is {found}, which is not a number up to {LARGEST:e}"
        )
    }))
}

fn no_pointer(pointer: &str, printed: [&str; 2]) -> anyhow::Error {
    let found = printed.map(json);
    let broken = found.iter().find_map(|json| *json.as_ref().err()?);
    match (found.iter().any(Result::is_ok), broken) {
        (true, _) => anyhow!("the JSON that the command printed has no {pointer}"),
        (false, Some(line)) => {
            anyhow!(
                "the JSON that the command printed is invalid, or has a number beyond 1e308, in line {line} of its output"
            )
        }
        (false, None) => anyhow!("the command printed no JSON"),
    }
}

/// The last array or object that has its lines for itself. Fails with the number of the line in
/// which one is broken, so that nothing inside it is taken instead. Fails with None if there is
/// none.
fn json(text: &str) -> Result<Value, Option<usize>> {
    let (mut last, mut rest, mut before) = (None, text, 0);
    while let Some(line) = rest.split_inclusive('\n').next() {
        let length = match json_at(rest).map_err(|broken| Some(before + broken))? {
            Some((value, length)) => {
                last = Some(value);
                length
            }
            None => line.len(),
        };
        before += rest[..length].lines().count();
        rest = &rest[length..];
    }
    last.ok_or(None)
}

/// The value at the beginning of the text, and its length including its last line's end. None: the
/// first line begins no value. Fails with the number of the line, not the first, where it is
/// broken.
fn json_at(text: &str) -> Result<Option<(Value, usize)>, usize> {
    if !text.trim_start_matches([' ', '\t']).starts_with(['{', '[']) {
        return Ok(None);
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = match values.next() {
        Some(Ok(value)) => value,
        // A number beyond a double is in JSON that is otherwise valid.
        Some(Err(e)) if e.line() > 1 || e.to_string().contains("out of range") => {
            return Err(e.line());
        }
        _ => return Ok(None),
    };
    let end = values.byte_offset();
    let behind = text[end..].split_inclusive('\n').next().unwrap_or_default();
    let alone = behind.trim().is_empty();
    Ok(alone.then_some((value, end + behind.len())))
}

/// Larger numbers are no measurements, and their sums and squares are not finite.
const LARGEST: f64 = 1e100;

/// None: not a number, or none that statistics can use.
fn finite(text: &str) -> Option<f64> {
    let number = text.trim().parse::<f64>().ok()?;
    usable(number).then_some(number)
}

/// True for a finite number whose statistics are finite too.
pub fn usable(number: f64) -> bool {
    number.abs() <= LARGEST
}
