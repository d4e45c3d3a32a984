// SPDX-License-Identifier: GPL-2.0-only
//! Predictions: effects that were simulated by someone who had not read the published
//! ones (docs/simulator/predictions). They are scored as they were made, whatever the model has
//! learned since.

use super::Figure;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

const FILES: [(&str, &str); 2] = [
    (
        "005",
        include_str!("../../../docs/simulator/predictions/005.tsv"),
    ),
    (
        "006",
        include_str!("../../../docs/simulator/predictions/006.tsv"),
    ),
];

/// The effect on each row, and the number of pairs of runs.
pub type Prediction = BTreeMap<&'static str, (Figure, u64)>;

/// The prediction of a source. Errors: there is none; its file is malformed.
pub fn prediction(source: &str) -> Result<Prediction> {
    let known = FILES.iter().find(|(of, _)| *of == source);
    let (_, text) = known.with_context(|| {
        let all = FILES.map(|(of, _)| of).join(" ");
        format!("there is no prediction of {source}; there are: {all}")
    })?;
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines
        .map(|line| row(line).with_context(|| format!("predictions/{source}.tsv: {line:?}")))
        .collect()
}

fn row(line: &'static str) -> Result<(&'static str, (Figure, u64))> {
    let cells: Vec<&str> = line.split('\t').collect();
    let &[name, _, _, _, _, effect, error, runs, _] = &cells[..] else {
        bail!("{} columns, 9 were expected", cells.len());
    };
    let figure = Figure {
        value: effect.parse()?,
        error: Some(error.parse()?),
    };
    Ok((name, (figure, runs.parse()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::table::rows::rows;

    /// Each predicted row is one of the source.
    #[test]
    fn what_is_predicted_is_published() {
        let rows = rows().unwrap();
        for (source, _) in FILES {
            for name in prediction(source).unwrap().keys() {
                let known = rows.iter().any(|r| (r.source, r.name) == (source, name));
                assert!(known, "{source} {name}");
            }
        }
    }
}
