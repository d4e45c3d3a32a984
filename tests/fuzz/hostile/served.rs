// SPDX-License-Identifier: GPL-2.0-only
//! Both sockets in a process of their own, so that its memory and descriptors can be counted. The
//! process is this program again.

use super::fake::FakeDaemon;
use crate::targets::live::Forgets;
use scx_roost::daemon::control::Control;
use scx_roost::policy::settings::Settings;
use scx_roost::wire::stats::host::CpuGauges;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

const AT: &str = "ROOST_SERVE_AT";
/// Makes answers large.
const CPUS: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Socket {
    Control,
    Statistics,
}

pub struct Served {
    child: Child,
    /// Kept open, because the child may still print.
    _out: BufReader<ChildStdout>,
    dir: TempDir,
}

impl Served {
    pub fn start() -> Served {
        let dir = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([
                "--ignored",
                "--exact",
                "hostile::served::serves",
                "--nocapture",
            ])
            .env(AT, dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(dir.path().join("errors")).expect("a file"))
            .spawn()
            .expect("it starts again");
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut lines = out.by_ref().lines().map_while(Result::ok);
        let ready = lines.any(|line| line.ends_with("ready"));
        assert!(ready, "it serves");
        Served {
            child,
            _out: out,
            dir,
        }
    }

    pub fn path(&self, socket: Socket) -> PathBuf {
        self.dir.path().join(match socket {
            Socket::Control => "ctl",
            Socket::Statistics => "stats",
        })
    }

    pub fn resident_kb(&self) -> u64 {
        let status = fs::read_to_string(self.proc("status")).expect("it runs");
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
        let kb = line.and_then(|l| l.trim().strip_suffix(" kB"));
        kb.and_then(|kb| kb.trim().parse().ok())
            .expect("it has memory")
    }

    pub fn descriptors(&self) -> usize {
        fs::read_dir(self.proc("fd")).expect("it runs").count()
    }

    fn proc(&self, name: &str) -> PathBuf {
        Path::new("/proc")
            .join(self.child.id().to_string())
            .join(name)
    }

    /// Ends the server and returns what it printed as errors.
    pub fn end(mut self) -> String {
        drop(self.child.stdin.take());
        self.child.wait().expect("it ends");
        fs::read_to_string(self.dir.path().join("errors")).expect("a file")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "no test: it is what the others of this file attack, and they start it"]
fn serves() {
    let Some(dir) = std::env::var_os(AT).map(PathBuf::from) else {
        return;
    };
    let daemon = FakeDaemon::serve(&dir.join("stats"), || 1_000_000_007);
    let gauges = (0..CPUS).map(|cpu| (cpu, CpuGauges::default()));
    daemon.source.set_cpus(gauges.collect(), None);
    let control = Control::new(Settings::default(), false, daemon.source.clone());
    let image = control.image(8, vec![1024; 8]);
    let _attached = control
        .attach(Box::new(Forgets), &image)
        .expect("a scheduler");
    let _server = control.launch(&dir.join("ctl"), None).expect("a server");
    println!("ready");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
