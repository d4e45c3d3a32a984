// SPDX-License-Identifier: GPL-2.0-only
//! The statistics socket. Requests: `stats` with target `top` (growth since this client last asked) or `totals` (since
//! the scheduler started) or `cpus` (the same for each CPU) or `cpu_gauges` (no counters, by CPU), and `stats_meta`. Nothing can be changed here.

use super::Metrics;
use super::deltas::Deltas;
use super::source::CounterSource;
use crate::socket::{Access, Client, Purpose, Server};
use anyhow::{Context, Result, bail};
use scx_stats::StatsRequest;
use serde_json::Value;
use std::path::Path;

const PURPOSE: Purpose = Purpose {
    name: "statistics",
    served: "another scheduler serves its statistics",
    option: "--stats-path",
    thread: "stats",
    access: Access::Umask,
};

/// Serves the counters of `source` until the returned value is dropped. With a group it is the owner and that group who may read
/// them, without one whoever the umask lets.
pub fn launch(path: &Path, group: Option<u32>, source: CounterSource) -> Result<Server> {
    Server::launch(path, PURPOSE.for_group(group), move |_| {
        Ok(Box::new(Reader {
            source: source.clone(),
            deltas: None,
        }))
    })
}

struct Reader {
    source: CounterSource,
    /// From the first request for `top` on.
    deltas: Option<Deltas>,
}

impl Client for Reader {
    fn requests(&mut self, lines: &[Vec<u8>]) -> Vec<Result<Value>> {
        lines.iter().map(|line| self.request(line)).collect()
    }
}

impl Reader {
    fn request(&mut self, line: &[u8]) -> Result<Value> {
        let request: StatsRequest =
            serde_json::from_slice(line).context("a request is a line of JSON")?;
        match request.req.as_str() {
            "stats" => self.stats(request.args.get("target").map_or("top", String::as_str)),
            "stats_meta" => Ok(serde_json::to_value(super::metas())?),
            other => bail!("unknown request '{other}': expected is stats or stats_meta"),
        }
    }

    fn stats(&mut self, target: &str) -> Result<Value> {
        Ok(match target {
            "top" => serde_json::to_value(self.top())?,
            "totals" => serde_json::to_value(self.source.totals())?,
            "cpus" => serde_json::to_value(self.source.cpus())?,
            "cpu_gauges" => serde_json::to_value(self.source.cpu_gauges())?,
            other => bail!("unknown target '{other}': expected is top, totals, cpus or cpu_gauges"),
        })
    }

    fn top(&mut self) -> Metrics {
        let begin = || Deltas::new(self.source.clone());
        self.deltas.get_or_insert_with(begin).take()
    }
}
