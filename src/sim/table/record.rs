// SPDX-License-Identifier: GPL-2.0-only
//! The scores of the tables at full length, as docs/simulator/ has them: what a figure of the
//! simulator is worth is said beside it.

use anyhow::{Context, Result};
use serde::Serialize;

/// Drawn from docs/simulator/*.md by a test. Columns: the source, then those of `Score::cells`.
const RECORD: &str = include_str!("../data/record.tsv");
const NAMES: [(&str, &str); 7] = [
    ("000", "Lawall"),
    ("001", "Gouicem"),
    ("002", "Patra"),
    ("003", "Roy v7"),
    ("004", "Desnoyers"),
    ("005", "Loehle"),
    ("006", "Gorman"),
];

/// The score of the rows of one source.
#[derive(Clone, Debug, Serialize)]
pub struct Scored {
    pub source: String,
    pub name: &'static str,
    /// The mean error is smaller than that of "always 0 %", and more rows are ok.
    pub nearer: bool,
    pub effective: f64,
    pub ok: f64,
    pub ok_if_zero: f64,
    pub error: f64,
    pub error_if_zero: f64,
    pub signs: u32,
    pub effects: u32,
}

#[derive(Clone, Debug, Serialize)]
pub struct Record(pub Vec<Scored>);

impl Record {
    /// Errors: data/record.tsv is malformed.
    pub fn read() -> Result<Record> {
        Record::parse(RECORD)
    }

    /// Errors: a line is malformed.
    pub fn parse(text: &str) -> Result<Record> {
        let lines = text.lines().skip(1).map(|line| {
            scored(line).with_context(|| format!("record.tsv: {line:?} where a score was expected"))
        });
        Ok(Record(lines.collect::<Result<_>>()?))
    }

    /// Of how many effects the sign was right, and how many there were.
    pub fn signs(&self) -> (u32, u32) {
        let sum = |of: &dyn Fn(&Scored) -> u32| self.0.iter().map(of).sum::<u32>();
        (sum(&|s| s.signs), sum(&|s| s.effects))
    }

    /// How often the model was right, in one sentence.
    pub fn text(&self) -> String {
        let (right, of) = self.signs();
        let named = |nearer: bool| {
            let of = self.0.iter().filter(|s| s.nearer == nearer);
            let names: Vec<&str> = of.map(|s| s.name).collect();
            match names.is_empty() {
                true => "none".to_string(),
                false => names.join(", "),
            }
        };
        format!(
            "Its record against published effects: the sign is right in {right} of {of}; nearer than \
             \"always 0 %\" for {}, not for {}.",
            named(true),
            named(false)
        )
    }
}

fn scored(line: &str) -> Result<Scored> {
    let cells: Vec<&str> = line.split('\t').collect();
    let &[source, _, effective, ok, zero, error, error_zero, signs] = &cells[..] else {
        anyhow::bail!("{} columns, 8 were expected", cells.len());
    };
    let (right, of) = signs
        .split_once(" of ")
        .context("signs: N of M was expected")?;
    let known = NAMES.iter().find(|(known, _)| *known == source);
    let numbers = [effective, ok, zero, error, error_zero].map(str::parse::<f64>);
    let [effective, ok, ok_if_zero, error, error_if_zero] = numbers;
    let (ok, ok_if_zero, error, error_if_zero) = (ok?, ok_if_zero?, error?, error_if_zero?);
    Ok(Scored {
        source: source.to_string(),
        name: known
            .with_context(|| format!("there is no source {source}"))?
            .1,
        nearer: error < error_if_zero && ok > ok_if_zero,
        effective: effective?,
        ok,
        ok_if_zero,
        error,
        error_if_zero,
        signs: right.parse()?,
        effects: of.parse()?,
    })
}
