// SPDX-License-Identifier: GPL-2.0-only
//! What of the model has changed since it was frozen. Kept are a hash of parameters, workloads and
//! cells.tsv, and the commit of the freeze. Tables had been drawn before, so no row is unseen.

use super::cells::CELLS;
use crate::sim::WORKLOADS;
use crate::util::hash::fnv1a;
use anyhow::{Context, Result};
use serde::Serialize;

const PARAMS: &str = include_str!("../data/params.tsv");
/// Hash and commit. Empty: not frozen yet.
const FROZEN: &str = include_str!("../data/frozen");
/// Columns: the hash after the change, the hash of the kept tables then, what was changed and why,
/// the rows that moved.
const CHANGES: &str = include_str!("../data/changes.tsv");

/// A change after the freeze.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub hash: &'static str,
    /// The hash of the rows and simulated values in tests/sim/shown.
    pub shown: &'static str,
    pub what: &'static str,
    /// SOURCE:ROW, separated by spaces.
    pub moved: &'static str,
}

impl Change {
    /// The rows of one source that moved, separated by spaces; or "none".
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
    /// The hash of the model as it is now.
    pub hash: String,
    /// The commit in which it was frozen. None: not yet.
    pub commit: Option<&'static str>,
    #[serde(skip)]
    pub changes: Vec<Change>,
    /// The hash is neither the frozen one nor that of the last change.
    pub unlogged: bool,
}

impl Frozen {
    /// Errors: data/frozen or changes.tsv is malformed.
    pub fn read() -> Result<Frozen> {
        let hash = hash();
        let frozen = match FROZEN.trim() {
            "" => None,
            text => Some(text.split_once(' ').with_context(|| {
                format!("data/frozen: {text:?} where a hash and a commit were expected")
            })?),
        };
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

    /// For the head of a table.
    pub fn text(&self) -> String {
        let hash = &self.hash;
        let Some(commit) = self.commit else {
            return format!("Parameters {hash}, not frozen yet.\n");
        };
        let changed = match self.unlogged {
            true => ", and since then without a line in changes.tsv",
            false => "",
        };
        format!(
            "Parameters {hash}; {} changes (--changes) since commit {commit}{changed}.\n",
            self.changes.len()
        )
    }

    /// The changes, with the rows of one source that moved.
    pub fn log(&self, source: &str) -> String {
        let changes = self.changes.iter();
        let line =
            |c: &Change| format!("Changed: {}; rows moved: {}\n", c.what, c.moved_of(source));
        changes.map(line).collect()
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
