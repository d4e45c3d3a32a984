// SPDX-License-Identifier: GPL-2.0-only
//! Our own choice beside each source's idea alone, threads pinned by hand, and the oracle's bound.

use super::cases::{Case, Outcomes};
use super::cells::{Beside, Cell, Cells};
use super::metric::{Metric, change, mean};
use super::verdict::reach;
use super::{Figure, Row};
use crate::sim::model;
use anyhow::Result;
use serde::Serialize;

/// The policy that pins threads by hand.
const PINNED: &str = "pinned";
/// Points that our own choice may be behind.
const BEHIND: f64 = 1.5;

/// A comparison, for all rows that share it.
pub struct Wanted {
    pub source: &'static str,
    workload: &'static str,
    cell: Cell,
    policies: Vec<(Beside, &'static str)>,
    /// The source itself pinned its threads.
    pinned: bool,
}

/// A policy, and how much better than the row's base it is, percent.
#[derive(Clone, Debug, Serialize)]
pub struct Gain {
    pub variant: &'static str,
    #[serde(flatten)]
    pub gain: Figure,
    /// Pairs of runs.
    pub runs: u64,
}

/// The result of a comparison. None: not modelled, or not known for this workload.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    pub workload: &'static str,
    pub machine: &'static str,
    pub metric: String,
    pub ours: Option<Gain>,
    /// The best of the sources' own ideas.
    pub source: Option<Gain>,
    pub pinned: Option<Gain>,
    /// See `crowded()`. `pinned` is then None, unless the source pinned its threads.
    pub crowded: bool,
    pub oracle: Option<Gain>,
    /// How far ours is behind the best source and behind pinned, if that is more than BEHIND.
    pub behind_source: Option<Behind>,
    pub behind_pinned: Option<Behind>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Behind {
    pub points: f64,
    /// The errors of the two gains may explain all of it. One run has no error, so it decides
    /// nothing.
    pub undecided: bool,
}

/// A comparison for each workload and metric of rows that count, if the metric is a time, a rate,
/// p50 or p99. Errors: cells.tsv is malformed.
pub fn wanted(rows: &[(Row, Result<Cell, String>)], cells: &Cells) -> Result<Vec<Wanted>> {
    let mut wanted: Vec<Wanted> = Vec::new();
    for (row, cell) in rows {
        let Ok(cell) = cell else { continue };
        let asked = matches!(
            cell.metric,
            Metric::Time | Metric::Rate | Metric::Quantile(500 | 990)
        );
        let same = |w: &Wanted| {
            let of = |c: &Cell| (c.machine, c.loads.clone(), c.metric);
            w.source == row.source && of(&w.cell) == of(cell)
        };
        if !asked || !row.used.counts() || wanted.iter().any(same) {
            continue;
        }
        wanted.push(Wanted {
            source: row.source,
            workload: row.workload,
            cell: cell.clone(),
            policies: cells.beside(row.source)?,
            pinned: rows.iter().any(|(other, cell)| {
                let pinned = |c: &Cell| c.variant == PINNED;
                other.workload == row.workload && cell.as_ref().is_ok_and(pinned)
            }),
        });
    }
    Ok(wanted)
}

/// How far ours is behind. None: by no more points than `limit`.
pub fn behind(ours: &Gain, other: &Gain, limit: f64) -> Option<Behind> {
    let value = other.gain.value - ours.gain.value;
    let errors = ours.gain.error.zip(other.gain.error);
    let error = errors.map(|(ours, other)| ours.hypot(other));
    let runs = ours.runs.min(other.runs);
    let reach = reach(Figure { value, error }, runs);
    (value > limit).then_some(Behind {
        points: value,
        undecided: runs < 2 || reach.is_some_and(|reach| value < reach),
    })
}

/// How much better the cell's metric is under `variant` than under its base. None: it was not run,
/// or the metric is neither good nor bad.
pub fn gain(cell: &Cell, variant: &'static str, outcomes: &Outcomes) -> Option<Gain> {
    let (base, of) = outcomes.pairs(cell, cell.base, variant).ok()?;
    let gain = match cell.metric.more_is_better()? {
        true => change(&base, &of),
        false => change(&of, &base),
    };
    Some(Gain {
        variant,
        gain,
        runs: base.len() as u64,
    })
}

impl Wanted {
    pub fn cases(&self) -> Vec<Case> {
        let policies = self.policies.iter().map(|p| p.1).chain([self.cell.base]);
        self.cell.cases(&policies.collect::<Vec<_>>())
    }

    pub fn compared(&self, outcomes: &Outcomes) -> Compared {
        let best = |what: Beside| {
            let of = self.policies.iter().filter(|p| p.0 == what);
            let gains = of.filter_map(|&(_, policy)| gain(&self.cell, policy, outcomes));
            gains.max_by(|a, b| a.gain.value.total_cmp(&b.gain.value))
        };
        let (ours, source) = (best(Beside::Ours), best(Beside::Source));
        let crowded = crowded(&self.cell, outcomes);
        let pinned = best(Beside::Pinned).filter(|_| self.pinned || !crowded);
        let behind = |other: &Option<Gain>| behind(ours.as_ref()?, other.as_ref()?, BEHIND);
        Compared {
            workload: self.workload,
            machine: self.cell.machine,
            metric: self.cell.metric.to_string(),
            behind_source: behind(&source),
            behind_pinned: behind(&pinned),
            oracle: best(Beside::Oracle),
            crowded,
            ours,
            source,
            pinned,
        }
    }
}

/// The cell's base keeps more CPUs busy than there are cores, so threads cannot have a core each.
pub fn crowded(cell: &Cell, outcomes: &Outcomes) -> bool {
    let busy = outcomes.values(cell.machine, &cell.loads, cell.base, Metric::BusyCpus);
    let cores = model(cell.machine).map(|model| model.machine.nr_cores);
    let both = busy.ok().zip(cores);
    both.is_some_and(|(busy, cores)| mean(&busy) > f64::from(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_is_what_errors_do_not_explain() {
        let figure = |value, error| Gain {
            variant: "",
            gain: Figure { value, error },
            runs: 100,
        };
        let of = |ours, other| behind(&ours, &other, BEHIND).map(|b| b.undecided);
        let one_run = |value| Gain {
            runs: 1,
            ..figure(value, None)
        };
        assert_eq!(of(one_run(0.0), one_run(50.0)), Some(true));
        assert_eq!(of(figure(0.0, None), figure(1.5, None)), None);
        assert_eq!(of(figure(0.0, None), figure(1.6, None)), Some(false));
        assert_eq!(
            of(figure(1.0, Some(3.0)), figure(11.0, Some(4.0))),
            Some(false)
        );
        assert_eq!(
            of(figure(1.1, Some(3.0)), figure(11.0, Some(4.0))),
            Some(true)
        );
        assert_eq!(of(figure(9.0, None), figure(0.0, None)), None);
    }
}
