// SPDX-License-Identifier: GPL-2.0-only
//! One run of the command: starts it, measures it, and says what went wrong. Its output goes to
//! large pipes, so that it need not be read all the time. As a subreaper we find the processes it
//! leaves behind. It has a session of its own: another user's command must not have root's terminal
//! as its controlling one, where it could type (TIOCSTI).

mod apart;
mod halt;
mod leftover;
mod migrations;
mod output;

pub use halt::outlast_ctrl_z;
pub use leftover::{Leftover, become_subreaper, reaped_within, signal_group};
pub use migrations::can_count;

use super::cgroup::Cgroup;
use super::metric::Measured;
use crate::util::affinity::Affinity;
use crate::util::text::tidy;
use crate::util::user::User;
use anyhow::{Context, Result, anyhow, bail};
use halt::Watch;
use leftover::Household;
use migrations::Migrations;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use output::Output;
use rustix::process::{Pid, PidfdFlags, pidfd_open, setsid};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Error;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often `stopped` is checked and the output taken; the first time sooner, before a short
/// command has ended, and so after it has printed much.
const LOOK: Duration = Duration::from_millis(250);
const FIRST_LOOK: Duration = Duration::from_millis(20);
const NEXT_LOOK: Duration = Duration::from_millis(1);
/// A process that ends this soon after the command is no leftover.
const GRACE: Duration = Duration::from_millis(200);
/// Characters of its last output that an error has.
pub const WORDS_MAX: usize = 400;

/// What is run, the same in all runs.
#[derive(Clone, Debug)]
pub struct Workload {
    pub command: Vec<OsString>,
    pub timeout: Duration,
    /// CPUs that it is kept to; empty: all that we may use.
    pub cpus: Vec<u16>,
    /// The user it runs as; None: ours.
    pub user: Option<User>,
}

/// The result of a successful run.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub values: BTreeMap<Measured, f64>,
    /// The end of stdout.
    pub output: String,
    /// The end of stderr.
    pub errors: String,
}

impl Sample {
    /// CPU time of the command and of all children it waited for, s.
    pub fn cpu_s(&self) -> f64 {
        let of = [Measured::User, Measured::System];
        of.iter().filter_map(|which| self.values.get(which)).sum()
    }
}

/// Why a run does not count.
#[derive(Debug)]
pub enum Failure {
    /// The program that cannot be run.
    NotStarted(OsString, Error),
    /// With the last line it printed.
    Failed(ExitStatus, String),
    TimedOut(Duration),
    LeftBehind(Vec<Leftover>),
    /// A thread of this name left the CPUs of its variant.
    Strayed {
        name: String,
        cpus: String,
    },
    /// It succeeded, but a requested number is missing.
    NoValue(anyhow::Error),
    /// This process was stopped, and noticed the end too late.
    Unwatched(anyhow::Error),
    /// The user stopped it.
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
            Failure::NotStarted(program, e) => {
                let program = program.to_string_lossy();
                write!(f, "the command '{program}' cannot be run: {e}")?;
                match program.contains(char::is_whitespace) {
                    true => write!(
                        f,
                        "; that is one word: quote each word by itself, or write sh -c '{program}'"
                    ),
                    false => Ok(()),
                }
            }
            Failure::Strayed { name, cpus } => write!(
                f,
                "{name} is restricted to CPUs {cpus} and may run on others: it has chosen its own CPUs (taskset, numactl, OpenMP), so @cpus cannot"
            ),
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
                    "the command ended and left processes running, which were killed: {}; give a command that waits for all its processes",
                    each.join(", ")
                )
            }
            Failure::Stopped => write!(f, "stopped"),
            Failure::NoValue(e) | Failure::Unwatched(e) | Failure::Other(e) => write!(f, "{e:#}"),
        }
    }
}

/// Runs the command once, in `cgroup`, which has no processes afterwards. Call `become_subreaper`
/// first. `helper`: the pid of a child of ours that stays. It may change at any time. `stopped` is
/// called regularly. `started` gets the process group.
pub fn run(
    workload: &Workload,
    cgroup: Option<&Cgroup>,
    helper: &dyn Fn() -> Option<u32>,
    stopped: &dyn Fn() -> bool,
    started: &mut dyn FnMut(i32),
) -> Result<Sample, Failure> {
    let household = Household::now(cgroup, helper);
    let mut running = Running::start(workload, cgroup)?;
    started(running.pid);
    let (pid, ended) = (running.pid, running.wait(workload, cgroup, stopped));
    let ended = ended.map_err(|failure| match household.end(pid) {
        true => failure,
        false => anyhow!("{failure}; process {pid} was killed and does not exit").into(),
    })?;
    // A process that prints waits for room.
    let left = household.left_behind(pid, GRACE, &mut || drop(running.take()));
    if !left.is_empty() {
        return Err(Failure::LeftBehind(left));
    }
    // Work of processes that ended just after the command is a part of the run.
    let end = household
        .last_ended()
        .map_or(ended.at, |at| at.max(ended.at));
    running.sample(&ended, end)
}

/// A command that was started.
struct Running {
    pid: i32,
    begin: Instant,
    watch: Watch,
    output: Output,
    errors: Output,
    migrations: Option<Migrations>,
}

struct Ended {
    at: Instant,
    status: ExitStatus,
    usage: libc::rusage,
}

impl Running {
    fn start(workload: &Workload, cgroup: Option<&Cgroup>) -> Result<Running, Failure> {
        let watch = Watch::begin();
        let (output, errors) = (Output::new()?, Output::new()?);
        let migrations = Migrations::of_children();
        let begin = Instant::now();
        Ok(Running {
            pid: start(workload, cgroup, &output, &errors)?,
            begin,
            watch,
            output,
            errors,
            migrations,
        })
    }

    /// Waits until it has ended, and reaps it. Fails on the timeout, when the user stops it, if a
    /// thread left its CPUs, and if this process was stopped.
    fn wait(
        &mut self,
        workload: &Workload,
        cgroup: Option<&Cgroup>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Ended, Failure> {
        let pid = Pid::from_raw(self.pid).context("no command is started")?;
        let door = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch the command")?;
        let mut nap = FIRST_LOOK;
        loop {
            let left = workload.timeout.saturating_sub(self.begin.elapsed());
            let ended = ends_within(&door, left.min(nap))?;
            let at = Instant::now();
            match self.watch.look() {
                // systemd sends SIGCONT after SIGTERM.
                Err(_) if stopped() => return Err(Failure::Stopped),
                looked => looked.map_err(Failure::Unwatched)?,
            }
            if ended {
                let (status, usage) = reap(self.pid)?;
                return Ok(Ended { at, status, usage });
            }
            cgroup.map_or(Ok(()), |cgroup| apart::check(cgroup, &workload.cpus))?;
            let prints = self.take()?;
            if stopped() {
                return Err(Failure::Stopped);
            }
            if self.begin.elapsed() >= workload.timeout {
                return Err(Failure::TimedOut(workload.timeout));
            }
            nap = if prints { NEXT_LOOK } else { LOOK };
        }
    }

    /// Reads what was printed. True: there was much.
    fn take(&mut self) -> Result<bool> {
        Ok(self.output.take()? | self.errors.take()?)
    }

    /// `end`: of all that it started.
    fn sample(mut self, ended: &Ended, end: Instant) -> Result<Sample, Failure> {
        if !ended.status.success() {
            let words = last_words([&mut self.errors, &mut self.output]);
            return Err(Failure::Failed(ended.status, words));
        }
        let mut values = of_usage(&ended.usage);
        values.insert(Measured::Wall, (end - self.begin).as_secs_f64());
        let migrations = self.migrations.as_mut().and_then(Migrations::count);
        values.extend(migrations.map(|count| (Measured::Migrations, count)));
        Ok(Sample {
            values,
            output: self.output.tail()?,
            errors: self.errors.tail()?,
        })
    }
}

fn start(
    workload: &Workload,
    cgroup: Option<&Cgroup>,
    output: &Output,
    errors: &Output,
) -> Result<i32, Failure> {
    let (program, rest) = workload
        .command
        .split_first()
        .context("a command is expected")?;
    let mut command = Command::new(program);
    command
        .args(rest)
        .stdin(Stdio::null())
        .stdout(output.door()?)
        .stderr(errors.door()?);
    // SAFETY: between fork and exec it makes one system call.
    unsafe { command.pre_exec(|| Ok(setsid().map(|_| ())?)) };
    if let Some(cgroup) = cgroup {
        cgroup.adopt(&mut command)?;
    }
    if let Some(user) = &workload.user {
        user.takes(&mut command);
    }
    if !workload.cpus.is_empty() {
        let cpus = Affinity::new(&workload.cpus);
        // SAFETY: between fork and exec it makes one system call, on memory that the closure owns.
        unsafe { command.pre_exec(move || cpus.take()) };
    }
    let child = command
        .spawn()
        .map_err(|e| Failure::NotStarted(program.clone(), e))?;
    Ok(child.id() as i32)
}

/// Whether it ends within this time. Waits no longer.
fn ends_within(door: &OwnedFd, time: Duration) -> Result<bool> {
    let mut polled = [PollFd::new(door.as_fd(), PollFlags::POLLIN)];
    // Rounded up, since a wait of less than a millisecond would not wait.
    let ms = u16::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
    match poll(&mut polled, PollTimeout::from(ms)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(e) => Err(e).context("cannot wait for the command"),
    }
}

fn reap(pid: i32) -> Result<(ExitStatus, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all zeroes is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are alive.
    if unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } != pid {
        bail!("the command ended, and its exit status was taken by another waiter");
    }
    Ok((ExitStatus::from_raw(status), usage))
}

/// Of the command, and of all descendants that were waited for.
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

/// The last line that is not blank, of the first output that has one.
fn last_words(outputs: [&mut Output; 2]) -> String {
    let last = |output: &mut Output| {
        let text = output.tail().ok()?;
        let line = text.lines().rev().find(|l| !l.trim().is_empty())?;
        Some(format!(
            "; its last output: {}",
            tidy(line.trim(), WORDS_MAX)
        ))
    };
    let found = outputs.into_iter().find_map(last);
    found.unwrap_or_default()
}
