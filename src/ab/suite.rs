// SPDX-License-Identifier: GPL-2.0-only
//! Workloads that are shipped: one for each wakeup pattern that placement can get wrong, and one
//! that does not depend on placement. Each does a fixed amount of work, so its time is its result.
//! It scales with the number of CPUs. `scx_roost ab --suite placement` compares on all of them.

use super::parameter::Set;
use super::threadripper::{self, Place};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::ffi::OsString;
use std::hint::black_box;
use std::io::{Error, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The subcommand that runs one of them.
pub const COMMAND: &str = "ab-workload";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// Ping-pong by one pair and by many, messages from many to many, forks, computing on half and
    /// on 31 % of the CPUs with a wakeup after each chunk, and a control
    Placement,
    /// The workloads of Roy v7 that are installed in this folder, with its commands; missing ones
    /// are listed
    #[value(name = "threadripper-003")]
    Threadripper,
}

/// A workload of a suite.
#[derive(Clone, Debug)]
pub struct Item {
    pub name: String,
    pub command: Vec<OsString>,
    /// The workload's own metric, as it would be typed; None: the default.
    pub metric: Option<String>,
    /// Parameters that its command was filled with.
    pub set: Vec<Set>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Pattern {
    /// Two tasks wake each other in turn
    PingPong,
    /// One such pair for every two cores
    Pairs,
    /// Groups of ten senders and ten receivers, like hackbench
    Messages,
    /// Short-lived children, one after the other
    ForkWait,
    /// Half as many tasks as CPUs compute for 1 to 5 ms each, and then notify one task
    ChunksHalf,
    /// The same with tasks for 31.25 % of the CPUs, as in Roy v7
    #[value(name = "chunks-31")]
    Chunks31,
    /// Every CPU computes, and no task wakes another; a difference here is not due to placement
    Flat,
}

impl Suite {
    /// `program`: path of scx_roost. The commands lack their steps until `set_steps` adds them.
    /// Fails if no workload can be run at `place`.
    pub fn items(self, program: &Path, place: &Place) -> Result<Vec<Item>> {
        let item = |pattern: &Pattern| Item {
            name: pattern.name(),
            command: [program.as_os_str().to_os_string()]
                .into_iter()
                .chain([COMMAND, &pattern.name()].map(OsString::from))
                .collect(),
            metric: None,
            set: Vec::new(),
        };
        match self {
            Suite::Placement => Ok(Pattern::value_variants().iter().map(item).collect()),
            Suite::Threadripper => threadripper::items(place),
        }
    }

    /// Adds the amount of work to a workload that needs it. `steps`: the result of `steps_of_ms`.
    pub fn set_steps(self, item: &mut Item, steps: &str) {
        match self {
            Suite::Placement => item.command.push(steps.into()),
            Suite::Threadripper => {}
        }
    }
}

impl Item {
    /// Its own result file, beside the typed one.
    pub fn result(&self, typed: &Path) -> PathBuf {
        let stem = typed.file_stem().unwrap_or_default();
        typed.with_file_name(format!("{}-{}.jsonl", stem.display(), self.name))
    }
}

impl Pattern {
    /// As it is typed.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or(String::new(), |v| v.get_name().to_string())
    }

    /// Does the work for a machine with this many CPUs. `part`: 1 is the full amount. `ms`: the
    /// result of `steps_of_ms`, the same in all runs.
    pub fn perform(self, cpus: usize, part: f64, ms: u64) -> Result<()> {
        may_open_many();
        let times = |n: f64| (n * part).ceil() as usize;
        match self {
            Pattern::PingPong => pairs(1, times(20_000.0)),
            Pattern::Pairs => pairs((cpus / 2).max(1), times(10_000.0)),
            Pattern::Messages => messages(cpus.div_ceil(4), times(200.0)),
            Pattern::ForkWait => forks(times(2_000.0)),
            Pattern::ChunksHalf => chunks((cpus / 2).max(1), times(100.0), ms),
            Pattern::Chunks31 => chunks(part_31(cpus), times(100.0), ms),
            Pattern::Flat => flat(cpus, times(200.0), ms),
        }
    }
}

/// 31.25 % of the CPUs, as in Roy v7: 20 of 64. At least one.
pub fn part_31(cpus: usize) -> usize {
    (cpus * 5).div_ceil(16)
}

/// Raises the soft limit of descriptors. With a few hundred CPUs the pipes exceed the usual 1024.
fn may_open_many() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it fails, creating a pipe will fail and report it.
    let _ = setrlimit(Resource::Nofile, limit);
}

fn join(threads: Vec<JoinHandle<Result<()>>>) -> Result<()> {
    for thread in threads {
        let ended = thread.join();
        ended.map_err(|_| anyhow::anyhow!("a thread panicked"))??;
    }
    Ok(())
}

/// Answers each byte with one.
fn answer(mut from: PipeReader, mut to: PipeWriter, times: usize) -> Result<()> {
    let mut byte = [0];
    for _ in 0..times {
        from.read_exact(&mut byte)?;
        to.write_all(&byte)?;
    }
    Ok(())
}

fn pairs(pairs: usize, times: usize) -> Result<()> {
    let mut threads = Vec::new();
    for _ in 0..pairs {
        let ((from, mut last), mut back) = (pipe()?, pipe()?);
        // The byte that goes back and forth.
        last.write_all(&[0])?;
        threads.push(thread::spawn(move || answer(from, back.1, times)));
        threads.push(thread::spawn(move || {
            let mut byte = [0];
            for at in 1..=times {
                back.0.read_exact(&mut byte)?;
                if at < times {
                    last.write_all(&byte)?;
                }
            }
            Ok(())
        }));
    }
    join(threads)
}

const GROUP: usize = 10;
const MESSAGE: [u8; 100] = [0; 100];

fn messages(groups: usize, times: usize) -> Result<()> {
    let mut threads = Vec::new();
    for _ in 0..groups {
        let mut doors = Vec::new();
        for _ in 0..GROUP {
            let (mut from, to) = pipe()?;
            doors.push(to);
            threads.push(thread::spawn(move || {
                let mut message = MESSAGE;
                for _ in 0..GROUP * times {
                    from.read_exact(&mut message)?;
                }
                Ok(())
            }));
        }
        let doors = Arc::new(doors);
        for _ in 0..GROUP {
            let doors = Arc::clone(&doors);
            threads.push(thread::spawn(move || {
                for _ in 0..times {
                    for mut door in doors.iter() {
                        door.write_all(&MESSAGE)?;
                    }
                }
                Ok(())
            }));
        }
    }
    join(threads)
}

/// Steps of a child, so that it runs for a while.
const CHILD_STEPS: u64 = 20_000;

fn steps(count: u64) -> u64 {
    (0..count).fold(1, |sum: u64, i| {
        black_box(sum.wrapping_mul(6364136223846793005).wrapping_add(i))
    })
}

fn forks(times: usize) -> Result<()> {
    for _ in 0..times {
        // SAFETY: this process has one thread; the child only computes and exits.
        let child = unsafe { libc::fork() };
        ensure!(child >= 0, "cannot fork: {}", Error::last_os_error());
        if child == 0 {
            black_box(steps(CHILD_STEPS));
            // SAFETY: a plain call.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a child of ours.
        let ended = unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        ensure!(ended == child, "cannot wait: {}", Error::last_os_error());
    }
    Ok(())
}

const TRIES: usize = 20;

/// Steps per millisecond on this machine, so that chunks last 1 to 5 ms everywhere. Counted once,
/// before any run: otherwise the scheduler would influence the amount of work. The best of several
/// tries, which was disturbed least.
pub fn steps_of_ms() -> u64 {
    let all = (0..TRIES).map(|_| {
        let (mut count, begin) = (0, Instant::now());
        while begin.elapsed() < Duration::from_millis(5) {
            black_box(steps(1000));
            count += 1000;
        }
        count / 5
    });
    all.max().unwrap_or(1)
}

fn chunks(tasks: usize, times: usize, ms: u64) -> Result<()> {
    let (mut from, to) = pipe()?;
    let to = Arc::new(to);
    let mut threads = Vec::new();
    for task in 0..tasks {
        let to = Arc::clone(&to);
        threads.push(thread::spawn(move || {
            for at in 0..times {
                // 1 to 5 ms, in a different order for each task.
                black_box(steps(ms * (1 + (task * 3 + at * 2) as u64 % 5)));
                to.as_ref().write_all(&[0])?;
            }
            Ok(())
        }));
    }
    drop(to);
    let mut received = Vec::new();
    from.read_to_end(&mut received).context("cannot listen")?;
    ensure!(received.len() == tasks * times, "some did not report");
    join(threads)
}

fn flat(cpus: usize, times: usize, ms: u64) -> Result<()> {
    let work = move || {
        black_box(steps(ms * times as u64));
        Ok(())
    };
    join((0..cpus).map(|_| thread::spawn(work)).collect())
}
