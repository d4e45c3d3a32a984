// SPDX-License-Identifier: GPL-2.0-only
//! One run of the command: started, timed, measured, and what went wrong told. Its output goes to memory, so that nobody has to read it
//! meanwhile. What it leaves behind comes to us (subreaper) and is found.

mod energy;
mod leftover;
mod perf;

pub use energy::Energy;
pub use leftover::{Leftover, become_subreaper, reaped_within};

use super::cgroup::Cgroup;
use super::metric::Measured;
use anyhow::{Context, Result, anyhow, bail};
use leftover::Household;
use perf::Migrations;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How soon it is seen that somebody wants it to end, and how often energy is read.
const LOOK: Duration = Duration::from_millis(250);
/// Who ends just behind the command is no leftover.
const GRACE: Duration = Duration::from_millis(200);
/// Of the output, from its end.
const OUTPUT_MAX: u64 = 1 << 20;

/// What is run, the same for every run.
#[derive(Clone, Debug)]
pub struct Workload {
    pub command: Vec<OsString>,
    pub timeout: Duration,
    pub powercap: PathBuf,
}

/// What came of a run that went well.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub values: BTreeMap<Measured, f64>,
    /// Standard output, its end.
    pub output: String,
}

/// Why a run cannot be counted.
#[derive(Debug)]
pub enum Failure {
    NotStarted(Error),
    /// With its last words.
    Failed(ExitStatus, String),
    TimedOut(Duration),
    LeftBehind(Vec<Leftover>),
    /// Somebody wanted it to end.
    Stopped,
    Other(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(e: anyhow::Error) -> Failure {
        Failure::Other(e)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Failure::NotStarted(e) => write!(f, "the command cannot be run: {e}"),
            Failure::Failed(status, words) => write!(f, "the command failed ({status}){words}"),
            Failure::TimedOut(after) => write!(
                f,
                "the command did not end within {} s and was ended: give a longer --timeout if it needs that",
                after.as_secs_f64()
            ),
            Failure::LeftBehind(left) => {
                let each: Vec<String> = left.iter().map(Leftover::to_string).collect();
                write!(
                    f,
                    "the command ended and left processes behind, which were ended: {}; give a command that waits for all it starts",
                    each.join(", ")
                )
            }
            Failure::Stopped => write!(f, "stopped"),
            Failure::Other(e) => write!(f, "{e:#}"),
        }
    }
}

/// Runs it once, in `cgroup`, which is empty behind it. `become_subreaper` was called before. `stopped` is asked now and then; `started` is
/// told its group.
pub fn run(
    workload: &Workload,
    cgroup: Option<&Cgroup>,
    stopped: &dyn Fn() -> bool,
    started: &mut dyn FnMut(i32),
) -> Result<Sample, Failure> {
    let (output, errors) = (memory(c"output")?, memory(c"errors")?);
    let mut energy = Energy::new(&workload.powercap);
    let mut migrations = Migrations::of_children();
    let household = Household::now(cgroup);
    let begin = Instant::now();
    let pid = start(workload, cgroup, &output, &errors)?;
    started(pid);
    let ended = wait(pid, workload.timeout, stopped, begin, &mut energy);
    let wall = begin.elapsed();
    let (status, usage) = match ended {
        Ok(()) => reap(pid)?,
        Err(failure) => {
            return Err(match household.end(pid) {
                true => failure,
                false => anyhow!("{failure}; process {pid} was killed and does not end").into(),
            });
        }
    };
    let left = household.left_behind(GRACE);
    if !left.is_empty() {
        return Err(Failure::LeftBehind(left));
    }
    if !status.success() {
        return Err(Failure::Failed(status, last_words(errors, output)));
    }
    let mut values = of_usage(&usage);
    values.insert(Measured::Wall, wall.as_secs_f64());
    let more = [
        (Measured::Energy, energy.map(|mut e| e.poll())),
        (
            Measured::Migrations,
            migrations.as_mut().and_then(|m| Some(m.count()? as f64)),
        ),
    ];
    values.extend(
        more.into_iter()
            .filter_map(|(which, value)| Some((which, value?))),
    );
    Ok(Sample {
        values,
        output: tail(output)?,
    })
}

/// A file that is nowhere.
fn memory(name: &std::ffi::CStr) -> Result<File> {
    // SAFETY: the name is alive; the descriptor that comes back is nobody else's.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(Error::last_os_error()).context("no memory for the output of the command");
        }
        Ok(File::from_raw_fd(fd))
    }
}

fn start(
    workload: &Workload,
    cgroup: Option<&Cgroup>,
    output: &File,
    errors: &File,
) -> Result<i32, Failure> {
    let (program, rest) = workload
        .command
        .split_first()
        .context("a command is expected")?;
    let copy = |file: &File| file.try_clone().context("no descriptor is left");
    let mut command = Command::new(program);
    command
        .args(rest)
        .stdin(Stdio::null())
        .stdout(copy(output)?)
        .stderr(copy(errors)?)
        .process_group(0);
    if let Some(cgroup) = cgroup {
        cgroup.takes(&mut command)?;
    }
    let child = command.spawn().map_err(Failure::NotStarted)?;
    Ok(child.id() as i32)
}

/// Until it ends, or may no longer go on.
fn wait(
    pid: i32,
    timeout: Duration,
    stopped: &dyn Fn() -> bool,
    begin: Instant,
    energy: &mut Option<Energy>,
) -> Result<(), Failure> {
    let door = pidfd(pid)?;
    loop {
        let left = timeout.saturating_sub(begin.elapsed());
        if ends(door.as_raw_fd(), left.min(LOOK))? {
            return Ok(());
        }
        if let Some(energy) = energy {
            energy.poll();
        }
        if stopped() {
            return Err(Failure::Stopped);
        }
        if begin.elapsed() >= timeout {
            return Err(Failure::TimedOut(timeout));
        }
    }
}

fn pidfd(pid: i32) -> Result<OwnedFd> {
    // SAFETY: plain numbers; the descriptor that comes back is nobody else's.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 {
            return Err(Error::last_os_error()).context("cannot watch the command");
        }
        Ok(OwnedFd::from_raw_fd(fd as RawFd))
    }
}

fn ends(door: RawFd, within: Duration) -> Result<bool> {
    let mut poll = libc::pollfd {
        fd: door,
        events: libc::POLLIN,
        revents: 0,
    };
    // Up, or a wait of less than a millisecond would be none.
    let ms = within.as_micros().div_ceil(1000) as i32;
    // SAFETY: one descriptor, alive.
    match unsafe { libc::poll(&mut poll, 1, ms) } {
        0 => Ok(false),
        n if n > 0 => Ok(true),
        _ if Error::last_os_error().raw_os_error() == Some(libc::EINTR) => Ok(false),
        _ => Err(Error::last_os_error()).context("cannot wait for the command"),
    }
}

fn reap(pid: i32) -> Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all zeroes is a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are alive.
    if unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } != pid {
        bail!("the command ended, and somebody else took its status");
    }
    Ok((ExitStatus::from_raw(status), usage))
}

/// Of the command, and of what it and its children waited for.
fn of_usage(usage: &libc::rusage) -> BTreeMap<Measured, f64> {
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    BTreeMap::from([
        (Measured::User, seconds(usage.ru_utime)),
        (Measured::System, seconds(usage.ru_stime)),
        (Measured::MaxRss, usage.ru_maxrss as f64),
        (
            Measured::ContextSwitches,
            (usage.ru_nvcsw + usage.ru_nivcsw) as f64,
        ),
    ])
}

fn tail(mut file: File) -> Result<String> {
    let mut bytes = Vec::new();
    let begin = file.metadata()?.len().saturating_sub(OUTPUT_MAX);
    file.seek(SeekFrom::Start(begin))?;
    file.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last line that says something, of the errors or else of the output.
fn last_words(errors: File, output: File) -> String {
    let last = |file| {
        let text = tail(file).ok()?;
        let line = text.lines().rev().find(|l| !l.trim().is_empty())?;
        Some(format!(", and said last: {}", line.trim()))
    };
    last(errors).or_else(|| last(output)).unwrap_or_default()
}
