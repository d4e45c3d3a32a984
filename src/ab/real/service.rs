// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler that is attached at the start and not ours: only one that can be stopped and started again may be taken off, which is
//! one of systemd or of scx_loader.

use crate::cli;
use crate::host::Host;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const LOADER: [&str; 3] = ["org.scx.Loader", "/org/scx/Loader", "org.scx.Loader"];
const LOADER_UNIT: &str = "scx_loader.service";

/// What it takes to have it back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Service {
    Systemd {
        unit: String,
    },
    Loader {
        scheduler: String,
        mode: u32,
        args: Vec<String>,
    },
}

/// Runs a command; what it printed.
pub type Call<'a> = &'a dyn Fn(&[&str]) -> Result<String>;

pub fn call(words: &[&str]) -> Result<String> {
    let line = words.join(" ");
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.with_context(|| format!("cannot run {line}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{line} failed: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Service {
    /// That runs the attached scheduler of this name. Errors: it is none.
    pub fn of(scheduler: &str, host: &Host, call: Call) -> Result<Service> {
        Service::among(scheduler, &units(host), call)
    }

    /// `units`: those in which schedulers run.
    pub fn among(scheduler: &str, units: &[Option<String>], call: Call) -> Result<Service> {
        match units {
            [Some(unit)] if unit == LOADER_UNIT => loader(call),
            [Some(unit)] => Ok(Service::Systemd { unit: unit.clone() }),
            [] | [None] => bail!(
                "the sched_ext scheduler '{scheduler}' is attached, and no service of systemd or scx_loader runs it: end it first, for it \
                 could not be started again"
            ),
            _ => bail!(
                "the sched_ext scheduler '{scheduler}' is attached, and several processes may be the one that runs it: end it first"
            ),
        }
    }

    pub fn stop(&self, call: Call) -> Result<()> {
        let stopped = match self {
            Service::Systemd { unit } => call(&["systemctl", "stop", unit]),
            Service::Loader { .. } => loader_call(call, &["StopScheduler"]),
        };
        stopped.map(|_| ())
    }

    pub fn start(&self, call: Call) -> Result<()> {
        let started = match self {
            Service::Systemd { unit } => call(&["systemctl", "start", unit]),
            Service::Loader {
                scheduler,
                mode,
                args,
            } if args.is_empty() => loader_call(
                call,
                &["StartScheduler", "su", scheduler, &mode.to_string()],
            ),
            Service::Loader {
                scheduler, args, ..
            } => {
                let count = args.len().to_string();
                let mut words = vec!["StartSchedulerWithArgs", "sas", scheduler, &count];
                words.extend(args.iter().map(String::as_str));
                loader_call(call, &words)
            }
        };
        started.map(|_| ())
    }
}

fn loader_call(call: Call, words: &[&str]) -> Result<String> {
    let mut all = vec!["busctl", "call"];
    all.extend(LOADER);
    all.extend(words);
    call(&all)
}

fn loader(call: Call) -> Result<Service> {
    let property = |name: &str| -> Result<serde_json::Value> {
        let [service, object, interface] = LOADER;
        let text = call(&[
            "busctl",
            "--json=short",
            "get-property",
            service,
            object,
            interface,
            name,
        ])?;
        let all: serde_json::Value =
            serde_json::from_str(&text).context("an answer of scx_loader")?;
        Ok(all["data"].clone())
    };
    let scheduler = property("CurrentScheduler")?
        .as_str()
        .unwrap_or_default()
        .to_string();
    ensure!(
        scheduler.starts_with("scx_"),
        "scx_loader does not say which scheduler it runs: stop it first, with 'scxctl stop'"
    );
    let mode = property("SchedulerMode")?.as_u64().unwrap_or(0) as u32;
    // Older ones do not know it, and start schedulers by their mode alone.
    let args = property("CurrentSchedulerArgs").unwrap_or_default();
    let words = args.as_array().into_iter().flatten();
    Ok(Service::Loader {
        scheduler,
        mode,
        args: words
            .filter_map(|a| Some(a.as_str()?.to_string()))
            .collect(),
    })
}

/// The units in which schedulers run, each once; None for those that run in no unit.
fn units(host: &Host) -> Vec<Option<String>> {
    let entries = fs::read_dir(&host.proc).into_iter().flatten().flatten();
    let names = entries.filter_map(|e| e.file_name().into_string().ok());
    let pids = names.filter(|name| name.parse::<u32>().is_ok());
    let read = |pid: &str, file: &str| host.proc_text(&format!("{pid}/{file}")).unwrap_or_default();
    let schedulers = pids.filter(|pid| schedules(&read(pid, "comm"), &read(pid, "cmdline")));
    let units: BTreeSet<_> = schedulers
        .map(|pid| unit_of(&read(&pid, "cgroup")))
        .collect();
    units.into_iter().collect()
}

/// Is it the process of a scheduler, by its name and by its words, each of which ends with a zero byte? Not those of the kernel, which have
/// no words, nor scx_loader, nor a scx_roost that does something else.
pub fn schedules(comm: &str, cmdline: &str) -> bool {
    let words: Vec<&str> = cmdline.split_terminator('\0').collect();
    comm.starts_with("scx_")
        && comm != "scx_loader"
        && !words.is_empty()
        && !(comm == "scx_roost" && words[1..].iter().any(|w| cli::is_subcommand(w)))
}

/// From /proc/PID/cgroup: '0::/system.slice/scx.service'. A user's session is no service.
pub fn unit_of(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|l| l.strip_prefix("0::"))?;
    let unit = path.strip_prefix("/system.slice/")?.split('/').next()?;
    unit.ends_with(".service").then(|| unit.to_string())
}
