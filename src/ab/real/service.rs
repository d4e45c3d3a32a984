// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler that was attached before us. We only stop it if we can start it again: it must be
//! run by a systemd service.

use crate::cli;
use crate::machine::host::Host;
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Started again, it starts no scheduler unless it is asked to.
const LOADER_UNIT: &str = "scx_loader.service";

/// The systemd service of a scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    pub unit: String,
}

/// Runs a command, and returns what it printed. It has its own process group: on Ctrl-C we must
/// still restore the machine.
pub type Call<'a> = &'a dyn Fn(&[&str]) -> Result<String>;

pub fn call(words: &[&str]) -> Result<String> {
    let line = words.join(" ");
    let mut command = Command::new(words[0]);
    let output = command.args(&words[1..]).process_group(0).output();
    let output = output.with_context(|| format!("cannot run {line}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{line} failed: {}", said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Service {
    /// The service that runs the attached scheduler of this name. `running`: candidate processes.
    /// `own`: the unit that we run in. Fails if there is none.
    pub fn of(
        scheduler: &str,
        running: &[Running],
        own: Option<&str>,
        call: Call,
    ) -> Result<Service> {
        // A wrapper and its child are in the same unit.
        let units: BTreeSet<&Option<String>> = running.iter().map(|r| &r.unit).collect();
        match units.into_iter().collect::<Vec<_>>()[..] {
            [Some(unit)] => match why_not(unit, running, own, call)? {
                None => Ok(Service { unit: unit.clone() }),
                Some(why) => bail!(
                    "the sched_ext scheduler '{scheduler}' is attached, in {unit}, {why}: end it first, because it could not be started again"
                ),
            },
            [] | [None] => bail!(
                "the sched_ext scheduler '{scheduler}' is attached, and no service of systemd runs it: end it first, because it could not be started again"
            ),
            _ => bail!(
                "the sched_ext scheduler '{scheduler}' is attached, and several processes may run it: end it first"
            ),
        }
    }

    pub fn stop(&self, call: Call) -> Result<()> {
        call(&["systemctl", "stop", &self.unit]).map(|_| ())
    }

    pub fn start(&self, call: Call) -> Result<()> {
        // Our stops and starts are no failures, and do not count as such.
        let _ = call(&["systemctl", "reset-failed", &self.unit]);
        call(&["systemctl", "start", &self.unit]).map(|_| ())
    }
}

/// Why a unit cannot be stopped and started to detach and attach the scheduler. None: it can.
fn why_not(
    unit: &str,
    running: &[Running],
    own: Option<&str>,
    call: Call,
) -> Result<Option<&'static str>> {
    if own == Some(unit) {
        return Ok(Some("which this process runs in, too"));
    }
    if unit == LOADER_UNIT {
        return Ok(Some("which would not start it again by itself"));
    }
    let asked = "--property=Transient,CanStart,CanStop,MainPID";
    let shown = call(&["systemctl", "show", asked, unit])?;
    let is = |line: &str| shown.lines().any(|shown| shown == line);
    // 0 means no process, in both.
    let main = |pid: u32| pid > 0 && is(&format!("MainPID={pid}"));
    let of_main = |r: &Running| main(r.pid) || main(r.parent);
    Ok(if !is("Transient=no") {
        Some("which disappears when it is stopped")
    } else if !is("CanStart=yes") || !is("CanStop=yes") {
        Some("which systemd does not allow to be stopped and started by hand")
    } else if !running.iter().any(of_main) {
        Some("which is a service of another program")
    } else {
        None
    })
}

/// A process that runs a scheduler.
#[derive(Clone, Debug)]
pub struct Running {
    pub pid: u32,
    pub parent: u32,
    /// None: it is in no unit.
    pub unit: Option<String>,
    /// Its command line.
    pub words: Vec<String>,
}

impl Running {
    pub fn program(&self) -> &str {
        let program = self.words.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or(program)
    }

    /// True if its configuration is in a file of a path that is relative to its working folder.
    pub fn names_files_here(&self) -> bool {
        let mut words = self.words.iter().map(String::as_str);
        let mut place = None;
        while let (None, Some(word)) = (place, words.next()) {
            place = match word {
                "--config" => words.next(),
                word => word.strip_prefix("--config="),
            };
        }
        place.is_some_and(|place| place != "none" && !place.starts_with('/'))
    }
}

/// All processes of root that run schedulers. Any user may give a process any name and arguments,
/// and start a program of root (su, sudo) under a link of any name.
pub fn running(host: &Host) -> Vec<Running> {
    let entries = fs::read_dir(&host.proc).into_iter().flatten().flatten();
    let names = entries.filter_map(|e| e.file_name().into_string().ok());
    let pids = names.filter_map(|name| name.parse::<u32>().ok());
    let read = |pid: u32, file: &str| host.proc_text(&format!("{pid}/{file}")).unwrap_or_default();
    let named = |pid: &u32| schedules(&read(*pid, "comm"), &read(*pid, "cmdline"));
    let of_root = |pid: &u32| is_roots(&read(*pid, "status"));
    let schedulers = pids.filter(|pid| named(pid) && of_root(pid) && runs_one(host, *pid));
    let one = |pid: u32| Running {
        pid,
        parent: parent(&read(pid, "status")).unwrap_or(0),
        unit: unit_of(&read(pid, "cgroup")),
        words: words(&read(pid, "cmdline")),
    };
    schedulers.map(one).collect()
}

/// Reads /proc/PID/status: the real, effective, saved and file system user.
fn is_roots(status: &str) -> bool {
    let users = status.lines().find_map(|l| l.strip_prefix("Uid:"));
    users.is_some_and(|users| users.split_whitespace().all(|uid| uid == "0"))
}

/// False: the file that it executes is no scheduler. True also if that cannot be known.
fn runs_one(host: &Host, pid: u32) -> bool {
    let program = fs::read_link(host.proc.join(format!("{pid}/exe")));
    program.map_or(true, |program| {
        let name = program.file_name().unwrap_or_default();
        name.as_encoded_bytes().starts_with(b"scx_")
    })
}

/// Reads /proc/PID/status.
fn parent(status: &str) -> Option<u32> {
    let parent = status.lines().find_map(|l| l.strip_prefix("PPid:"))?;
    parent.trim().parse().ok()
}

/// The unit that we run in.
pub fn own_unit(host: &Host) -> Option<String> {
    unit_of(&host.proc_text("self/cgroup")?)
}

/// Splits /proc/PID/cmdline. Each argument ends with a NUL byte.
fn words(cmdline: &str) -> Vec<String> {
    let words = cmdline.split_terminator('\0');
    words.map(str::to_string).collect()
}

/// True if the process runs a scheduler, by its name and arguments. Not for kernel threads, which
/// have no arguments, for scx_loader, or for subcommands of scx_roost.
pub fn schedules(comm: &str, cmdline: &str) -> bool {
    let words = words(cmdline);
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
