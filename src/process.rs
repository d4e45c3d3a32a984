// SPDX-License-Identifier: GPL-2.0-only
//! What the program sets for its whole process, before it has other threads. `run` does none of
//! this: a process that embeds it decides for itself.

use crate::privileges::Capabilities;
use anyhow::{Context, Result};
use std::io::Error;

/// One heap for all threads. Each client of a socket has a thread, and glibc would give each new
/// thread a heap of its own and keep it: the process would grow with clients that come and go
/// (tests/guest/observe.sh has a bound; docs/userspace.md).
pub fn one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: a number alone. Where it is refused, the process only grows.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Locks all memory that the process has and will have. Pages are locked as they come, so that the
/// stacks of threads are not filled for it. Returns the capability that later memory needs, if any.
pub fn lock_memory() -> Result<Capabilities> {
    let unlimited = raise_memlock_limit();
    // SAFETY: a plain call.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) } < 0 {
        return Err(Error::last_os_error()).context(
            "--lock-memory is refused: root, CAP_IPC_LOCK or a higher limit of locked memory (ulimit -l) is needed",
        );
    }
    Ok(match unlimited {
        true => Capabilities::default(),
        false => Capabilities::IPC_LOCK,
    })
}

/// Threads may raise themselves to nice level -20 without CAP_SYS_NICE, which this process gives up:
/// a load does so. Where this is refused, a load on a busy machine takes longer.
pub fn may_be_urgent() {
    // The limit counts from nice level 20 down (getrlimit(2)).
    let limit = libc::rlimit {
        rlim_cur: 40,
        rlim_max: 40,
    };
    // SAFETY: a call with a limit that is alive.
    unsafe { libc::setrlimit(libc::RLIMIT_NICE, &limit) };
}

/// No thread of the kernel makes huge pages of this process's memory. khugepaged has nice level 19,
/// and holds the lock of the memory meanwhile: on a busy machine the process would stand still for
/// seconds (seen: 7 s, beside 40 tasks on one CPU).
pub fn without_huge_pages() {
    // SAFETY: a call without pointers.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
}

/// To none where the process may, and otherwise to the hard limit: it counts for memory that comes
/// later, when the process has no CAP_IPC_LOCK any more. True: there is none.
fn raise_memlock_limit() -> bool {
    let all = libc::RLIM_INFINITY;
    let mut limit = libc::rlimit {
        rlim_cur: all,
        rlim_max: all,
    };
    // SAFETY: each call has a limit that is alive.
    unsafe {
        if libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) == 0 {
            return true;
        }
        if libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) < 0 {
            return false;
        }
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_max == all
    }
}
