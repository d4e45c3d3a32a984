// SPDX-License-Identifier: GPL-2.0-only
//! What the sources have published: the rows of data/tables.tsv.

use anyhow::{Context, Result, ensure};

const TABLES: &str = include_str!("../data/tables.tsv");
const COLUMNS: usize = 17;

/// What a row is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A parameter was fitted to it.
    Calibrates,
    /// A scheduler's effect, to which no parameter was fitted. Rules were changed after most rows
    /// had been seen.
    Effect,
    /// No effect was published.
    Control,
    /// Threads pinned by hand: a bound, not a scheduler.
    Bound,
    /// The extreme of a run: shown, but not counted.
    Tail,
    /// Another scheduler.
    Foreign,
    /// A sentence about many runs.
    Summary,
    /// Not published by the source itself.
    Context,
    /// Published, but the figure is not entered: a prediction comes first
    /// (docs/simulator/predictions).
    Sealed,
}

const USES: [(&str, Use); 9] = [
    ("calibrates", Use::Calibrates),
    ("effect", Use::Effect),
    ("control", Use::Control),
    ("bound", Use::Bound),
    ("tail", Use::Tail),
    ("foreign", Use::Foreign),
    ("summary", Use::Summary),
    ("context", Use::Context),
    ("sealed", Use::Sealed),
];

impl Use {
    pub fn name(self) -> &'static str {
        USES.iter().find(|u| u.1 == self).expect("it is there").0
    }

    /// True if such rows count. The others are listed apart.
    pub fn counts(self) -> bool {
        matches!(
            self,
            Use::Calibrates | Use::Effect | Use::Control | Use::Bound
        )
    }
}

/// A row. An effect is the change of the metric from base to variant, percent.
#[derive(Clone, Debug)]
pub struct Row {
    pub source: &'static str,
    pub name: &'static str,
    pub machine: &'static str,
    pub workload: &'static str,
    pub metric: &'static str,
    pub unit: &'static str,
    /// lower, higher or none.
    pub better: &'static str,
    pub base: &'static str,
    pub variant: &'static str,
    pub base_value: Option<f64>,
    pub variant_value: Option<f64>,
    /// None: no figure was published. For a control that means no effect.
    pub effect: Option<f64>,
    /// Standard error of the effect, points.
    pub error: Option<f64>,
    pub used: Use,
    /// The message that publishes it.
    pub message: &'static str,
}

impl Row {
    /// True if the source itself publishes the row. Other messages of its thread, and replies, may
    /// be about other patches.
    pub fn in_source(&self) -> bool {
        let own = self.message.strip_prefix(self.source);
        own.is_some_and(|rest| rest.starts_with(": "))
    }

    /// What one run measures, and a run with another policy beside it. Two variants beside the same
    /// base are two: each is a prediction of its own, though an error of the base is in both.
    pub fn run(&self) -> [&'static str; 4] {
        [self.machine, self.workload, self.base, self.variant]
    }

    /// The published effect, from its two values if they are known. 0: none was published.
    pub fn effect(&self) -> f64 {
        let values = self.base_value.zip(self.variant_value);
        let exact = values.map(|(base, variant)| (variant / base - 1.0) * 100.0);
        exact.or(self.effect).unwrap_or(0.0)
    }

    /// How far the published effect may be off, points: `errors` standard errors; of whole
    /// microseconds, one. None: not published.
    pub fn reach(&self, errors: f64) -> Option<f64> {
        let whole = self.unit == "us" && self.base_value.is_some_and(|v| v.fract() == 0.0);
        let resolution = self.base_value.filter(|_| whole).map(|v| 100.0 / v);
        self.error.map(|e| errors * e).or(resolution)
    }
}

/// All rows. Errors: a line is malformed.
pub fn rows() -> Result<Vec<Row>> {
    let lines = TABLES.lines().skip(1);
    lines
        .map(|line| row(line).with_context(|| format!("tables.tsv: {line:?}")))
        .collect()
}

fn row(line: &'static str) -> Result<Row> {
    let cells: Vec<&str> = line.split('\t').collect();
    ensure!(
        cells.len() == COLUMNS,
        "{} columns, {COLUMNS} were expected",
        cells.len()
    );
    ensure!(
        ["lower", "higher", "none"].contains(&cells[6]),
        "{} where lower, higher or none was expected",
        cells[6]
    );
    let used = USES.iter().find(|(name, _)| *name == cells[14]);
    let (_, used) = used.with_context(|| format!("there is no use {}", cells[14]))?;
    Ok(Row {
        source: cells[0],
        name: cells[1],
        machine: cells[2],
        workload: cells[3],
        metric: cells[4],
        unit: cells[5],
        better: cells[6],
        base: cells[7],
        variant: cells[8],
        base_value: number(cells[9])?,
        variant_value: number(cells[10])?,
        effect: number(cells[11])?,
        error: number(cells[13])?,
        used: *used,
        message: cells[15],
    })
}

fn number(text: &str) -> Result<Option<f64>> {
    match text {
        "" => Ok(None),
        _ => text
            .parse()
            .map(Some)
            .with_context(|| format!("{text} is not a number")),
    }
}
