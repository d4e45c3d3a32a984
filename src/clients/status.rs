// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost status`: whether it runs, since when, how well, and what it has done, or how it
//! ended, in a few lines for people, or as JSON.

mod done;

use crate::machine::host::Host;
use crate::policy::arms::DEFAULT_ARM;
use crate::policy::settings::shown_as;
use crate::util::escape;
use crate::util::print;
use crate::util::text::paragraph;
use crate::util::wall_clock::{date_and_age, now_s, span};
use crate::wire::note::{self, Last};
use crate::wire::stats::Metrics;
use crate::wire::stats::client::{self, Client};
use anyhow::{Result, bail};
use done::Done;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const WIDTH: usize = 100;
/// As systemctl status.
const NOT_RUNNING: u8 = 3;

pub const EXAMPLES: &str = "Examples:
  scx_roost status                       is it running, and what has it done?
  scx_roost status --json | jq .state    for a script: running, loading, other, stopped, impossible
  scx_roost status --json | jq .last     how the last run ended, when, and where its log is

Exit status: 0 if scx_roost runs or is being loaded; 3 if it does not run; 1 if that could not be
found out.";

/// What schedules this machine.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SchedulerState {
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
    state: SchedulerState,
    /// The name by which the kernel knows the sched_ext scheduler; empty without one.
    ops: String,
    /// None: scx_roost does not run, or its socket may not be read.
    #[serde(flatten)]
    running: Option<Running>,
    /// How the last run ended; None while it runs.
    last: Option<Last>,
    /// Why its statistics are not shown although it runs.
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Running {
    version: String,
    /// Empty: none.
    profile: String,
    /// And what differs from it.
    preset: String,
    features: String,
    arms: Vec<String>,
    /// When it was started, s since 1970; 0: a scheduler of another version does not say.
    start_time_s: u64,
    uptime_s: u64,
    restarts: u64,
    /// It is loaded now or was before. A first load has nothing to say below this.
    #[serde(flatten)]
    loaded: Option<Loaded>,
}

#[derive(Debug, Serialize)]
struct Loaded {
    cpus_online: u64,
    busy_percent: f64,
    /// What is wrong: conditions by name, and `slow_wakeups`; empty: nothing is.
    health: BTreeMap<String, String>,
    done: Done,
}

/// Prints the status of the scheduler whose statistics are at `path`.
pub fn run(path: &Path, json: bool) -> Result<ExitCode> {
    let status = Status::read(&Host::new(Path::new("/sys")), path)?;
    match json {
        true => print::json(&status)?,
        false => print::text(&status.text())?,
    };
    Ok(match status.state {
        SchedulerState::Running | SchedulerState::Loading => ExitCode::SUCCESS,
        _ => ExitCode::from(NOT_RUNNING),
    })
}

/// The status of a scheduler with these statistics.
#[cfg(feature = "internals")]
pub fn text_of(totals: &Metrics) -> String {
    Status::of_metrics(totals, None).text()
}

impl Status {
    /// Errors: something serves at `path`, and is no scx_roost of this version.
    fn read(host: &Host, path: &Path) -> Result<Status> {
        match ask(path) {
            Ok(totals) => Ok(Status::of_metrics(&totals, host.attached_ops())),
            Err(e) if client::is_gone(&e) || !readable(&e) => {
                let status = Status::of_kernel(host, path, &e);
                // A process of another user may be hidden.
                let last = match status.state {
                    SchedulerState::Running | SchedulerState::Loading => None,
                    _ => note::last(path),
                };
                Ok(Status { last, ..status })
            }
            Err(e) => bail!(client::no_connection(path, &e)),
        }
    }

    fn of_metrics(totals: &Metrics, ops: Option<String>) -> Status {
        let state = match totals.running {
            0 => SchedulerState::Loading,
            _ => SchedulerState::Running,
        };
        Status {
            state,
            ops: ops.unwrap_or_default(),
            running: Some(Running::of(totals)),
            last: None,
            why: None,
        }
    }

    /// Without its statistics: what the kernel says.
    fn of_kernel(host: &Host, path: &Path, e: &anyhow::Error) -> Status {
        let state = host.kernel_text("sched_ext/state");
        // One that is being removed places no more tasks.
        let leaves = state.as_deref() == Some("disabling");
        let ops = host.attached_ops().filter(|_| !leaves);
        let state = match (state.as_deref(), &ops) {
            (None, _) => SchedulerState::Impossible,
            (_, None) => SchedulerState::Stopped,
            // 'enabling', and on Linux 6.12 'prepping', are a load.
            (Some(state), Some(ops)) if ops.starts_with("roost_") => match state {
                "enabled" => SchedulerState::Running,
                _ => SchedulerState::Loading,
            },
            (_, Some(_)) => SchedulerState::Other,
        };
        let ours = matches!(state, SchedulerState::Running | SchedulerState::Loading);
        Status {
            state,
            ops: ops.unwrap_or_default(),
            running: None,
            last: None,
            why: ours.then(|| client::no_connection(path, e)),
        }
    }

    fn text(&self) -> String {
        let mut text = match (&self.state, &self.running) {
            (_, Some(running)) => running.text(self.state == SchedulerState::Loading),
            (SchedulerState::Running, None) => "scx_roost runs\n".to_string(),
            (SchedulerState::Loading, None) => "scx_roost is being loaded\n".to_string(),
            (SchedulerState::Other, None) => format!(
                "scx_roost does not run: the sched_ext scheduler '{}' does\n",
                escape::line(&self.ops)
            ),
            (SchedulerState::Stopped, None) => {
                "scx_roost does not run: the kernel's own scheduler does\n".to_string()
            }
            (SchedulerState::Impossible, None) => {
                "scx_roost does not run: this kernel has no sched_ext\n".to_string()
            }
        };
        for (name, what) in self.last.as_ref().map(rows_of_end).unwrap_or_default() {
            text += &row(name, &what);
        }
        if let Some(why) = &self.why {
            text += &row("why", why);
        }
        text
    }
}

/// A line below the first, or more.
fn row(name: &str, what: &str) -> String {
    paragraph(&format!("  {name:<9} "), what, WIDTH)
}

/// How a run ended, what to read about it, and where its log is.
fn rows_of_end(last: &Last) -> Vec<(&'static str, String)> {
    let begun = date_and_age(last.start_time_s);
    let what = match last.end_time_s {
        Some(end) => format!("{}: {}", date_and_age(end), last.why),
        None => format!("{}; it was started {begun}", last.why),
    };
    let mut rows = vec![(if last.failed { "failed" } else { "ended" }, what)];
    rows.extend(last.page.map(|page| ("read", page.to_string())));
    rows.push(("log", last.log.clone()));
    rows
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
        // Before the first load the arm alone has them.
        let everybody = totals.arms.get(DEFAULT_ARM).cloned().unwrap_or_default();
        let started = totals.start_time_s;
        Running {
            version: totals.version.clone(),
            profile: everybody.profile,
            preset: everybody.preset,
            features: everybody.features,
            arms: totals.arms.keys().cloned().collect(),
            start_time_s: started,
            uptime_s: if started == 0 {
                0
            } else {
                now_s().saturating_sub(started)
            },
            restarts: totals.restarts,
            loaded: totals.was_loaded().then(|| Loaded::of(totals)),
        }
    }

    fn text(&self, loading: bool) -> String {
        let since = match self.uptime_s {
            0 => String::new(),
            s => format!(", for {}", span(s)),
        };
        let state = match (loading, &self.loaded) {
            (true, None) => "is loading",
            (true, Some(_)) => "is loading again, after a change of the CPUs",
            _ => "runs",
        };
        let what = shown_as(&self.profile, &self.preset);
        let first = format!("scx_roost {} {state}: {what}{since}", self.version);
        let mut text = (escape::line(&first) + "\n").into_owned();
        if let Some(loaded) = &self.loaded {
            let restarts = match self.restarts {
                0 => String::new(),
                n => format!("; loaded again {n} times, after a CPU came online"),
            };
            let (online, busy) = (loaded.cpus_online, loaded.busy_percent);
            let machine = format!("{online} CPUs online, {busy:.0} % busy{restarts}");
            text += &row("machine", &machine);
        }
        text += &row("features", &self.features);
        if self.arms.len() > 1 {
            text += &row("arms", &self.arms.join(", "));
        }
        text + &self.loaded.as_ref().map_or(String::new(), Loaded::text)
    }
}

impl Loaded {
    fn of(totals: &Metrics) -> Loaded {
        let done = Done::of(totals);
        let active = totals.conditions.iter().filter(|(_, c)| c.active != 0);
        let active = active.map(|(name, c)| (name.clone(), c.text.clone()));
        let slow = done.slow().map(|text| ("slow_wakeups".to_string(), text));
        Loaded {
            cpus_online: totals.gauges.cpus_online,
            busy_percent: totals.gauges.busy_permille as f64 / 10.0,
            health: active.chain(slow).collect(),
            done,
        }
    }

    fn text(&self) -> String {
        let mut text = match self.health.is_empty() {
            true => row("health", "good"),
            false => String::new(),
        };
        for (name, what) in &self.health {
            text += &row("health", &format!("{name}: {what}"));
        }
        let done = self.done.lines();
        let done = done.iter().map(|(name, what)| row(name, what));
        text + &done.collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::stats::{ArmMetrics, NR_BUCKETS, host::ConditionMetrics};

    fn metrics() -> Metrics {
        let mut arm = ArmMetrics {
            preset: "mainline+claim+avg_idle=off".into(),
            features: "prev_idle sis_util claim".into(),
            ..ArmMetrics::default()
        };
        arm.histograms.wakeup_latency = vec![0; NR_BUCKETS];
        arm.histograms.wakeup_latency[1] = 980_000;
        arm.histograms.wakeup_latency[6] = 20_000;
        Metrics {
            version: "1.2.3".into(),
            preset: arm.preset.clone(),
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
            "scx_roost 1.2.3 runs: preset mainline+claim+avg_idle=off\n",
            "  health    good\n",
            "  wakeups   1.0 M: 71 % to a wholly idle core, 93 % to the CPU where the task ran last, 0.4 % to\n",
            "            another cache; 0.1 % found no idle CPU\n",
            "  latency   half of the woken tasks ran within 4 us, 99 of 100 within 131 us\n",
            "  moved     running tasks from a shared core to an idle one: 0; waiting tasks to a CPU",
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
        m.arms.get_mut(DEFAULT_ARM).unwrap().profile = "auto: powersave".into();
        let text = Status::of_metrics(&m, None).text();
        assert!(
            text.contains("  health    throttled: CPU 3 was hot: clean its fan\n"),
            "{text}"
        );
        assert!(
            text.contains(" runs: profile auto: powersave, preset mainline+claim"),
            "{text}"
        );
    }

    /// Its figure and 'good' would contradict each other.
    #[test]
    fn slow_wakeups_are_not_good() {
        let mut m = metrics();
        let arm = m.arms.get_mut(DEFAULT_ARM).unwrap();
        arm.histograms.wakeup_latency[6] = 0;
        arm.histograms.wakeup_latency[16] = 20_000;
        let text = Status::of_metrics(&m, None).text();
        assert!(text.contains("99 of 100 within 134217 us"), "{text}");
        assert!(!text.contains("good"), "{text}");
        let slow = "  health    slow_wakeups: since the start one woken task in 100 waited 67 ms";
        assert!(text.contains(slow), "{text}");
    }

    #[test]
    fn a_first_load_says_what_it_loads() {
        let mut m = metrics();
        (m.running, m.start_time_s) = (0, now_s() - 2);
        m.preset.clear();
        let status = Status::of_metrics(&m, None);
        assert_eq!(status.state, SchedulerState::Loading);
        let text = status.text();
        let first = "scx_roost 1.2.3 is loading: preset mainline+claim+avg_idle=off, for 2 s\n";
        assert!(text.starts_with(first), "{text}");
        for nothing in ["health", "CPUs online", "wakeups"] {
            assert!(!text.contains(nothing), "{text}");
        }
        assert!(serde_json::to_value(&status).unwrap()["health"].is_null());
        // Loaded before: what it has done is known.
        m.preset = "mainline".into();
        let text = Status::of_metrics(&m, None).text();
        assert!(text.contains("is loading again, after a change of the CPUs: preset"));
        assert!(text.contains("  health    good\n"), "{text}");
    }

    #[test]
    fn how_a_run_ended_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("stats");
        let host = Host::in_folder(folder.path());
        let status = || Status::read(&host, &socket).unwrap();
        assert_eq!(status().last, None);
        let note = note::Note::begin(&socket);
        assert_eq!(status().last, None);
        note.end(note::Cause::Error, "EXIT: runnable task stall");
        let text = status().text();
        assert!(
            text.contains(" s ago: EXIT: runnable task stall\n"),
            "{text}"
        );
        for name in [
            "failed   ",
            "read      docs/troubleshooting.md#it-ended\n",
            "log   ",
        ] {
            assert!(text.contains(&format!("\n  {name}")), "{text}");
        }
        note::Note::begin(&socket).end(note::Cause::Signal, "ended by SIGINT");
        let text = status().text();
        assert!(text.contains("\n  ended     ") && text.contains("ago: ended by SIGINT\n"));
        assert!(
            !text.contains("failed") && !text.contains("docs/"),
            "{text}"
        );
        let json = serde_json::to_value(status()).unwrap();
        assert_eq!(
            (&json["last"]["cause"], &json["last"]["failed"]),
            (&"signal".into(), &false.into())
        );
    }

    #[test]
    fn without_a_socket_the_kernel_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("kernel/sched_ext");
        let socket = folder.path().join("own/stats");
        let told = |expected: SchedulerState, first: &str| {
            let status = Status::read(&Host::in_folder(folder.path()), &socket).unwrap();
            assert_eq!(status.state, expected);
            assert!(status.text().starts_with(first), "{}", status.text());
            let ours = matches!(expected, SchedulerState::Running | SchedulerState::Loading);
            assert_eq!(status.why.is_some(), ours);
        };
        told(
            SchedulerState::Impossible,
            "scx_roost does not run: this kernel has no sched_ext\n",
        );
        std::fs::create_dir_all(kernel.join("root")).unwrap();
        std::fs::write(kernel.join("state"), "disabled\n").unwrap();
        told(
            SchedulerState::Stopped,
            "scx_roost does not run: the kernel's own scheduler does\n",
        );
        std::fs::write(kernel.join("state"), "enabled\n").unwrap();
        std::fs::write(kernel.join("root/ops"), "lavd_1.0\n").unwrap();
        told(
            SchedulerState::Other,
            "scx_roost does not run: the sched_ext scheduler 'lavd_1.0' does\n",
        );
        std::fs::write(kernel.join("root/ops"), "roost_0.1.0\n").unwrap();
        told(SchedulerState::Running, "scx_roost runs\n");
        for (state, expected, first) in [
            (
                "prepping\n",
                SchedulerState::Loading,
                "scx_roost is being loaded\n",
            ),
            (
                "enabling\n",
                SchedulerState::Loading,
                "scx_roost is being loaded\n",
            ),
            (
                "disabling\n",
                SchedulerState::Stopped,
                "scx_roost does not run: the kernel's own",
            ),
        ] {
            std::fs::write(kernel.join("state"), state).unwrap();
            told(expected, first);
        }
    }
}
