// SPDX-License-Identifier: GPL-2.0-only
//! Parallel runs, on as many threads as there are CPUs. The results do not depend on their order.

use anyhow::{Result, anyhow};
use std::io::{IsTerminal, Write, stderr};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The results of `run` for 0 to `jobs` - 1, in that order. stderr shows how many have ended.
/// Errors: the first error, in the same order.
pub fn all<T: Send>(jobs: usize, run: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let done: Vec<Mutex<Option<Result<T>>>> = (0..jobs).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = done.get(at) else {
                break;
            };
            *slot.lock().expect("no run panics") = Some(run(at));
            progress(ended.fetch_add(1, Ordering::Relaxed) + 1, jobs);
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

fn progress(done: usize, all: usize) {
    if stderr().is_terminal() {
        let end = if done == all { "\n" } else { "" };
        // A failure to show progress does not matter.
        let _ = write!(stderr(), "\r{done} of {all} runs{end}");
    }
}
