// SPDX-License-Identifier: GPL-2.0-only
//! Prints to stderr, whose reader may have gone, have stopped, or have no room. Printing neither
//! fails nor waits for it: the scheduler goes on. `eprintln!` panics where the reader has gone, so
//! clippy refuses it here.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{Result, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a pipe that poll() calls writable takes at once (pipe(7), PIPE_BUF).
const AT_ONCE: usize = 4096;
/// A reader that is slow gets this long.
const PATIENCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};
const NONE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Texts that were lost since the last one that was not.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Prints a text of whole lines, or nothing of it.
pub fn text(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let lost = LOST.load(Ordering::Relaxed);
    if lost > 0
        && print(
            &mut stderr,
            &format!("scx_roost: {lost} texts before were lost\n"),
        )
    {
        LOST.fetch_sub(lost, Ordering::Relaxed);
    }
    if !print(&mut stderr, text) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// Prints one line, as `eprintln!` does.
macro_rules! say {
    ($($words:tt)*) => { $crate::util::stderr::text(&(format!($($words)*) + "\n")) };
}
pub(crate) use say;

/// False: a part at least was not written.
fn print(out: &mut (impl Write + AsFd), text: &str) -> bool {
    // After a loss the reader has had its time.
    let patience = match LOST.load(Ordering::Relaxed) {
        0 => PATIENCE,
        _ => NONE,
    };
    let mut parts = text.as_bytes().chunks(AT_ONCE);
    parts.all(|part| takes(out, &patience) && out.write_all(part).is_ok())
}

fn takes(out: &impl AsFd, patience: &Timespec) -> bool {
    let mut fd = [PollFd::new(out, PollFlags::OUT)];
    poll(&mut fd, Some(patience)).is_ok() && fd[0].revents() == PollFlags::OUT
}

/// A writer for loggers, of which each call is a text. `LineWriter` makes that whole lines.
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        text(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, pipe};
    use std::time::Instant;

    #[test]
    fn a_reader_that_has_gone_or_stopped_holds_nobody_up() {
        let (mut reader, mut writer) = pipe().unwrap();
        assert!(print(&mut writer, "a\n"));
        let mut got = [0; 2];
        reader.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"a\n");

        let line = "x".repeat(AT_ONCE);
        let begin = Instant::now();
        let written = (0..1000).take_while(|_| print(&mut writer, &line)).count();
        assert!(written < 1000, "the pipe is never full");
        assert!(begin.elapsed().as_secs() < 10);

        drop(reader);
        assert!(!print(&mut writer, "b\n"));
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        assert!(!print(&mut full, "b\n"));
    }
}
