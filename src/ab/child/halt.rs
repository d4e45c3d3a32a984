// SPDX-License-Identifier: GPL-2.0-only
//! Detects that this process was stopped while a command ran: it then noticed the end of the
//! command too late. Ctrl-Z would stop us and not the command, which has its own process group, so
//! we ignore it. SIGSTOP cannot be ignored, but is detected afterwards.

use anyhow::{Result, ensure};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest time between two looks, which are 250 ms apart. A process that is only kept from a CPU
/// returns sooner.
const LATE: Duration = Duration::from_secs(5);

static CONTINUED: AtomicU32 = AtomicU32::new(0);

extern "C" fn stays(_: libc::c_int) {}

extern "C" fn continues(_: libc::c_int) {
    CONTINUED.fetch_add(1, Ordering::Relaxed);
}

/// From now on Ctrl-Z has no effect.
pub fn outlast_ctrl_z() {
    static ONCE: Once = Once::new();
    // Handlers instead of SIG_IGN, which our children would inherit.
    let handlers: [(libc::c_int, extern "C" fn(libc::c_int)); 2] =
        [(libc::SIGTSTP, stays), (libc::SIGCONT, continues)];
    ONCE.call_once(|| {
        for (signal, handler) in handlers {
            // SAFETY: all zeroes is a valid value, and it is alive. The handlers are
            // async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = handler as *const () as libc::sighandler_t;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(signal, &action, std::ptr::null_mut());
            }
        }
    });
}

/// Checks between two looks that this process was not stopped.
pub struct Watch {
    continued: u32,
    last: Instant,
}

impl Watch {
    pub fn begin() -> Watch {
        outlast_ctrl_z();
        Watch {
            continued: CONTINUED.load(Ordering::Relaxed),
            last: Instant::now(),
        }
    }

    /// Call it at each look. Fails if this process was stopped since the last one.
    pub fn look(&mut self) -> Result<()> {
        self.look_after(self.last.elapsed())?;
        self.last = Instant::now();
        Ok(())
    }

    fn look_after(&self, time: Duration) -> Result<()> {
        let lost = "the end time of the command is unknown";
        ensure!(
            CONTINUED.load(Ordering::Relaxed) == self.continued,
            "this process was continued (SIGCONT) while the command ran, so it may have been stopped: {lost}"
        );
        ensure!(
            time < LATE,
            "this process did not run for {:.0} s while the command ran: {lost}",
            time.as_secs_f64()
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_return_counts_as_a_pause() {
        let watch = Watch::begin();
        assert!(watch.look_after(Duration::from_millis(4900)).is_ok());
        let error = watch.look_after(Duration::from_secs(7)).unwrap_err();
        let begin = "this process did not run for 7 s while the command ran";
        assert!(error.to_string().starts_with(begin), "{error}");
    }
}
