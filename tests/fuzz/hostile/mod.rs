// SPDX-License-Identifier: GPL-2.0-only
//! Hostile clients of both sockets. Every answer is an error or right, memory and descriptors do
//! not grow, and a well-behaved client is served in time. ROOST_MESSAGES is the number of messages,
//! ROOST_SEED their seed.

mod messages;
mod served;

use crate::fake;
use messages::{Expected, message, right};
use scx_roost::util::rng::Rng;
use serde_json::Value;
use served::{Served, Socket};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BOTH: [Socket; 2] = [Socket::Control, Socket::Statistics];
/// The number of clients that are served at once (socket.rs).
const CLIENTS: usize = 32;
/// The longest wait of a well-behaved client, on a very busy machine.
const PATIENCE: Duration = Duration::from_secs(3);
const SECOND: Duration = Duration::from_secs(1);

fn from_environment(name: &str, default: u64) -> u64 {
    let number = |text: String| text.parse().expect("a number");
    std::env::var(name).map_or(default, number)
}

/// A client that sends one request at a time and waits for its answer.
struct Asker(BufReader<UnixStream>);

impl Asker {
    fn connect(path: &Path) -> std::io::Result<Asker> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        stream.set_write_timeout(Some(Duration::from_secs(20)))?;
        Ok(Asker(BufReader::new(stream)))
    }

    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Reads an answer and returns its errno. Errors: there is no answer.
    fn answer(&mut self, line: &mut Vec<u8>) -> std::io::Result<i64> {
        line.clear();
        self.0.read_until(b'\n', line)?;
        let text = line.strip_prefix(b"{\"errno\":");
        let digits = text.and_then(|text| text.split(|b| *b == b',').next());
        let number = digits.and_then(|d| std::str::from_utf8(d).ok()?.parse().ok());
        number.ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    fn ask(&mut self, request: &str) -> i64 {
        self.send(request.as_bytes()).expect("it takes a request");
        self.send(b"\n").expect("it takes a request");
        self.answer(&mut Vec::new()).expect("it answers")
    }
}

/// Sends `messages` messages, some of them together, and checks each answer. After a message that
/// may get a large answer it waits for the answers.
fn attack(path: &Path, socket: Socket, seed: u64, messages: u64) {
    let mut rng = Rng::new(seed);
    let mut asker = Asker::connect(path).expect("it is served");
    let (mut line, mut together, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for at in 0..messages {
        expected.push(message(&mut rng, socket, &mut line));
        together.extend_from_slice(&line);
        let large = *expected.last().expect("one") != Expected::Error;
        if large || together.len() > 16_000 || at + 1 == messages {
            let sent = asker.send(&together);
            let told = || format!("seed {seed}, message {at}: {}", together.escape_ascii());
            sent.unwrap_or_else(|e| panic!("{e}, {}", told()));
            for expected in expected.drain(..) {
                let errno = asker.answer(&mut line);
                let errno = errno.unwrap_or_else(|e| panic!("{e}, {}", told()));
                if rng.below(64) == 0 {
                    serde_json::from_slice::<Value>(&line).expect("an answer is JSON");
                }
                match expected {
                    Expected::Error => assert_ne!(errno, 0, "{}", told()),
                    Expected::Right => assert_eq!(errno, 0, "{}", told()),
                    Expected::Either => (),
                }
            }
            together.clear();
        }
    }
}

/// Runs `harm` while a client asks both sockets. Returns the longest wait of that client.
fn beside(served: &Served, harm: impl FnOnce()) -> Duration {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let asks = BOTH.map(|socket| {
            let mut asker = Asker::connect(&served.path(socket)).expect("it is served");
            let (over, mut rng) = (&over, Rng::new(0));
            scope.spawn(move || {
                let mut longest = Duration::ZERO;
                while !over.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    assert_eq!(asker.ask(right(&mut rng, socket)), 0);
                    longest = longest.max(begin.elapsed());
                    thread::sleep(Duration::from_millis(20));
                }
                longest
            })
        });
        let done = catch_unwind(AssertUnwindSafe(harm));
        over.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|e| resume_unwind(e));
        let waited = asks.map(|ask| ask.join().expect("it was served"));
        waited.into_iter().max().expect("two")
    })
}

/// The server closes the descriptors of clients that have gone, and still answers.
fn forgets(served: &Served, before: usize) {
    let end = Instant::now() + 10 * SECOND;
    while served.descriptors() > before && Instant::now() < end {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(served.descriptors(), before);
    for socket in BOTH {
        let mut rng = Rng::new(1);
        let mut asker = Asker::connect(&served.path(socket)).expect("it is served");
        assert_eq!(asker.ask(right(&mut rng, socket)), 0);
    }
}

/// The server printed no panic.
fn ends_well(served: Served) {
    let errors = served.end();
    assert!(!errors.contains("panicked"), "{errors}");
}

#[test]
fn hostile_messages_get_errors_and_cost_nothing() {
    let messages = from_environment("ROOST_MESSAGES", 100_000);
    let seed = from_environment("ROOST_SEED", 1);
    println!("ROOST_SEED={seed}");
    let served = Served::start();
    let before = served.descriptors();
    let each = |clients: u64, messages: u64| {
        thread::scope(|scope| {
            for (client, socket) in (0..clients).flat_map(|c| BOTH.map(|s| (c, s))) {
                let path = served.path(socket);
                let seed = seed + 2 * client + socket as u64;
                scope.spawn(move || attack(&path, socket, seed, messages));
            }
        });
    };
    each(2, messages / 50);
    let resident = served.resident_kb();
    let waited = beside(&served, || each(2, messages / 4));
    let grown = served.resident_kb().saturating_sub(resident);
    println!(
        "{messages} messages: {grown} KB more, well-behaved clients waited at most {waited:?}"
    );
    assert!(
        grown < 16_384,
        "{grown} KB more than after a fiftieth of it"
    );
    assert!(waited < PATIENCE, "well-behaved clients waited {waited:?}");
    forgets(&served, before);
    ends_well(served);
}

/// What a connection that stays open does.
#[derive(Clone, Copy, Debug)]
enum Holds {
    Idle,
    /// Sends a byte now and then, of a line that never ends.
    Slow,
    Half,
    /// Asks for large answers and reads none.
    Deaf,
}

fn held(served: &Served, at: usize) -> Option<(UnixStream, Holds)> {
    let socket = BOTH[at % 2];
    let holds = match [Holds::Idle, Holds::Slow, Holds::Half, Holds::Deaf][at / 2 % 4] {
        // Its answers are short: they fit into the kernel's buffer and do not block the server.
        Holds::Deaf if socket == Socket::Control => Holds::Idle,
        holds => holds,
    };
    let mut stream = UnixStream::connect(served.path(socket)).ok()?;
    stream
        .set_write_timeout(Some(Duration::from_millis(50)))
        .ok()?;
    let large = b"{\"req\":\"stats\",\"args\":{\"target\":\"cpus\"}}\n".repeat(64);
    let sent = match holds {
        Holds::Idle => Ok(()),
        Holds::Slow => stream.write_all(b"{"),
        Holds::Half => stream.write_all(b"{\"req\":\"ctl\",\"args\":{\"op\""),
        Holds::Deaf => stream.write_all(&large),
    };
    // A connection beyond the limit gets an error and is closed, maybe before it has sent anything.
    sent.is_ok().then_some((stream, holds))
}

fn is_closed(stream: &mut UnixStream) -> bool {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
    loop {
        match stream.read(&mut [0; 1 << 16]) {
            Ok(0) => return true,
            Ok(_) => (),
            Err(e) => return !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        }
    }
}

/// Raises this process's limit of open files to the maximum.
fn more_descriptors() {
    // SAFETY: a plain call about this process.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
    }
}

#[test]
fn a_thousand_slow_connections_disturb_no_other_client() {
    more_descriptors();
    let served = Served::start();
    let before = served.descriptors();
    let resident = served.resident_kb();
    let mut most = 0;
    let waited = beside(&served, || {
        let connect = |at: usize| held(&served, at);
        let mut all: Vec<(UnixStream, Holds)> = (0..1000).filter_map(connect).collect();
        assert!(
            served.descriptors() <= before + 8 * CLIENTS,
            "{}",
            served.descriptors()
        );
        // A client that sends slowly is dropped after five seconds. So is one that does not read,
        // after five seconds without progress: its first write then ends short, and the second one
        // fails.
        let end = Instant::now() + 12 * SECOND;
        while Instant::now() < end {
            most = most.max(served.resident_kb());
            for (stream, holds) in &mut all {
                if matches!(holds, Holds::Slow) {
                    let _ = stream.write_all(b" ");
                }
            }
            thread::sleep(SECOND / 4);
        }
        // On a busy machine the server's threads may come late to it.
        let end = Instant::now() + 10 * SECOND;
        for (stream, holds) in &mut all {
            let mut gone = is_closed(stream);
            while !gone && !matches!(holds, Holds::Idle) && Instant::now() < end {
                gone = is_closed(stream);
            }
            assert!(
                gone || matches!(holds, Holds::Idle),
                "{holds:?} is still served"
            );
        }
    });
    let grown = most.saturating_sub(resident);
    println!(
        "1000 connections: {grown} KB more at most, well-behaved clients waited at most {waited:?}"
    );
    assert!(grown < 262_144, "{grown} KB more");
    assert!(waited < PATIENCE, "well-behaved clients waited {waited:?}");
    forgets(&served, before);
    ends_well(served);
}

#[test]
fn a_client_that_leaves_at_once_delays_no_other() {
    let served = Served::start();
    for socket in BOTH {
        let path = served.path(socket);
        let mut all: Vec<Asker> = (0..CLIENTS)
            .map(|_| Asker::connect(&path).expect("it is served"))
            .collect();
        let mut rng = Rng::new(2);
        all.iter_mut()
            .for_each(|asker| assert_eq!(asker.ask(right(&mut rng, socket)), 0));
        let begin = Instant::now();
        (0..300).for_each(|_| drop(UnixStream::connect(&path)));
        let mut refused = Asker::connect(&path).expect("it gets an answer");
        let errno = refused.answer(&mut Vec::new()).expect("it gets an answer");
        assert_eq!(errno, i64::from(libc::EBUSY));
        assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    }
    ends_well(served);
}
