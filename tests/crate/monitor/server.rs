// SPDX-License-Identifier: GPL-2.0-only
//! The thread that asks the scheduler: it runs, goes away, is slow, or answers nonsense.

use super::*;
use scx_roost::clients::monitor::feed::{self, News};
use scx_roost::clients::monitor::state::Link;
use scx_roost::stopper;
use scx_roost::wire::stats::{client, server};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Longer than any step here takes.
const LONG: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(60);

#[test]
fn a_restart_of_the_scheduler_is_seen_and_survived() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stats");
    let (_stopper, stop) = stopper();
    let (news, _pace) = feed::start(&path, SOON, Instant::now(), stop).unwrap();
    let mut state = MonitorState::new(SOON);
    let mut until = |wanted: fn(&MonitorState) -> bool| {
        while !wanted(&state) {
            match news.recv_timeout(LONG).expect("news") {
                News::Connected => state.connected(),
                News::Disconnected(why) => state.disconnected(&why),
                News::Sample(sample) => state.sampled(*sample),
                News::Over(e) => panic!("{e:#}"),
            }
        }
        state.link.clone()
    };
    let waiting =
        |s: &MonitorState| matches!(s.link, Link::Waiting(ref why) if why != "connecting");
    let Link::Waiting(why) = until(waiting) else {
        panic!("no scheduler answers")
    };
    assert!(
        why.starts_with("no scheduler serves statistics at "),
        "{why}"
    );
    let first = server::launch(&path, None, source()).unwrap();
    until(|s| s.link == Link::Connected && s.rates.is_some());
    drop(first);
    until(waiting);
    let _second = server::launch(&path, None, source()).unwrap();
    until(|s| s.link == Link::Connected);
}

#[test]
fn a_path_that_cannot_be_a_socket_is_reported() {
    let (_stopper, stop) = stopper();
    let path = PathBuf::from("/x".repeat(100));
    let error = client::follow(&path, &stop, |_| (), |_| Ok(())).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("cannot read the statistics at /x/x")
            && text.ends_with("give the scheduler's --stats-path"),
        "{text}"
    );
}

/// Serves these answers, each on a connection of its own, and then no more.
fn answers(path: &Path, lines: Vec<Vec<u8>>) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for line in lines {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = String::new();
            BufReader::new(stream.try_clone().unwrap())
                .read_line(&mut request)
                .unwrap();
            // The reader may hang up at any time.
            let _ = stream.write_all(&line);
            kept.push(stream);
        }
        // Keeps the connections open for readers that still wait.
        loop {
            std::thread::park();
        }
    });
}

/// What is reported about a scheduler that answers like this.
fn said_of(lines: Vec<Vec<u8>>) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stats");
    let count = lines.len();
    answers(&path, lines);
    let (_stopper, stop) = stopper();
    let (news, _pace) = feed::start(&path, SOON, Instant::now(), stop).unwrap();
    let mut said = Vec::new();
    while said.len() < count {
        match news.recv_timeout(LONG).expect("news") {
            News::Disconnected(why) => said.push(why),
            other => panic!("{other:?}"),
        }
    }
    said
}

#[test]
fn nonsense_is_no_answer() {
    let ok = |resp: &str| format!("{{\"errno\":0,\"args\":{{\"resp\":{resp}}}}}\n").into_bytes();
    let said = said_of(vec![
        b"}{\xff\xfe\x00\n".to_vec(),
        b"{\"errno\":22,\"args\":{\"resp\":\"unknown target 'cpus'\"}}\n".to_vec(),
        ok("[]"),
        ok("{\"arms\":{\"x\":1}}"),
    ]);
    let expected = [
        "not in the format of scx_stats",
        "unknown target",
        "version",
        "version",
    ];
    for (said, expected) in said.iter().zip(expected) {
        assert!(
            said.contains("went away (") && said.contains(expected),
            "{said}"
        );
    }
}

#[test]
fn an_endless_answer_is_cut_off() {
    let said = said_of(vec![vec![b' '; (32 << 20) + 100_000]]);
    assert!(said[0].contains("a line of more than"), "{said:?}");
}

#[test]
fn a_scheduler_that_does_not_answer_is_given_up() {
    let begin = Instant::now();
    let said = said_of(vec![b"{\"errno\":".to_vec()]);
    assert!(said[0].contains("no answer within 5 s"), "{said:?}");
    assert!(begin.elapsed() < Duration::from_secs(10));
}
