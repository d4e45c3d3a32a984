// SPDX-License-Identifier: GPL-2.0-only
//! Whether the model is still what it was before the first run on held-out rows: a hash of its parameters, its workloads and of
//! what stands for which row, and the commit in which they were frozen.

use super::cells::CELLS;
use crate::hash::fnv1a;
use crate::sim::WORKLOADS;
use anyhow::{Context, Result};
use serde::Serialize;

const PARAMS: &str = include_str!("../data/params.tsv");
/// Hash and commit, or nothing yet.
const FROZEN: &str = include_str!("../data/frozen");
/// Hash afterwards, hash of the kept tables then, what was changed and why, the rows that moved.
const CHANGES: &str = include_str!("../data/changes.tsv");

/// A later change.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub hash: &'static str,
    /// Of the rows and simulated values of tests/sim/shown.
    pub shown: &'static str,
    pub what: &'static str,
    /// SOURCE:ROW, by spaces.
    pub moved: &'static str,
}

impl Change {
    /// The rows of one source that moved, by spaces; or that none did.
    fn moved_of(&self, source: &str) -> String {
        let rows = self.moved.split(' ').filter_map(|row| row.split_once(':'));
        let own = rows.filter(|(of, _)| *of == source);
        let own: Vec<&str> = own.map(|(_, row)| row).collect();
        match own[..] {
            [] => "none".to_string(),
            _ => own.join(" "),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Frozen {
    /// Of what the model is now.
    pub hash: String,
    /// In which it was frozen; None: not yet.
    pub commit: Option<&'static str>,
    pub changes: Vec<Change>,
    /// It is neither what was frozen nor what the last change has left.
    pub unlogged: bool,
}

impl Frozen {
    /// Errors: one of the two files is none.
    pub fn read() -> Result<Frozen> {
        let hash = hash();
        let frozen = FROZEN.trim().split_once(' ');
        let lines = CHANGES.lines().skip(1).map(|line| {
            let mut cells = line.splitn(4, '\t');
            let mut next = || {
                cells
                    .next()
                    .with_context(|| format!("changes.tsv: {line:?} where 4 columns were expected"))
            };
            Ok(Change {
                hash: next()?,
                shown: next()?,
                what: next()?,
                moved: next()?,
            })
        });
        let changes: Vec<Change> = lines.collect::<Result<_>>()?;
        let last = changes.last().map(|c| c.hash).or(frozen.map(|f| f.0));
        Ok(Frozen {
            unlogged: last.is_some_and(|last| last != hash),
            commit: frozen.map(|f| f.1),
            hash,
            changes,
        })
    }

    /// For the table of that source: of rows that moved its own.
    pub fn text(&self, source: &str) -> String {
        let hash = &self.hash;
        let Some(commit) = self.commit else {
            return format!("Parameters {hash}, not frozen yet.\n");
        };
        let mut text = format!("Parameters {hash}, frozen in commit {commit}.\n");
        for change in &self.changes {
            let (what, moved) = (change.what, change.moved_of(source));
            text += &format!("Changed since: {what}; rows moved: {moved}\n");
        }
        if self.unlogged {
            text += "Changed since, and not told of in changes.tsv.\n";
        }
        text
    }
}

fn hash() -> String {
    let loads = WORKLOADS.iter().flat_map(|(name, text)| [*name, text]);
    let texts = [PARAMS, CELLS].into_iter().chain(loads);
    format!("{:016x}", fnv1a(texts.flat_map(str::bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_the_rows_of_its_source_that_moved() {
        let change = Change {
            hash: "",
            shown: "",
            what: "",
            moved: "001:hackbench 003:algorithm3/workers=20 003:sqlite",
        };
        assert_eq!(change.moved_of("001"), "hackbench");
        assert_eq!(change.moved_of("003"), "algorithm3/workers=20 sqlite");
        assert_eq!(change.moved_of("004"), "none");
    }
}
