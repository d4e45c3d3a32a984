// SPDX-License-Identifier: GPL-2.0-only
//! What comes over the socket.

use super::*;
use scx_roost::policy::features::bits;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, Instant};

#[test]
fn only_the_owner_may_connect() {
    let served = serve();
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(served.path()), 0o600);
    let gid = unsafe { libc::getegid() };
    let at = served.dir.path().join("shared");
    let _server = served.control.launch(&at, Some(gid)).unwrap();
    assert_eq!(std::fs::metadata(&at).unwrap().gid(), gid);
    assert_eq!(mode(at), 0o660);
}

#[test]
fn a_change_is_live_when_it_is_answered() {
    let served = serve();
    let stream = UnixStream::connect(served.path()).unwrap();
    let answers = raw(&stream, &[&set("default", r#""disable":["sync_local"]"#)]);
    assert_eq!(answers[0]["errno"], 0);
    assert_eq!(answers[0]["args"]["resp"]["generation"], 1);
    assert_eq!(served.features(0) & bits::sync_local.0, 0);
    assert!(
        !served.source.totals().arms["default"]
            .features
            .contains("sync_local")
    );
}

#[test]
fn requests_that_arrive_together_are_published_together_and_refused_apart() {
    let served = serve();
    let stream = UnixStream::connect(served.path()).unwrap();
    let off = set("default", r#""disable":["sync_local"]"#);
    let bad = set("default", r#""disable":["sis_util"],"set":{"slice-us":5}"#);
    let less = set("default", r#""disable":["wide_idle"]"#);
    let answers = raw(&stream, &[&off, &bad, &less]);
    let errnos: Vec<i64> = answers
        .iter()
        .map(|a| a["errno"].as_i64().unwrap())
        .collect();
    assert_eq!(errnos, [0, i64::from(libc::EINVAL), 0]);
    assert_eq!(served.publications(), 1);
    let features = served.features(0);
    assert_eq!(features & bits::sync_local.with(bits::wide_idle).0, 0);
    assert_ne!(features & bits::sis_util.0, 0);
}

/// All together could exceed the memory.
#[test]
fn of_lists_that_are_asked_for_together_one_is_made_at_a_time() {
    let served = serve();
    let (here, _there) = UnixStream::pair().unwrap();
    let mut client = served.control.client(&here).unwrap();
    let line = request(r#""op":"audit""#).into_bytes();
    let mut answered = 0;
    let mut take = |answer: Result<String>| {
        answered += 1;
        assert!(answer.is_ok());
        assert_eq!(served.told.0.lock().unwrap().audits, answered);
        Ok(())
    };
    client.requests(&vec![line; 5], &mut take).unwrap();
    assert_eq!(answered, 5);
}

#[test]
fn a_bad_request_is_answered_and_the_connection_lives_on() {
    let served = serve();
    let stream = UnixStream::connect(served.path()).unwrap();
    for (line, expected) in [
        ("nonsense", "expected a request, a line of JSON"),
        (
            r#"{"req":"stats"}"#,
            "unknown request 'stats': expected ctl",
        ),
        (r#"{"req":"ctl"}"#, "args name no known operation"),
        (&request(r#""op":"explode""#), "unknown variant `explode`"),
        (
            &request(r#""op":"set","arm":"default","change":{"enabel":[]}"#),
            "unknown field `enabel`",
        ),
        (
            &request(r#""op":"show","arm":"default","more":1"#),
            "unknown field `more`",
        ),
    ] {
        let answer = &raw(&stream, &[line])[0];
        assert_eq!(answer["errno"], libc::EINVAL, "{answer}");
        let text = answer["args"]["resp"].as_str().unwrap();
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(raw(&stream, &[&request(r#""op":"rules""#)])[0]["errno"], 0);
    assert_eq!(served.publications(), 0);
}

#[test]
fn a_line_without_end_is_cut_off() {
    let served = serve();
    let mut stream = UnixStream::connect(served.path()).unwrap();
    let begin = Instant::now();
    let _ = stream.write_all(&[b' '; 100_000]);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty());
    // The line was refused for its length, not after a timeout.
    assert!(begin.elapsed() < Duration::from_secs(3));
    served.done(&["ctl", "show"]);
}
