// SPDX-License-Identifier: GPL-2.0-only
//! Which verdicts of a table depend on which parameter. Each parameter of the machines and each
//! param of the workloads is set to both ends of its range, one at a time.

use super::cases::{Extreme, Outcomes};
use super::metric::mean;
use super::show::{Cells, Form, head, table};
use super::verdict::reach;
use super::{Figure, Line, Rows, TablePlan};
use crate::sim::load::ranges;
use crate::sim::{Model, WORKLOADS, model};
use anyhow::Result;
use serde::Serialize;

/// The results of all ends of all ranges.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    /// The mean standard error of the effects with unchanged parameters, points. None: there is one
    /// run of each.
    pub error: Option<f64>,
    /// Ends that were tried, including those that move nothing.
    pub tried: usize,
    /// The ends that move most come first.
    pub ends: Vec<Sensitive>,
}

/// What one end of a range does to the rows that count.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitive {
    /// A parameter of the machines, or the workload and its param.
    pub param: String,
    /// With its unit.
    pub value: String,
    /// The mean of the changes of the effects, without their signs, points; and the row with the
    /// largest change.
    pub mean_points: f64,
    pub most: &'static str,
    pub most_points: f64,
    /// Verdicts that changed.
    pub changed: Vec<Changed>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Changed {
    pub row: &'static str,
    pub before: &'static str,
    pub after: &'static str,
    pub points: f64,
    /// The change is within its error, so the effect may be the same.
    pub undecided: bool,
}

/// Runs the rows that count with each end of each range. Errors: there is no such source; a table
/// is malformed.
pub fn sensitivity(plan: &TablePlan) -> Result<Sensitivity> {
    let rows = Rows::of(&plan.source)?.that_count();
    let models: Vec<Model> = rows.machines().into_iter().filter_map(model).collect();
    let mut extremes = of_machines(&models);
    extremes.extend(of_loads(&rows)?);
    let (before, after) = Outcomes::of(&rows.cases(), &plan.effort, &extremes)?;
    let before = rows.lines(&before)?;
    let mut ends = Vec::new();
    for (extreme, outcomes) in extremes.iter().zip(after) {
        let after = rows.lines(&outcomes)?;
        ends.extend(sensitive(*extreme, &models, &before, &after));
    }
    ends.sort_by(|a, b| b.mean_points.total_cmp(&a.mean_points));
    let errors = before.iter().filter_map(|l| l.simulated?.error);
    let errors: Vec<f64> = errors.collect();
    Ok(Sensitivity {
        error: (!errors.is_empty()).then(|| mean(&errors)),
        tried: extremes.len(),
        ends,
    })
}

/// Both ends of each parameter that any of the machines leaves open.
fn of_machines(models: &[Model]) -> Vec<Extreme> {
    let params = models.iter().flat_map(|m| m.params.all());
    let open = params.filter(|p| p.low < p.high);
    let mut names: Vec<&str> = open.map(|p| p.name).collect();
    names.sort_unstable();
    names.dedup();
    let ends = |name| [false, true].map(|high| Extreme::Machine { name, high });
    names.into_iter().flat_map(ends).collect()
}

/// Both ends of each param of the rows' workloads. Errors: a range is malformed.
fn of_loads(rows: &Rows) -> Result<Vec<Extreme>> {
    let cases = rows.cases();
    let mut all = Vec::new();
    for &(load, text) in &WORKLOADS {
        if !cases.iter().any(|case| case.name() == load) {
            continue;
        }
        let ends = |range| [false, true].map(|high| Extreme::Load(load, range, high));
        all.extend(ranges(text)?.into_iter().flat_map(ends));
    }
    Ok(all)
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
        undecided: by_chance(a, b),
    });
    let (param, value) = named(extreme, models)?;
    (most.1 != 0.0).then(|| Sensitive {
        param,
        value,
        mean_points: moved.iter().map(|m| m.1.abs()).sum::<f64>() / moved.len() as f64,
        most: most.0,
        most_points: most.1,
        changed: changed.collect(),
    })
}

/// True if the two effects may be the same.
fn by_chance(a: &Line, b: &Line) -> bool {
    let Some((before, after)) = a.simulated.zip(b.simulated) else {
        return false;
    };
    let errors = before.error.zip(after.error);
    let moved = Figure {
        value: after.value - before.value,
        error: errors.map(|(a, b)| a.hypot(b)),
    };
    reach(moved, a.runs.min(b.runs)).is_some_and(|reach| moved.value.abs() <= reach)
}

/// The parameter, and the end of its range with its unit.
fn named(extreme: Extreme, models: &[Model]) -> Option<(String, String)> {
    match extreme {
        Extreme::Machine { name, high } => {
            let param = models.iter().find_map(|m| m.params.get(name))?;
            let end = if high { param.high } else { param.low };
            Some((name.to_string(), format!("{end} {}", param.unit)))
        }
        Extreme::Load(load, range, high) => {
            let end = if high { range.high } else { range.low };
            Some((format!("{load}: {}", range.name), end.to_string()))
        }
    }
}

impl Sensitivity {
    pub fn text(&self) -> String {
        self.shown(&Form::Text)
    }

    /// docs/simulator/sensitivity-SOURCE.md.
    pub fn markdown(&self, plan: &TablePlan) -> String {
        head("What the verdicts hang on", plan, " --sensitivity") + &self.shown(&Form::Markdown)
    }

    fn shown(&self, form: &Form) -> String {
        let heads = ["parameter", "is", "mean", "most", "in", "other verdicts"];
        let heads: Cells = heads.map(String::from).into();
        let rows: Vec<Cells> = self.ends.iter().map(Sensitive::cells).collect();
        let error = match self.error {
            Some(error) => format!("{error:.2}"),
            None => "not known: there is one run of each".to_string(),
        };
        table(form, &heads, &rows)
            + &format!(
                "\nChanges of simulated effects, points; of {} ends of ranges {} move any. Mean standard error of an effect: {error}.\n",
                self.tried,
                self.ends.len()
            )
    }
}

impl Sensitive {
    fn cells(&self) -> Cells {
        let decided = self.changed.iter().filter(|c| !c.undecided);
        let told =
            |c: &Changed| format!("{}: {} -> {} ({:+.1})", c.row, c.before, c.after, c.points);
        let mut told: Vec<String> = decided.map(told).collect();
        match self.changed.len() - told.len() {
            0 => {}
            n => told.push(format!("{n} within their error")),
        }
        vec![
            self.param.clone(),
            self.value.clone(),
            format!("{:.2}", self.mean_points),
            format!("{:+.2}", self.most_points),
            self.most.to_string(),
            told.join("; "),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn params_of_workloads_are_swept() {
        let rows = Rows::of("003").unwrap().that_count();
        let all = of_loads(&rows).unwrap();
        let names: Vec<_> = all.iter().filter_map(|e| named(*e, &[])).collect();
        for (param, end) in [("tiles: tile", "1ms"), ("x265: row", "4ms")] {
            assert!(
                names.contains(&(param.to_string(), end.to_string())),
                "{names:?}"
            );
        }
        // A workload of another source.
        assert!(!names.iter().any(|(param, _)| param.starts_with("nas")));
        for case in rows.cases() {
            assert_eq!(all[0].concerns(case), names[0].0.starts_with(case.name()));
        }
    }
}
