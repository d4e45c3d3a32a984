// SPDX-License-Identifier: GPL-2.0-only
//! One run of the command: started, timed, measured, and what went wrong told. Its output goes to memory, so that nobody has to read it
//! meanwhile. What it leaves behind comes to us (subreaper) and is found.

mod apart;
mod energy;
mod halt;
mod leftover;
mod perf;

pub use energy::Energy;
pub use halt::outlast_ctrl_z;
pub use leftover::{Leftover, become_subreaper, reaped_within};
pub use perf::Migrations;

use super::cgroup::Cgroup;
use super::cpus::Affinity;
use super::metric::Measured;
use crate::user::User;
use anyhow::{Context, Result, anyhow, bail};
use apart::Side;
use halt::Watch;
use leftover::Household;
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
    /// It is kept to these; none: all that we may use.
    pub cpus: Vec<u16>,
    pub powercap: PathBuf,
    /// Whose it is; None: ours.
    pub user: Option<User>,
}

/// What came of a run that went well.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub values: BTreeMap<Measured, f64>,
    /// Standard output, its end.
    pub output: String,
    /// Standard error, its end.
    pub errors: String,
}

impl Sample {
    /// CPU time of the command and of all that it waited for.
    pub fn cpu_s(&self) -> f64 {
        let of = [Measured::User, Measured::System];
        of.iter().filter_map(|which| self.values.get(which)).sum()
    }
}

/// Why a run cannot be counted.
#[derive(Debug)]
pub enum Failure {
    /// The program that was typed.
    NotStarted(OsString, Error),
    /// With its last words.
    Failed(ExitStatus, String),
    TimedOut(Duration),
    LeftBehind(Vec<Leftover>),
    /// A thread of this name left the CPUs that its copy is kept to.
    Strayed {
        name: String,
        cpus: String,
    },
    /// It ended well, and a number that was asked for is not there.
    NoValue(anyhow::Error),
    /// This process was away, and saw late when it ended.
    Unwatched(anyhow::Error),
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
            Failure::NotStarted(program, e) => {
                let program = program.to_string_lossy();
                write!(f, "the command '{program}' cannot be run: {e}")?;
                match program.contains(char::is_whitespace) {
                    true => write!(
                        f,
                        "; that is one word: quote each by itself, or write sh -c '{program}'"
                    ),
                    false => Ok(()),
                }
            }
            Failure::Strayed { name, cpus } => write!(
                f,
                "{name}, of a copy that is kept to CPUs {cpus}, may run on others: a command that chooses its CPUs cannot be run with --concurrent"
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
                    "the command ended and left processes behind, which were ended: {}; give a command that waits for all it starts",
                    each.join(", ")
                )
            }
            Failure::Stopped => write!(f, "stopped"),
            Failure::NoValue(e) | Failure::Unwatched(e) | Failure::Other(e) => write!(f, "{e:#}"),
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
    let alone = std::slice::from_ref(workload);
    let one = run_at_once(alone, cgroup, &|| None, stopped, started)?;
    Ok(one.into_iter().next().context("one was run")?)
}

/// The same of several, a sample each. Where one fails all are ended. Energy is told of one that runs alone. `helper`: a child of ours that
/// may be another one from one moment to the next.
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
    let migrations = migrations(&mut copies);
    let mut samples = Vec::new();
    for (copy, migrations) in copies.into_iter().zip(migrations) {
        samples.push(copy.sample(migrations)?);
    }
    if let ([sample], Some(mut energy)) = (&mut samples[..], energy) {
        sample.values.insert(Measured::Energy, energy.poll());
    }
    Ok(samples)
}

/// A command that was started.
struct Copy {
    pid: i32,
    begin: Instant,
    output: File,
    errors: File,
    /// Of it, and of what was started behind it.
    migrations: Option<Migrations>,
    ended: Option<Ended>,
}

struct Ended {
    wall: Duration,
    status: ExitStatus,
    usage: libc::rusage,
}

impl Copy {
    fn start(workload: &Workload, cgroup: Option<&Cgroup>) -> Result<Copy, Failure> {
        let (output, errors) = (memory(c"output")?, memory(c"errors")?);
        let migrations = Migrations::of_children();
        let begin = Instant::now();
        Ok(Copy {
            pid: start(workload, cgroup, &output, &errors)?,
            begin,
            output,
            errors,
            migrations,
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

    /// That it failed.
    fn failure(&self) -> Result<Failure> {
        let ended = self.ended.as_ref().context("it has ended")?;
        let words = last_words(&self.errors, &self.output);
        Ok(Failure::Failed(ended.status, words))
    }

    fn sample(self, migrations: Option<u64>) -> Result<Sample, Failure> {
        let ended = self.ended.as_ref().context("it has ended")?;
        if !ended.status.success() {
            return Err(self.failure()?);
        }
        let mut values = of_usage(&ended.usage);
        values.insert(Measured::Wall, ended.wall.as_secs_f64());
        values.extend(migrations.map(|count| (Measured::Migrations, count as f64)));
        Ok(Sample {
            values,
            output: tail(&self.output)?,
            errors: tail(&self.errors)?,
        })
    }
}

/// Of copies that run at once. Empty: there is one, or they have no cgroup.
fn sides(workloads: &[Workload], cgroup: Option<&Cgroup>) -> Result<Vec<Option<Side>>> {
    let each = workloads.iter().enumerate();
    match cgroup.filter(|_| workloads.len() > 1) {
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

/// Of each copy. What was started first counts what was started behind it, too: all are children of this thread.
fn migrations(copies: &mut [Copy]) -> Vec<Option<u64>> {
    let mut counts: Vec<Option<u64>> = copies
        .iter_mut()
        .map(|copy| copy.migrations.as_mut()?.count())
        .collect();
    for at in 1..counts.len() {
        counts[at - 1] = counts[at - 1]
            .zip(counts[at])
            .map(|(both, behind)| both.saturating_sub(behind));
    }
    counts
}

/// Why it was ended, or that it was not.
fn ended_all(household: &Household, copies: &[Copy], failure: Failure) -> Failure {
    let living = copies.iter().filter(|c| c.ended.is_none());
    let living: Vec<i32> = living.map(|copy| copy.pid).collect();
    match household.end(&living) {
        Ok(()) => failure,
        Err(pid) => anyhow!("{failure}; process {pid} was killed and does not end").into(),
    }
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
    if let Some(user) = &workload.user {
        user.takes(&mut command);
    }
    if !workload.cpus.is_empty() {
        let cpus = Affinity::new(&workload.cpus);
        // SAFETY: what is called between fork and exec is one system call on memory that the closure owns.
        unsafe { command.pre_exec(move || cpus.take()) };
    }
    let child = command
        .spawn()
        .map_err(|e| Failure::NotStarted(program.clone(), e))?;
    Ok(child.id() as i32)
}

/// Until all have ended, one has failed before others ended, or they may no longer go on. Errors: this process was stopped meanwhile, too.
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
    loop {
        let left = timeout.saturating_sub(begin.elapsed());
        let living: Vec<usize> = (0..copies.len())
            .filter(|at| copies[*at].ended.is_none())
            .collect();
        for at in ends(&doors, &living, left.min(LOOK))? {
            let failed = !copies[at].reap()?.status.success();
            if failed && copies.iter().any(|c| c.ended.is_none()) {
                return Err(copies[at].failure()?);
            }
        }
        match watch.look() {
            // systemd sends SIGCONT behind SIGTERM.
            Err(_) if stopped() => return Err(Failure::Stopped),
            looked => looked.map_err(Failure::Unwatched)?,
        }
        if copies.iter().all(|c| c.ended.is_some()) {
            return Ok(());
        }
        sides.iter().flatten().try_for_each(Side::check)?;
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

/// Those of `living` that ended within that time, which is over as soon as one does.
fn ends(doors: &[OwnedFd], living: &[usize], within: Duration) -> Result<Vec<usize>> {
    let poll = |at: &usize| libc::pollfd {
        fd: doors[*at].as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = living.iter().map(poll).collect();
    // Up, or a wait of less than a millisecond would be none.
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

fn tail(mut file: &File) -> Result<String> {
    let mut bytes = Vec::new();
    let begin = file.metadata()?.len().saturating_sub(OUTPUT_MAX);
    file.seek(SeekFrom::Start(begin))?;
    file.take(OUTPUT_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last line that says something, of the errors or else of the output.
fn last_words(errors: &File, output: &File) -> String {
    let last = |file: &File| {
        let text = tail(file).ok()?;
        let line = text.lines().rev().find(|l| !l.trim().is_empty())?;
        Some(format!(", and said last: {}", line.trim()))
    };
    last(errors).or_else(|| last(output)).unwrap_or_default()
}
