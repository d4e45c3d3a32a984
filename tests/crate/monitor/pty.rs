// SPDX-License-Identifier: GPL-2.0-only
//! The binary on a pseudo terminal: it takes over the terminal, and restores it however it ends.

use super::*;
use scx_roost::wire::socket::Server;
use scx_roost::wire::stats::server;
use scx_roost::wire::stats::source::{Counted, Counting, Running};
use scx_roost::wire::stats::{ArmCounts, Counters};
use std::fs::File;
use std::io::{Read, Write};
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tempfile::TempDir;

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
const LONG: Duration = Duration::from_secs(20);

/// A scheduler that has counted nothing yet.
struct Fake;

impl Counted for Fake {
    fn read(&self, _slot: usize) -> ArmCounts {
        ArmCounts::default()
    }

    fn read_cpu(&self, _cpu: usize) -> Counters {
        [0; NR_STATS]
    }
}

fn serve(dir: &TempDir) -> (Server, Counting) {
    let source = source();
    let sample = EIGHT.sample(1);
    let cpus = sample.cpus.cpus.into_iter();
    source.set_cpus(
        cpus.map(|(cpu, m)| (cpu as usize, m.gauges)).collect(),
        None,
    );
    let counting = source.attach(Box::new(Fake), Running::default());
    let server = server::launch(&dir.path().join("stats"), None, source).unwrap();
    (server, counting)
}

struct Pty {
    master: File,
    child: Child,
    before: libc::termios,
    seen: Arc<Mutex<String>>,
}

/// What a terminal shows after these bytes: text, at the positions of the cursor.
fn on_screen(seen: &str) -> String {
    let mut lines = vec![vec![' '; 200]; 60];
    let (mut y, mut x) = (0, 0);
    let mut rest = seen.chars();
    while let Some(c) = rest.next() {
        if c != '\x1b' {
            if !c.is_control() && y < lines.len() && x < lines[y].len() {
                lines[y][x] = c;
                x += 1;
            }
            continue;
        }
        rest.next();
        let mut sequence = String::new();
        for c in rest.by_ref() {
            sequence.push(c);
            if c.is_ascii_alphabetic() {
                break;
            }
        }
        match sequence.pop() {
            Some('H') => {
                let place = sequence.split_once(';').unwrap_or(("1", "1"));
                let number = |text: &str| text.parse().map_or(0, |n: usize| n.max(1) - 1);
                (y, x) = (number(place.0), number(place.1));
            }
            Some('J') => lines.iter_mut().for_each(|line| line.fill(' ')),
            _ => (),
        }
    }
    let lines = lines.iter().map(String::from_iter);
    lines
        .map(|line: String| line.trim_end().to_string() + "\n")
        .collect()
}

fn modes(fd: &impl AsRawFd) -> libc::termios {
    // SAFETY: the kernel writes the modes.
    unsafe {
        let mut modes = zeroed();
        assert_eq!(libc::tcgetattr(fd.as_raw_fd(), &mut modes), 0);
        modes
    }
}

fn size(columns: u16, lines: u16) -> libc::winsize {
    libc::winsize {
        ws_row: lines,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Ends the child when a test fails.
impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pty {
    fn start(dir: &TempDir, env: &[(&str, &str)]) -> Pty {
        let (mut master, mut slave) = (-1, -1);
        // SAFETY: two descriptors are written, and are ours.
        let (master, slave) = unsafe {
            let size = size(100, 30);
            let none = std::ptr::null_mut();
            let rc = libc::openpty(&mut master, &mut slave, none, none.cast(), &size);
            assert_eq!(rc, 0, "no pseudo terminal");
            // Otherwise the child would hold its own terminal open, and would not see it close.
            for fd in [master, slave] {
                assert_eq!(libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC), 0);
            }
            (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
        };
        let before = modes(&master);
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
        command.args(["monitor", "--interval", "0.1", "--stats-path"]);
        command.arg(dir.path().join("stats"));
        command
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8");
        command.envs(env.iter().copied());
        command.stdin(stdio()).stdout(stdio()).stderr(stdio());
        // SAFETY: plain system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        let seen = Arc::new(Mutex::new(String::new()));
        let (mut reader, sink) = (master.try_clone().unwrap(), seen.clone());
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut chunk) {
                let text = String::from_utf8_lossy(&chunk[..n]);
                sink.lock().unwrap().push_str(&text);
            }
        });
        Pty {
            master,
            child,
            before,
            seen,
        }
    }

    fn seen(&self) -> String {
        self.seen.lock().unwrap().clone()
    }

    fn wait_for(&self, text: &str) {
        self.wait_until(text, |seen| {
            seen.contains(text) || on_screen(seen).contains(text)
        });
    }

    fn wait_until(&self, text: &str, there: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        while !there(&self.seen()) {
            assert!(
                begin.elapsed() < LONG,
                "no {text:?} in\n{}",
                on_screen(&self.seen())
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn resize(&self, columns: u16, lines: u16) {
        // SAFETY: the kernel reads a size.
        unsafe {
            libc::ioctl(
                self.master.as_raw_fd(),
                libc::TIOCSWINSZ,
                &size(columns, lines),
            )
        };
    }

    fn type_keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    fn signal(&self, signal: i32) {
        // SAFETY: a child of ours that has not been waited for yet.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Waits until it ends, and checks that the terminal is as before. Returns the exit code.
    fn ended(mut self) -> Option<i32> {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if begin.elapsed() > LONG {
                self.child.kill().unwrap();
                panic!("it does not end: {:?}", self.seen());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        self.wait_for(LEAVE);
        let seen = self.seen();
        assert!(seen.rfind(LEAVE) > seen.rfind(ENTER), "{seen:?}");
        assert!(
            seen.rfind("\x1b[?25h") > seen.rfind("\x1b[?25l"),
            "no cursor: {seen:?}"
        );
        let now = modes(&self.master);
        assert_eq!(
            (now.c_lflag, now.c_iflag),
            (self.before.c_lflag, self.before.c_iflag)
        );
        status.code()
    }
}

#[test]
fn q_ends_it_and_the_terminal_is_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let _server = serve(&dir);
    let mut pty = Pty::start(&dir, &[]);
    for text in [ENTER, "8 CPUs", "1 Overview", "busy"] {
        pty.wait_for(text);
    }
    pty.type_keys("2");
    for text in ["0▁  0 4▁  0  2.2", "its GHz"] {
        pty.wait_for(text);
    }
    assert!(pty.seen().contains("\x1b[38;5;"), "it has colours");
    let raw = modes(&pty.master);
    assert_eq!(raw.c_lflag & (libc::ICANON | libc::ECHO | libc::ISIG), 0);
    pty.type_keys("3z");
    pty.wait_for("wake_affine");
    pty.resize(30, 12);
    pty.type_keys("4");
    pty.wait_for("Arms  4/4");
    pty.type_keys("q");
    assert_eq!(pty.ended(), Some(0));
}

/// The key and the new size come in one wakeup of the thread that reads them.
#[test]
fn no_key_is_lost_while_the_size_changes() {
    let dir = tempfile::tempdir().unwrap();
    let _server = serve(&dir);
    let mut pty = Pty::start(&dir, &[]);
    pty.wait_for("1 Overview");
    for n in 0..200 {
        let (key, view, lines) = [("3", "Rates  3/4", 12), ("2", "Machine  2/4", 13)][n % 2];
        pty.seen.lock().unwrap().clear();
        pty.resize(30, lines);
        pty.type_keys(key);
        pty.wait_until(view, |seen| on_screen(seen).contains(view));
    }
    pty.type_keys("q");
    assert_eq!(pty.ended(), Some(0));
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let _server = serve(&dir);
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        let pty = Pty::start(&dir, &[("NO_COLOR", "1")]);
        pty.wait_for("1 Overview");
        let seen = pty.seen();
        assert!(!seen.contains("\x1b[38;5;"), "no colours: {seen:?}");
        pty.signal(signal);
        assert_eq!(pty.ended(), Some(0));
    }
}

#[test]
fn control_c_ends_it_while_no_scheduler_answers() {
    let dir = tempfile::tempdir().unwrap();
    let mut pty = Pty::start(&dir, &[]);
    pty.wait_for("no scheduler serves");
    pty.type_keys("\x03");
    assert_eq!(pty.ended(), Some(0));
}

#[test]
fn an_error_is_printed_on_the_terminal_that_was() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("stats"), "").unwrap();
    let pty = Pty::start(&dir, &[]);
    pty.wait_for("exists and is not a socket");
    let seen = pty.seen();
    assert!(
        seen.find(LEAVE) < seen.find("exists and is not a socket"),
        "{seen:?}"
    );
    assert_eq!(pty.ended(), Some(1));
}

/// If stdout is no terminal, or with --json.
#[test]
fn without_a_terminal_there_are_lines() {
    let dir = tempfile::tempdir().unwrap();
    let _server = serve(&dir);
    for (args, expected) in [(&[][..], "scx_roost "), (&["--json"], "{\"time_s\":")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_scx_roost"));
        command.args(["monitor", "--interval", "0.1", "--stats-path"]);
        command.arg(dir.path().join("stats")).args(args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        // SAFETY: a plain system call between fork and exec. The alarm ends a child that prints no
        // line.
        unsafe {
            command.pre_exec(|| {
                libc::alarm(LONG.as_secs() as u32);
                Ok(())
            });
        }
        let mut child = command.spawn().unwrap();
        let mut begin = [0; 10];
        let out = child.stdout.as_mut().unwrap();
        out.read_exact(&mut begin[..expected.len()]).unwrap();
        // SAFETY: a child of ours that has not been waited for yet.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        let rest = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
        assert!(!rest.contains('\x1b'), "{rest:?}");
        assert_eq!(String::from_utf8_lossy(&begin[..expected.len()]), expected);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}
