// SPDX-License-Identifier: GPL-2.0-only
//! Parallel runs, on as many threads as there are CPUs. The results do not depend on their order.

use anyhow::{Result, anyhow};
use log::Level;
use scx_roost::util::stderr::{line, replace_line, text};
use std::io::{IsTerminal, stderr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often a log is written to.
const LOGGED: Duration = Duration::from_secs(30);

/// The results of `run` for 0 to `jobs` - 1, in that order. stderr shows how many have ended: a
/// terminal at once, anything else from time to time.
/// Errors: the first error, in the same order.
pub fn all<T: Send>(jobs: usize, run: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let logged = Mutex::new(Instant::now());
    let done: Vec<Mutex<Option<Result<T>>>> = (0..jobs).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = done.get(at) else {
                break;
            };
            *slot.lock().expect("no run panics") = Some(run(at));
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            if stderr().is_terminal() {
                show(ended, jobs);
            } else if let Ok(mut logged) = logged.lock()
                && logged.elapsed() >= LOGGED
            {
                *logged = Instant::now();
                line(Level::Info, &format!("{ended} of {jobs} runs"));
            }
        }
    };
    let threads = thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .min(jobs);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let taken = |slot: Mutex<Option<Result<T>>>| {
        let result = slot.into_inner().ok().flatten();
        result.unwrap_or_else(|| Err(anyhow!("a run did not end: report this with the command")))
    };
    done.into_iter().map(taken).collect()
}

fn show(ended: usize, all: usize) {
    replace_line(&format!("{ended} of {all} runs"));
    if ended == all {
        text("\n");
    }
}
