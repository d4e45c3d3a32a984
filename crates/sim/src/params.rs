// SPDX-License-Identifier: GPL-2.0-only
//! The numbers that the model is made of: data/params.tsv, each with a range and a source. Defaults
//! are written nowhere else.

use anyhow::{Context, Result, bail};
use scx_roost::util::names::meant;
use std::fmt;

const ROWS: &str = include_str!("data/params.tsv");
/// The machine of rows that apply to machines without a row of their own.
const ANY: &str = "*";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Us,
    Ms,
    /// Time to load a MB.
    UsPerMb,
    Mhz,
    Kb,
    Mb,
    /// A part of 1.
    Part,
    Count,
}

const UNITS: [(&str, Unit); 8] = [
    ("us", Unit::Us),
    ("ms", Unit::Ms),
    ("us/MB", Unit::UsPerMb),
    ("MHz", Unit::Mhz),
    ("kB", Unit::Kb),
    ("MB", Unit::Mb),
    ("part", Unit::Part),
    ("count", Unit::Count),
];

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (name, _) = UNITS
            .iter()
            .find(|(_, unit)| unit == self)
            .expect("it is there");
        f.pad(name)
    }
}

/// One number; `value`, `default`, `low` and `high` are in `unit`.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: &'static str,
    pub value: f64,
    pub default: f64,
    /// The plausible range.
    pub low: f64,
    pub high: f64,
    pub unit: Unit,
    pub what: &'static str,
    pub source: &'static str,
}

/// All parameters of one machine.
#[derive(Clone, Debug)]
pub struct Params {
    machine: String,
    /// Sorted by name.
    all: Vec<Param>,
}

impl Params {
    /// The parameters of a machine: its own rows first, then those of any machine.
    pub fn of(machine: &str) -> Params {
        let mut all: Vec<Param> = Vec::new();
        for of in [machine, ANY] {
            for param in rows().filter(|(m, _)| *m == of).map(|(_, param)| param) {
                if !all.iter().any(|p| p.name == param.name) {
                    all.push(param);
                }
            }
        }
        all.sort_by_key(|p| p.name);
        Params {
            machine: machine.to_string(),
            all,
        }
    }

    /// Sorted by name.
    pub fn all(&self) -> &[Param] {
        &self.all
    }

    pub fn get(&self, name: &str) -> Option<&Param> {
        let at = self.all.binary_search_by_key(&name, |p| p.name).ok()?;
        Some(&self.all[at])
    }

    /// Sets a value, in the parameter's unit. Errors: there is no such parameter; its range does
    /// not contain the value.
    pub fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let at = self.all.binary_search_by_key(&name, |p| p.name);
        let Ok(at) = at else {
            bail!("there is no parameter {name}: {}", self.instead(name));
        };
        let param = &mut self.all[at];
        let Param {
            low, high, unit, ..
        } = *param;
        if !(low..=high).contains(&value) {
            let of = &self.machine;
            match low == high {
                true => bail!("{name} of {of} must be {low} {unit}"),
                false => bail!("{name} of {of} must be {low} to {high} {unit}, not {value}"),
            }
        }
        param.value = value;
        Ok(())
    }

    fn instead(&self, name: &str) -> String {
        let names: Vec<&str> = self.all.iter().map(|param| param.name).collect();
        meant(name, &names).unwrap_or_else(|| "--list shows those there are".to_string())
    }

    /// Sets a value from NAME=VALUE, as given with --param.
    pub fn change(&mut self, text: &str) -> Result<()> {
        let told = || format!("--param {text}");
        let (name, value) = text
            .split_once('=')
            .with_context(|| format!("--param {text}: NAME=VALUE was expected"))?;
        let value = value
            .parse()
            .with_context(|| format!("--param {text}: {value} is not a number"))?;
        self.set(name, value).with_context(told)
    }

    // ---- for code that builds the model: an unknown name or another unit is a bug, and panics
    // ----

    fn known(&self, name: &str) -> &Param {
        let param = self.get(name);
        param.unwrap_or_else(|| panic!("params.tsv has no {name} of {}", self.machine))
    }

    fn wrong(&self, param: &Param, wanted: &str) -> ! {
        panic!("{} is in {}, not {wanted}", param.name, param.unit)
    }

    pub fn ns(&self, name: &str) -> u64 {
        let param = self.known(name);
        let scale = match param.unit {
            Unit::Us | Unit::UsPerMb => 1e3,
            Unit::Ms => 1e6,
            _ => self.wrong(param, "time"),
        };
        (param.value * scale).round() as u64
    }

    pub fn bytes(&self, name: &str) -> u64 {
        let param = self.known(name);
        let scale = match param.unit {
            Unit::Kb => 1e3,
            Unit::Mb => 1e6,
            _ => self.wrong(param, "bytes"),
        };
        (param.value * scale).round() as u64
    }

    pub fn khz(&self, name: &str) -> u32 {
        let param = self.known(name);
        match param.unit {
            Unit::Mhz => (param.value * 1e3).round() as u32,
            _ => self.wrong(param, "a frequency"),
        }
    }

    pub fn part(&self, name: &str) -> f64 {
        let param = self.known(name);
        match param.unit {
            Unit::Part => param.value,
            _ => self.wrong(param, "a part"),
        }
    }

    pub fn count(&self, name: &str) -> u64 {
        let param = self.known(name);
        match param.unit {
            Unit::Count => param.value.round() as u64,
            _ => self.wrong(param, "a count"),
        }
    }
}

fn rows() -> impl Iterator<Item = (&'static str, Param)> {
    ROWS.lines().skip(1).map(|line| {
        row(line).unwrap_or_else(|| panic!("params.tsv: {line:?} where a row was expected"))
    })
}

/// Reads a line: name, machine, default, range, unit, what, source.
fn row(line: &'static str) -> Option<(&'static str, Param)> {
    let row = split(line)?;
    let param = Param {
        name: row.name,
        value: row.value,
        default: row.value,
        low: row.low,
        high: row.high,
        unit: row.unit,
        what: row.what,
        source: row.source,
    };
    Some((row.machine, param))
}

struct Row<'a> {
    name: &'a str,
    machine: &'a str,
    value: f64,
    low: f64,
    high: f64,
    unit: Unit,
    what: &'a str,
    source: &'a str,
}

fn split(line: &str) -> Option<Row<'_>> {
    let cells: Vec<&str> = line.split('\t').collect();
    let &[name, machine, value, range, unit, what, source] = &cells[..] else {
        return None;
    };
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let row = Row {
        name,
        machine,
        value: value.parse().ok()?,
        low: low.parse().ok()?,
        high: high.parse().ok()?,
        unit: UNITS.iter().find(|(name, _)| *name == unit)?.1,
        what,
        source,
    };
    (row.low <= row.value && row.value <= row.high).then_some(row)
}

/// All rows, as text for --list.
pub fn text() -> String {
    let line = |(machine, p): (&str, Param)| {
        let range = match p.low == p.high {
            true => String::new(),
            false => format!("{}-{}", p.low, p.high),
        };
        format!(
            "  {:<22} {machine:<18} {:>7} {range:<11} {:<6} {} ({})\n",
            p.name, p.default, p.unit, p.what, p.source
        )
    };
    rows().map(line).collect()
}
