// SPDX-License-Identifier: GPL-2.0-only
//! The scores of the tables at full length, as docs/simulator/ has them: what a figure of the
//! simulator is worth is said beside it.

use anyhow::{Context, Result, ensure};
use serde::Serialize;

/// Drawn from docs/simulator/*.md by a test. Columns: the source, then those of `score::HEADS`.
/// Each source has two lines: of its decided rows, and of all. A page from before the second score
/// was kept has the first alone.
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

/// The scores of the rows of one source.
#[derive(Clone, Debug, Serialize)]
pub struct Scored {
    pub source: String,
    pub name: &'static str,
    /// The mean error is smaller than that of "always 0 %", and more rows are ok; both with and
    /// without undecided rows.
    pub nearer: bool,
    #[serde(flatten)]
    pub decided: Part,
    /// None: not known.
    pub all: Option<Part>,
}

/// One score.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    pub effective: f64,
    pub ok: f64,
    pub ok_if_zero: f64,
    pub error: f64,
    pub error_if_zero: f64,
    pub signs: u32,
    pub effects: u32,
}

impl Part {
    fn nearer(&self) -> bool {
        self.error < self.error_if_zero && self.ok > self.ok_if_zero
    }
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
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let source = |line: &str| line.split('\t').next().map(str::to_string);
        let of_sources = lines.chunk_by(|a, b| source(a) == source(b)).map(|of| {
            scored(of).with_context(|| format!("record.tsv: {of:?} where scores were expected"))
        });
        Ok(Record(of_sources.collect::<Result<_>>()?))
    }

    /// Of how many effects the sign was right, and how many there were.
    pub fn signs(&self) -> (u32, u32) {
        let sum = |of: &dyn Fn(&Part) -> u32| self.0.iter().map(|s| of(&s.decided)).sum::<u32>();
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
             \"always 0 %\", both with undecided rows and without, for {}; not for {}.",
            named(true),
            named(false)
        )
    }
}

/// The lines of a source.
fn scored(lines: &[&str]) -> Result<Scored> {
    ensure!(lines.len() <= 2, "two lines of a source were expected");
    let (source, decided) = part(lines[0])?;
    let all = lines.get(1).map(|line| part(line)).transpose()?;
    let all = all.map(|(_, part)| part);
    let known = NAMES.iter().find(|(known, _)| *known == source);
    let known = known.with_context(|| format!("there is no source {source}"))?;
    Ok(Scored {
        source: source.to_string(),
        name: known.1,
        nearer: decided.nearer() && all.as_ref().is_some_and(Part::nearer),
        decided,
        all,
    })
}

/// The source and the score of a line.
fn part(line: &str) -> Result<(&str, Part)> {
    let cells: Vec<&str> = line.split('\t').collect();
    let &[source, _, _, effective, ok, zero, error, error_zero, signs] = &cells[..] else {
        anyhow::bail!("{} columns, 9 were expected", cells.len());
    };
    let (right, of) = signs
        .split_once(" of ")
        .context("signs: N of M was expected")?;
    let numbers = [effective, ok, zero, error, error_zero].map(str::parse::<f64>);
    let [effective, ok, ok_if_zero, error, error_if_zero] = numbers;
    let part = Part {
        effective: effective?,
        ok: ok?,
        ok_if_zero: ok_if_zero?,
        error: error?,
        error_if_zero: error_if_zero?,
        signs: right.parse()?,
        effects: of.parse()?,
    };
    Ok((source, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As of Patra: without undecided rows 6.3 points beside 6.5, with them 5.0 beside 4.6.
    #[test]
    fn a_source_is_nearer_if_both_scores_say_so() {
        let nearer = |all: &str| {
            let decided = "002\tdecided\t37\t11.0\t6.0\t5.0\t6.3\t6.5\t1 of 25";
            let text = format!("heads\n{decided}\n002\tall\t46\t{all}\t2 of 30\n");
            Record::parse(&text).unwrap().0[0].nearer
        };
        assert!(!nearer("15.0\t7.0\t6.0\t5.0\t4.6"));
        assert!(nearer("15.0\t7.0\t6.0\t4.5\t4.6"));
        assert!(Record::parse("heads\n002\tdecided").is_err());
        let alone = "heads\n002\tdecided\t37\t11.0\t6.0\t5.0\t6.3\t6.5\t1 of 25";
        assert!(!Record::parse(alone).unwrap().0[0].nearer);
    }
}
