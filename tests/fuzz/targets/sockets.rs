// SPDX-License-Identifier: GPL-2.0-only
//! What clients of the two sockets send. Each line of an input is a line of a client; after a line
//! '+' the next one arrives together with the one before.

use super::live::Forgets;
use scx_roost::daemon::control::Control;
use scx_roost::policy::settings::Settings;
use scx_roost::wire::socket::Client;
use scx_roost::wire::stats::host::{Condition, CpuGauges};
use scx_roost::wire::stats::server;
use scx_roost::wire::stats::source::CounterSource;
use serde_json::Value;
use std::os::unix::net::UnixStream;

/// The most lines that arrive together (socket.rs).
const TOGETHER: usize = 64;

pub fn control(input: &[u8]) {
    let (source, live) = (CounterSource::default(), Forgets);
    let control = Control::new(Settings::default(), false, source.clone());
    let image = control.image(8, vec![1024; 8]);
    let attached = control.attach(Box::new(live.clone()), &image);
    let (here, _there) = UnixStream::pair().expect("a pair of sockets");
    let mut client = control.client(&here).expect("a client");
    ask(input, client.as_mut());
    // The next scheduler starts with the arms and rules that these requests left.
    drop(attached);
    let arms = control.image(8, vec![1024; 8]);
    live.check(&arms);
    let show = br#"{"req":"ctl","args":{"op":"show"}}"#.to_vec();
    let shown = client.requests(&[show], &mut |answer| answer.map(drop));
    shown.expect("the arms can be shown");
    assert!(source.totals().arms.contains_key("default"));
}

pub fn statistics(input: &[u8]) {
    let source = CounterSource::default();
    source.set_cpus(
        (0..2).map(|cpu| (cpu, CpuGauges::default())).collect(),
        None,
    );
    source.set_condition(Condition::CapacityLimited, Some("CPU 1".into()));
    ask(input, server::client(source).as_mut());
}

/// Each request gets an answer, which is one line.
fn ask(input: &[u8], client: &mut dyn Client) {
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut joined = false;
    for line in input.split(|b| *b == b'\n') {
        if line == b"+" {
            joined = true;
            continue;
        }
        if !joined || lines.len() == TOGETHER {
            answers(&mut lines, client);
        }
        lines.push(line.to_vec());
        joined = false;
    }
    answers(&mut lines, client);
}

fn answers(lines: &mut Vec<Vec<u8>>, client: &mut dyn Client) {
    let mut got = 0;
    let taken = client.requests(lines, &mut |answer| {
        got += 1;
        if let Ok(json) = answer {
            assert!(!json.contains('\n'));
            let value: Result<Value, _> = serde_json::from_str(&json);
            value.expect("an answer is JSON");
        }
        Ok(())
    });
    taken.expect("every answer is taken");
    assert_eq!(got, lines.len());
    lines.clear();
}
