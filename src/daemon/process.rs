// SPDX-License-Identifier: GPL-2.0-only
//! Settings of the whole process, made before it has other threads. `run` makes none of them: a
//! process that embeds the scheduler decides for itself.

use anyhow::{Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Uses one heap for all threads. Each client of a socket has a thread, and glibc would give each
/// new thread a heap of its own and keep it. The process would grow as clients come and go (bounded
/// in tests/guest/observe.sh; see docs/explanation/userspace.md).
pub fn one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: only a number is passed. If it is refused, the process merely grows.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// The BPF half has about 100 maps and programs, each an open file; frequencies and idle periods
/// are several files for each CPU.
const FILES: u64 = 256;

/// Lets the process open as many files as it may: the usual limit of 1,024 is for programs that
/// use select(2).
/// Errors: that is too few.
pub fn open_files() -> Result<()> {
    let most = getrlimit(Resource::Nofile).maximum;
    // The soft limit may always be raised to the hard one.
    let _ = set(Resource::Nofile, most);
    let most = most.unwrap_or(u64::MAX);
    ensure!(
        most >= FILES,
        "the limit of open files is {most}, and the scheduler needs {FILES}: raise it (ulimit -n; \
         LimitNOFILE= of a unit)"
    );
    Ok(())
}

/// Lets threads raise themselves to nice level -20 without CAP_SYS_NICE, which this process gives
/// up. A load does so. If this is refused, a load on a busy machine takes longer.
pub fn may_be_urgent() {
    // The limit is 20 minus the nice level (getrlimit(2)).
    let _ = set(Resource::Nice, Some(40));
}

fn set(what: Resource, limit: Option<u64>) -> rustix::io::Result<()> {
    let (current, maximum) = (limit, limit);
    setrlimit(what, Rlimit { current, maximum })
}

/// Keeps khugepaged from making huge pages of this process's memory. khugepaged has nice level 19
/// and holds the mmap lock as it works. On a busy machine the process would wait for that lock for
/// seconds (seen: 7 s, beside 40 tasks on one CPU).
pub fn without_huge_pages() {
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
