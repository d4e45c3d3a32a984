// SPDX-License-Identifier: GPL-2.0-only
//! Prints to stderr, whose reader may have gone, have stopped, or have no room. Printing neither
//! fails nor waits for it: the scheduler goes on. `eprintln!` panics where the reader has gone, so
//! clippy refuses it (lib.rs).

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Result, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a socket that poll() calls writable takes at once; no more is asked of others.
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

/// A pipe or terminal, opened once more, so that writes do not block. The flag O_NONBLOCK of
/// stderr itself is shared with other processes, such as the shell.
static OWN: OnceLock<Option<File>> = OnceLock::new();
/// Texts that were lost since the last one that was not.
static LOST: AtomicU64 = AtomicU64::new(0);

/// To be called before privileges are dropped: a terminal may belong to another user.
pub fn open() {
    OWN.get_or_init(|| {
        let stderr = std::io::stderr();
        let is_pipe = |mode| FileType::from_raw_mode(mode) == FileType::Fifo;
        let blocks = stderr.is_terminal() || fstat(&stderr).is_ok_and(|stat| is_pipe(stat.st_mode));
        let mut options = File::options();
        let options = options
            .append(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        blocks
            .then(|| options.open("/proc/self/fd/2").ok())
            .flatten()
    });
}

/// Prints a text of whole lines. If a part is lost, the next text begins on a line of its own.
pub fn text(text: &str) {
    open();
    let mut stderr = std::io::stderr().lock();
    match OWN.get().and_then(Option::as_ref) {
        Some(mut own) => tell(&mut own, text),
        None => tell(&mut stderr, text),
    }
}

fn tell(out: &mut (impl Write + AsFd), text: &str) {
    let lost = LOST.load(Ordering::Relaxed);
    let said = lost == 0
        || print(
            out,
            &format!("\nscx_roost: {lost} texts before were lost\n"),
        );
    if !said {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    LOST.fetch_sub(lost, Ordering::Relaxed);
    if !print(out, text) {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// False: a part at least was not written.
fn print(out: &mut (impl Write + AsFd), text: &str) -> bool {
    text.as_bytes().chunks(AT_ONCE).all(|part| put(out, part))
}

fn put(out: &mut (impl Write + AsFd), mut part: &[u8]) -> bool {
    while !part.is_empty() {
        // After a loss the reader has had its time.
        let patience = match LOST.load(Ordering::Relaxed) {
            0 => PATIENCE,
            _ => NONE,
        };
        match takes(out, &patience).then(|| out.write(part)) {
            Some(Ok(taken)) if taken > 0 => part = &part[taken..],
            Some(Err(e)) if e.kind() == ErrorKind::Interrupted => {}
            _ => return false,
        }
    }
    true
}

fn takes(out: &impl AsFd, patience: &Timespec) -> bool {
    let mut fd = [PollFd::new(out, PollFlags::OUT)];
    loop {
        match poll(&mut fd, Some(patience)) {
            Err(rustix::io::Errno::INTR) => {}
            done => return done.is_ok() && fd[0].revents() == PollFlags::OUT,
        }
    }
}

/// Prints one line, as `eprintln!` does.
macro_rules! say {
    ($($words:tt)*) => { $crate::util::stderr::text(&(format!($($words)*) + "\n")) };
}
pub(crate) use say;

/// A writer for loggers, of which each call is a text.
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
