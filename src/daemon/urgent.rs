// SPDX-License-Identifier: GPL-2.0-only
//! A load runs at nice level -20. Most of it is the verifier, in the calling thread. Beside 40
//! other tasks it would get 1/41 of a CPU, and until it ends the requested scheduler does not run.

use log::debug;
use rustix::io;
use rustix::process::{getpriority_process, setpriority_process};

const MOST_URGENT: i32 = -20;

/// While it lives, the thread that made it has nice level -20, if the process may set that
/// (`process::may_be_urgent`). The thread then gets about 87/88 of a CPU beside a task of nice
/// level 0.
pub struct Urgent {
    /// The thread's own nice level; None: it could not be changed.
    before: Option<i32>,
}

impl Urgent {
    pub fn begin() -> Urgent {
        let before = nice().and_then(|own| set_nice(MOST_URGENT).map(|()| own));
        if let Err(e) = before {
            debug!("loads at the nice level that it has, cannot set {MOST_URGENT}: {e}");
        }
        Urgent {
            before: before.ok(),
        }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some(Err(e)) = self.before.map(set_nice) {
            debug!("cannot leave nice level {MOST_URGENT}: {e}");
        }
    }
}

/// Of this thread alone: to Linux, what setpriority(2) calls a process is a thread.
fn set_nice(level: i32) -> io::Result<()> {
    setpriority_process(None, level)
}

fn nice() -> io::Result<i32> {
    getpriority_process(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nice_level_of_a_thread_comes_back() {
        std::thread::spawn(|| {
            let own = nice().unwrap();
            let urgent = Urgent::begin();
            assert_eq!(nice().unwrap(), urgent.before.map_or(own, |_| MOST_URGENT));
            drop(urgent);
            assert_eq!(nice().unwrap(), own);
        })
        .join()
        .unwrap();
    }
}
