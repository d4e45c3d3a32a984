// SPDX-License-Identifier: GPL-2.0-only
//! The statistics socket. Requests are `stats` and `stats_meta`. They change nothing.
//!
//! Targets of `stats`: `top` (growth since the client's last request), `totals` (since the
//! scheduler started), `cpus` (the same by CPU) and `cpu_gauges` (by CPU, without counters).

use super::Metrics;
use super::deltas::Deltas;
use super::source::CounterSource;
use crate::wire::socket::{Access, Answers, Bound, Client, Purpose, Server};
use anyhow::{Context, Result, bail};
use scx_stats::StatsRequest;
use serde::Serialize;
use std::path::Path;

const PURPOSE: Purpose = Purpose {
    name: "statistics",
    served: "another scheduler serves its statistics",
    option: "--stats-path",
    thread: "stats",
    access: Access::Umask,
};

/// As `bind` and `serve`.
#[cfg(feature = "internals")]
pub fn launch(path: &Path, group: Option<u32>, source: CounterSource) -> Result<Server> {
    serve(bind(path, group)?, source)
}

/// Creates the socket, starts no thread. With a group, the owner and the group may read the
/// statistics. Without one the umask decides.
pub fn bind(path: &Path, group: Option<u32>) -> Result<Bound> {
    PURPOSE.for_group(group).bind(path)
}

/// Serves the counters of `source`, in a thread, until the returned value is dropped.
pub fn serve(bound: Bound, source: CounterSource) -> Result<Server> {
    bound.serve(move |_| Ok(client(source.clone())))
}

/// The handler for one client.
pub fn client(source: CounterSource) -> Box<dyn Client> {
    Box::new(Reader {
        source,
        deltas: None,
    })
}

struct Reader {
    source: CounterSource,
    /// None until the first request for `top`.
    deltas: Option<Deltas>,
}

impl Client for Reader {
    fn requests(&mut self, lines: &[Vec<u8>], answers: &mut Answers) -> Result<()> {
        lines
            .iter()
            .try_for_each(|line| answers(self.request(line)))
    }
}

impl Reader {
    fn request(&mut self, line: &[u8]) -> Result<String> {
        let request: StatsRequest =
            serde_json::from_slice(line).context("expected a request, a line of JSON")?;
        match request.req.as_str() {
            "stats" => self.stats(request.args.get("target").map_or("top", String::as_str)),
            "stats_meta" => json(&super::metas()),
            other => bail!("unknown request '{other}': expected stats or stats_meta"),
        }
    }

    fn stats(&mut self, target: &str) -> Result<String> {
        match target {
            "top" => json(&self.top()),
            "totals" => json(&self.source.totals()),
            // Not sorted by name: 1000 CPUs have 100,000 fields, and sorting them would keep a CPU
            // busy.
            "cpus" => Ok(serde_json::to_string(&self.source.cpus())?),
            "cpu_gauges" => Ok(serde_json::to_string(&self.source.cpu_gauges())?),
            other => bail!("unknown target '{other}': expected top, totals, cpus or cpu_gauges"),
        }
    }

    fn top(&mut self) -> Metrics {
        let begin = || Deltas::new(self.source.clone());
        self.deltas.get_or_insert_with(begin).take()
    }
}

/// Fields sorted by name, since scripts depend on that order.
fn json(of: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_value(of)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stats::source::CounterSource;

    #[test]
    fn fields_are_in_the_order_of_their_names() {
        let mut reader = Reader {
            source: CounterSource::default(),
            deltas: None,
        };
        let request = br#"{"req":"stats","args":{"target":"totals"}}"#;
        let text = reader.request(request).unwrap();
        let at = |name| {
            text.find(name)
                .unwrap_or_else(|| panic!("no {name}: {text}"))
        };
        let order = [
            "\"arms\"",
            "\"conditions\"",
            "\"enq_queued\"",
            "\"features\"",
            "\"period_ms\"",
        ];
        assert!(order.is_sorted_by_key(at), "{text}");
    }
}
