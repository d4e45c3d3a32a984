// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost status`: whether it runs, since when, how well, and what it has done, in a few lines
//! for people, or as JSON.

use crate::machine::host::Host;
use crate::policy::config::FAILURE_NOTE;
use crate::policy::features::{self, FEATURES, FeatureSet};
use crate::util::plain_file;
use crate::util::print;
use crate::util::text::paragraph;
use crate::wire::stats::client::{self, Client};
use crate::wire::stats::{Histogram, Metrics, NR_BUCKETS, quantile_us};
use anyhow::{Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(5);
const WIDTH: usize = 100;
/// As systemctl status.
const NOT_RUNNING: u8 = 3;

pub const EXAMPLES: &str = "Examples:
  scx_roost status                       is it running, and what has it done?
  scx_roost status --json | jq .state    for a script: running, loading, other, stopped, impossible

Exit status: 0 if scx_roost runs or is being loaded; 3 if it does not run; 1 if that could not be
found out.";

/// What schedules this machine.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Running,
    /// scx_roost is being loaded, or loads again after a change of the CPUs.
    Loading,
    /// Another sched_ext scheduler runs.
    Other,
    /// The kernel's own scheduler runs.
    Stopped,
    /// The kernel has no sched_ext.
    Impossible,
}

#[derive(Debug, Serialize)]
struct Status {
    state: State,
    /// The name by which the kernel knows the sched_ext scheduler; empty without one.
    ops: String,
    /// None: scx_roost does not run, or its socket may not be read.
    #[serde(flatten)]
    running: Option<Running>,
    /// How the service of scx_roost ended last, if that was a failure.
    failure: Option<String>,
    /// What to do, a sentence each.
    next: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Running {
    version: String,
    /// Empty: none.
    profile: String,
    preset: String,
    features: String,
    /// Features that differ from the preset, as `+claim -wide_idle`.
    changed: String,
    arms: Vec<String>,
    /// When it was started, s since 1970; 0: a scheduler of another version does not say.
    start_time_s: u64,
    uptime_s: u64,
    restarts: u64,
    cpus_online: u64,
    busy_percent: f64,
    /// What is wrong, by condition; empty: nothing is.
    health: BTreeMap<String, String>,
    done: Done,
}

/// What it has done since it was started. Shares are percent of the wakeups.
#[derive(Debug, Serialize)]
struct Done {
    wakeups: u64,
    idle_core_percent: f64,
    same_cpu_percent: f64,
    other_cache_percent: f64,
    no_idle_cpu_percent: f64,
    wakeup_p50_us: u64,
    wakeup_p99_us: u64,
    /// Running tasks that left a shared core for an idle one.
    spread: u64,
    /// Waiting tasks that a CPU without work fetched.
    stolen: u64,
}

/// Prints the status of the scheduler whose statistics are at `path`.
pub fn run(path: &Path, json: bool) -> Result<ExitCode> {
    let status = Status::read(&Host::new(Path::new("/sys")), path, Path::new(FAILURE_NOTE))?;
    match json {
        true => print::json(&status)?,
        false => print::text(&status.text())?,
    };
    Ok(match status.state {
        State::Running | State::Loading => ExitCode::SUCCESS,
        _ => ExitCode::from(NOT_RUNNING),
    })
}

impl Status {
    /// `note`: what the unit leaves when it has failed. Errors: something serves at `path`, and is
    /// no scx_roost of this version.
    fn read(host: &Host, path: &Path, note: &Path) -> Result<Status> {
        match ask(path) {
            Ok(totals) => Ok(Status::of_metrics(&totals, host.attached_ops())),
            Err(e) if client::is_gone(&e) || !readable(&e) => Ok(Status {
                failure: failure(note),
                ..Status::of_kernel(host, path, &e)
            }),
            Err(e) => bail!(client::no_connection(path, &e)),
        }
    }

    fn of_metrics(totals: &Metrics, ops: Option<String>) -> Status {
        let state = match totals.running {
            0 => State::Loading,
            _ => State::Running,
        };
        let next = [
            "watch it: scx_roost monitor",
            "change it: scx_roost ctl --help",
            "is it better here? scx_roost ab --help",
            "end it: scx_roost stop",
        ];
        Status {
            state,
            ops: ops.unwrap_or_default(),
            running: Some(Running::of(totals)),
            failure: None,
            next: next.map(str::to_string).to_vec(),
        }
    }

    /// Without its statistics: what the kernel says.
    fn of_kernel(host: &Host, path: &Path, e: &anyhow::Error) -> Status {
        let state = host.kernel_text("sched_ext/state");
        // One that is being removed places no more tasks.
        let leaves = state.as_deref() == Some("disabling");
        let ops = host.attached_ops().filter(|_| !leaves);
        let (state, next) = match (state.as_deref(), &ops) {
            (None, _) => (
                State::Impossible,
                vec!["see what it needs: scx_roost doctor".to_string()],
            ),
            (_, None) => (
                State::Stopped,
                vec![
                    "check this machine: scx_roost doctor".to_string(),
                    "start it: sudo scx_roost".to_string(),
                ],
            ),
            (Some(state), Some(ops)) if ops.starts_with("roost_") => {
                let why = client::no_connection(path, e);
                // 'enabling', and on Linux 6.12 'prepping'.
                match state {
                    "enabled" => (State::Running, vec![why]),
                    _ => (State::Loading, vec![why]),
                }
            }
            (_, Some(ops)) => (
                State::Other,
                vec![format!("stop '{ops}' before you start scx_roost")],
            ),
        };
        Status {
            state,
            ops: ops.unwrap_or_default(),
            running: None,
            failure: None,
            next,
        }
    }

    fn text(&self) -> String {
        let mut text = match (&self.state, &self.running) {
            (_, Some(running)) => running.text(self.state == State::Loading),
            (State::Running, None) => "scx_roost runs\n".to_string(),
            (State::Loading, None) => "scx_roost is being loaded\n".to_string(),
            (State::Other, None) => format!(
                "scx_roost does not run: the sched_ext scheduler '{}' does\n",
                self.ops
            ),
            (State::Stopped, None) => {
                "scx_roost does not run: the kernel's own scheduler does\n".to_string()
            }
            (State::Impossible, None) => {
                "scx_roost does not run: this kernel has no sched_ext\n".to_string()
            }
        };
        if let Some(failure) = &self.failure {
            text += &paragraph("  failed    ", failure, WIDTH);
        }
        for (i, next) in self.next.iter().enumerate() {
            text += &paragraph(
                if i == 0 {
                    "  next      "
                } else {
                    "            "
                },
                next,
                WIDTH,
            );
        }
        text
    }
}

/// The first line of the note.
fn failure(note: &Path) -> Option<String> {
    let note = plain_file::text(note).ok()?;
    note.lines().next().map(str::to_string)
}

fn ask(path: &Path) -> Result<Metrics> {
    Client::connect(path, PATIENCE)?.ask("totals")
}

/// The error is not that the socket may not be read.
fn readable(e: &anyhow::Error) -> bool {
    let kind = e.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    kind != Some(std::io::ErrorKind::PermissionDenied)
}

impl Running {
    fn of(totals: &Metrics) -> Running {
        let active = totals.conditions.iter().filter(|(_, c)| c.active != 0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let started = totals.start_time_s;
        Running {
            version: totals.version.clone(),
            profile: totals.profile.clone(),
            preset: totals.preset.clone(),
            features: totals.features.clone(),
            changed: changed(&totals.preset, &totals.features),
            arms: totals.arms.keys().cloned().collect(),
            start_time_s: started,
            uptime_s: if started == 0 {
                0
            } else {
                now.saturating_sub(started)
            },
            restarts: totals.restarts,
            cpus_online: totals.gauges.cpus_online,
            busy_percent: totals.gauges.busy_permille as f64 / 10.0,
            health: active
                .map(|(name, c)| (name.clone(), c.text.clone()))
                .collect(),
            done: Done::of(totals),
        }
    }

    fn text(&self, loading: bool) -> String {
        let since = match self.uptime_s {
            0 => String::new(),
            s => format!(", for {}", span(s)),
        };
        let state = if loading { "is being loaded" } else { "runs" };
        let mut text = format!("scx_roost {} {state}: ", self.version);
        if !self.profile.is_empty() {
            let _ = write!(text, "profile {}, ", self.profile);
        }
        let _ = write!(text, "preset {}", self.preset);
        if !self.changed.is_empty() {
            let _ = write!(text, " {}", self.changed);
        }
        let _ = writeln!(text, "{since}");
        let mut row = |name: &str, what: &str| {
            text += &paragraph(&format!("  {name:<9} "), what, WIDTH);
        };
        let restarts = match self.restarts {
            0 => String::new(),
            n => format!("; loaded again {n} times, after a CPU came online"),
        };
        row(
            "machine",
            &format!(
                "{} CPUs online, {:.0} % busy{restarts}",
                self.cpus_online, self.busy_percent
            ),
        );
        row("features", &self.features);
        if self.arms.len() > 1 {
            row("arms", &self.arms.join(", "));
        }
        match self.health.len() {
            0 => row("health", "good"),
            _ => self
                .health
                .iter()
                .for_each(|(name, what)| row("health", &format!("{name}: {what}"))),
        }
        self.done
            .lines()
            .iter()
            .for_each(|(name, what)| row(name, what));
        text
    }
}

impl Done {
    fn of(m: &Metrics) -> Done {
        let latency = latencies(m);
        let wakeups: u64 = latency.iter().sum();
        // A task that is placed has not run yet, so a share may be a little too large.
        let share = |n: u64| match wakeups {
            0 => 0.0,
            all => (n as f64 * 100.0 / all as f64).min(100.0),
        };
        Done {
            wakeups,
            idle_core_percent: share(m.placed_idle_core),
            same_cpu_percent: share(m.placed_prev),
            other_cache_percent: share(m.placed_other_llc),
            no_idle_cpu_percent: share(m.sis_none + m.bias_prev_last),
            wakeup_p50_us: quantile_us(&latency, 0.5),
            wakeup_p99_us: quantile_us(&latency, 0.99),
            spread: m.spread_run,
            stolen: m.dispatch_steal_llc + m.dispatch_steal_node + m.dispatch_steal_machine,
        }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        if self.wakeups == 0 {
            return vec![("wakeups", "none yet".to_string())];
        }
        let mut lines = vec![
            (
                "wakeups",
                format!(
                    "{}: {:.0} % to a wholly idle core, {:.0} % to the CPU where the task ran last, \
                     {:.1} % to another cache; {:.1} % found no idle CPU",
                    short(self.wakeups),
                    self.idle_core_percent,
                    self.same_cpu_percent,
                    self.other_cache_percent,
                    self.no_idle_cpu_percent
                ),
            ),
            (
                "latency",
                format!(
                    "half of the woken tasks ran within {} us, 99 of 100 within {} us",
                    self.wakeup_p50_us, self.wakeup_p99_us
                ),
            ),
        ];
        if self.spread + self.stolen > 0 {
            let moved = format!(
                "running tasks from a shared core to an idle one: {}; waiting tasks to a CPU without \
                 work: {}",
                short(self.spread),
                short(self.stolen)
            );
            lines.push(("moved", moved));
        }
        lines
    }
}

/// Wakeup latencies of all arms.
fn latencies(m: &Metrics) -> Histogram {
    let mut sum = [0u64; NR_BUCKETS];
    for arm in m.arms.values() {
        for (all, n) in sum.iter_mut().zip(&arm.histograms.wakeup_latency) {
            *all = all.saturating_add(*n);
        }
    }
    sum
}

/// `+claim -wide_idle`: how features differ from their preset. Empty: not at all, or a preset of
/// another version.
fn changed(preset: &str, now: &str) -> String {
    let Some(preset) = features::preset(preset) else {
        return String::new();
    };
    let on: Vec<&str> = now.split_whitespace().collect();
    let has = |set: FeatureSet, bit| set.has(bit);
    let differs =
        FEATURES.iter().filter_map(
            |f| match (has(preset.features, f.bit), on.contains(&f.name)) {
                (false, true) => Some(format!("+{}", f.name)),
                (true, false) => Some(format!("-{}", f.name)),
                _ => None,
            },
        );
    differs.collect::<Vec<_>>().join(" ")
}

/// '2 h 3 min': the two largest units.
fn span(s: u64) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let first = units.iter().position(|(_, unit)| s >= *unit).unwrap_or(3);
    let mut rest = s;
    let mut parts = Vec::new();
    for (name, unit) in units.iter().skip(first).take(2) {
        if rest / unit > 0 || parts.is_empty() {
            parts.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    parts.join(" ")
}

/// '12.3 M'.
fn short(n: u64) -> String {
    match n {
        0..10_000 => n.to_string(),
        10_000..1_000_000 => format!("{} k", n / 1000),
        1_000_000..1_000_000_000 => format!("{:.1} M", n as f64 / 1e6),
        _ => format!("{:.1} G", n as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stats::{ArmMetrics, host::ConditionMetrics};

    fn metrics() -> Metrics {
        let mut arm = ArmMetrics::default();
        arm.histograms.wakeup_latency = vec![0; NR_BUCKETS];
        arm.histograms.wakeup_latency[1] = 980_000;
        arm.histograms.wakeup_latency[6] = 20_000;
        Metrics {
            version: "1.2.3".into(),
            preset: "mainline".into(),
            features: "prev_idle sis_util claim".into(),
            running: 1,
            placed_idle_core: 710_000,
            placed_prev: 930_000,
            placed_other_llc: 4000,
            sis_none: 1000,
            dispatch_steal_llc: 20_000,
            arms: [("default".to_string(), arm)].into(),
            ..Metrics::default()
        }
    }

    #[test]
    fn what_it_has_done_in_words_and_numbers() {
        let status = Status::of_metrics(&metrics(), Some("roost_1.2.3".into()));
        let text = status.text();
        for line in [
            "scx_roost 1.2.3 runs: preset mainline +claim -avg_idle\n",
            "  health    good\n",
            "  wakeups   1.0 M: 71 % to a wholly idle core, 93 % to the CPU where the task ran last, 0.4 % to\n",
            "            another cache; 0.1 % found no idle CPU\n",
            "  latency   half of the woken tasks ran within 4 us, 99 of 100 within 131 us\n",
            "  moved     running tasks from a shared core to an idle one: 0; waiting tasks to a CPU",
            "  next      watch it: scx_roost monitor\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert!(text.lines().all(|l| l.len() <= WIDTH), "{text}");
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json["state"], "running");
        assert_eq!(json["done"]["wakeups"], 1_000_000);
        assert_eq!(json["health"], serde_json::json!({}));
    }

    #[test]
    fn what_is_wrong_is_shown() {
        let mut m = metrics();
        let throttled = ConditionMetrics {
            active: 1,
            text: "CPU 3 was hot: clean its fan".into(),
            ..Default::default()
        };
        m.conditions.insert("throttled".into(), throttled);
        m.profile = "auto: powersave".into();
        let text = Status::of_metrics(&m, None).text();
        assert!(
            text.contains("  health    throttled: CPU 3 was hot: clean its fan\n"),
            "{text}"
        );
        assert!(
            text.contains(" runs: profile auto: powersave, preset mainline +claim"),
            "{text}"
        );
    }

    #[test]
    fn a_fresh_start_has_no_shares() {
        let m = Metrics {
            running: 0,
            ..Metrics::default()
        };
        let text = Status::of_metrics(&m, None).text();
        assert!(text.contains("is being loaded"), "{text}");
        assert!(text.contains("  wakeups   none yet\n"), "{text}");
    }

    #[test]
    fn without_a_socket_the_kernel_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("kernel/sched_ext");
        let socket = folder.path().join("own/stats");
        let note = folder.path().join("failed");
        let told = |expected: State, first: &str| {
            let status = Status::read(&Host::in_folder(folder.path()), &socket, &note).unwrap();
            assert_eq!(status.state, expected);
            assert!(status.text().starts_with(first), "{}", status.text());
            assert!(!status.next.is_empty());
        };
        told(
            State::Impossible,
            "scx_roost does not run: this kernel has no sched_ext\n",
        );
        std::fs::create_dir_all(kernel.join("root")).unwrap();
        std::fs::write(kernel.join("state"), "disabled\n").unwrap();
        told(
            State::Stopped,
            "scx_roost does not run: the kernel's own scheduler does\n",
        );
        std::fs::write(&note, "its service failed: oom-kill\nmore\n").unwrap();
        let failed = Status::read(&Host::in_folder(folder.path()), &socket, &note).unwrap();
        let line = "\n  failed    its service failed: oom-kill\n";
        assert!(failed.text().contains(line), "{}", failed.text());
        std::fs::remove_file(&note).unwrap();
        std::fs::write(kernel.join("state"), "enabled\n").unwrap();
        std::fs::write(kernel.join("root/ops"), "lavd_1.0\n").unwrap();
        told(
            State::Other,
            "scx_roost does not run: the sched_ext scheduler 'lavd_1.0' does\n",
        );
        std::fs::write(kernel.join("root/ops"), "roost_0.1.0\n").unwrap();
        told(State::Running, "scx_roost runs\n");
        for (state, expected, first) in [
            ("prepping\n", State::Loading, "scx_roost is being loaded\n"),
            ("enabling\n", State::Loading, "scx_roost is being loaded\n"),
            (
                "disabling\n",
                State::Stopped,
                "scx_roost does not run: the kernel's own",
            ),
        ] {
            std::fs::write(kernel.join("state"), state).unwrap();
            told(expected, first);
        }
    }

    #[test]
    fn spans_and_numbers() {
        for (s, text) in [
            (5, "5 s"),
            (60, "1 min"),
            (7380, "2 h 3 min"),
            (90_000, "1 d 1 h"),
            (86_400, "1 d"),
        ] {
            assert_eq!(span(s), text);
        }
        assert_eq!(
            (short(9999), short(12_345_678)),
            ("9999".into(), "12.3 M".into())
        );
        assert_eq!(short(20_500), "20 k");
    }
}
