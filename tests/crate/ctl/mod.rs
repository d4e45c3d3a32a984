// SPDX-License-Identifier: GPL-2.0-only
//! The control socket and its commands, with a scheduler that only records what is published to it.

mod commands;
mod frequencies;
mod idle;
mod loaded;
mod members;
mod plans;
mod requests;

use anyhow::{Result, bail};
use scx_roost::bpf::intf::policy_image;
use scx_roost::daemon::control::{Attached, Audit, Control, Limit, Live, Refused, Ticket};
use scx_roost::policy::rules::Table;
use scx_roost::policy::settings::Settings;
use scx_roost::wire::socket::Server;
use scx_roost::wire::stats::source::CounterSource;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

#[derive(Default)]
pub struct Told {
    pub refused: Refused,
    pub image: Option<policy_image>,
    pub publications: u32,
    pub table: Table,
    pub tables: u32,
    pub tickets: Vec<Ticket>,
    pub khz: Vec<Option<u32>>,
    /// The worth of a scan for each LLC, and how long it is valid, ms.
    pub scans: Vec<(u32, u32)>,
    pub fails: bool,
    pub rules_fail: bool,
    pub ended: bool,
    pub audits: u32,
    /// The drifts that the next audits report, the next one last.
    pub drifts: Vec<u64>,
}

#[derive(Clone, Default)]
pub struct Remembers(pub Arc<Mutex<Told>>);

impl Live for Remembers {
    fn publish(&mut self, image: &policy_image) -> Result<u32> {
        let mut told = self.0.lock().unwrap();
        if told.fails {
            bail!("no grace");
        }
        told.publications += 1;
        told.image = Some(*image);
        Ok(image.generation + 1)
    }

    fn set_rules(&mut self, table: &Table) -> Result<()> {
        let mut told = self.0.lock().unwrap();
        if told.rules_fail {
            bail!("no room");
        }
        told.table = table.clone();
        told.tables += 1;
        Ok(())
    }

    fn speeds(&self, nr_cpus: usize) -> Vec<u32> {
        vec![1024; nr_cpus]
    }

    fn set_frequencies(&mut self, khz: &[Option<u32>], _age: Duration) {
        self.0.lock().unwrap().khz = khz.to_vec();
    }

    fn idle_means(&self, nr_cpus: usize, every: bool) -> Vec<u64> {
        let mean = if every { 0 } else { 6 * 25_600 };
        vec![mean; nr_cpus]
    }

    fn set_scans(&mut self, worth: &[u32], counts_ms: u32) {
        let mut told = self.0.lock().unwrap();
        told.scans = worth.iter().map(|worth| (*worth, counts_ms)).collect();
    }

    fn assign(&mut self, _process: BorrowedFd, ticket: Ticket) -> Result<()> {
        self.0.lock().unwrap().tickets.push(ticket);
        Ok(())
    }

    fn ended(&self) -> bool {
        self.0.lock().unwrap().ended
    }

    fn audit(&mut self) -> Result<Audit> {
        let mut told = self.0.lock().unwrap();
        told.audits += 1;
        let util_drift = told.drifts.pop().unwrap_or(0);
        let of_cpu = (util_drift > 0).then_some((3, -(util_drift as i64)));
        Ok(Audit {
            tasks: 70,
            joined: 2,
            util_est: 300,
            util_drift,
            drift_of_cpu: of_cpu.into_iter().collect(),
        })
    }

    fn refused(&self) -> Refused {
        self.0.lock().unwrap().refused
    }

    fn limits(&self) -> Vec<Limit> {
        vec![Limit {
            cgroup: u64::MAX,
            quota_us: 20_000,
            period_us: 100_000,
            throttled: 5,
            throttled_us: 400_000,
            used_us: 100_500,
            parks: 9,
            parked: 2,
            ..Limit::default()
        }]
    }
}

pub struct Served {
    control: Control,
    source: CounterSource,
    told: Remembers,
    attached: Option<Attached>,
    _server: Server,
    dir: TempDir,
}

fn serve() -> Served {
    serve_with(false)
}

pub fn serve_with(frozen: bool) -> Served {
    serve_as(Settings::default(), frozen)
}

fn serve_as(everybody: Settings, frozen: bool) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let (source, told) = (CounterSource::default(), Remembers::default());
    let control = Control::new(everybody, frozen, source.clone());
    let server = control.launch(&dir.path().join("ctl"), None).unwrap();
    let image = control.image(8, vec![1024; 8]);
    let attached = control.attach(Box::new(told.clone()), &image).unwrap();
    Served {
        control,
        source,
        told,
        attached: Some(attached),
        _server: server,
        dir,
    }
}

impl Served {
    pub fn path(&self) -> PathBuf {
        self.dir.path().join("ctl")
    }

    fn publications(&self) -> u32 {
        self.told.0.lock().unwrap().publications
    }

    /// The features last published for the arm in this slot.
    pub fn features(&self, slot: usize) -> u32 {
        let told = self.told.0.lock().unwrap();
        told.image.unwrap().arm[slot].task.features
    }

    fn roost(&self, args: &[&str]) -> Output {
        let (verb, rest) = args.split_first().unwrap();
        Command::new(env!("CARGO_BIN_EXE_scx_roost"))
            .args([verb, "--ctl-path"])
            .arg(self.path())
            .args(rest)
            .output()
            .expect("the binary runs")
    }

    fn done(&self, args: &[&str]) -> String {
        let output = self.roost(args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, args: &[&str]) -> String {
        let before = (self.done(&["ctl", "show"]), self.done(&["ctl", "rules"]));
        let output = self.roost(args);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            matches!(output.status.code(), Some(1 | 2)),
            "{args:?}: {stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        let after = (self.done(&["ctl", "show"]), self.done(&["ctl", "rules"]));
        assert_eq!(before, after, "{args:?}");
        stderr
    }
}

/// Sends these lines at once, and returns as many answers.
fn raw(stream: &UnixStream, lines: &[&str]) -> Vec<Value> {
    let mut writer = stream;
    writer
        .write_all((lines.join("\n") + "\n").as_bytes())
        .unwrap();
    let mut reader = BufReader::new(stream);
    let mut answer = || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    lines.iter().map(|_| answer()).collect()
}

fn request(args: &str) -> String {
    format!("{{\"req\":\"ctl\",\"args\":{{{args}}}}}")
}

fn set(arm: &str, change: &str) -> String {
    request(&format!(
        "\"op\":\"set\",\"arm\":\"{arm}\",\"change\":{{{change}}}"
    ))
}
