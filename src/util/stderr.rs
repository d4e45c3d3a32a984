// SPDX-License-Identifier: GPL-2.0-only
//! Prints to stderr, whose reader may have gone, have stopped, or have no room. Printing neither
//! fails nor waits for it: the scheduler goes on. `eprintln!` panics where the reader has gone, so
//! clippy refuses it (lib.rs).
//!
//! Nothing that is printed steers a terminal. If systemd's journal reads it, each line has a
//! priority: without one, a line that begins with a name could claim any.

use super::{escape, journal};
use log::Level;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Result, Write};
use std::os::fd::{AsFd, AsRawFd};
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
    OWN.get_or_init(|| own(&std::io::stderr()));
}

/// None: it is neither pipe nor terminal, or cannot be opened once more.
fn own(file: &(impl AsFd + IsTerminal)) -> Option<File> {
    let is_pipe = |mode| FileType::from_raw_mode(mode) == FileType::Fifo;
    let blocks = file.is_terminal() || fstat(file).is_ok_and(|stat| is_pipe(stat.st_mode));
    let mut options = File::options();
    let options = options
        .append(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    blocks.then(|| options.open(path).ok()).flatten()
}

/// Prints a text of whole lines. If a part is lost, the next text begins on a line of its own.
pub fn text(text: &str) {
    at(Level::Info, text);
}

/// Prints one line, whatever names are in it, with this priority in the journal.
pub fn line(level: Level, line: &str) {
    at(level, &(escape::line(line) + "\n"));
}

fn at(level: Level, text: &str) {
    put_out(&as_read(level, text, journal::reads_stderr()));
}

fn as_read(level: Level, text: &str, by_journal: bool) -> String {
    let text = escape::text(text);
    match by_journal {
        true => journal::lines(level, &text),
        false => text.into_owned(),
    }
}

/// Replaces the current line of a terminal.
pub fn replace_line(line: &str) {
    put_out(&format!("\r\x1b[K{}", escape::line(line)));
}

fn put_out(text: &str) {
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
    ($($words:tt)*) => { $crate::util::stderr::line(log::Level::Info, &format!($($words)*)) };
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
    use std::os::fd::FromRawFd;
    use std::ptr::{null, null_mut};
    use std::time::Instant;

    /// Its reader reads no more.
    fn is_filled_soon(out: &mut (impl Write + AsFd)) {
        let line = "x".repeat(AT_ONCE);
        let begin = Instant::now();
        let written = (0..1000).take_while(|_| print(out, &line)).count();
        assert!(written < 1000, "it is never full");
        assert!(begin.elapsed().as_secs() < 10);
    }

    #[test]
    fn a_name_in_a_dump_is_no_line_with_a_priority_of_its_own() {
        let dump = "x\x1b]0;p\x07\n<0>y\n";
        assert_eq!(as_read(Level::Info, dump, false), "x\\x1b]0;p\\x07\n<0>y\n");
        let read = as_read(Level::Warn, dump, true);
        assert_eq!(read, "<4>x\\x1b]0;p\\x07\n<4><0>y\n");
    }

    #[test]
    fn a_reader_that_has_gone_or_stopped_holds_nobody_up() {
        let (mut reader, mut writer) = pipe().unwrap();
        assert!(print(&mut writer, "a\n"));
        let mut got = [0; 2];
        reader.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"a\n");

        is_filled_soon(&mut writer);
        drop(reader);
        assert!(!print(&mut writer, "b\n"));
        let mut full = File::options().write(true).open("/dev/full").unwrap();
        assert!(!print(&mut full, "b\n"));
    }

    /// It stops the flow (Ctrl-S), or does not read.
    #[test]
    fn a_terminal_whose_reader_stops_holds_nobody_up() {
        let (mut reader, mut terminal) = (0, 0);
        // SAFETY: the two descriptors are new; the other pointers may be null.
        let [mut reader, terminal] = unsafe {
            let pair = (&raw mut reader, &raw mut terminal);
            assert_eq!(libc::openpty(pair.0, pair.1, null_mut(), null(), null()), 0);
            [reader, terminal].map(|fd| File::from_raw_fd(fd))
        };
        let mut own = own(&terminal).unwrap();
        assert!(print(&mut own, "a\n"));
        let mut got = [0; 3];
        reader.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"a\r\n");

        // SAFETY: a plain call on a descriptor that is alive.
        let flow = |what| assert_eq!(unsafe { libc::tcflow(terminal.as_raw_fd(), what) }, 0);
        flow(libc::TCOOFF);
        assert!(!print(&mut own, "b\n"));
        flow(libc::TCOON);
        assert!(print(&mut own, "c\n"));
        is_filled_soon(&mut own);
        drop(reader);
        assert!(!print(&mut own, "b\n"));
    }
}
