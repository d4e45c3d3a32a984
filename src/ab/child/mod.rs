// SPDX-License-Identifier: GPL-2.0-only
//! One run of the command: starts it, measures it, and says what went wrong. Its output goes to
//! memory, so that it need not be read meanwhile. As a subreaper we find the processes it leaves
//! behind.

mod apart;
mod energy;
mod halt;
mod leftover;
mod output;
mod perf;

pub use energy::Energy;
pub use halt::outlast_ctrl_z;
pub use leftover::{Leftover, become_subreaper, reaped_within};
pub use perf::can_count;

use super::cgroup::Cgroup;
use super::metric::Measured;
use crate::util::affinity::Affinity;
use crate::util::user::User;
use anyhow::{Context, Result, anyhow, bail};
use apart::Side;
use halt::Watch;
use leftover::Household;
use output::Output;
use perf::{Counted, Counts};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Error;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often `stopped` is checked and energy is read; the first time sooner, before a short command
/// has ended.
const LOOK: Duration = Duration::from_millis(250);
const FIRST_LOOK: Duration = Duration::from_millis(20);
/// A process that ends this soon after the command is no leftover.
const GRACE: Duration = Duration::from_millis(200);

/// What is run, the same in all runs.
#[derive(Clone, Debug)]
pub struct Workload {
    pub command: Vec<OsString>,
    pub timeout: Duration,
    /// CPUs that it is kept to; empty: all that we may use.
    pub cpus: Vec<u16>,
    pub powercap: PathBuf,
    /// Hardware events to count.
    pub events: Vec<Measured>,
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
    /// A thread of this name left the CPUs of its variant or copy.
    Strayed {
        name: String,
        cpus: String,
    },
    /// Of two copies at once this one failed.
    OfCopy(usize, Box<Failure>),
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
                "{name} is restricted to CPUs {cpus} and may run on others: it has chosen its own CPUs (taskset, numactl, OpenMP), so neither @cpus nor --concurrent can"
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
            Failure::OfCopy(_, failure) => failure.fmt(f),
            Failure::Stopped => write!(f, "stopped"),
            Failure::NoValue(e) | Failure::Unwatched(e) | Failure::Other(e) => write!(f, "{e:#}"),
        }
    }
}

/// Runs the command once, in `cgroup`, which has no processes afterwards. Call `become_subreaper`
/// first. `stopped` is called regularly. `started` gets the process group.
#[cfg(feature = "internals")]
pub fn run(
    workload: &Workload,
    cgroup: Option<&Cgroup>,
    stopped: &dyn Fn() -> bool,
    started: &mut dyn FnMut(i32),
) -> Result<Sample, Failure> {
    let alone = std::slice::from_ref(workload);
    let one = run_at_once(alone, cgroup, &|| None, stopped, started)?;
    Ok(one.into_iter().next().context("one was run")?)
}

/// As `run`, for several commands at once. If one fails, all are killed. Energy is only measured if
/// there is one. `helper`: the pid of a child of ours that stays. It may change at any time.
pub fn run_at_once(
    workloads: &[Workload],
    cgroup: Option<&Cgroup>,
    helper: &dyn Fn() -> Option<u32>,
    stopped: &dyn Fn() -> bool,
    started: &mut dyn FnMut(i32),
) -> Result<Vec<Sample>, Failure> {
    let mut energy = match workloads {
        [alone] => Energy::new(&alone.powercap),
        _ => None,
    };
    let household = Household::now(cgroup, helper);
    let mut watch = Watch::begin();
    let mut copies = Vec::new();
    let sides = sides(workloads, cgroup)?;
    let ended = start_all(workloads, cgroup, &sides, &mut copies, started).and_then(|()| {
        wait(
            &mut copies,
            workloads,
            &sides,
            stopped,
            &mut energy,
            &mut watch,
        )
    });
    if let Err(failure) = ended {
        return Err(ended_all(&household, &copies, failure));
    }
    let left = household.left_behind(GRACE);
    if !left.is_empty() {
        return Err(Failure::LeftBehind(left));
    }
    // Work of processes that ended just after the command is a part of the run.
    if let ([alone], Some(behind)) = (&mut copies[..], household.last_ended()) {
        alone.goes_on_until(behind);
    }
    let counts = counts(&mut copies);
    let mut samples = Vec::new();
    let all = copies.len();
    for (at, (copy, counts)) in copies.into_iter().zip(counts).enumerate() {
        samples.push(copy.sample(counts).map_err(|e| of_copy(at, all, e))?);
    }
    if let ([sample], Some(mut energy)) = (&mut samples[..], energy) {
        sample.values.insert(Measured::Energy, energy.poll());
    }
    Ok(samples)
}

fn of_copy(at: usize, all: usize, failure: Failure) -> Failure {
    match all {
        1 => failure,
        _ => Failure::OfCopy(at, Box::new(failure)),
    }
}

/// A command that was started.
struct Copy {
    pid: i32,
    begin: Instant,
    output: Output,
    errors: Output,
    /// Events of this copy and of those that were started after it.
    counted: Counted,
    ended: Option<Ended>,
}

struct Ended {
    wall: Duration,
    status: ExitStatus,
    usage: libc::rusage,
}

impl Copy {
    fn start(workload: &Workload, cgroup: Option<&Cgroup>) -> Result<Copy, Failure> {
        let (output, errors) = (Output::new(c"output")?, Output::new(c"errors")?);
        let counted = Counted::of_children(&workload.events);
        let begin = Instant::now();
        Ok(Copy {
            pid: start(workload, cgroup, &output, &errors)?,
            begin,
            output,
            errors,
            counted,
            ended: None,
        })
    }

    fn reap(&mut self) -> Result<&Ended> {
        let wall = self.begin.elapsed();
        let (status, usage) = reap(self.pid)?;
        Ok(self.ended.insert(Ended {
            wall,
            status,
            usage,
        }))
    }

    fn goes_on_until(&mut self, end: Instant) {
        if let Some(ended) = &mut self.ended {
            ended.wall = ended.wall.max(end - self.begin);
        }
    }

    /// The failure of a command that ended.
    fn failure(&self) -> Result<Failure> {
        let ended = self.ended.as_ref().context("it has ended")?;
        let words = last_words(&self.errors, &self.output);
        Ok(Failure::Failed(ended.status, words))
    }

    fn sample(self, counts: Counts) -> Result<Sample, Failure> {
        let ended = self.ended.as_ref().context("it has ended")?;
        if !ended.status.success() {
            return Err(self.failure()?);
        }
        let mut values = of_usage(&ended.usage);
        values.insert(Measured::Wall, ended.wall.as_secs_f64());
        values.extend(counts);
        Ok(Sample {
            values,
            output: self.output.tail()?,
            errors: self.errors.tail()?,
        })
    }
}

/// Cgroup and CPUs of each copy that is restricted to some. Empty: there is no cgroup.
fn sides(workloads: &[Workload], cgroup: Option<&Cgroup>) -> Result<Vec<Option<Side>>> {
    let each = workloads.iter().enumerate();
    match cgroup {
        None => Ok(Vec::new()),
        Some(cgroup) => each.map(|(at, w)| Side::new(cgroup, at, &w.cpus)).collect(),
    }
}

fn start_all(
    workloads: &[Workload],
    cgroup: Option<&Cgroup>,
    sides: &[Option<Side>],
    copies: &mut Vec<Copy>,
    started: &mut dyn FnMut(i32),
) -> Result<(), Failure> {
    for (at, workload) in workloads.iter().enumerate() {
        let own = sides.get(at).and_then(|side| Some(&side.as_ref()?.cgroup));
        let copy = Copy::start(workload, own.or(cgroup))?;
        started(copy.pid);
        copies.push(copy);
    }
    Ok(())
}

/// Events of each copy. The counters of a copy also count the copies started later, since all are
/// children of this thread.
fn counts(copies: &mut [Copy]) -> Vec<Counts> {
    let all: Vec<Counts> = copies.iter_mut().map(|c| c.counted.counts()).collect();
    let behind = all.iter().skip(1).map(Some).chain([None]);
    let own = |(all, behind): (&Counts, Option<&Counts>)| {
        let later = |event: &Measured| behind.and_then(|counts| counts.get(event).copied());
        let less = |(event, count): (&Measured, &f64)| {
            let own = count - later(event).unwrap_or(0.0);
            (*event, own.max(0.0))
        };
        all.iter().map(less).collect()
    };
    all.iter().zip(behind).map(own).collect()
}

/// Kills all copies. Returns `failure`, or that a process does not end.
fn ended_all(household: &Household, copies: &[Copy], failure: Failure) -> Failure {
    let living = copies.iter().filter(|c| c.ended.is_none());
    let living: Vec<i32> = living.map(|copy| copy.pid).collect();
    match household.end(&living) {
        Ok(()) => failure,
        Err(pid) => anyhow!("{failure}; process {pid} was killed and does not exit").into(),
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
        .stderr(errors.door()?)
        .process_group(0);
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

/// Waits until all copies have ended. Fails if one failed while others ran, or a thread left its
/// side. Also fails on the timeout, when the user stops it, and if this process was stopped.
fn wait(
    copies: &mut [Copy],
    workloads: &[Workload],
    sides: &[Option<Side>],
    stopped: &dyn Fn() -> bool,
    energy: &mut Option<Energy>,
    watch: &mut Watch,
) -> Result<(), Failure> {
    let doors = copies.iter().map(|c| pidfd(c.pid));
    let doors = doors.collect::<Result<Vec<_>>>()?;
    let timeout = workloads.iter().map(|w| w.timeout).min();
    let timeout = timeout.context("a command is expected")?;
    let begin = copies[0].begin;
    let naps = [FIRST_LOOK].into_iter().chain(std::iter::repeat(LOOK));
    for nap in naps {
        let left = timeout.saturating_sub(begin.elapsed());
        let living: Vec<usize> = (0..copies.len())
            .filter(|at| copies[*at].ended.is_none())
            .collect();
        for at in wait_for_ends(&doors, &living, left.min(nap))? {
            let failed = !copies[at].reap()?.status.success();
            if failed && copies.iter().any(|c| c.ended.is_none()) {
                return Err(Failure::OfCopy(at, Box::new(copies[at].failure()?)));
            }
        }
        match watch.look() {
            // systemd sends SIGCONT after SIGTERM.
            Err(_) if stopped() => return Err(Failure::Stopped),
            looked => looked.map_err(Failure::Unwatched)?,
        }
        if copies.iter().all(|c| c.ended.is_some()) {
            return Ok(());
        }
        for (at, side) in sides.iter().enumerate() {
            side.as_ref()
                .map_or(Ok(()), Side::check)
                .map_err(|e| of_copy(at, copies.len(), e))?;
        }
        for copy in copies.iter() {
            copy.output.forget()?;
            copy.errors.forget()?;
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
    unreachable!("there is always another look")
}

fn pidfd(pid: i32) -> Result<OwnedFd> {
    let pid = Pid::from_raw(pid).context("no command is started")?;
    pidfd_open(pid, PidfdFlags::empty()).context("cannot watch the command")
}

/// Waits until one of `living` ends, at most for `within`. Returns those that ended.
fn wait_for_ends(doors: &[OwnedFd], living: &[usize], within: Duration) -> Result<Vec<usize>> {
    let poll = |at: &usize| libc::pollfd {
        fd: doors[*at].as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = living.iter().map(poll).collect();
    // Rounded up, since a wait of less than a millisecond would not wait.
    let ms = within.as_micros().div_ceil(1000) as i32;
    // SAFETY: descriptors that are alive, and their number.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, ms) };
    if ready < 0 && Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
        return Err(Error::last_os_error()).context("cannot wait for the command");
    }
    let both = living.iter().zip(&polled);
    let ended = both.filter(|(_, p)| ready > 0 && p.revents != 0);
    Ok(ended.map(|(at, _)| *at).collect())
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

/// The last line that is not blank, of stderr or else of stdout.
fn last_words(errors: &Output, output: &Output) -> String {
    let last = |output: &Output| {
        let text = output.tail().ok()?;
        let line = text.lines().rev().find(|l| !l.trim().is_empty())?;
        Some(format!("; its last output: {}", line.trim()))
    };
    last(errors).or_else(|| last(output)).unwrap_or_default()
}
