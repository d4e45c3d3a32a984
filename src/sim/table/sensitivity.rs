// SPDX-License-Identifier: GPL-2.0-only
//! Each parameter at both ends of its range, one at a time: which verdicts of a table hang on it.

use super::cases::{Extreme, Outcomes};
use super::metric::mean;
use super::show::{Form, table};
use super::{Line, Rows, TablePlan};
use crate::sim::params::{Param, Unit};
use crate::sim::{Model, model};
use anyhow::Result;
use serde::Serialize;

/// What comes of all ends of all ranges.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    /// Of the effects with the parameters as they are, the mean of their standard errors, points. None: there is one run of each.
    pub error: Option<f64>,
    /// Those first that move the most.
    pub ends: Vec<Sensitive>,
}

/// What an end of a range does to the rows that count.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitive {
    pub param: &'static str,
    pub value: f64,
    pub unit: String,
    /// Mean of the changes of the effects, without their signs, points; and the row with the largest.
    pub mean_points: f64,
    pub most: &'static str,
    pub most_points: f64,
    /// Verdicts that are other.
    pub changed: Vec<Changed>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    pub row: &'static str,
    pub before: &'static str,
    pub after: &'static str,
    pub points: f64,
}

/// Runs the rows that count with each end of each range. Errors: there is no such source; a table is none.
pub fn sensitivity(plan: &TablePlan) -> Result<Sensitivity> {
    let rows = Rows::of(&plan.source)?.that_count();
    let models = rows.machines().into_iter().filter_map(model);
    let models: Vec<Model> = models.collect();
    let extremes = extremes(&models);
    let (before, after) = Outcomes::of(&rows.cases(), &plan.effort, &extremes)?;
    let before = rows.lines(&before, plan.effort.runs())?;
    let mut ends = Vec::new();
    for (extreme, outcomes) in extremes.iter().zip(after) {
        let after = rows.lines(&outcomes, plan.effort.runs())?;
        ends.extend(sensitive(*extreme, &models, &before, &after));
    }
    ends.sort_by(|a, b| b.mean_points.total_cmp(&a.mean_points));
    let errors = before.iter().filter_map(|l| l.simulated?.error);
    let errors: Vec<f64> = errors.collect();
    Ok(Sensitivity {
        error: (!errors.is_empty()).then(|| mean(&errors)),
        ends,
    })
}

/// Of parameters that any of the machines leaves open.
fn extremes(models: &[Model]) -> Vec<Extreme> {
    let params = models.iter().flat_map(|m| m.params.all());
    let open = params.filter(|p| p.low < p.high);
    let mut names: Vec<&str> = open.map(|p| p.name).collect();
    names.sort_unstable();
    names.dedup();
    let ends = |name| [false, true].map(|high| Extreme { name, high });
    names.into_iter().flat_map(ends).collect()
}

/// None: nothing moves.
fn sensitive(
    extreme: Extreme,
    models: &[Model],
    before: &[Line],
    after: &[Line],
) -> Option<Sensitive> {
    let points = |(a, b): (&Line, &Line)| Some(b.simulated?.value - a.simulated?.value);
    let pairs = || before.iter().zip(after);
    let moved = pairs().filter_map(|pair| Some((pair.0.row, points(pair)?)));
    let moved: Vec<(&str, f64)> = moved.collect();
    let most = moved
        .iter()
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let changed = pairs().filter(|(a, b)| a.verdict != b.verdict);
    let changed = changed.map(|(a, b)| Changed {
        row: a.row,
        before: a.verdict.name(),
        after: b.verdict.name(),
        points: points((a, b)).unwrap_or(0.0),
    });
    let param = models.iter().find_map(|m| m.params.get(extreme.name));
    let (value, unit) = end(param?, extreme.high);
    (most.1 != 0.0).then(|| Sensitive {
        param: extreme.name,
        value,
        unit: unit.to_string(),
        mean_points: moved.iter().map(|m| m.1.abs()).sum::<f64>() / moved.len() as f64,
        most: most.0,
        most_points: most.1,
        changed: changed.collect(),
    })
}

fn end(param: &Param, high: bool) -> (f64, Unit) {
    (if high { param.high } else { param.low }, param.unit)
}

impl Sensitivity {
    pub fn text(&self) -> String {
        let heads = [
            "parameter",
            "is",
            "",
            "mean",
            "most",
            "in",
            "other verdicts",
        ];
        let heads = heads.map(String::from).into();
        let row = |s: &Sensitive| {
            let told = s.changed.iter();
            let told =
                told.map(|c| format!("{}: {} -> {} ({:+.1})", c.row, c.before, c.after, c.points));
            vec![
                s.param.to_string(),
                s.value.to_string(),
                s.unit.clone(),
                format!("{:.2}", s.mean_points),
                format!("{:+.2}", s.most_points),
                s.most.to_string(),
                told.collect::<Vec<_>>().join("; "),
            ]
        };
        let rows: Vec<_> = self.ends.iter().map(row).collect();
        let error = match self.error {
            Some(error) => format!("{error:.2}"),
            None => "not known: there is one run of each".to_string(),
        };
        table(&Form::Text, &heads, &rows)
            + &format!(
                "\nChanges of simulated effects, points. Mean standard error of an effect: {error}.\n"
            )
    }
}
