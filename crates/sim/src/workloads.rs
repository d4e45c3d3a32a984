// SPDX-License-Identifier: GPL-2.0-only
//! Workloads by name or by file, and what their parameters are set to.

use super::load;
use anyhow::{Context, Result, anyhow};
use scx_roost::util::names::meant;
use scx_roost::util::plain_file;
use scx_roost::util::refusal::BadUsage;
use std::path::Path;

/// The workloads of the sources, and others of the matrix, by name.
pub const WORKLOADS: [(&str, &str); 15] = [
    ("algorithm3", include_str!("workloads/algorithm3.load")),
    ("chameneos", include_str!("workloads/chameneos.load")),
    ("desktop", include_str!("workloads/desktop.load")),
    ("game", include_str!("workloads/game.load")),
    ("hackbench", include_str!("workloads/hackbench.load")),
    ("kbuild", include_str!("workloads/kbuild.load")),
    ("nas", include_str!("workloads/nas.load")),
    ("pogocache", include_str!("workloads/pogocache.load")),
    ("primesieve", include_str!("workloads/primesieve.load")),
    ("requests", include_str!("workloads/requests.load")),
    ("schbench", include_str!("workloads/schbench.load")),
    ("sqlite", include_str!("workloads/sqlite.load")),
    ("tbench", include_str!("workloads/tbench.load")),
    ("tiles", include_str!("workloads/tiles.load")),
    ("x265", include_str!("workloads/x265.load")),
];

/// The text of a workload. A path has a dot or a slash, a name has none.
pub fn text(workload: &str) -> Result<String> {
    if let Some((_, text)) = WORKLOADS.iter().find(|(name, _)| *name == workload) {
        return Ok(text.to_string());
    }
    if !workload.contains(['.', '/']) {
        let all =
            || format!("--list shows the workloads, a file needs its path, as in ./{workload}");
        let meant = meant(workload, &WORKLOADS.map(|(name, _)| name)).unwrap_or_else(all);
        return Err(BadUsage(anyhow!("there is no workload {workload}: {meant}")).into());
    }
    plain_file::text(Path::new(workload))
        .with_context(|| format!("cannot read the workload {workload}"))
}

/// One `PARAM=VALUE`.
pub fn setting(text: &str) -> Result<(String, i64)> {
    let (name, value) = text
        .split_once('=')
        .with_context(|| format!("--set {text}: PARAM=VALUE was expected"))?;
    let (value, _) = load::number(value).with_context(|| format!("--set {text}"))?;
    Ok((name.to_string(), value))
}
